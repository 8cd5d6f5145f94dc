// A run of an inverted index of text: over consecutive rows of a segment, it maps every term to the rows that contain
// it. Runs are built from the metadata of the rows; they are immutable and live in shared memory. Merging neighbouring
// runs gives the same run as building all of their rows.

import { isJsonObject, resolvePath } from '../common/metadata-path.js';
import { sharedBytes, sharedInt32 } from '../common/shared-array.js';
import type { TextSettings } from '../common/text-settings.js';
import type { Json, JsonObject, Utf8Column } from '../common/types.js';
import { analyzerOf } from './analyzer.js';
import {
  arrayBytes,
  joinPostings,
  KeyNumbers,
  type PostingLists,
  type Postings,
  type RunRange,
  sortPostings,
} from './posting-lists.js';

/** List i belongs to term i. */
export interface TextRun extends PostingLists {
  /** Distinct, in the order of their bytes. */
  readonly terms: Utf8Column;
  readonly termCount: number;
  /** Occurrences of the term in the row of each posting. */
  readonly counts: Int32Array;
  /** The largest count and the length of the shortest document in each window. */
  readonly windowCounts: Int32Array;
  readonly windowLengths: Int32Array;
  /** The number of terms in each row, repetitions included. */
  readonly lengths: Int32Array;
  readonly lengthMax: number;
  readonly totalLength: number;
  /** Rows with at least one term. */
  readonly documentCount: number;
}

/** @param json the metadata of all rows, a JSON object each. */
export function buildTextRun(
  json: Utf8Column,
  { from, to }: RunRange,
  settings: Pick<TextSettings, 'fields' | 'language' | 'stopWords'>,
): TextRun {
  const analyzer = analyzerOf(settings);
  const numbers = new KeyNumbers<string>();
  /** The last posting of each term. */
  const lastPostings: number[] = [];
  const lists: number[] = [];
  const rows: number[] = [];
  const counts: number[] = [];
  const lengths = sharedInt32(to - from);
  for (let row = from; row < to; row++) {
    const addTerm = (term: string) => {
      lengths[row - from]!++;
      const number = numbers.numberOf(term);
      const last = lastPostings[number];
      if (last !== undefined && rows[last] === row) {
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
  return assemble(from, numbers.keys(), lengths, {
    lists: Int32Array.from(lists),
    rows: Int32Array.from(rows),
    weights: Int32Array.from(counts),
  });
}

/** @param runs at least one, over neighbouring rows, in order. */
export function mergeTextRuns(runs: readonly TextRun[]): TextRun {
  const { from } = runs[0]!;
  const lengths = sharedInt32(runs.at(-1)!.to - from);
  for (const run of runs) lengths.set(run.lengths, run.from - from);
  const { keys, postings } = joinPostings(runs, termAt, ({ counts }) => counts);
  return assemble(from, keys, lengths, postings);
}

/** Returns the list of a term, a byte string; -1 if no row contains it. */
export function findTerm({ terms: { offsets, bytes }, termCount }: TextRun, term: string): number {
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

export function runBytes(run: TextRun): number {
  return arrayBytes(run) + arrayBytes(run.terms);
}

/** Returns the strings at the paths, and the strings in arrays there. */
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

/** @param terms the term of each list of the postings, as a byte string. */
function assemble(
  from: number,
  terms: readonly string[],
  lengths: Int32Array,
  postings: Postings<Int32Array>,
): TextRun {
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

/** Computes what bounds the scores in each window. */
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

function termAt({ terms: { offsets, bytes } }: TextRun, index: number): string {
  const start = offsets[index]!;
  const length = offsets[index + 1]! - start;
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, length).toString('latin1');
}

/** Returns a negative number, 0 or a positive number, as the bytes sort before, equal or after the byte string. */
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
