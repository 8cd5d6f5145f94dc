// Finds ids that are live twice in a collection of any size. It keeps a hash of eight bytes per row; only rows with
// equal hashes are read again.

import { randomBytes } from 'node:crypto';
import { type HashKey, hashBytes } from '../../segment/id-hash.js';

/** Hashes have 53 bits: among ten million ids, the probability of one false pair is 0.5 %. */
const HIGH_MASK = 0x1f_ffff;
const COUNT_MIN = 1024;

export class DistinctIds {
  readonly #keys: readonly [HashKey, HashKey];
  #hashes = new Float64Array(COUNT_MIN);
  #count = 0;

  constructor() {
    const words = new Uint32Array(new Uint8Array(randomBytes(16)).buffer);
    this.#keys = [
      [words[0]!, words[1]!],
      [words[2]!, words[3]!],
    ];
  }

  add(id: Uint8Array): void {
    if (this.#count === this.#hashes.length) {
      const grown = new Float64Array(this.#count * 2);
      grown.set(this.#hashes);
      this.#hashes = grown;
    }
    this.#hashes[this.#count++] = this.hashOf(id);
  }

  hashOf(id: Uint8Array): number {
    const [high, low] = this.#keys;
    return (hashBytes(id, high) & HIGH_MASK) * 2 ** 32 + hashBytes(id, low);
  }

  /** Returns the hashes that were added more than once. No hash may be added afterwards. */
  repeated(): Set<number> {
    const hashes = this.#hashes.subarray(0, this.#count).sort();
    const found = new Set<number>();
    for (let i = 1; i < hashes.length; i++) {
      if (hashes[i] === hashes[i - 1]) found.add(hashes[i]!);
    }
    return found;
  }
}
