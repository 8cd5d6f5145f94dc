// An inverted index of consecutive rows of a segment: for every term the rows that contain it. Parts are
// immutable and in shared memory. They are built from the metadata of the rows; neighbouring parts are
// merged, which gives the same part as building it from all of their rows.

import { isJsonObject, resolvePath } from '../common/metadata-path.js';
import type { TextSettings } from '../common/text-settings.js';
import type { Json, JsonObject, Utf8Column } from '../common/types.js';
import { analyzerOf } from './analyzer.js';

/**
 * Rows of a window: the unit that a search skips when its bound is low. Bounds of smaller windows are
 * closer, but cost more.
 */
export const WINDOW_BITS = 9;

export interface TextPart {
  /** The rows of the segment that it covers: from..to. */
  readonly from: number;
  readonly to: number;
  /** In the order of their bytes, distinct. */
  readonly terms: Utf8Column;
  readonly termCount: number;
  /** Term i has the postings `postingStarts[i]..postingStarts[i + 1]`. */
  readonly postingStarts: Int32Array;
  /** The row of each posting, ascending within a term, and how often the row contains the term. */
  readonly rows: Int32Array;
  readonly counts: Int32Array;
  /** Term i has the windows `windowStarts[i]..windowStarts[i + 1]`: those with any of its postings. */
  readonly windowStarts: Int32Array;
  /** Of each window: its number (row >>> WINDOW_BITS) and its first posting; one more posting ends the last. */
  readonly windows: Int32Array;
  readonly windowPostings: Int32Array;
  /** Of the postings in it: the largest count, and the length of the shortest document. */
  readonly windowCounts: Int32Array;
  readonly windowLengths: Int32Array;
  /** The number of terms in each row, repetitions included. */
  readonly lengths: Int32Array;
  readonly lengthMax: number;
  /** Their sum, and the number of rows with any. */
  readonly totalLength: number;
  readonly documentCount: number;
}

/** Postings in no particular order of terms, rows ascending within each term. */
interface Postings {
  /** Into `terms`. */
  readonly termNumbers: Int32Array;
  readonly rows: Int32Array;
  readonly counts: Int32Array;
}

/** The rows from..to, whose metadata are objects. */
export function buildPart(
  json: Utf8Column,
  { from, to }: { readonly from: number; readonly to: number },
  settings: Pick<TextSettings, 'fields' | 'language' | 'stopWords'>,
): TextPart {
  const analyzer = analyzerOf(settings);
  const numberOf = new Map<string, number>();
  /** The last posting of each term. */
  const lastPostings: number[] = [];
  const termNumbers: number[] = [];
  const rows: number[] = [];
  const counts: number[] = [];
  const lengths = shared(to - from);
  for (let row = from; row < to; row++) {
    const addTerm = (term: string) => {
      lengths[row - from]!++;
      let number = numberOf.get(term);
      if (number === undefined) {
        number = numberOf.size;
        numberOf.set(term, number);
        lastPostings.push(-1);
      }
      const last = lastPostings[number]!;
      if (last >= 0 && rows[last] === row) {
        counts[last]!++;
        return;
      }
      lastPostings[number] = rows.length;
      termNumbers.push(number);
      rows.push(row);
      counts.push(1);
    };
    for (const text of textsOf(json, row, settings.fields)) analyzer.visitTerms(text, addTerm);
  }
  return assemble(from, [...numberOf.keys()], lengths, {
    termNumbers: Int32Array.from(termNumbers),
    rows: Int32Array.from(rows),
    counts: Int32Array.from(counts),
  });
}

/** @param parts of neighbouring rows, in their order; at least one. */
export function mergeParts(parts: readonly TextPart[]): TextPart {
  const numberOf = new Map<string, number>();
  const postingCount = parts.reduce((sum, { rows }) => sum + rows.length, 0);
  const from = parts[0]!.from;
  const lengths = shared(parts.at(-1)!.to - from);
  const termNumbers = new Int32Array(postingCount);
  const rows = new Int32Array(postingCount);
  const counts = new Int32Array(postingCount);
  let next = 0;
  for (const part of parts) {
    lengths.set(part.lengths, part.from - from);
    rows.set(part.rows, next);
    counts.set(part.counts, next);
    for (let i = 0; i < part.termCount; i++) {
      const term = termAt(part, i);
      let number = numberOf.get(term);
      if (number === undefined) {
        number = numberOf.size;
        numberOf.set(term, number);
      }
      const [start, end] = [part.postingStarts[i]!, part.postingStarts[i + 1]!];
      termNumbers.fill(number, next + start, next + end);
    }
    next += part.rows.length;
  }
  return assemble(from, [...numberOf.keys()], lengths, { termNumbers, rows, counts });
}

/** The index of a term, a byte string; -1 if no row contains it. */
export function findTerm({ terms: { offsets, bytes }, termCount }: TextPart, term: string): number {
  let low = 0;
  let high = termCount - 1;
  while (low <= high) {
    const middle = (low + high) >>> 1;
    const order = compareBytes(bytes, offsets[middle]!, offsets[middle + 1]!, term);
    if (order === 0) return middle;
    if (order < 0) low = middle + 1;
    else high = middle - 1;
  }
  return -1;
}

/** The bytes of its arrays. */
export function partBytes(part: TextPart): number {
  return (
    part.terms.bytes.byteLength +
    part.terms.offsets.byteLength +
    part.postingStarts.byteLength +
    part.rows.byteLength +
    part.counts.byteLength +
    part.windowStarts.byteLength +
    part.windows.byteLength +
    part.windowPostings.byteLength +
    part.windowCounts.byteLength +
    part.windowLengths.byteLength +
    part.lengths.byteLength
  );
}

/** The strings at the paths: strings, and those in arrays. */
function textsOf({ offsets, bytes }: Utf8Column, row: number, fields: readonly string[]): string[] {
  const [start, end] = [offsets[row]!, offsets[row + 1]!];
  const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString();
  const document = JSON.parse(text) as Json;
  if (!isJsonObject(document)) return [];
  return fields.flatMap((path) => stringsIn(resolvePath(document as JsonObject, path)));
}

function stringsIn(value: Json | undefined): string[] {
  if (typeof value === 'string') return [value];
  if (!Array.isArray(value)) return [];
  return value.filter((element) => typeof element === 'string');
}

/** `terms` has a byte string for each number in the postings. */
function assemble(
  from: number,
  terms: readonly string[],
  lengths: Int32Array,
  postings: Postings,
): TextPart {
  const order = terms.map((_, number) => number);
  order.sort((a, b) => (terms[a]! < terms[b]! ? -1 : 1));
  const ranks = new Int32Array(terms.length);
  for (const [rank, number] of order.entries()) ranks[number] = rank;
  const sorted = sortByTerm(postings, ranks);
  let lengthMax = 0;
  let totalLength = 0;
  let documentCount = 0;
  for (const length of lengths) {
    lengthMax = Math.max(lengthMax, length);
    totalLength += length;
    if (length > 0) documentCount++;
  }
  return {
    from,
    to: from + lengths.length,
    terms: columnOf(order.map((number) => terms[number]!)),
    termCount: terms.length,
    ...sorted,
    ...cutWindows(sorted, terms.length, lengths, from),
    lengths,
    lengthMax,
    totalLength,
    documentCount,
  };
}

type SortedPostings = Pick<TextPart, 'postingStarts' | 'rows' | 'counts'>;

/** A counting sort by the ranks of the terms, which keeps the order of the rows. */
function sortByTerm({ termNumbers, rows, counts }: Postings, ranks: Int32Array): SortedPostings {
  const postingStarts = shared(ranks.length + 1);
  for (const number of termNumbers) postingStarts[ranks[number]! + 1]!++;
  for (let i = 0; i < ranks.length; i++) postingStarts[i + 1]! += postingStarts[i]!;
  const next = postingStarts.slice();
  const sorted = { postingStarts, rows: shared(rows.length), counts: shared(rows.length) };
  for (let i = 0; i < rows.length; i++) {
    const at = next[ranks[termNumbers[i]!]!]!++;
    sorted.rows[at] = rows[i]!;
    sorted.counts[at] = counts[i]!;
  }
  return sorted;
}

/** The windows of every term, with what bounds the scores of their postings. */
function cutWindows(
  { postingStarts, rows, counts }: SortedPostings,
  termCount: number,
  lengths: Int32Array,
  from: number,
) {
  const windowStarts = shared(termCount + 1);
  const windows: number[] = [];
  const windowPostings: number[] = [];
  const windowCounts: number[] = [];
  const windowLengths: number[] = [];
  for (let term = 0; term < termCount; term++) {
    for (let i = postingStarts[term]!; i < postingStarts[term + 1]!; i++) {
      const window = rows[i]! >>> WINDOW_BITS;
      const length = lengths[rows[i]! - from]!;
      if (windows.length === windowStarts[term] || windows.at(-1) !== window) {
        windows.push(window);
        windowPostings.push(i);
        windowCounts.push(counts[i]!);
        windowLengths.push(length);
        continue;
      }
      const last = windows.length - 1;
      windowCounts[last] = Math.max(windowCounts[last]!, counts[i]!);
      windowLengths[last] = Math.min(windowLengths[last]!, length);
    }
    windowStarts[term + 1] = windows.length;
  }
  windowPostings.push(rows.length);
  return {
    windowStarts,
    windows: sharedFrom(windows),
    windowPostings: sharedFrom(windowPostings),
    windowCounts: sharedFrom(windowCounts),
    windowLengths: sharedFrom(windowLengths),
  };
}

function termAt({ terms: { offsets, bytes } }: TextPart, index: number): string {
  const start = offsets[index]!;
  const length = offsets[index + 1]! - start;
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, length).toString('latin1');
}

/** Below 0, 0 or above 0 as the bytes are below, equal to or above the byte string. */
function compareBytes(bytes: Uint8Array, start: number, end: number, term: string): number {
  const length = Math.min(end - start, term.length);
  for (let i = 0; i < length; i++) {
    const difference = bytes[start + i]! - term.charCodeAt(i);
    if (difference !== 0) return difference;
  }
  return end - start - term.length;
}

function columnOf(byteStrings: readonly string[]): Utf8Column {
  const offsets = shared(byteStrings.length + 1);
  for (const [i, text] of byteStrings.entries()) offsets[i + 1] = offsets[i]! + text.length;
  const bytes = new Uint8Array(new SharedArrayBuffer(offsets[byteStrings.length]!));
  bytes.set(Buffer.from(byteStrings.join(''), 'latin1'));
  return { offsets, bytes };
}

/** Zeros. */
function shared(length: number): Int32Array {
  return new Int32Array(new SharedArrayBuffer(length * 4));
}

function sharedFrom(values: readonly number[]): Int32Array {
  const array = shared(values.length);
  array.set(values);
  return array;
}
