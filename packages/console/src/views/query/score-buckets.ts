// Scores as they are shown: with the same decimals below each other, and their distribution, as the server
// describes that of all scores.

import type { Histogram } from '@sagitta/client';

/** Buckets of equal width from the lowest score to the highest. Empty without scores. */
export function scoreBuckets(scores: readonly number[], bucketCount: number): Histogram['buckets'] {
  if (scores.length === 0) return [];
  const min = Math.min(...scores);
  const max = Math.max(...scores);
  if (min === max) return [{ from: min, to: max, count: scores.length }];
  const width = (max - min) / bucketCount;
  const counts = new Array<number>(bucketCount).fill(0);
  for (const score of scores) {
    counts[Math.min(bucketCount - 1, Math.floor((score - min) / width))]!++;
  }
  return counts.map((count, i) => ({
    from: min + i * width,
    to: i === bucketCount - 1 ? max : min + (i + 1) * width,
    count,
  }));
}

const DIGITS = 7;

/** Writes scores with as many decimals as float32 has for the largest, so that they align. */
export function scoreFormat(scores: readonly number[]): (score: number) => string {
  const largest = scores.reduce((most, score) => Math.max(most, Math.abs(score)), 1);
  const decimals = Math.max(0, DIGITS - 1 - Math.floor(Math.log10(largest)));
  return (score) => score.toFixed(decimals);
}
