// The built-in model as a function from texts to vectors, for any thread: cuts texts into pieces and long texts into
// windows, and encodes the windows in batches of limited size.

import { pluralize } from '../../common/quantities.js';
import {
  normalize,
  PIECES_MAX,
  SENTENCE_DIMENSION,
  type SentenceEncoder,
} from './sentence-encoder.js';
import type { WordPieces } from './word-pieces.js';

/**
 * The largest number of pieces in one call of the encoder, with padding. Dense layers reach their speed at half of it,
 * and each piece takes 20 kB of memory while it is encoded.
 */
const BATCH_PIECES_MAX = 512;

/** How much longer the longest text of a batch may be than the shortest, which is padded. */
const LENGTH_RATIO_MAX = 1.2;

/** The largest share of characters that the model need not know. */
const UNKNOWN_SHARE_MAX = 0.5;

export interface TextIssue {
  /** The index of the text. */
  readonly index: number;
  readonly detail: string;
}

/** A part of a text that the encoder can read at once. */
interface Window {
  readonly text: number;
  readonly pieces: readonly number[];
}

export class SentenceModel {
  readonly #wordPieces: WordPieces;
  readonly #encoder: SentenceEncoder;

  constructor(wordPieces: WordPieces, encoder: SentenceEncoder) {
    this.#wordPieces = wordPieces;
    this.#encoder = encoder;
  }

  /**
   * The unit vectors of the texts, row-major [texts.length, SENTENCE_DIMENSION], or what is wrong with the first text
   * that has none. The vector of a text of several windows is the average of theirs, weighted by their pieces.
   */
  embed(texts: readonly string[]): Float32Array | TextIssue {
    const windows: Window[] = [];
    for (const [index, text] of texts.entries()) {
      const { pieces, unitCount, unknownCount } = this.#wordPieces.read(text);
      const detail = findIssue(unitCount, unknownCount);
      if (detail !== null) return { index, detail };
      windows.push(...windowsOf(index, pieces));
    }
    windows.sort((a, b) => a.pieces.length - b.pieces.length);
    const vectors = new Float32Array(texts.length * SENTENCE_DIMENSION);
    for (const batch of batchesOf(windows)) {
      const found = this.#encoder.encode(batch.map(({ pieces }) => pieces));
      for (const [i, { text, pieces }] of batch.entries()) {
        const from = i * SENTENCE_DIMENSION;
        const to = text * SENTENCE_DIMENSION;
        for (let j = 0; j < SENTENCE_DIMENSION; j++) {
          vectors[to + j]! += found[from + j]! * pieces.length;
        }
      }
    }
    for (let at = 0; at < vectors.length; at += SENTENCE_DIMENSION) {
      normalize(vectors.subarray(at, at + SENTENCE_DIMENSION));
    }
    return vectors;
  }
}

function findIssue(unitCount: number, unknownCount: number): string | null {
  if (unitCount === 0) return 'Expected a text with visible characters; found none.';
  if (unknownCount <= unitCount * UNKNOWN_SHARE_MAX) return null;
  return `Expected a text that the built-in model can read, which knows English; it does not know ${unknownCount} of the ${pluralize(unitCount, 'character')} of this text.`;
}

/** Cuts the pieces of a text into as few windows as possible, of nearly equal lengths. */
function windowsOf(text: number, pieces: readonly number[]): Window[] {
  const count = Math.ceil(pieces.length / PIECES_MAX);
  const startOf = (window: number) => Math.round((window * pieces.length) / count);
  return Array.from({ length: count }, (_, i) => ({
    text,
    pieces: pieces.slice(startOf(i), startOf(i + 1)),
  }));
}

/** Cuts windows, which are in the order of their lengths, into batches of similar lengths. */
function* batchesOf(windows: readonly Window[]): Generator<readonly Window[]> {
  let start = 0;
  for (const [end, { pieces }] of windows.entries()) {
    const isFull = (end - start + 1) * pieces.length > BATCH_PIECES_MAX;
    const isLonger = pieces.length > windows[start]!.pieces.length * LENGTH_RATIO_MAX + 1;
    if (end > start && (isFull || isLonger)) {
      yield windows.slice(start, end);
      start = end;
    }
  }
  if (start < windows.length) yield windows.slice(start);
}
