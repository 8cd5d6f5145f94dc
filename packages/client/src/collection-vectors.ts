// The vectors that records of a collection may have, in one list, whichever members of its description have them.

import type { Metric } from '../../../src/common/types.js';
import { UNNAMED, type VectorKind } from '../../../src/common/vectors.js';
import type { CollectionRecord } from './types.js';

/** The member of descriptions and of records that has the vectors of a kind by their names. */
export const VECTOR_MEMBERS = {
  dense: 'vectors',
  multi: 'vectors',
  sparse: 'sparse_vectors',
} as const satisfies Readonly<Record<VectorKind, string>>;

export interface DimensionedVector<Kind = 'dense' | 'multi'> {
  /** Empty for the unnamed vector. */
  readonly name: string;
  readonly kind: Kind;
  readonly dimension: number;
  readonly metric: Metric;
}

export type DenseVector = DimensionedVector<'dense'>;
export type CollectionVector =
  | DenseVector
  | DimensionedVector<'multi'>
  | { readonly name: string; readonly kind: 'sparse'; readonly metric: 'dot' };

/** The unnamed one first, the sparse ones last. */
export function vectorsOf({
  dimension,
  metric,
  vectors = {},
  sparse_vectors: sparse = {},
}: CollectionRecord): CollectionVector[] {
  const hasUnnamed = dimension !== undefined && metric !== undefined;
  return [
    ...(hasUnnamed ? [{ name: UNNAMED, kind: 'dense', dimension, metric } as const] : []),
    ...Object.entries(vectors).map(([name, shape]) => {
      const kind = shape.multi === true ? 'multi' : 'dense';
      return { name, kind, dimension: shape.dimension, metric: shape.metric } as const;
    }),
    ...Object.keys(sparse).map((name) => ({ name, kind: 'sparse', metric: 'dot' }) as const),
  ];
}

/** Those of which a record has one, which can be joined and projected. */
export function denseVectors(collection: CollectionRecord): DenseVector[] {
  return vectorsOf(collection).filter((vector) => vector.kind === 'dense');
}
