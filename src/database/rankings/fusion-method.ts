// The score of a row that several rankings rank: the sum of one term for each, in their order, in float64.
// A row that a ranking does not have gets nothing from it. Rankings are complete: over all rows that pass
// the filters and can be ranked, not over the first of them.
//
//   rrf        weight / (constant + rank), the rank of the best row being 1
//   weighted   weight · the score as replies show it, unrounded; with `max` divided by the absolute value of
//              the best score of the ranking, unless that is 0
//
// Terms of later rows of a ranking are never greater: division, multiplication and addition are monotone in
// floating point too. So the sum of bounds, in the same order, bounds the sum.

export type FusionMethod =
  | { readonly kind: 'rrf'; readonly rankConstant: number }
  | { readonly kind: 'weighted'; readonly normalize: 'none' | 'max' };

/** The share of one ranking in the score of a row. */
export type Term = (place: { readonly rank: number; readonly score: number }) => number;

/** @param bestScore of the ranking. */
export function createTerm(method: FusionMethod, weight: number, bestScore: number): Term {
  if (method.kind === 'rrf') return ({ rank }) => weight / (method.rankConstant + rank);
  const divisor = method.normalize === 'max' && bestScore !== 0 ? Math.abs(bestScore) : 1;
  return ({ score }) => weight * (score / divisor);
}

/** The sum in the order of the rankings. */
export function addTerms(terms: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < terms.length; i++) sum += terms[i]!;
  return sum;
}

/**
 * How many rows to read of each ranking so that, most often, rows that no ranking has shown by then cannot be
 * among the k best by `rrf`: the first k rows of the ranking with the greatest weight bound the k-th best.
 */
export function expectedDepth(method: FusionMethod, weights: readonly number[], k: number): number {
  if (method.kind === 'weighted') return DEPTH_PER_K * k;
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return (
    Math.ceil(((method.rankConstant + k) * total) / Math.max(...weights)) - method.rankConstant
  );
}

const DEPTH_PER_K = 4;
