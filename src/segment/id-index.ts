// Where the living row of each id is. Open addressing over one typed array: no object per row and no
// Map, which ends at 16.7 million entries. Ids are not kept: a slot has the hash, the segment's
// number and the row, and the caller compares the id there. One thread only.

import { randomBytes } from 'node:crypto';
import { assert } from '../errors.js';
import { type HashKey, hashBytes } from './id-hash.js';

/** Says whether the row there has the id that is looked for. */
export type IdEquals = (segmentNumber: number, row: number) => boolean;

/** Words of a slot: hash, segment number + 1 (0 when the slot is empty), row. */
const STRIDE = 3;
const BITS_MIN = 4;
/** 2^30 slots of three words are as much as one typed array holds. */
const BITS_MAX = 30;

export class IdIndex {
  #count = 0;
  #bits = BITS_MIN;
  #slots = new Uint32Array(STRIDE << BITS_MIN);
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
    return this.#slots.byteLength;
  }

  /** The slot of the id, valid until the next `insert`, `removeAt` or `clear`; -1 when it has none. */
  find(id: Uint8Array, equals: IdEquals): number {
    const slot = this.#probe(hashBytes(id, this.#key), equals);
    return this.#slots[slot * STRIDE + 1] === 0 ? -1 : slot;
  }

  segmentNumberAt(slot: number): number {
    return this.#slots[slot * STRIDE + 1]! - 1;
  }

  rowAt(slot: number): number {
    return this.#slots[slot * STRIDE + 2]!;
  }

  /** Adds an id that is not there. */
  insert(id: Uint8Array, segmentNumber: number, row: number): void {
    // At most three quarters full: linear probing is short until there.
    if ((this.#count + 1) * 4 > 3 * 2 ** this.#bits) this.#grow();
    const hash = hashBytes(id, this.#key);
    this.#write(this.#probe(hash, isNever), hash, segmentNumber + 1, row);
    this.#count++;
  }

  /** Points the id of the slot to another row. */
  moveTo(slot: number, segmentNumber: number, row: number): void {
    assert(this.#slots[slot * STRIDE + 1] !== 0, `slot ${slot} holds an id`);
    this.#write(slot, this.#slots[slot * STRIDE]!, segmentNumber + 1, row);
  }

  /** Leaves no mark behind: entries after the slot move up, so that searches never get longer. */
  removeAt(slot: number): void {
    const slots = this.#slots;
    assert(slots[slot * STRIDE + 1] !== 0, `slot ${slot} holds an id`);
    const mask = 2 ** this.#bits - 1;
    let hole = slot;
    for (let next = (slot + 1) & mask; slots[next * STRIDE + 1] !== 0; next = (next + 1) & mask) {
      const at = next * STRIDE;
      const home = slots[at]! >>> (32 - this.#bits);
      // An entry may move up unless the hole lies before its home.
      if (((next - home) & mask) >= ((next - hole) & mask)) {
        this.#write(hole, slots[at]!, slots[at + 1]!, slots[at + 2]!);
        hole = next;
      }
    }
    this.#write(hole, 0, 0, 0);
    this.#count--;
  }

  clear(): void {
    this.#count = 0;
    this.#bits = BITS_MIN;
    this.#slots = new Uint32Array(STRIDE << BITS_MIN);
  }

  /** The slot that holds the id, or the empty one where it belongs. */
  #probe(hash: number, equals: IdEquals): number {
    const slots = this.#slots;
    const mask = 2 ** this.#bits - 1;
    let slot = hash >>> (32 - this.#bits);
    for (;;) {
      const at = slot * STRIDE;
      const segment = slots[at + 1]!;
      if (segment === 0) return slot;
      if (slots[at] === hash && equals(segment - 1, slots[at + 2]!)) return slot;
      slot = (slot + 1) & mask;
    }
  }

  #write(slot: number, hash: number, segment: number, row: number): void {
    const at = slot * STRIDE;
    this.#slots[at] = hash;
    this.#slots[at + 1] = segment;
    this.#slots[at + 2] = row;
  }

  /** A slot is chosen by the upper bits of the hash, so that doubling reads and writes in order. */
  #grow(): void {
    assert(this.#bits < BITS_MAX, `the id index has room for ${this.#count} ids`);
    const previous = this.#slots;
    this.#bits++;
    this.#slots = new Uint32Array(STRIDE * 2 ** this.#bits);
    for (let at = 0; at < previous.length; at += STRIDE) {
      if (previous[at + 1] === 0) continue;
      const slot = this.#probe(previous[at]!, isNever);
      this.#write(slot, previous[at]!, previous[at + 1]!, previous[at + 2]!);
    }
  }
}

function isNever(): boolean {
  return false;
}
