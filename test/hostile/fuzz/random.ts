// Choices from a seeded source, and the values that programs tend to get wrong: numbers at the bounds of their
// types, and texts of unusual characters.

import { createRandom } from '../../database/harness.js';

const NUMBERS: readonly number[] = [
  0,
  -0,
  1,
  -1,
  0.5,
  2,
  3,
  127,
  128,
  255,
  256,
  1_000,
  1_001,
  10_000,
  10_001,
  65_535,
  65_536,
  2 ** 31 - 1,
  2 ** 31,
  2 ** 32,
  2 ** 53 - 1,
  2 ** 53,
  2 ** 63,
  1e19,
  -1e19,
  1e38,
  3.5e38,
  1e-45,
  1e308,
  -1e308,
  Number.MIN_VALUE,
  Number.EPSILON,
];

const TEXTS: readonly string[] = [
  '',
  ' ',
  '.',
  '..',
  '/',
  '%',
  '%2e',
  'null',
  'true',
  '0',
  '-1',
  '1e999',
  '__proto__',
  'constructor',
  'toString',
  '$id',
  '$text',
  '$where',
  'a.b',
  'a..b',
  '.a',
  '*',
  '?',
  '\\',
  '"',
  "'",
  '\u0000',
  '\u001f',
  '\u007f',
  '\u0085',
  '\u00a0',
  '\u200b',
  '\u202e',
  '\ufeff',
  '\ufffe',
  '\uffff',
  '\ud800',
  '\udc00',
  'a\ud83d',
  '😀',
  '👨‍👩‍👧‍👦',
  'ﬀ',
  'İ',
  'ß',
  'é',
  'e\u0301',
  '𝔘',
  '漢字',
  'שלום',
  '\r\n',
  '\t',
];

/** Characters of a long text; most take more than one byte. */
const LETTERS = ['a', 'é', '漢', '😀', ' ', '.', '"', '\\', '\u0000'];

export class Random {
  readonly next: () => number;

  constructor(seed: number) {
    this.next = createRandom(seed);
  }

  /** From 0 to below `bound`. */
  below(bound: number): number {
    return Math.floor(this.next() * bound);
  }

  /** Both included. */
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

  /** Undefined where there is none. */
  pickAny<Value>(values: readonly Value[]): Value | undefined {
    return values[this.below(values.length)];
  }

  /** A key, with a probability in proportion to its weight. */
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

  oddNumber(): number {
    return this.chance(0.7)
      ? this.pick(NUMBERS)
      : (this.next() - 0.5) * 10 ** this.between(-40, 40);
  }

  oddText(): string {
    if (this.chance(0.8)) return this.pick(TEXTS);
    const length = this.pick([2, 63, 64, 65, 127, 128, 129, 255, 256, 257, 512, 513, 2_001, 9_000]);
    const letters = this.chance(0.5) ? ['x'] : LETTERS;
    return this.list(length, () => this.pick(letters)).join('');
  }
}
