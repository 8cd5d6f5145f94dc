// The best rows of some segments by BM25. See bm25.ts for why the bounds hold to the last bit.

import type { SortedRankKeys } from '../common/rank-key.js';
import type { TextSettings } from '../common/text-settings.js';
import { lengthNorms, termScore } from './bm25.js';
import { WINDOW_ROWS } from './posting-lists.js';
import { findTerm, type TextPart } from './text-part.js';
import {
  countInBuckets,
  type PartScores,
  type RankedHits,
  type RankedRange,
  type RankedView,
  searchWindows,
} from './window-search.js';

/** How rows are scored, in every segment. */
export interface TextScoring extends Pick<TextSettings, 'k1' | 'b'> {
  /** Distinct byte strings in the order of their bytes, and the weight of each. */
  readonly terms: readonly string[];
  readonly weights: readonly number[];
  /** Of the documents of the whole snapshot; above 0 if there are any. */
  readonly averageLength: number;
}

export type RankedText = RankedView<TextPart>;

/** What a search is for, in every segment. */
export interface TextRanking extends RankedRange, TextScoring {}

export function rankRows(views: readonly RankedText[], ranking: TextRanking): RankedHits {
  return searchWindows(views, ranking, partOpener(views, ranking));
}

/** Counts the rows in each bucket of the keys; see `countInBuckets`. */
export function countRows(
  views: readonly RankedText[],
  { rankKeys, ...scoring }: TextScoring & { readonly rankKeys: SortedRankKeys },
): Float64Array {
  return countInBuckets(views, rankKeys, partOpener(views, scoring));
}

function partOpener(views: readonly RankedText[], scoring: TextScoring) {
  const lengthMax = views.reduce(
    (max, { parts }) => parts.reduce((most, part) => Math.max(most, part.lengthMax), max),
    0,
  );
  const norms = lengthNorms(lengthMax, scoring.averageLength, scoring);
  return (part: TextPart) => scoresOf(part, scoring, norms);
}

function scoresOf(
  part: TextPart,
  { terms, weights }: TextScoring,
  norms: Float64Array,
): PartScores {
  const { rows, counts, lengths, from: firstRow, windowCounts, windowLengths } = part;
  return {
    lists: terms.map((term) => findTerm(part, term)),
    boundOf: (term, at) => termScore(weights[term]!, windowCounts[at]!, norms[windowLengths[at]!]!),
    addScores(term, from, to, scores) {
      const weight = weights[term]!;
      for (let posting = from; posting < to; posting++) {
        const row = rows[posting]!;
        const norm = norms[lengths[row - firstRow]!]!;
        scores[row & (WINDOW_ROWS - 1)]! += termScore(weight, counts[posting]!, norm);
      }
    },
  };
}
