// Aliases are additional names of collections. An alias points to an incarnation, so that it survives a rename of the
// collection. The catalogue decides which names are free, and changes aliases under its lock.

import { SagittaError } from '../../common/errors.js';
import type { Store, StoreOperation } from '../../storage/store.js';
import { changesUnder, keys } from '../layout/keys.js';
import { decodeJson, encodeJson, FORMAT_VERSION } from '../layout/manifest.js';

/** The stored form of an alias. */
export interface AliasEntry {
  readonly formatVersion: number;
  readonly name: string;
  /** The incarnation of the target collection. */
  readonly incarnation: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/** The new target of an alias; null removes the alias. */
export interface AliasTarget {
  readonly name: string;
  readonly incarnation: string | null;
}

/** Enough for two aliases, such as a current and a next name, for each of 10,000 collections. */
const ALIASES_MAX = 20_000;

export class Aliases {
  readonly #entries = new Map<string, AliasEntry>();

  /** Throws `data_corrupt`. */
  constructor(store: Store) {
    for (const { key, value } of store.list(keys.aliases)) {
      const name = key[1]!;
      this.#entries.set(name, decodeAlias(value, name));
    }
  }

  find(name: string): AliasEntry | undefined {
    return this.#entries.get(name);
  }

  get entries(): Iterable<AliasEntry> {
    return this.#entries.values();
  }

  /** The names that point to the collection, sorted. */
  namesOf(incarnation: string): string[] {
    return [...this.#entries.values()]
      .filter((entry) => entry.incarnation === incarnation)
      .map(({ name }) => name)
      .sort();
  }

  /**
   * The entries after a change, with null for removed aliases. Throws `limit_exceeded`. Nothing changes until `follow`
   * is called with the `aliasOperations` of these entries, after their commit.
   */
  plan(targets: readonly AliasTarget[], nowMs: number): Map<string, AliasEntry | null> {
    const planned = new Map<string, AliasEntry | null>();
    for (const { name, incarnation } of targets) {
      const old = this.#entries.get(name);
      const createdAtMs = old?.createdAtMs ?? nowMs;
      planned.set(
        name,
        incarnation === null
          ? null
          : { formatVersion: FORMAT_VERSION, name, incarnation, createdAtMs, updatedAtMs: nowMs },
      );
    }
    const added = [...planned].filter(
      ([name, entry]) => entry !== null && !this.#entries.has(name),
    );
    const count = this.#entries.size + added.length;
    if (count > ALIASES_MAX) {
      throw new SagittaError(
        'limit_exceeded',
        `Expected at most ${ALIASES_MAX} aliases; found ${count}. Remove aliases that are not used.`,
      );
    }
    return planned;
  }

  /** Applies operations that this or another node committed and this node stored. Throws `data_corrupt`. */
  follow(operations: readonly StoreOperation[]): void {
    for (const { key, value } of changesUnder(keys.aliases, operations)) {
      const name = key[1]!;
      if (value === null) this.#entries.delete(name);
      else this.#entries.set(name, decodeAlias(value, name));
    }
  }
}

/** Throws `data_corrupt`. */
function decodeAlias(value: Uint8Array, name: string): AliasEntry {
  return decodeJson<AliasEntry>(value, `The alias "${name}"`);
}

export function aliasOperations(
  planned: ReadonlyMap<string, AliasEntry | null>,
): readonly StoreOperation[] {
  return [...planned].map(([name, entry]) =>
    entry === null
      ? { kind: 'remove', key: keys.alias(name) }
      : { kind: 'put', key: keys.alias(name), value: encodeJson(entry) },
  );
}
