// The score of a row in a fusion: the sum of one term per ranking, in the order of the rankings, in float64. A row
// that a ranking does not contain gets no term from it. Rankings are complete: they contain all rows that pass the
// filters and can be ranked, not only the first rows.
//
//   rrf        weight / (constant + rank), where the best row has rank 1
//   weighted   weight · the score as replies show it, unrounded; with `max` divided by the absolute value of
//              the best score of the ranking, unless that is 0
//
// Terms never increase along a ranking, because division, multiplication and addition are monotone in floating
// point. Therefore the sum of bounds, in the same order, bounds the sum.

export type FusionMethod =
  | { readonly kind: 'rrf'; readonly rankConstant: number }
  | { readonly kind: 'weighted'; readonly normalize: 'none' | 'max' };

/** The term of one ranking in the score of a row. */
export type Term = (place: { readonly rank: number; readonly score: number }) => number;

/** @param bestScore the best score of the ranking. */
export function createTerm(method: FusionMethod, weight: number, bestScore: number): Term {
  if (method.kind === 'rrf') return ({ rank }) => weight / (method.rankConstant + rank);
  const divisor = method.normalize === 'max' && bestScore !== 0 ? Math.abs(bestScore) : 1;
  return ({ score }) => weight * (score / divisor);
}

/** Sums the terms in the order of the rankings. */
export function addTerms(terms: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < terms.length; i++) sum += terms[i]!;
  return sum;
}

/**
 * The number of rows to read from each ranking so that rows not read from any of them are usually not among the k best.
 * For `rrf`, the first k rows of the ranking with the greatest weight bound the k-th best score.
 */
export function expectedDepth(method: FusionMethod, weights: readonly number[], k: number): number {
  if (method.kind === 'weighted') return DEPTH_PER_K * k;
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return (
    Math.ceil(((method.rankConstant + k) * total) / Math.max(...weights)) - method.rankConstant
  );
}

const DEPTH_PER_K = 4;
