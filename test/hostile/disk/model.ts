// What a service must contain: the rows, collections, keys and backups that it has acknowledged. A request without an
// acknowledgement has taken effect completely or not at all; which one is determined once and must not change.

import type { createCaller, Reply } from '../../support/server-process.js';

export type Send = ReturnType<typeof createCaller>['call'];

/** The number that each row was written with, by id. */
export type Rows = ReadonlyMap<string, number>;

export const DIMENSION = 8;

function valuesOf(number: number): number[] {
  return Array.from({ length: DIMENSION }, (_, i) => (number * 31 + i * 7) % 97);
}

export function rowOf(id: string, number: number): object {
  return { id, values: valuesOf(number), metadata: { number } };
}

/** A change that was not acknowledged. */
interface Unsure {
  readonly what: string;
  readonly collection: string;
  /** Null for a deleted id. */
  readonly rows: ReadonlyMap<string, number | null>;
}

interface UnsureCollection {
  readonly what: string;
  /** The contents of the collection if the request took effect; null if it is then gone. */
  readonly rows: Rows | null;
}

interface StoredRow {
  readonly id: string;
  readonly values: readonly number[];
  readonly metadata: { readonly number: number };
}

export class Model {
  readonly #collections = new Map<string, Map<string, number>>();
  #unsure: Unsure[] = [];
  readonly #unsureCollections = new Map<string, UnsureCollection>();
  /** Ids of API keys. */
  readonly #keys = new Set<string>();
  readonly #violations: string[] = [];
  #lastBackup: { folder: string; model: Model } | undefined;

  /** Returns the violations found since the last call. */
  takeViolations(): string[] {
    return this.#violations.splice(0);
  }

  violate(what: string): void {
    this.#violations.push(what);
  }

  rowsOf(collection: string): Rows {
    return this.#collections.get(collection) ?? new Map();
  }

  has(collection: string): boolean {
    return this.#collections.has(collection);
  }

  get collections(): string[] {
    return [...this.#collections.keys()];
  }

  /** The last backup and its expected contents. */
  get lastBackup(): { readonly folder: string; readonly model: Model } | undefined {
    return this.#lastBackup;
  }

  backedUp(folder: string): void {
    const model = new Model();
    for (const [id, rows] of this.#collections) model.changed(id, rows);
    for (const id of this.#keys) model.madeKey(id);
    this.#lastBackup = { folder, model };
  }

  wrote(collection: string, rows: ReadonlyMap<string, number | null>): void {
    const stored = this.#collections.get(collection);
    if (stored === undefined) return;
    for (const [id, number] of rows) {
      if (number === null) stored.delete(id);
      else stored.set(id, number);
    }
  }

  mayHaveWritten(what: string, collection: string, rows: ReadonlyMap<string, number | null>): void {
    this.#unsure.push({ what, collection, rows });
  }

  /** @param rows null for a deletion. */
  changed(collection: string, rows: Rows | null): void {
    if (rows === null) this.#collections.delete(collection);
    else this.#collections.set(collection, new Map(rows));
  }

  mayHaveChanged(what: string, collection: string, rows: Rows | null): void {
    this.#unsureCollections.set(collection, { what, rows });
  }

  madeKey(id: string): void {
    this.#keys.add(id);
  }

  removedKey(id: string): void {
    this.#keys.delete(id);
  }

  /** Finds out whether requests without an acknowledgement took effect. */
  async settle(send: Send): Promise<void> {
    if (this.#unsureCollections.size > 0) {
      const found = await listCollections(send);
      for (const [id, { what, rows }] of this.#unsureCollections) {
        const isThere = found.includes(id);
        if (isThere === (rows !== null)) this.changed(id, rows);
        else if (isThere !== this.has(id)) this.violate(`${what}: collection ${id} is neither`);
      }
      this.#unsureCollections.clear();
    }
    const unsure = this.#unsure;
    this.#unsure = [];
    for (const change of unsure) await this.#settleRows(send, change);
  }

  async #settleRows(send: Send, { what, collection, rows }: Unsure): Promise<void> {
    const before = this.#collections.get(collection);
    if (before === undefined) return;
    const found = await fetchRows(send, collection, [...rows.keys()]);
    const matches = (wanted: (id: string) => number | null | undefined) =>
      [...rows.keys()].every(
        (id) => (found.get(id)?.metadata.number ?? null) === (wanted(id) ?? null),
      );
    if (matches((id) => rows.get(id))) this.wrote(collection, rows);
    else if (!matches((id) => before.get(id))) {
      this.violate(
        `${what}: ${rows.size} rows of ${collection} are neither the old nor the new ones`,
      );
    }
  }

  /** Compares all data of the service with what it has acknowledged. */
  async check(send: Send): Promise<void> {
    await this.settle(send);
    const found = await listCollections(send);
    for (const id of this.collections) {
      if (!found.includes(id)) this.violate(`collection ${id} is gone`);
    }
    for (const id of found) {
      if (!this.has(id)) this.violate(`collection ${id} was not acknowledged, or was deleted`);
    }
    for (const id of this.collections) if (found.includes(id)) await this.#checkRows(send, id);
    const { keys } = (await must(send('GET', '/v1/keys'))).json<{ keys: { id: string }[] }>();
    const ids = new Set(keys.map(({ id }) => id));
    for (const id of this.#keys) if (!ids.has(id)) this.violate(`API key ${id} is gone`);
  }

  async #checkRows(send: Send, collection: string): Promise<void> {
    const rows = this.rowsOf(collection);
    const counted = await must(send('POST', `/v1/collections/${collection}/count`, {}));
    const { count } = counted.json<{ count: number }>();
    if (count !== rows.size) this.violate(`${collection} has ${count} rows, expected ${rows.size}`);
    const found = await fetchRows(send, collection, [...rows.keys()]);
    let wrongCount = 0;
    for (const [id, number] of rows) {
      const row = found.get(id);
      const isRight =
        row?.metadata.number === number && row.values.join() === valuesOf(number).join();
      if (!isRight) wrongCount++;
    }
    if (wrongCount > 0)
      this.violate(`${wrongCount} acknowledged rows of ${collection} are wrong or gone`);
  }
}

async function listCollections(send: Send): Promise<string[]> {
  const reply = await must(send('GET', '/v1/collections?limit=1000'));
  return reply.json<{ collections: { id: string }[] }>().collections.map(({ id }) => id);
}

async function fetchRows(
  send: Send,
  collection: string,
  ids: readonly string[],
): Promise<Map<string, StoredRow>> {
  const found = new Map<string, StoredRow>();
  for (let at = 0; at < ids.length; at += 500) {
    const body = { ids: ids.slice(at, at + 500), include_values: true };
    const reply = await must(send('POST', `/v1/collections/${collection}/vectors/fetch`, body));
    for (const row of reply.json<{ vectors: StoredRow[] }>().vectors) found.set(row.id, row);
  }
  return found;
}

async function must(sending: Promise<Reply>): Promise<Reply> {
  const reply = await sending;
  if (reply.status !== 200) throw new Error(`a read failed: ${reply.status} ${reply.text}`);
  return reply;
}
