// Sorts items by unsigned integers with a stable radix sort: items with equal keys keep their order, so that sorting by
// several keys means sorting by each of them, the last key first.

/** Keys are sorted by three digits of 11 bits, so that the counts of a digit stay in the fastest cache. */
const DIGIT_BITS = 11;
const DIGIT_COUNT = 1 << DIGIT_BITS;
const DIGIT_MASK = DIGIT_COUNT - 1;

export class StableOrder {
  /** [count] items in their order, at first ascending. */
  items: Uint32Array;
  #spare: Uint32Array;
  readonly #counts = new Uint32Array(DIGIT_COUNT);

  constructor(count: number) {
    this.items = new Uint32Array(count);
    for (let item = 0; item < count; item++) this.items[item] = item;
    this.#spare = new Uint32Array(count);
  }

  /**
   * Sorts the range from..to by the key of each item.
   * @param keys [count], by item.
   */
  sortBy(keys: Uint32Array, from = 0, to = this.items.length): void {
    for (let shift = 0; shift < 32; shift += DIGIT_BITS) this.#sortByDigit(keys, shift, from, to);
  }

  #sortByDigit(keys: Uint32Array, shift: number, from: number, to: number): void {
    const counts = this.#counts.fill(0);
    const source = this.items;
    for (let i = from; i < to; i++) counts[(keys[source[i]!]! >>> shift) & DIGIT_MASK]!++;
    // Often all items share a digit, such as those of short texts and small numbers.
    if (from < to && counts[(keys[source[from]!]! >>> shift) & DIGIT_MASK] === to - from) return;
    let next = from;
    for (let digit = 0; digit < DIGIT_COUNT; digit++) {
      const count = counts[digit]!;
      counts[digit] = next;
      next += count;
    }
    const target = this.#spare;
    for (let i = from; i < to; i++) {
      const item = source[i]!;
      target[counts[(keys[item]! >>> shift) & DIGIT_MASK]!++] = item;
    }
    if (to - from === source.length) {
      this.items = target;
      this.#spare = source;
    } else {
      source.set(target.subarray(from, to), from);
    }
  }
}
