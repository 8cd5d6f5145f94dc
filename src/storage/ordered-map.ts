// A map in the order of its keys, which are strings of one byte per character. Keys are in chunks of bounded size, so
// that an insertion moves few of them, whatever the number of entries is.

const CHUNK_ENTRIES_MAX = 512;
/** Entries that are read at once: between two pages of an iteration the map may change. */
const PAGE_ENTRIES = 128;

interface Chunk<Value> {
  readonly keys: string[];
  readonly values: Value[];
  /** The map that may change it; others copy it first. */
  readonly owner: object;
}

export class OrderedMap<Value> {
  /** In order; none is empty. */
  readonly #chunks: Chunk<Value>[];
  #size: number;
  #owner = {};

  /** A copy shares the chunks until one of the two changes them. */
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

  /** Returns the value that the key had before. */
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

  /** Returns the value that the key had. */
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

  /** How many keys there are from `start` to before `end`. */
  count(start: string, end: string): number {
    if (end <= start) return 0;
    const first = this.#find(start);
    const last = this.#find(end);
    let count = last.at - first.at;
    for (let i = first.index; i < last.index; i++) count += this.#chunks[i]!.keys.length;
    return count;
  }

  /** The entries from `start` to before `end`. Changes meanwhile are seen where the iteration has not come yet. */
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

  /** The place of the key, or where it is to be inserted. */
  #find(key: string): { readonly index: number; readonly at: number; readonly isFound: boolean } {
    const chunks = this.#chunks;
    // The last chunk that begins at or before the key.
    const index = Math.max(0, firstWhere(chunks.length, (i) => chunks[i]!.keys[0]! > key) - 1);
    const keys = chunks[index]?.keys ?? [];
    const at = firstWhere(keys.length, (i) => keys[i]! >= key);
    return { index, at, isFound: keys[at] === key };
  }

  /** The chunk, which the caller may change; a new one behind the last. */
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

/** The first number below `count` of which the condition holds, which holds for all after it; else `count`. */
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
