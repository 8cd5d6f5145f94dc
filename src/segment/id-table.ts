// An open-addressing hash table of 32-bit hashes: linear probing in one typed array, at most three
// quarters full, with backward-shift deletion so that probes do not get longer. The caller compares
// the ids of equal hashes.

import { assert } from '../common/errors.js';

/** Whether a row has the wanted id. */
export type RowMatcher = (segmentNumber: number, row: number) => boolean;

/** Words per slot: hash, segment number + 1 (0 for an empty slot), row. */
const STRIDE = 3;

export class IdTable {
  count = 0;
  #bits: number;
  #slots: Uint32Array;
  readonly #bitsMax: number;

  constructor(bits: number, bitsMax: number) {
    this.#bits = bits;
    this.#bitsMax = bitsMax;
    this.#slots = new Uint32Array(STRIDE * 2 ** bits);
  }

  get hostBytes(): number {
    return this.#slots.byteLength;
  }

  /** By shifting: a power of two is computed in floating point, which takes longer than a lookup. */
  get #mask(): number {
    return (1 << this.#bits) - 1;
  }

  get #isFull(): boolean {
    return (this.count + 1) * 4 > 3 * (this.#mask + 1);
  }

  segmentNumberAt(slot: number): number {
    return this.#slots[slot * STRIDE + 1]! - 1;
  }

  rowAt(slot: number): number {
    return this.#slots[slot * STRIDE + 2]!;
  }

  /** Returns the slot, or -1. */
  find(hash: number, matches: RowMatcher): number {
    const slots = this.#slots;
    const mask = this.#mask;
    for (let slot = this.#homeOf(hash); ; slot = (slot + 1) & mask) {
      const at = slot * STRIDE;
      const segment = slots[at + 1]!;
      if (segment === 0) return -1;
      if (slots[at] === hash && matches(segment - 1, slots[at + 2]!)) return slot;
    }
  }

  insert(hash: number, segmentNumber: number, row: number): void {
    if (this.#isFull) this.#grow();
    this.#place(hash, segmentNumber + 1, row);
    this.count++;
  }

  moveTo(slot: number, segmentNumber: number, row: number): void {
    this.#expectEntry(slot);
    this.#write(slot, this.#slots[slot * STRIDE]!, segmentNumber + 1, row);
  }

  removeAt(slot: number): void {
    this.#expectEntry(slot);
    const slots = this.#slots;
    const mask = this.#mask;
    let hole = slot;
    for (let next = (slot + 1) & mask; slots[next * STRIDE + 1] !== 0; next = (next + 1) & mask) {
      const at = next * STRIDE;
      // An entry may move into the hole unless the hole is before its home slot.
      if (((next - this.#homeOf(slots[at]!)) & mask) >= ((next - hole) & mask)) {
        this.#write(hole, slots[at]!, slots[at + 1]!, slots[at + 2]!);
        hole = next;
      }
    }
    this.#write(hole, 0, 0, 0);
    this.count--;
  }

  forEach(visit: (hash: number, segmentNumber: number, row: number) => void): void {
    const slots = this.#slots;
    for (let at = 0; at < slots.length; at += STRIDE) {
      if (slots[at + 1] !== 0) visit(slots[at]!, slots[at + 1]! - 1, slots[at + 2]!);
    }
  }

  /**
   * The upper byte of a hash selects a table and the following bits select the slot. Because upper bits come
   * first, growing reads and writes in order.
   */
  #homeOf(hash: number): number {
    return (hash << 8) >>> (32 - this.#bits);
  }

  #place(hash: number, segment: number, row: number): void {
    const mask = this.#mask;
    let slot = this.#homeOf(hash);
    while (this.#slots[slot * STRIDE + 1] !== 0) slot = (slot + 1) & mask;
    this.#write(slot, hash, segment, row);
  }

  #write(slot: number, hash: number, segment: number, row: number): void {
    const at = slot * STRIDE;
    this.#slots[at] = hash;
    this.#slots[at + 1] = segment;
    this.#slots[at + 2] = row;
  }

  #grow(): void {
    assert(this.#bits < this.#bitsMax, `a table of ${this.count} ids is full`);
    const previous = this.#slots;
    this.#bits++;
    this.#slots = new Uint32Array(STRIDE * 2 ** this.#bits);
    for (let at = 0; at < previous.length; at += STRIDE) {
      if (previous[at + 1] !== 0) this.#place(previous[at]!, previous[at + 1]!, previous[at + 2]!);
    }
  }

  #expectEntry(slot: number): void {
    assert(this.#slots[slot * STRIDE + 1] !== 0, `slot ${slot} has an id`);
  }
}
