// Explains the scores of each metric to people who look for duplicates, gives the range of useful thresholds, and
// converts between scores and distances.

import type { Metric } from '@sagitta/client';
import { metricName } from '../metric-name.js';

interface ScoreScale {
  /** The slider's range; absent if scores are unbounded. */
  readonly range?: { readonly min: number; readonly max: number; readonly step: number };
  /** The distance of a score, 0 for equal vectors, and the reverse; absent if the score is not one of a distance. */
  readonly distances?: ScoreDistances;
  /** What the score means, and what the threshold does if it is a number. */
  readonly explain: (threshold: number) => string;
}

export interface ScoreDistances {
  readonly distanceAt: (score: number) => number;
  readonly scoreAt: (distance: number) => number;
}

const COMPLEMENT: ScoreDistances = {
  distanceAt: (score) => Math.max(0, 1 - score),
  scoreAt: (distance) => 1 - distance,
};
const RECIPROCAL: ScoreDistances = {
  distanceAt: (score) => Math.max(0, 1 / score - 1),
  scoreAt: (distance) => 1 / (1 + distance),
};

const SCORE_SCALES = {
  cosine: {
    // Lower thresholds do not find duplicates; the number field accepts them nevertheless.
    range: { min: 0.5, max: 1, step: 0.001 },
    distances: COMPLEMENT,
    explain: (threshold) => {
      const degrees = (Math.acos(Math.min(1, Math.max(-1, threshold))) * 180) / Math.PI;
      return `1 for the same direction.${effect(threshold, `The angle is at most ${round(degrees)}°.`)}`;
    },
  },
  euclidean: {
    range: { min: 0, max: 1, step: 0.001 },
    distances: RECIPROCAL,
    explain: (threshold) =>
      `1 / (1 + distance), so 1 for equal vectors.${effect(
        threshold,
        threshold > 0
          ? `The distance is at most ${round(1 / threshold - 1)}.`
          : 'Every pair has a score above 0.',
      )}`,
  },
  jaccard: {
    range: { min: 0.5, max: 1, step: 0.001 },
    distances: COMPLEMENT,
    explain: (threshold) =>
      `1 for equal bits.${effect(
        threshold,
        `At least ${round(100 * threshold)} % of the bits set in either vector are set in both.`,
      )}`,
  },
  hamming: {
    range: { min: 0, max: 1, step: 0.001 },
    distances: RECIPROCAL,
    explain: (threshold) =>
      `1 / (1 + distance), so 1 for equal bits.${effect(
        threshold,
        threshold > 0
          ? `At most ${Math.floor(1 / threshold - 1)} bits differ.`
          : 'Every pair has a score above 0.',
      )}`,
  },
  dot: {
    explain: () =>
      `grows with the lengths of the vectors and has no upper limit. ${metricName('cosine')} finds duplicates of any length.`,
  },
} satisfies Record<Metric, ScoreScale>;

export function scoreScale(metric: Metric): ScoreScale {
  const scale: ScoreScale = SCORE_SCALES[metric];
  return { ...scale, explain: (threshold) => `${metricName(metric)}: ${scale.explain(threshold)}` };
}

function effect(threshold: number, text: string): string {
  return Number.isFinite(threshold) ? ` ${text}` : '';
}

function round(value: number): string {
  return Number(value.toPrecision(3)).toString();
}
