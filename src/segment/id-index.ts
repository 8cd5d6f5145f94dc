// Where the living row of each id is: no object per row and no Map, which ends at 16.7 million
// entries. Ids are not kept: an entry has the hash, the segment's number and the row, and the caller
// compares the id there. One table for few ids, 256 for many, so that no insert waits for millions
// of entries to move. One thread only.

import { randomBytes } from 'node:crypto';
import { type HashKey, hashBytes } from './id-hash.js';
import { IdTable, type RowTest } from './id-table.js';

const SINGLE_TABLE_BITS_MIN = 4;
/** Some 25 000 ids: distributing them takes a millisecond. */
const SINGLE_TABLE_BITS_MAX = 15;
/** As full as a table gets. */
const SINGLE_TABLE_COUNT_MAX = 0.75 * 2 ** SINGLE_TABLE_BITS_MAX;
const TABLE_COUNT = 256;
const TABLE_BITS_MIN = 8;
/** With 256 tables, a slot of any fits 30 bits; 800 million ids. */
const TABLE_BITS_MAX = 22;

export class IdIndex {
  #tables = [new IdTable(SINGLE_TABLE_BITS_MIN, SINGLE_TABLE_BITS_MAX)];
  #count = 0;
  readonly #key: HashKey;

  /** Only tests choose the key. */
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

  /**
   * The slot of the id, or -1. `isWanted` compares the id at the rows that have its hash. The slot is
   * valid until the next `insert`, `removeAt` or `clear`.
   */
  find(id: Uint8Array, isWanted: RowTest): number {
    const hash = hashBytes(id, this.#key);
    const index = this.#tableIndex(hash);
    const slot = this.#tables[index]!.find(hash, isWanted);
    return slot < 0 ? -1 : (index << TABLE_BITS_MAX) | slot;
  }

  segmentNumberAt(slot: number): number {
    return this.#tableAt(slot).segmentNumberAt(inTable(slot));
  }

  rowAt(slot: number): number {
    return this.#tableAt(slot).rowAt(inTable(slot));
  }

  /** Adds an id that is not there. */
  insert(id: Uint8Array, segmentNumber: number, row: number): void {
    if (this.#tables.length === 1 && this.#count >= SINGLE_TABLE_COUNT_MAX) this.#distribute();
    const hash = hashBytes(id, this.#key);
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
