// A map sorted by its keys, which are strings with one byte per character. It consists of chunks of bounded size, so an
// insertion moves few entries, whatever the size of the map.

const CHUNK_ENTRIES_MAX = 512;
/** Entries that are read at a time; the map may change between two pages. */
const PAGE_ENTRIES = 128;

interface Chunk<Value> {
  readonly keys: string[];
  readonly values: Value[];
  /** The map that may change this chunk; others copy it first. */
  readonly owner: object;
}

export class OrderedMap<Value> {
  /** In key order; no chunk is empty. */
  readonly #chunks: Chunk<Value>[];
  #size: number;
  #owner = {};

  /** A copy shares the chunks until either map changes them. */
  constructor(source?: OrderedMap<Value>) {
    this.#size = source?.size ?? 0;
    this.#chunks = source ? [...source.#chunks] : [];
    if (source !== undefined) source.#owner = {};
  }

  get size(): number {
    return this.#size;
  }

  get(key: string): Value | undefined {
    const { index, at, isFound } = this.#find(key);
    return isFound ? this.#chunks[index]!.values[at] : undefined;
  }

  /** Returns the previous value. */
  set(key: string, value: Value): Value | undefined {
    const { index, at, isFound } = this.#find(key);
    const chunk = this.#ownChunk(index);
    if (isFound) {
      const before = chunk.values[at];
      chunk.values[at] = value;
      return before;
    } else {
      chunk.keys.splice(at, 0, key);
      chunk.values.splice(at, 0, value);
      if (chunk.keys.length > CHUNK_ENTRIES_MAX) this.#split(index);
    }
    this.#size++;
    return undefined;
  }

  /** Returns the previous value. */
  delete(key: string): Value | undefined {
    const { index, at, isFound } = this.#find(key);
    if (!isFound) return undefined;
    const chunk = this.#ownChunk(index);
    const [value] = chunk.values.splice(at, 1);
    chunk.keys.splice(at, 1);
    if (chunk.keys.length === 0) this.#chunks.splice(index, 1);
    this.#size--;
    return value;
  }

  /** Number of keys from `start` (inclusive) to `end` (exclusive). */
  count(start: string, end: string): number {
    if (end <= start) return 0;
    const first = this.#find(start);
    const last = this.#find(end);
    let count = last.at - first.at;
    for (let i = first.index; i < last.index; i++) count += this.#chunks[i]!.keys.length;
    return count;
  }

  /**
   * Entries from `start` (inclusive) to `end` (exclusive). Changes made during the iteration are visible only beyond
   * its current page.
   */
  *entries(start: string, end: string): Iterable<readonly [string, Value]> {
    let from = start;
    while (true) {
      const page = this.#page(from, end);
      yield* page;
      if (page.length < PAGE_ENTRIES) return;
      from = `${page.at(-1)![0]}\u0000`;
    }
  }

  #page(start: string, end: string): [string, Value][] {
    const page: [string, Value][] = [];
    let { index, at } = this.#find(start);
    for (; index < this.#chunks.length; index++, at = 0) {
      const { keys, values } = this.#chunks[index]!;
      for (; at < keys.length; at++) {
        if (keys[at]! >= end || page.length === PAGE_ENTRIES) return page;
        page.push([keys[at]!, values[at]!]);
      }
    }
    return page;
  }

  /** Where the key is, or where to insert it. */
  #find(key: string): { readonly index: number; readonly at: number; readonly isFound: boolean } {
    const chunks = this.#chunks;
    // The last chunk that begins at or before the key.
    const index = Math.max(0, firstWhere(chunks.length, (i) => chunks[i]!.keys[0]! > key) - 1);
    const keys = chunks[index]?.keys ?? [];
    const at = firstWhere(keys.length, (i) => keys[i]! >= key);
    return { index, at, isFound: keys[at] === key };
  }

  /** The chunk in a form that this map may change; appends a new one after the last. */
  #ownChunk(index: number): Chunk<Value> {
    const owner = this.#owner;
    const chunk = this.#chunks[index];
    if (chunk?.owner === owner) return chunk;
    const own = { keys: [...(chunk?.keys ?? [])], values: [...(chunk?.values ?? [])], owner };
    this.#chunks[index] = own;
    return own;
  }

  #split(index: number): void {
    const { keys, values, owner } = this.#ownChunk(index);
    const half = keys.length >>> 1;
    const second = { keys: keys.splice(half), values: values.splice(half), owner };
    this.#chunks.splice(index + 1, 0, second);
  }
}

/** Binary search: returns the first index below `count` for which a monotonic condition holds, or `count`. */
export function firstWhere(count: number, isAfter: (at: number) => boolean): number {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isAfter(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
