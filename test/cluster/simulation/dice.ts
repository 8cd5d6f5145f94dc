// Seeded random choices. Each part of a simulation has dice of its own, so that what one part draws does not change what
// another one does.

import { createRandom } from '../../support/random.js';

export class Dice {
  readonly #random: () => number;
  readonly #seed: string;

  constructor(seed: string) {
    this.#seed = seed;
    this.#random = createRandom(hashOf(seed));
  }

  /** Dice of a part with this name. */
  for(part: string): Dice {
    return new Dice(`${this.#seed}/${part}`);
  }

  /** From 0 up to, not including, 1. */
  fraction(): number {
    return this.#random();
  }

  /** An integer from 0 up to, not including, `end`. */
  below(end: number): number {
    return Math.floor(this.#random() * end);
  }

  between(min: number, max: number): number {
    return min + this.#random() * (max - min);
  }

  chance(probability: number): boolean {
    return this.#random() < probability;
  }

  pick<Value>(values: readonly Value[]): Value {
    return values[this.below(values.length)]!;
  }

  bytes(count: number): Buffer {
    return Buffer.from(Array.from({ length: count }, () => this.below(256)));
  }

  uuid(): string {
    const hex = this.bytes(16).toString('hex');
    return [
      hex.slice(0, 8),
      hex.slice(8, 12),
      `4${hex.slice(13, 16)}`,
      `8${hex.slice(17, 20)}`,
      hex.slice(20),
    ].join('-');
  }
}

/** FNV-1a in 32 bits. */
export function hashOf(text: string, start = 0x811c9dc5): number {
  let hash = start;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}
