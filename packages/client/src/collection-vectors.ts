// Lists all vectors that a collection defines: unnamed, named, multi and sparse.

import type { Metric } from '../../../src/common/types.js';
import { UNNAMED, type VectorKind } from '../../../src/common/vectors.js';
import type { CollectionRecord } from './types.js';

/** The member of collections and records that holds the named vectors of each kind. */
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

/** The unnamed vector comes first, sparse vectors last. */
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

/** The vectors that can be joined and projected: one dense vector per record. */
export function denseVectors(collection: CollectionRecord): DenseVector[] {
  return vectorsOf(collection).filter((vector) => vector.kind === 'dense');
}
