// Scores rows by BM25 for the search of windows. See bm25.ts for why the bounds hold to the last bit.

import type { TextSettings } from '../common/text-settings.js';
import { lengthNorms, termScore } from './bm25.js';
import { WINDOW_ROWS } from './posting-lists.js';
import { findTerm, type TextRun } from './text-run.js';
import type { RankedView, RunScorer } from './window-search.js';

/** The parameters of scores, the same in every segment. */
export interface TextScoring extends Pick<TextSettings, 'k1' | 'b'> {
  /** Distinct byte strings in the order of their bytes. */
  readonly terms: readonly string[];
  /** The weight of each term. */
  readonly weights: readonly number[];
  /** Mean length of the documents of the whole snapshot; above 0 if it has any. */
  readonly averageLength: number;
}

export type RankedText = RankedView<TextRun>;

/** Returns a function that makes the scorer of each run of the views. */
export function textScorers(
  views: readonly RankedText[],
  scoring: TextScoring,
): (run: TextRun) => RunScorer {
  const lengthMax = views.reduce(
    (max, { runs }) => runs.reduce((most, run) => Math.max(most, run.lengthMax), max),
    0,
  );
  const norms = lengthNorms(lengthMax, scoring.averageLength, scoring);
  return (run) => scorerOf(run, scoring, norms);
}

function scorerOf(run: TextRun, { terms, weights }: TextScoring, norms: Float64Array): RunScorer {
  const { rows, counts, lengths, from: firstRow, windowCounts, windowLengths } = run;
  return {
    lists: terms.map((term) => findTerm(run, term)),
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
