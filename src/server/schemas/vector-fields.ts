// The vectors of a collection as requests describe them, and as the database does.

import type { Metric } from '../../common/types.js';
import { UNNAMED } from '../../common/vectors.js';
import type { FieldShape, FieldShapes } from '../../database/api.js';

/** A dense vector or, with `multi`, a multi-vector. */
interface NamedVectorInput {
  readonly dimension: number;
  readonly metric: Metric;
  readonly multi?: boolean | undefined;
}

interface VectorsInput {
  /** Of the unnamed vector; absent for a collection without it. */
  readonly dimension?: number | undefined;
  readonly metric?: Metric | undefined;
  readonly vectors?: Readonly<Record<string, NamedVectorInput>> | undefined;
  readonly sparseVectors?: Readonly<Record<string, object>> | undefined;
}

export function toFieldShapes({
  dimension,
  metric = 'cosine',
  vectors = {},
  sparseVectors: sparse = {},
}: VectorsInput): FieldShapes {
  return {
    ...(dimension === undefined ? {} : { [UNNAMED]: { kind: 'dense', dimension, metric } }),
    ...mapValues(vectors, toFieldShape),
    ...mapValues(sparse, () => SPARSE),
  };
}

/** Null is for a vector that is dropped. */
export function toFieldChanges(
  vectors: Readonly<Record<string, NamedVectorInput | null>> = {},
): Readonly<Record<string, FieldShape | null>> {
  return mapValues(vectors, (vector) => vector && toFieldShape(vector));
}

export function toSparseChanges(
  vectors: Readonly<Record<string, object | null>> = {},
): Readonly<Record<string, FieldShape | null>> {
  return mapValues(vectors, (settings) => settings && SPARSE);
}

const SPARSE: FieldShape = { kind: 'sparse' };

function toFieldShape({ multi = false, dimension, metric }: NamedVectorInput): FieldShape {
  return { kind: multi ? 'multi' : 'dense', dimension, metric };
}

function mapValues<Value, Result>(
  values: Readonly<Record<string, Value>>,
  convert: (value: Value) => Result,
): Record<string, Result> {
  return Object.fromEntries(Object.entries(values).map(([name, one]) => [name, convert(one)]));
}
