// Clients that write all the time: they insert, update, patch and delete, and know what must be
// there when they pause. Each keeps to ids of its own, so that what it knows is exact.

import assert from 'node:assert/strict';
import type { createCaller } from '../server-process.js';

type Call = ReturnType<typeof createCaller>['call'];

export interface Row {
  readonly id: string;
  readonly values: readonly number[];
  readonly metadata: { readonly owner: number; readonly n: number; readonly version: number };
}

const BATCH_ROWS_MAX = 20;
/** Rows of one writer hover around this number. */
const ROWS_WANTED = 700;
const DIMENSION = 4;

export class RestlessWriter {
  readonly #call: Call;
  readonly #path: string;
  readonly #owner: number;
  readonly #random: () => number;
  /** By id, as acknowledged. */
  readonly rows = new Map<string, Row>();
  #created = 0;
  #version = 0;
  #running: Promise<void> | undefined;
  #isStopping = false;
  writeCount = 0;

  constructor(options: { call: Call; path: string; owner: number; random: () => number }) {
    this.#call = options.call;
    this.#path = options.path;
    this.#owner = options.owner;
    this.#random = options.random;
  }

  resume(): void {
    this.#isStopping = false;
    this.#running = this.#write();
  }

  /** Resolves when nothing of it is under way; rejects when a write was not as it should. */
  async pause(): Promise<void> {
    this.#isStopping = true;
    await this.#running;
  }

  /** Fills the collection up to the wanted number. */
  async fill(): Promise<void> {
    while (this.rows.size < ROWS_WANTED) await this.#upsert(this.#freshRows(100));
  }

  async #write(): Promise<void> {
    while (!this.#isStopping) {
      await this.#writeOnce();
      this.writeCount++;
    }
  }

  #writeOnce(): Promise<void> {
    const choice = this.#random();
    const growth = this.rows.size < ROWS_WANTED ? 0.5 : 0.2;
    if (choice < growth) return this.#upsert(this.#freshRows(this.#below(BATCH_ROWS_MAX) + 1));
    if (choice < 0.7) return this.#upsert(this.#someIds().map((id) => this.#row(id)));
    if (choice < 0.8) return this.#patch(this.#someIds()[0]!);
    if (choice < 0.95) return this.#deleteIds(this.#someIds());
    return this.#deleteMatching(this.#below(50));
  }

  async #upsert(rows: readonly Row[]): Promise<void> {
    await this.#post('/vectors', { vectors: rows });
    for (const row of rows) this.rows.set(row.id, row);
  }

  async #patch(id: string): Promise<void> {
    const old = this.rows.get(id)!;
    const metadata = { ...old.metadata, version: ++this.#version };
    const change = { metadata: { version: metadata.version } };
    const reply = await this.#call('PATCH', `${this.#path}/vectors/${id}`, change);
    assert.equal(reply.status, 200, reply.text);
    this.rows.set(id, { ...old, metadata });
  }

  async #deleteIds(ids: readonly string[]): Promise<void> {
    const { deleted_count } = await this.#post('/vectors/delete', { ids });
    assert.equal(deleted_count, ids.length);
    for (const id of ids) this.rows.delete(id);
  }

  async #deleteMatching(n: number): Promise<void> {
    const matching = [...this.rows.values()].filter(({ metadata }) => metadata.n === n);
    const filter = { owner: this.#owner, n };
    const { deleted_count } = await this.#post('/vectors/delete', { filter });
    assert.equal(deleted_count, matching.length);
    for (const { id } of matching) this.rows.delete(id);
  }

  async #post(path: string, body: object): Promise<{ deleted_count?: number }> {
    const reply = await this.#call('POST', this.#path + path, body);
    assert.equal(reply.status, 200, reply.text);
    return reply.json();
  }

  #freshRows(count: number): Row[] {
    return Array.from({ length: count }, () => this.#row(`${this.#owner}-${this.#created++}`));
  }

  /** Few different values, so that many scores are equal and ids decide. */
  #row(id: string): Row {
    return {
      id,
      values: Array.from({ length: DIMENSION }, () => this.#below(5) - 2),
      metadata: { owner: this.#owner, n: this.#below(50), version: ++this.#version },
    };
  }

  /** One to a batch of different ids that exist. */
  #someIds(): string[] {
    const ids = [...this.rows.keys()];
    const start = this.#below(ids.length);
    return ids.slice(start, start + 1 + this.#below(BATCH_ROWS_MAX));
  }

  #below(bound: number): number {
    return Math.floor(this.#random() * bound);
  }
}
