// The index from ids to live rows. It allocates no object per row and uses no Map, which is limited to 16.7
// million entries. It does not store ids: an entry consists of hash, segment number and row, and the caller
// compares the id of that row. Few ids share one table and many are spread over 256, so that no insert has to
// move millions of entries. Only one thread uses it.

import { randomBytes } from 'node:crypto';
import { type HashKey, hashBytes } from './id-hash.js';
import { IdTable, type RowMatcher } from './id-table.js';

const SINGLE_TABLE_BITS_MIN = 4;
/** About 25,000 ids: distributing them over 256 tables takes a millisecond. */
const SINGLE_TABLE_BITS_MAX = 15;
/** The number of ids at which they are distributed over many tables. */
const SINGLE_TABLE_COUNT_MAX = 0.75 * 2 ** SINGLE_TABLE_BITS_MAX;
const TABLE_COUNT = 256;
const TABLE_BITS_MIN = 8;
/** Slots in 256 tables then take 30 bits: 800 million ids. */
const TABLE_BITS_MAX = 22;

export class IdIndex {
  #tables = [new IdTable(SINGLE_TABLE_BITS_MIN, SINGLE_TABLE_BITS_MAX)];
  #count = 0;
  readonly #key: HashKey;

  /** Only tests pass a key. */
  constructor(key?: HashKey) {
    const random = randomBytes(8);
    this.#key = key ?? [random.readInt32LE(0), random.readInt32LE(4)];
  }

  get count(): number {
    return this.#count;
  }

  get hostBytes(): number {
    return this.#tables.reduce((sum, table) => sum + table.hostBytes, 0);
  }

  /** The hash by which this index, and no other one, finds an id. */
  hashOf(id: Uint8Array): number {
    return hashBytes(id, this.#key);
  }

  /**
   * Returns the slot of the id with a hash, or -1. It is valid until the next `insert`, `removeAt` or `clear`.
   * @param matches is asked whether rows with the same hash have the id.
   */
  find(hash: number, matches: RowMatcher): number {
    const index = this.#tableIndex(hash);
    const slot = this.#tables[index]!.find(hash, matches);
    return slot < 0 ? -1 : (index << TABLE_BITS_MAX) | slot;
  }

  segmentNumberAt(slot: number): number {
    return this.#tableAt(slot).segmentNumberAt(inTable(slot));
  }

  rowAt(slot: number): number {
    return this.#tableAt(slot).rowAt(inTable(slot));
  }

  /** Adds an id with a hash, which must not be present. */
  insert(hash: number, segmentNumber: number, row: number): void {
    if (this.#tables.length === 1 && this.#count >= SINGLE_TABLE_COUNT_MAX) this.#distribute();
    this.#tables[this.#tableIndex(hash)]!.insert(hash, segmentNumber, row);
    this.#count++;
  }

  /** Points the id of the slot to another row. */
  moveTo(slot: number, segmentNumber: number, row: number): void {
    this.#tableAt(slot).moveTo(inTable(slot), segmentNumber, row);
  }

  removeAt(slot: number): void {
    this.#tableAt(slot).removeAt(inTable(slot));
    this.#count--;
  }

  clear(): void {
    this.#tables = [new IdTable(SINGLE_TABLE_BITS_MIN, SINGLE_TABLE_BITS_MAX)];
    this.#count = 0;
  }

  #distribute(): void {
    const [single] = this.#tables;
    this.#tables = Array.from(
      { length: TABLE_COUNT },
      () => new IdTable(TABLE_BITS_MIN, TABLE_BITS_MAX),
    );
    single!.forEach((hash, segmentNumber, row) => {
      this.#tables[this.#tableIndex(hash)]!.insert(hash, segmentNumber, row);
    });
  }

  #tableIndex(hash: number): number {
    return this.#tables.length === 1 ? 0 : hash >>> 24;
  }

  #tableAt(slot: number): IdTable {
    return this.#tables[slot >>> TABLE_BITS_MAX]!;
  }
}

function inTable(slot: number): number {
  return slot & (2 ** TABLE_BITS_MAX - 1);
}
