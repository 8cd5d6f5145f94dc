// The terms of points: words of their texts and short values of their metadata, as numbers, with the number of points
// that have each. A label names a group of points by the terms that are more frequent in it.

import { flattenMetadata } from '../../../../../src/common/metadata-path.js';
import type { Json, JsonObject } from '../../../../../src/common/types.js';

/** Longer texts are cut, because a label needs few words and memory is limited. */
const TEXT_CHARACTERS_MAX = 400;
/** A longer string without a space is no name. */
const VALUE_CHARACTERS_MAX = 32;
const TERMS_PER_POINT_MAX = 48;
const WORDS = /\p{L}[\p{L}\p{M}\p{N}'’-]{2,}/gu;

/** The strings of a metadata object, nested ones included, without pictures and addresses. */
export function metadataTexts(metadata: JsonObject): string[] {
  const texts: string[] = [];
  flattenMetadata(metadata, (_, value) => {
    for (const text of textsOf(value)) {
      if (text !== '' && !/^(data:|https?:)/.test(text))
        texts.push(text.slice(0, TEXT_CHARACTERS_MAX));
    }
  });
  return texts;
}

function textsOf(value: Json): readonly string[] {
  if (typeof value === 'string') return [value];
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];
}

/** The distinct terms of some texts: lower-case words of those with spaces, and the others as they are. */
export function termsOf(texts: readonly string[]): ReadonlySet<string> {
  const terms = new Set<string>();
  for (const text of texts) {
    if (terms.size >= TERMS_PER_POINT_MAX) break;
    if (!/\s/.test(text)) {
      if (text.length <= VALUE_CHARACTERS_MAX) terms.add(text);
      continue;
    }
    for (const [word] of text.matchAll(WORDS)) {
      terms.add(word.toLowerCase());
      if (terms.size >= TERMS_PER_POINT_MAX) break;
    }
  }
  return terms;
}

/** The terms of many points. */
export class PointTerms {
  /** Terms by number. */
  readonly names: string[] = [];
  readonly #numbers = new Map<string, number>();
  readonly #termsOf: (Int32Array | undefined)[];
  #counts = new Uint32Array(1_024);

  constructor(pointCount: number) {
    this.#termsOf = new Array(pointCount).fill(undefined);
  }

  get pointCount(): number {
    return this.#termsOf.length;
  }

  set(point: number, terms: ReadonlySet<string>): void {
    this.#termsOf[point] = Int32Array.from(terms, (term) => this.#numberOf(term));
    for (const term of this.#termsOf[point]) this.#counts[term]!++;
  }

  /** The numbers of a point's terms. */
  of(point: number): Int32Array {
    return this.#termsOf[point] ?? NO_TERMS;
  }

  /** The number of points with the term. */
  countOf(term: number): number {
    return this.#counts[term]!;
  }

  #numberOf(term: string): number {
    let number = this.#numbers.get(term);
    if (number === undefined) {
      number = this.names.push(term) - 1;
      this.#numbers.set(term, number);
      if (number === this.#counts.length) {
        const larger = new Uint32Array(2 * number);
        larger.set(this.#counts);
        this.#counts = larger;
      }
    }
    return number;
  }
}

const NO_TERMS = new Int32Array(0);
