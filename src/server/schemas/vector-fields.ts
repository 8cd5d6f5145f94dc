// Converts the vectors of a collection from the form of requests to that of the database.

import type { ElementType } from '../../common/elements.js';
import { BIT_METRICS, type FieldShape, type FieldShapes, type Metric } from '../../common/types.js';
import { UNNAMED } from '../../common/vectors.js';
import type { LocatedViolation } from '../bodies/vector-rules.js';

/** A dense vector or, with `multi`, a multi-vector. */
interface NamedVectorInput extends VectorInput {
  readonly dimension: number;
}

interface VectorInput {
  readonly dimension?: number | undefined;
  readonly metric?: Metric | undefined;
  readonly elementType?: ElementType | undefined;
  readonly multi?: boolean | undefined;
}

/** The members of the unnamed vector are absent if the collection does not have it. */
interface VectorsInput extends VectorInput {
  readonly vectors?: Readonly<Record<string, NamedVectorInput>> | undefined;
  readonly sparseVectors?: Readonly<Record<string, object>> | undefined;
}

export function toFieldShapes({
  vectors = {},
  sparseVectors: sparse = {},
  dimension,
  ...unnamed
}: VectorsInput): FieldShapes {
  return {
    ...(dimension === undefined ? {} : { [UNNAMED]: toFieldShape({ dimension, ...unnamed }) }),
    ...mapValues(vectors, toFieldShape),
    ...mapValues(sparse, () => SPARSE),
  };
}

/** Null drops a vector. */
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

function toFieldShape({ multi, dimension, ...input }: NamedVectorInput): FieldShape {
  const { elementType: element, metric = element === 'bit' ? 'hamming' : 'cosine' } = input;
  if (multi === true) return { kind: 'multi', dimension, metric };
  return { kind: 'dense', dimension, metric, ...(element !== 'float32' && { element }) };
}

/** Finds incompatible metrics and element types. */
export function findVectorViolations({
  metric,
  element_type: element = 'float32',
  multi,
}: Pick<VectorInput, 'metric' | 'multi'> & {
  readonly element_type?: ElementType | undefined;
}): readonly LocatedViolation[] {
  const violation = (name: string, detail: string) => [
    { code: 'invalid_request' as const, detail, path: [name] },
  ];
  if (multi === true && element !== 'float32') {
    return violation('element_type', `Multi-vectors have elements of float32; found ${element}.`);
  }
  if (multi === true && metric !== undefined && !['cosine', 'dot'].includes(metric)) {
    return violation('metric', `Multi-vectors are compared by cosine or dot; found ${metric}.`);
  }
  if (metric !== undefined && BIT_METRICS.has(metric) && element !== 'bit') {
    return violation('metric', `${metric} compares elements of bit; found ${element}.`);
  }
  return [];
}

function mapValues<Value, Result>(
  values: Readonly<Record<string, Value>>,
  convert: (value: Value) => Result,
): Record<string, Result> {
  return Object.fromEntries(Object.entries(values).map(([name, one]) => [name, convert(one)]));
}
