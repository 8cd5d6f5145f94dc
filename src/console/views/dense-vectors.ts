// The vectors of a collection that can be joined and projected: the unnamed one and those with a name
// of which a record has one.

import type { CollectionRecord, Metric } from '../../client/client.js';
import { BIT_METRICS, METRICS, VALUE_METRICS } from '../../common/types.js';

export interface DenseVector {
  /** Empty for the unnamed vector. */
  readonly name: string;
  readonly dimension: number;
  readonly metric: Metric;
}

/** The unnamed one first. Empty for a collection that has sparse or multi-vectors only. */
export function denseVectors({ dimension, metric, vectors = {} }: CollectionRecord): DenseVector[] {
  const named = Object.entries(vectors)
    .filter(([, shape]) => shape.multi !== true)
    .map(([name, shape]) => ({ name, dimension: shape.dimension, metric: shape.metric }));
  const isUnnamed = dimension !== undefined && metric !== undefined;
  return isUnnamed ? [{ name: '', dimension, metric }, ...named] : named;
}

/** The metrics that the vectors can be compared by, as far as their own metric tells what their elements are. */
export function metricsBeside(own: Metric | undefined): readonly Metric[] {
  return own !== undefined && BIT_METRICS.has(own) ? METRICS : VALUE_METRICS;
}

export function labelOf({ name, dimension }: DenseVector): string {
  return `${name === '' ? 'Unnamed' : name} (${dimension} dimensions)`;
}
