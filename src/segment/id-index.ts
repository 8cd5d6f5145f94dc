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

export class IdIndex {
  private entryCount = 0;
  private bits = BITS_MIN;
  private slots = new Uint32Array(STRIDE << BITS_MIN);
  private readonly key: HashKey;

  /** A key is only given by tests. */
  constructor(key?: HashKey) {
    const random = randomBytes(8);
    this.key = key ?? [random.readInt32LE(0), random.readInt32LE(4)];
  }

  get count(): number {
    return this.entryCount;
  }

  get hostBytes(): number {
    return this.slots.byteLength;
  }

  /** The slot of the id, valid until the next change, or -1. See `segmentNumberAt` and `rowAt`. */
  find(id: Uint8Array, equals: IdEquals): number {
    const slot = this.probe(hashBytes(id, this.key), equals);
    return this.slots[slot * STRIDE + 1] === 0 ? -1 : slot;
  }

  segmentNumberAt(slot: number): number {
    return this.slots[slot * STRIDE + 1]! - 1;
  }

  rowAt(slot: number): number {
    return this.slots[slot * STRIDE + 2]!;
  }

  /** Points the id, new or known, to a row. */
  set(id: Uint8Array, equals: IdEquals, segmentNumber: number, row: number): void {
    const hash = hashBytes(id, this.key);
    let slot = this.probe(hash, equals);
    if (this.slots[slot * STRIDE + 1] === 0) {
      // At most three quarters full: linear probing is short until there.
      if ((this.entryCount + 1) * 4 > 3 * 2 ** this.bits) {
        this.grow();
        slot = this.probe(hash, equals);
      }
      this.entryCount++;
    }
    this.write(slot, hash, segmentNumber + 1, row);
  }

  /**
   * Points the id to where a compaction moved its row, if it still points to the row `from`; the id
   * itself is not compared, since a row has one id.
   */
  relocate(
    id: Uint8Array,
    from: { readonly segmentNumber: number; readonly row: number },
    to: { readonly segmentNumber: number; readonly row: number },
  ): boolean {
    const hash = hashBytes(id, this.key);
    const slot = this.probe(
      hash,
      (segmentNumber, row) => segmentNumber === from.segmentNumber && row === from.row,
    );
    if (this.slots[slot * STRIDE + 1] === 0) return false;
    this.write(slot, hash, to.segmentNumber + 1, to.row);
    return true;
  }

  /** False when the id is not there. */
  remove(id: Uint8Array, equals: IdEquals): boolean {
    const found = this.find(id, equals);
    if (found < 0) return false;
    // Backward shift: entries behind the hole move up unless that would put them before their home.
    const mask = 2 ** this.bits - 1;
    let hole = found;
    for (let slot = (found + 1) & mask; ; slot = (slot + 1) & mask) {
      const at = slot * STRIDE;
      if (this.slots[at + 1] === 0) break;
      const home = this.slots[at]! >>> (32 - this.bits);
      if (((slot - home) & mask) >= ((slot - hole) & mask)) {
        this.write(hole, this.slots[at]!, this.slots[at + 1]!, this.slots[at + 2]!);
        hole = slot;
      }
    }
    this.write(hole, 0, 0, 0);
    this.entryCount--;
    return true;
  }

  /** The slot that holds the id, or the empty one where it belongs. */
  private probe(hash: number, equals: IdEquals): number {
    const { slots } = this;
    const mask = 2 ** this.bits - 1;
    let slot = hash >>> (32 - this.bits);
    for (;;) {
      const at = slot * STRIDE;
      const segment = slots[at + 1]!;
      if (segment === 0) return slot;
      if (slots[at] === hash && equals(segment - 1, slots[at + 2]!)) return slot;
      slot = (slot + 1) & mask;
    }
  }

  private write(slot: number, hash: number, segment: number, row: number): void {
    const at = slot * STRIDE;
    this.slots[at] = hash;
    this.slots[at + 1] = segment;
    this.slots[at + 2] = row;
  }

  /** A slot is chosen by the upper bits of the hash, so that doubling reads and writes in order. */
  private grow(): void {
    const previous = this.slots;
    assert(this.bits < 30, 'the id index has at most 800 million entries');
    this.bits++;
    this.slots = new Uint32Array(STRIDE * 2 ** this.bits);
    for (let at = 0; at < previous.length; at += STRIDE) {
      if (previous[at + 1] === 0) continue;
      const slot = this.probe(previous[at]!, isNever);
      this.write(slot, previous[at]!, previous[at + 1]!, previous[at + 2]!);
    }
  }
}

function isNever(): boolean {
  return false;
}
