// A map in the order of its keys, which are strings of one byte per character. Keys are in chunks of bounded size, so
// that an insertion moves few of them, whatever the number of entries is.

const CHUNK_ENTRIES_MAX = 512;
/** Entries that are read at once: between two pages of an iteration the map may change. */
const PAGE_ENTRIES = 128;

interface Chunk<Value> {
  readonly keys: string[];
  readonly values: Value[];
}

export class OrderedMap<Value> {
  /** In order; none is empty. */
  readonly #chunks: Chunk<Value>[];
  #size: number;

  constructor(source?: OrderedMap<Value>) {
    this.#size = source?.size ?? 0;
    this.#chunks = source
      ? source.#chunks.map(({ keys, values }) => ({ keys: [...keys], values: [...values] }))
      : [];
  }

  get size(): number {
    return this.#size;
  }

  get(key: string): Value | undefined {
    const { chunk, at, isFound } = this.#find(key);
    return isFound ? chunk!.values[at] : undefined;
  }

  /** Returns the value that the key had before. */
  set(key: string, value: Value): Value | undefined {
    const { chunk, index, at, isFound } = this.#find(key);
    if (chunk === undefined) {
      this.#chunks.push({ keys: [key], values: [value] });
    } else if (isFound) {
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
    const { chunk, index, at, isFound } = this.#find(key);
    if (!isFound) return undefined;
    const [value] = chunk!.values.splice(at, 1);
    chunk!.keys.splice(at, 1);
    if (chunk!.keys.length === 0) this.#chunks.splice(index, 1);
    this.#size--;
    return value;
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

  /** Where the key is, or is to be inserted. */
  #find(key: string): {
    readonly chunk: Chunk<Value> | undefined;
    index: number;
    at: number;
    readonly isFound: boolean;
  } {
    // The last chunk that begins at or before the key.
    const index = Math.max(
      0,
      firstWhere(this.#chunks.length, (i) => this.#chunks[i]!.keys[0]! > key) - 1,
    );
    const chunk = this.#chunks[index];
    if (chunk === undefined) return { chunk, index, at: 0, isFound: false };
    const at = firstWhere(chunk.keys.length, (i) => chunk.keys[i]! >= key);
    return { chunk, index, at, isFound: chunk.keys[at] === key };
  }

  #split(index: number): void {
    const { keys, values } = this.#chunks[index]!;
    const half = keys.length >>> 1;
    const second = { keys: keys.splice(half), values: values.splice(half) };
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
