// The vectors of a collection that can be joined and projected: the unnamed one and those with a name
// of which a record has one.

import type { CollectionRecord, Metric } from '../../client/client.js';

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

export function labelOf({ name, dimension }: DenseVector): string {
  return `${name === '' ? 'Unnamed' : name} (${dimension} dimensions)`;
}
