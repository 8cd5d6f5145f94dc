// Explains the scores of each metric to people who look for duplicates, and gives the range of useful
// thresholds.

import type { Metric } from '@sagitta/client';

interface ScoreScale {
  /** The slider's range; absent if scores are unbounded. */
  readonly range?: { readonly min: number; readonly max: number; readonly step: number };
  readonly initial: number;
  readonly explain: (threshold: number) => string;
}

const SCORE_SCALES = {
  cosine: {
    // Lower thresholds do not find duplicates; the number field accepts them nevertheless.
    range: { min: 0.5, max: 1, step: 0.001 },
    initial: 0.98,
    explain: (threshold) => {
      const degrees = (Math.acos(Math.min(1, Math.max(-1, threshold))) * 180) / Math.PI;
      return `Cosine similarity: 1 for the same direction. The angle is at most ${round(degrees)}°.`;
    },
  },
  euclidean: {
    range: { min: 0, max: 1, step: 0.001 },
    initial: 0.9,
    explain: (threshold) =>
      threshold > 0
        ? `1 / (1 + distance): 1 for equal vectors. The distance is at most ${round(1 / threshold - 1)}.`
        : '1 / (1 + distance): 1 for equal vectors. Every pair has a score above 0.',
  },
  jaccard: {
    range: { min: 0.5, max: 1, step: 0.001 },
    initial: 0.9,
    explain: (threshold) =>
      `Jaccard similarity: at least ${round(100 * threshold)} % of the bits set in either vector are set in both.`,
  },
  hamming: {
    range: { min: 0, max: 1, step: 0.001 },
    initial: 0.5,
    explain: (threshold) =>
      threshold > 0
        ? `1 / (1 + distance): 1 for equal bits. At most ${Math.floor(1 / threshold - 1)} bits differ.`
        : '1 / (1 + distance): 1 for equal bits. Every pair has a score above 0.',
  },
  dot: {
    initial: 1,
    explain: () =>
      'The dot product, which grows with the lengths of the vectors and has no upper limit. Cosine finds duplicates of any length.',
  },
} satisfies Record<Metric, ScoreScale>;

export function scoreScale(metric: Metric): ScoreScale {
  return SCORE_SCALES[metric];
}

function round(value: number): string {
  return Number(value.toPrecision(3)).toString();
}
