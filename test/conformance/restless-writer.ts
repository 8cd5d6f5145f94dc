// A client that continuously inserts, updates, patches and deletes vectors and knows which vectors must exist when it
// pauses. Each writer uses its own ids, so this knowledge is exact.

import assert from 'node:assert/strict';
import type { createCaller } from '../support/server-process.js';

type Call = ReturnType<typeof createCaller>['call'];

export interface Row {
  readonly id: string;
  readonly values: readonly number[];
  readonly metadata: { readonly owner: number; readonly n: number; readonly version: number };
}

export const DIMENSION = 4;
const BATCH_ROWS_MAX = 20;
/** The number of rows that a writer stays near. */
const ROWS_WANTED = 500;
/** Exclusive upper bound of the metadata `n`. */
const GROUPS = 50;

export class RestlessWriter {
  readonly #call: Call;
  readonly #path: string;
  readonly #owner: number;
  readonly #random: () => number;
  /** Acknowledged rows by id. */
  readonly rows = new Map<string, Row>();
  #createdCount = 0;
  #version = 0;
  #isStopping = false;
  #running: Promise<void> = Promise.resolve();
  #writing: Promise<void> = Promise.resolve();

  /** @param options.path of the collection. */
  constructor(options: { call: Call; path: string; owner: number; random: () => number }) {
    this.#call = options.call;
    this.#path = options.path;
    this.#owner = options.owner;
    this.#random = options.random;
  }

  /** Writes until the wanted number of rows exists. */
  async fill(): Promise<void> {
    while (this.rows.size < ROWS_WANTED) await this.#upsert(this.#freshRows(100));
  }

  resume(): void {
    this.#isStopping = false;
    this.#running = this.#writeOn();
    // pause() rethrows the error; until then it is not unhandled.
    this.#running.catch(() => {});
  }

  /** Resolves when no write is in progress. Rejects if a reply was wrong. */
  async pause(): Promise<void> {
    this.#isStopping = true;
    await this.#running;
  }

  /** Resolves once a write that starts after this call is acknowledged. */
  async nextWrite(): Promise<void> {
    await this.#writing;
    await this.#writing;
  }

  async #writeOn(): Promise<void> {
    while (!this.#isStopping) {
      this.#writing = this.#writeOnce();
      await this.#writing;
    }
  }

  #writeOnce(): Promise<void> {
    const choice = this.#random();
    const insertsUntil = this.rows.size < ROWS_WANTED ? 0.5 : 0.2;
    const rowCount = 1 + this.#below(BATCH_ROWS_MAX);
    if (choice < insertsUntil) return this.#upsert(this.#freshRows(rowCount));
    if (choice < 0.7) return this.#upsert(this.#someIds().map((id) => this.#row(id)));
    if (choice < 0.8) return this.#patch(this.#someIds()[0]!);
    if (choice < 0.95) return this.#deleteIds(this.#someIds());
    return this.#deleteGroup(this.#below(GROUPS));
  }

  async #upsert(rows: readonly Row[]): Promise<void> {
    await this.#send('POST', '/vectors', { vectors: rows });
    for (const row of rows) this.rows.set(row.id, row);
  }

  async #patch(id: string): Promise<void> {
    const old = this.rows.get(id)!;
    const version = ++this.#version;
    await this.#send('PATCH', `/vectors/${id}`, { metadata: { version } });
    this.rows.set(id, { ...old, metadata: { ...old.metadata, version } });
  }

  async #deleteIds(ids: readonly string[]): Promise<void> {
    const { deleted_count } = await this.#send('POST', '/vectors/delete', { ids });
    assert.equal(deleted_count, ids.length);
    for (const id of ids) this.rows.delete(id);
  }

  async #deleteGroup(n: number): Promise<void> {
    const group = [...this.rows.values()].filter(({ metadata }) => metadata.n === n);
    const filter = { owner: this.#owner, n };
    const { deleted_count } = await this.#send('POST', '/vectors/delete', { filter });
    assert.equal(deleted_count, group.length);
    for (const { id } of group) this.rows.delete(id);
  }

  async #send(method: string, path: string, body: object): Promise<{ deleted_count?: number }> {
    const reply = await this.#call(method, this.#path + path, body);
    assert.equal(reply.status, 200, reply.text);
    return reply.json();
  }

  #freshRows(count: number): Row[] {
    return Array.from({ length: count }, () => this.#row(`${this.#owner}-${this.#createdCount++}`));
  }

  /** Draws from few values, so that many scores are equal and ids decide the order. */
  #row(id: string): Row {
    return {
      id,
      values: Array.from({ length: DIMENSION }, () => this.#below(5) - 2),
      metadata: { owner: this.#owner, n: this.#below(GROUPS), version: ++this.#version },
    };
  }

  /** Picks between one and a batch of distinct existing ids. */
  #someIds(): string[] {
    const ids = [...this.rows.keys()];
    const start = this.#below(ids.length);
    return ids.slice(start, start + 1 + this.#below(BATCH_ROWS_MAX));
  }

  #below(bound: number): number {
    return Math.floor(this.#random() * bound);
  }
}
