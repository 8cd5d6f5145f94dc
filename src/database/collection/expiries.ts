// The expiries of the vectors of a collection. They are stored beside the log, one entry per write with expiring
// rows, in the transaction of the write. An entry applies only to rows of that write: vectors that were rewritten or
// deleted are no longer among them. Nothing here deletes vectors.

import type { VectorBatch } from '../../common/types.js';
import { decodeExpiries, type ExpiryTimes, encodeExpiries } from '../../segment/stored-tables.js';
import type { Store, StoreOperation } from '../../storage/store.js';
import { changesUnder, keys } from '../layout/keys.js';
import type { RowAddress, Rows } from './rows.js';

/** The value in `VectorBatch.expiresAtMs` of a vector that never expires, whatever the default of the collection. */
export const NEVER = Number.POSITIVE_INFINITY;

interface Entry {
  readonly times: ExpiryTimes;
  /** The earliest expiry that has not been handled. */
  nextMs: number;
}

/** Operations and a memory change that belong to a write in addition to its rows. */
export interface Companion {
  readonly operations: readonly StoreOperation[];
  apply(): void;
}

/** Entries without live rows are pruned at this number of rows, and then whenever the remaining number has doubled. */
const PRUNE_ROWS_MIN = 10_000;

export class Expiries {
  readonly #incarnation: string;
  readonly #rows: Rows;
  /** By the sequence of the write. */
  readonly #entries = new Map<number, Entry>();
  #rowCount = 0;
  #nextMs = NEVER;
  #pruneRowCount = PRUNE_ROWS_MIN;

  constructor(incarnation: string, rows: Rows) {
    this.#incarnation = incarnation;
    this.#rows = rows;
  }

  /** Throws `data_corrupt`. */
  load(store: Store): void {
    for (const { key, value } of store.list(keys.expiriesOfCollection(this.#incarnation))) {
      this.#add(Number(key[2]), decodeExpiries(value));
    }
  }

  /**
   * The expiries of the rows of a write with these ids; undefined if no row expires. `defaultMs` is the expiry of rows
   * that state none.
   */
  companionOf(
    ids: readonly string[],
    { expiresAtMs }: Pick<VectorBatch, 'expiresAtMs'>,
    { sequence, defaultMs }: { readonly sequence: number; readonly defaultMs: number },
  ): Companion | undefined {
    if (expiresAtMs === undefined && defaultMs === NEVER) return undefined;
    const times = new Map<string, number>();
    for (const [i, id] of ids.entries()) {
      const stated = expiresAtMs?.[i] ?? Number.NaN;
      const timeMs = Number.isNaN(stated) ? defaultMs : stated;
      if (timeMs !== NEVER) times.set(id, timeMs);
    }
    if (times.size === 0) return undefined;
    const key = keys.expiries(this.#incarnation, sequence);
    return {
      operations: [{ kind: 'put', key, value: encodeExpiries(times) }],
      apply: () => this.#add(sequence, times),
    };
  }

  /** Applies the changes that another node committed. */
  follow(operations: readonly StoreOperation[]): void {
    const prefix = keys.expiriesOfCollection(this.#incarnation);
    for (const { key, value } of changesUnder(prefix, operations)) {
      if (value === null) this.#remove(Number(key[2]));
      else this.#add(Number(key[2]), decodeExpiries(value));
    }
  }

  /** The expiry of the vector in this live row, or NEVER. */
  timeOf({ segment, row }: RowAddress): number {
    const entry = this.#entries.get(segment.insertedSequence(row));
    return entry?.times.get(segment.id(row)) ?? NEVER;
  }

  /** Whether `planSweep` has work to do. */
  isDue(nowMs: number): boolean {
    return this.#nextMs <= nowMs || this.#rowCount > this.#pruneRowCount;
  }

  /**
   * At most `countMax` expired vectors, and the removal of entries that have no other rows. Nothing changes until the
   * companion is applied.
   */
  planSweep(nowMs: number, countMax: number): { ids: string[]; companion: Companion } {
    const mayPrune = this.#rowCount > this.#pruneRowCount;
    const ids: string[] = [];
    const finished: number[] = [];
    const nextTimes = new Map<Entry, number>();
    let nextMs = NEVER;
    let isComplete = true;
    for (const [sequence, entry] of this.#entries) {
      let entryNextMs = entry.nextMs;
      if (ids.length >= countMax || finished.length >= countMax) isComplete = false;
      else if (entry.nextMs <= nowMs) {
        const idCount = ids.length;
        entryNextMs = this.#collect(sequence, entry, { nowMs, countMax, ids });
        // Kept until the deletion is applied, because a copy of the rows before that needs their expiries.
        if (ids.length > idCount && entryNextMs === NEVER) entryNextMs = entry.nextMs;
      } else if (mayPrune && !this.#hasLive(sequence, entry)) entryNextMs = NEVER;
      if (entryNextMs === NEVER) finished.push(sequence);
      else nextMs = Math.min(nextMs, entryNextMs);
      if (entryNextMs !== entry.nextMs) nextTimes.set(entry, entryNextMs);
    }
    const apply = () => {
      for (const [entry, timeMs] of nextTimes) entry.nextMs = timeMs;
      for (const sequence of finished) this.#remove(sequence);
      this.#nextMs = nextMs;
      if (isComplete) this.#pruneRowCount = Math.max(PRUNE_ROWS_MIN, 2 * this.#rowCount);
    };
    const operations = finished.map(
      (sequence): StoreOperation => ({
        kind: 'remove',
        key: keys.expiries(this.#incarnation, sequence),
      }),
    );
    return { ids, companion: { operations, apply } };
  }

  /** Adds the expired ids of an entry. Returns its next expiry, which is unchanged if not all ids fit. */
  #collect(
    sequence: number,
    entry: Entry,
    due: { readonly nowMs: number; readonly countMax: number; readonly ids: string[] },
  ): number {
    let nextMs = NEVER;
    for (const [id, timeMs] of entry.times) {
      if (timeMs > due.nowMs) nextMs = Math.min(nextMs, timeMs);
      else if (this.#isLive(id, sequence)) {
        if (due.ids.length === due.countMax) return entry.nextMs;
        due.ids.push(id);
      }
    }
    return nextMs;
  }

  #hasLive(sequence: number, { times }: Entry): boolean {
    for (const id of times.keys()) if (this.#isLive(id, sequence)) return true;
    return false;
  }

  #isLive(id: string, sequence: number): boolean {
    const address = this.#rows.find(Buffer.from(id));
    return address?.segment.insertedSequence(address.row) === sequence;
  }

  #add(sequence: number, times: ExpiryTimes): void {
    let nextMs = NEVER;
    for (const timeMs of times.values()) nextMs = Math.min(nextMs, timeMs);
    this.#entries.set(sequence, { times, nextMs });
    this.#rowCount += times.size;
    this.#nextMs = Math.min(this.#nextMs, nextMs);
  }

  #remove(sequence: number): void {
    this.#rowCount -= this.#entries.get(sequence)?.times.size ?? 0;
    this.#entries.delete(sequence);
  }
}
