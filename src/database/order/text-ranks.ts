// Ranks texts in the order of their UTF-8 bytes, which is the order of code points. Texts are compared
// by eight bytes at a time, as numbers; only texts with equal bytes are compared by the next eight.

import type { Utf8Column } from '../../common/types.js';
import { StableOrder } from './stable-order.js';

const WORD_BYTES = 8;

/** Up to this number of texts, comparing pairs is faster than counting digits. */
const COMPARED_MAX = 48;

/** A range from..to of the order whose texts agree before `depth`. */
interface Tied {
  readonly from: number;
  readonly to: number;
  readonly depth: number;
}

/** Texts of several columns that are ranked together. */
export class TextRanks {
  readonly #bytes: Uint8Array[] = [];
  readonly #columns: Uint32Array;
  readonly #starts: Uint32Array;
  readonly #ends: Uint32Array;
  count = 0;

  constructor(countMax: number) {
    this.#columns = new Uint32Array(countMax);
    this.#starts = new Uint32Array(countMax);
    this.#ends = new Uint32Array(countMax);
  }

  /** Adds a text and returns its index. Consecutive texts of one column share an entry, recognized by its bytes. */
  add({ offsets, bytes }: Utf8Column, row: number): number {
    if (this.#bytes.at(-1) !== bytes) this.#bytes.push(bytes);
    this.#columns[this.count] = this.#bytes.length - 1;
    this.#starts[this.count] = offsets[row]!;
    this.#ends[this.count] = offsets[row + 1]!;
    return this.count++;
  }

  /** [count], by text: the number of distinct texts before it. */
  rank(): Uint32Array {
    const order = new StableOrder(this.count);
    const keys = {
      high: new Uint32Array(this.count),
      low: new Uint32Array(this.count),
      rest: new Uint32Array(this.count),
    };
    const open: Tied[] = [{ from: 0, to: this.count, depth: 0 }];
    for (let tied = open.pop(); tied !== undefined; tied = open.pop()) {
      const { from, to, depth } = tied;
      if (to - from <= COMPARED_MAX) {
        order.items
          .subarray(from, to)
          .sort((left, right) => this.#compare(left, right, depth) || left - right);
        continue;
      }
      for (let i = from; i < to; i++) this.#readWord(order.items[i]!, depth, keys);
      // A text that ends here comes before texts that continue with zeros.
      order.sortBy(keys.rest, from, to);
      order.sortBy(keys.low, from, to);
      order.sortBy(keys.high, from, to);
      for (const { start, end } of runsOf(order.items, from, to, keys)) {
        const goesOn = keys.rest[order.items[start]!]! > WORD_BYTES;
        if (end - start > 1 && goesOn) {
          open.push({ from: start, to: end, depth: depth + WORD_BYTES });
        }
      }
    }
    return this.#number(order.items);
  }

  #readWord(text: number, depth: number, keys: Record<'high' | 'low' | 'rest', Uint32Array>): void {
    const bytes = this.#bytes[this.#columns[text]!]!;
    const start = this.#starts[text]! + depth;
    const end = this.#ends[text]!;
    keys.high[text] = wordAt(bytes, start, end);
    keys.low[text] = wordAt(bytes, start + 4, end);
    keys.rest[text] = Math.min(end - start, WORD_BYTES + 1);
  }

  #compare(left: number, right: number, depth: number): number {
    const leftBytes = this.#bytes[this.#columns[left]!]!;
    const rightBytes = this.#bytes[this.#columns[right]!]!;
    const leftStart = this.#starts[left]!;
    const rightStart = this.#starts[right]!;
    const leftLength = this.#ends[left]! - leftStart;
    const rightLength = this.#ends[right]! - rightStart;
    const end = Math.min(leftLength, rightLength);
    let i = depth;
    while (i < end && leftBytes[leftStart + i] === rightBytes[rightStart + i]) i++;
    return i === end
      ? leftLength - rightLength
      : leftBytes[leftStart + i]! - rightBytes[rightStart + i]!;
  }

  #number(items: Uint32Array): Uint32Array {
    const ranks = new Uint32Array(this.count);
    for (let i = 1; i < items.length; i++) {
      const isEqual = this.#compare(items[i - 1]!, items[i]!, 0) === 0;
      ranks[items[i]!] = ranks[items[i - 1]!]! + (isEqual ? 0 : 1);
    }
    return ranks;
  }
}

/** Four bytes as a big-endian number, which compares like the bytes; zeros after the end of the text. */
function wordAt(bytes: Uint8Array, at: number, end: number): number {
  let word = 0;
  for (let i = at; i < at + 4; i++) word = (word << 8) | (i < end ? bytes[i]! : 0);
  return word;
}

/** Consecutive items with equal keys. */
function* runsOf(
  items: Uint32Array,
  from: number,
  to: number,
  { high, low, rest }: Record<'high' | 'low' | 'rest', Uint32Array>,
): Generator<{ readonly start: number; readonly end: number }> {
  let start = from;
  for (let i = from + 1; i <= to; i++) {
    const [first, next] = [items[start]!, items[i]!];
    if (
      i < to &&
      high[next] === high[first] &&
      low[next] === low[first] &&
      rest[next] === rest[first]
    ) {
      continue;
    }
    yield { start, end: i };
    start = i;
  }
}
