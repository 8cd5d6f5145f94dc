// An inverted index of consecutive rows of a segment: for every term the rows that contain it. Parts are
// immutable and in shared memory. They are built from the metadata of the rows; neighbouring parts are
// merged, which gives the same part as building it from all of their rows.

import { isJsonObject, resolvePath } from '../common/metadata-path.js';
import { sharedBytes, sharedInt32 } from '../common/shared-array.js';
import type { TextSettings } from '../common/text-settings.js';
import type { Json, JsonObject, Utf8Column } from '../common/types.js';
import { analyzerOf } from './analyzer.js';
import {
  arrayBytes,
  joinPostings,
  type PostingLists,
  type Postings,
  type RowRange,
  sortPostings,
} from './posting-lists.js';

/** Its lists are those of the terms, in their order. */
export interface TextPart extends PostingLists {
  /** In the order of their bytes, distinct. */
  readonly terms: Utf8Column;
  readonly termCount: number;
  /** Of each posting, how often its row contains the term. */
  readonly counts: Int32Array;
  /** Of the postings in each window: the largest count, and the length of the shortest document. */
  readonly windowCounts: Int32Array;
  readonly windowLengths: Int32Array;
  /** The number of terms in each row, repetitions included. */
  readonly lengths: Int32Array;
  readonly lengthMax: number;
  /** Their sum, and the number of rows with any. */
  readonly totalLength: number;
  readonly documentCount: number;
}

/** The rows from..to, whose metadata are objects. */
export function buildPart(
  json: Utf8Column,
  { from, to }: RowRange,
  settings: Pick<TextSettings, 'fields' | 'language' | 'stopWords'>,
): TextPart {
  const analyzer = analyzerOf(settings);
  const numberOf = new Map<string, number>();
  /** The last posting of each term. */
  const lastPostings: number[] = [];
  const lists: number[] = [];
  const rows: number[] = [];
  const counts: number[] = [];
  const lengths = sharedInt32(to - from);
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
      lists.push(number);
      rows.push(row);
      counts.push(1);
    };
    for (const text of textsOf(json, row, settings.fields)) analyzer.visitTerms(text, addTerm);
  }
  return assemble(from, [...numberOf.keys()], lengths, {
    lists: Int32Array.from(lists),
    rows: Int32Array.from(rows),
    weights: Int32Array.from(counts),
  });
}

/** @param parts of neighbouring rows, in their order; at least one. */
export function mergeParts(parts: readonly TextPart[]): TextPart {
  const { from } = parts[0]!;
  const lengths = sharedInt32(parts.at(-1)!.to - from);
  for (const part of parts) lengths.set(part.lengths, part.from - from);
  const { keys, postings } = joinPostings(parts, termAt, ({ counts }) => counts);
  return assemble(from, keys, lengths, postings);
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
  return arrayBytes(part) + arrayBytes(part.terms);
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
  postings: Postings<Int32Array>,
): TextPart {
  const order = terms.map((_, number) => number);
  order.sort((a, b) => (terms[a]! < terms[b]! ? -1 : 1));
  const ranks = new Int32Array(terms.length);
  for (const [rank, number] of order.entries()) ranks[number] = rank;
  const to = from + lengths.length;
  const { lists, weights: counts } = sortPostings({ from, to }, postings, ranks);
  let lengthMax = 0;
  let totalLength = 0;
  let documentCount = 0;
  for (const length of lengths) {
    lengthMax = Math.max(lengthMax, length);
    totalLength += length;
    if (length > 0) documentCount++;
  }
  return {
    ...lists,
    terms: columnOf(order.map((number) => terms[number]!)),
    termCount: terms.length,
    counts,
    ...boundWindows(lists, counts, lengths),
    lengths,
    lengthMax,
    totalLength,
    documentCount,
  };
}

/** What bounds the scores of the postings of each window. */
function boundWindows(
  { from, rows, windows, windowPostings }: PostingLists,
  counts: Int32Array,
  lengths: Int32Array,
) {
  const windowCounts = sharedInt32(windows.length);
  const windowLengths = sharedInt32(windows.length);
  for (let at = 0; at < windows.length; at++) {
    let countMax = 0;
    let lengthMin = Number.POSITIVE_INFINITY;
    for (let i = windowPostings[at]!; i < windowPostings[at + 1]!; i++) {
      countMax = Math.max(countMax, counts[i]!);
      lengthMin = Math.min(lengthMin, lengths[rows[i]! - from]!);
    }
    windowCounts[at] = countMax;
    windowLengths[at] = lengthMin;
  }
  return { windowCounts, windowLengths };
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
  const offsets = sharedInt32(byteStrings.length + 1);
  for (const [i, text] of byteStrings.entries()) offsets[i + 1] = offsets[i]! + text.length;
  const bytes = sharedBytes(offsets[byteStrings.length]!);
  bytes.set(Buffer.from(byteStrings.join(''), 'latin1'));
  return { offsets, bytes };
}
