// The distinct strings of a metadata column, numbered in order of first appearance. The lookup from string to code
// exists only while the column is being built.

import type { Utf8Column } from '../common/types.js';
import { GrowingUtf8 } from './shared-arrays.js';

/** A Map is limited to 2^24 entries, and a column can hold more distinct strings. */
const ENTRIES_PER_MAP_MAX = 8_000_000;

export class StringDictionary {
  readonly #strings = new GrowingUtf8();
  #lookups: Map<string, number>[] = [new Map()];
  readonly #entriesPerMapMax: number;

  /** Only tests pass a limit. */
  constructor(entriesPerMapMax = ENTRIES_PER_MAP_MAX) {
    this.#entriesPerMapMax = entriesPerMapMax;
  }

  get count(): number {
    return this.#strings.count;
  }

  codeOf(text: string): number {
    for (const lookup of this.#lookups) {
      const code = lookup.get(text);
      if (code !== undefined) return code;
    }
    return this.#add(text);
  }

  view(): Utf8Column {
    return this.#strings.view();
  }

  /** Frees the lookup. No string can be added afterwards. */
  seal(): void {
    this.#lookups = [];
    this.#strings.trim();
  }

  #add(text: string): number {
    let lookup = this.#lookups.at(-1)!;
    if (lookup.size >= this.#entriesPerMapMax) {
      lookup = new Map();
      this.#lookups.push(lookup);
    }
    const code = this.#strings.count;
    this.#strings.appendString(text);
    lookup.set(text, code);
    return code;
  }
}
