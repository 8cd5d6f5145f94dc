// BM25 as Lucene defines it, in float64. Let N be the number of documents, L their mean length, and n the
// number that contain a term. Each occurrence of the term in the query adds to a document of length l that
// contains the term c times
//
//   idf · (k1 + 1) · c / (c + k1 · (1 − b + b · l / L))   with idf = ln(1 + (N − n + 0.5) / (n + 0.5))
//
// The scores of terms are added in the order of the terms' bytes.
//
// `termScore` divides by 1 + norm / c, so that c and l each occur once. Rounding is monotone, and so is
// every step: a larger c or a smaller l never lowers the score, even in floating point. The score for the
// largest c and the smallest l in a window is therefore an upper bound of the scores in the window, and
// adding these bounds in the same order bounds the sums. No tolerance is needed.

import type { TextSettings } from '../common/text-settings.js';

type Constants = Pick<TextSettings, 'k1' | 'b'>;

/** The weight of a query term. V8 computes the logarithm in software, so the weight is the same on all machines. */
export function termWeight(
  { documentCount, containingCount }: { documentCount: number; containingCount: number },
  countInQuery: number,
  { k1 }: Constants,
): number {
  const rest = documentCount - containingCount;
  const idf = Math.log(1 + (rest + 0.5) / (containingCount + 0.5));
  return countInQuery * (idf * (k1 + 1));
}

/** Returns the norm of each document length from 0 to `lengthMax`. */
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

/** @param count occurrences of the term in the document; at least 1. */
export function termScore(weight: number, count: number, norm: number): number {
  return weight / (1 + norm / count);
}
