// BM25 as Lucene defines it, in float64. With N documents of the mean length L, of which n contain a
// term, a document of the length l that contains it c times gets, for each time that the query has it,
//
//   idf · (k1 + 1) · c / (c + k1 · (1 − b + b · l / L))   with idf = ln(1 + (N − n + 0.5) / (n + 0.5))
//
// Scores of terms are added in the order of the terms' bytes.
//
// `termScore` divides by 1 + norm / c, so that c and l are each used once. Rounding is monotone, hence so
// is every step: a larger c and a smaller l never give a smaller score, in floating point as well. So the
// score of the largest c and the smallest l of a window is an upper bound of the scores in it, and the sum
// of such bounds in the same order is one of the sums. No tolerance is needed.

import type { TextSettings } from '../common/text-settings.js';

type Constants = Pick<TextSettings, 'k1' | 'b'>;

/** What a term counts for. V8 computes the logarithm itself, so that it is the same on all machines. */
export function termWeight(
  { documentCount, containingCount }: { documentCount: number; containingCount: number },
  countInQuery: number,
  { k1 }: Constants,
): number {
  const rest = documentCount - containingCount;
  const idf = Math.log(1 + (rest + 0.5) / (containingCount + 0.5));
  return countInQuery * (idf * (k1 + 1));
}

/** The norm of each length from 0 to `lengthMax`. */
export function lengthNorms(
  lengthMax: number,
  averageLength: number,
  { k1, b }: Constants,
): Float64Array {
  const norms = new Float64Array(lengthMax + 1);
  for (let length = 0; length <= lengthMax; length++) {
    norms[length] = k1 * (1 - b + b * (length / averageLength));
  }
  return norms;
}

/** @param count how often the document contains the term: at least 1. */
export function termScore(weight: number, count: number, norm: number): number {
  return weight / (1 + norm / count);
}
