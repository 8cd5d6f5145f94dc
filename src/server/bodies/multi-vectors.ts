// Multi-vectors in requests: lists of dense vectors in JSON, and columns of Arrow.

import type { MultiColumn, MultiVector } from '../../common/vectors.js';
import { vectorsMax } from '../../formats/arrow/multi-vectors.js';
import { conformVectors, readVectorInto } from './dense-vectors.js';
import { describeKind } from './value-kinds.js';
import {
  type ColumnOptions,
  ListReader,
  type LocatedViolation,
  type ShapeOf,
  type VectorRules,
} from './vector-rules.js';

type MultiShape = ShapeOf<'multi'>;

export const multiRules: VectorRules<MultiShape, MultiColumn> = {
  member: 'vectors',
  openColumn: (options) => new ListReader(options, (source) => readMultiVector(source, options)),
  ofArrow(column, rules) {
    conformVectors(column, rules);
    return column;
  },
};

function readMultiVector(
  source: unknown,
  { shape, name, limits }: ColumnOptions<MultiShape>,
): MultiVector | LocatedViolation {
  const { dimension } = shape;
  const countMax = vectorsMax(dimension, limits);
  if (!Array.isArray(source) || source.length === 0) {
    const detail = `A multi-vector is a list of 1 to ${countMax} vectors; found ${describeKind(source)}.`;
    return { code: 'invalid_vector', detail };
  }
  if (source.length > countMax) {
    const detail = `A multi-vector of this dimension has at most ${countMax} vectors; found ${source.length}.`;
    return { code: 'limit_exceeded', detail, expected: countMax, actual: source.length };
  }
  const target = { ...shape, name };
  const values = new Float32Array(source.length * dimension);
  for (const [index, vector] of source.entries()) {
    const violation = readVectorInto(values, index * dimension, vector, target);
    if (violation !== null) return { ...violation, path: [index] };
  }
  return { dimension, values };
}
