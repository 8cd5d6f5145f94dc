// Applies what is committed to the logs of a node: to its store while the node catches up, and to its database once that
// is open.

import type { Changes } from '../../common/changes.js';
import type { Store, StoreOperation } from '../../storage/store.js';
import { CATALOGUE } from '../logs/store-entries.js';
import type { HeldCollections, HoldingDatabase } from '../placement/held-collections.js';
import type { Placements } from '../placement/placements.js';
import type { AdoptingDatabase } from '../snapshots/file-adoption.js';
import type { SharedFile, StoreLayout } from '../snapshots/log-state.js';
import type { ReloadingDatabase } from '../snapshots/state-loader.js';

/** The methods of the node's database for following the logs. */
export interface FollowingDatabase extends ReloadingDatabase, HoldingDatabase, AdoptingDatabase {
  /** Bytes of the files that a collection has got since it was loaded. */
  writtenFileBytes(incarnation: string): number;
  /** Whether the data of a collection is damaged here. If any is, other nodes should own the logs. */
  isFailed(incarnation: string): boolean;
  /** The id of a collection; undefined if it is gone. */
  idOf(incarnation: string): string | undefined;
  followCatalogue(operations: readonly StoreOperation[]): Promise<void>;
  followCollection(
    incarnation: string,
    operations: readonly StoreOperation[],
  ): Promise<{ readonly stored: Promise<void> }>;
}

export interface LogApplierOptions {
  readonly store: Store;
  readonly layout: StoreLayout;
  readonly placements: Placements;
  /** Notified of changes of the catalogue. */
  readonly changes: Changes;
  /** Writes a shared file that belongs to a log to the store, under a name. */
  readonly fetch: (log: string, file: SharedFile, name: string) => Promise<void>;
}

export class LogApplier {
  readonly #options: LogApplierOptions;
  #catalogueVersion = 0;
  #open: { readonly database: FollowingDatabase; readonly held: HeldCollections } | null = null;

  constructor(options: LogApplierOptions) {
    this.#options = options;
  }

  /** Another number after each change of the catalogue. */
  get catalogueVersion(): number {
    return this.#catalogueVersion;
  }

  /** Null until the database is open. */
  get database(): FollowingDatabase | null {
    return this.#open?.database ?? null;
  }

  /** From now on, operations go to the database. It must have loaded its collections. */
  attach(database: FollowingDatabase, held: HeldCollections): void {
    this.#open = { database, held };
  }

  /** Resolves when the operations are applied, and `stored` when they are stored. */
  async apply(
    log: string,
    operations: readonly StoreOperation[],
  ): Promise<{ readonly stored: Promise<void> }> {
    if (log === CATALOGUE) {
      await this.applyCatalogue(operations);
      return { stored: Promise.resolve() };
    }
    if (this.#open !== null) return this.#open.database.followCollection(log, operations);
    const { store, layout, fetch } = this.#options;
    const added = layout.filesAddedBy(operations, store, log);
    for (const { file, name } of added) await fetch(log, file, name);
    const naming = added.map(({ operation }) => operation);
    return { stored: store.commit([...naming, ...operations]) };
  }

  /** Stores and applies operations of the catalogue. */
  async applyCatalogue(operations: readonly StoreOperation[]): Promise<void> {
    this.#options.placements.apply(operations);
    if (this.#open === null) {
      await this.#options.store.commit(operations);
    } else {
      const { database, held } = this.#open;
      await database.followCatalogue(operations);
      await held.sync(database);
    }
    this.#catalogueVersion++;
    this.#options.changes.notify();
  }
}
