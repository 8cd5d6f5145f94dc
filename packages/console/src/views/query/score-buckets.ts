// Formats scores with equal decimals, and counts them in buckets like those that the server returns for all scores.

import type { Histogram } from '@sagitta/client';

/** Buckets of equal width from the lowest to the highest score; empty if there are no scores. */
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

/** Formats all scores with the number of decimals that float32 offers for the largest, so that they align. */
export function scoreFormat(scores: readonly number[]): (score: number) => string {
  const largest = scores.reduce((most, score) => Math.max(most, Math.abs(score)), 1);
  const decimals = Math.max(0, DIGITS - 1 - Math.floor(Math.log10(largest)));
  return (score) => score.toFixed(decimals);
}
