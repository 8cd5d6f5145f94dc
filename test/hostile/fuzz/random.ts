// Choices from a seeded source, and values that programs tend to get wrong, from fast-check: numbers at the bounds of
// their types, and texts of unusual characters.

import fc from 'fast-check';
import { createRandom } from '../../database/harness.js';

/** In addition to those of fast-check: the bounds of types and of limits of the service, and their neighbours. */
const NUMBERS = [
  ...[127, 128, 255, 256, 1_000, 1_001, 10_000, 10_001, 65_535, 65_536],
  ...[2 ** 31 - 1, 2 ** 31, 2 ** 32, 2 ** 53, 2 ** 63, 1e19, -1e19, 3.5e38, 1e-45],
];
const ODD_NUMBER = fc.oneof(
  fc.constantFrom(...NUMBERS),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
);

/** Parts of paths, filters and numbers, control characters, and surrogates, which fast-check leaves out. */
const TEXTS = [
  ...['.', '..', '/', '%', '%2e', 'null', 'true', '1e999', '$id', '$text', '$where', 'a.b', 'a..b'],
  ...[
    '.a',
    '*',
    '?',
    '\\',
    '"',
    '\u0000',
    '\u007f',
    '\u0085',
    '\u00a0',
    '\u200b',
    '\u202e',
    '\ufeff',
  ],
  ...['\uffff', '\ud800', '\udc00', 'a\ud83d', 'ﬀ', 'İ', 'e\u0301', '\r\n', '\t'],
];
/** Lengths around the limits of names, ids and texts. */
const LENGTHS = [64, 128, 256, 512, 2_000, 9_000];
const ODD_TEXT = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...TEXTS) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary' }) },
  { weight: 1, arbitrary: fc.string({ unit: 'grapheme' }) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.constantFrom('x', 'é', '漢', '😀', '"', '\u0000'), fc.constantFrom(...LENGTHS))
      .chain(([letter, length]) =>
        fc.integer({ min: -1, max: 1 }).map((more) => letter.repeat(length + more)),
      ),
  },
);

export class Random {
  readonly next: () => number;

  constructor(seed: number) {
    this.next = createRandom(seed);
  }

  /** From 0 to below `bound`. */
  below(bound: number): number {
    return Math.floor(this.next() * bound);
  }

  /** Both bounds are inclusive. */
  between(low: number, high: number): number {
    return low + this.below(high - low + 1);
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<Value>(values: readonly Value[]): Value {
    const value = values[this.below(values.length)];
    if (value === undefined && values.length === 0)
      throw new Error('there is nothing to pick from');
    return value as Value;
  }

  /** Undefined if the list is empty. */
  pickAny<Value>(values: readonly Value[]): Value | undefined {
    return values[this.below(values.length)];
  }

  /** A key, with a probability proportional to its weight. */
  weighted<Key extends string>(weights: Readonly<Record<Key, number>>): Key {
    const entries = Object.entries<number>(weights) as [Key, number][];
    const total = entries.reduce((sum, [, weight]) => sum + weight, 0);
    let left = this.next() * total;
    for (const [key, weight] of entries) {
      left -= weight;
      if (left < 0) return key;
    }
    return entries.at(-1)![0];
  }

  list<Value>(count: number, make: (index: number) => Value): Value[] {
    return Array.from({ length: count }, (_, index) => make(index));
  }

  word(): string {
    return `w${this.below(40)}`;
  }

  sentence(): string {
    return this.list(this.between(1, 8), () => this.word()).join(' ');
  }

  draw<Value>(arbitrary: fc.Arbitrary<Value>): Value {
    return fc.sample(arbitrary, { numRuns: 1, seed: this.below(2 ** 31) })[0]!;
  }

  oddNumber(): number {
    return this.draw(ODD_NUMBER);
  }

  oddText(): string {
    return this.draw(ODD_TEXT);
  }
}
