// Sparse vectors in requests: `{"indices": […], "values": […]}` in JSON, with distinct indices in any order and
// non-zero values, and the same as two columns of Arrow.

import { isJsonObject } from '../../common/metadata-path.js';
import { columnOfVectors, type SparseColumn, type SparseVector } from '../../common/vectors.js';
import type { SparseCells } from '../../formats/arrow/sparse-cells.js';
import { describeKind } from './value-kinds.js';
import {
  ListReader,
  type LocatedViolation,
  type ShapeOf,
  type VectorRules,
} from './vector-rules.js';

export const sparseRules: VectorRules<ShapeOf<'sparse'>, SparseCells, SparseColumn> = {
  member: 'sparse_vectors',
  openColumn(options) {
    const { sparseElementsMax } = options.limits;
    return new ListReader(options, (source) => readSparse(source, sparseElementsMax));
  },
  ofArrow({ indicesAt, valuesAt }, { rowCount, limits, isFull, report }) {
    const vectors = new Array<SparseVector | undefined>(rowCount).fill(undefined);
    for (let row = 0; row < rowCount && !isFull(); row++) {
      const sent = { indices: indicesAt(row), values: valuesAt(row) };
      if (sent.indices.length === 0 && sent.values.length === 0) continue;
      const vector = readSparse(sent, limits.sparseElementsMax);
      if ('code' in vector) report(row, vector);
      else vectors[row] = vector;
    }
    return columnOfVectors({ kind: 'sparse' }, vectors);
  },
};

/** A sparse vector in JSON. */
export interface SparseBody {
  readonly indices: readonly number[];
  readonly values: readonly number[];
}

const MEMBERS = ['indices', 'values'] as const;
const INDEX_MAX = 0xffff_ffff;

/** Reads a vector and sorts it by its indices. */
export function readSparse(source: unknown, elementsMax: number): SparseVector | LocatedViolation {
  if (!isJsonObject(source)) {
    const detail = `A sparse vector is an object of indices and values; found ${describeKind(source)}.`;
    return { path: [], code: 'invalid_vector', detail };
  }
  const unknown = Object.keys(source).find((name) => !MEMBERS.some((known) => known === name));
  if (unknown !== undefined) {
    const detail = 'There is no such member; expected indices and values.';
    return { path: [unknown], code: 'unknown_parameter', detail };
  }
  const wrong = MEMBERS.find((name) => !Array.isArray(source[name]));
  if (wrong !== undefined) {
    const detail = `Expected an array of numbers; found ${describeKind(source[wrong])}.`;
    return { path: [wrong], code: 'invalid_vector', detail };
  }
  return readElements(source.indices as unknown[], source.values as unknown[], elementsMax);
}

function readElements(
  sentIndices: readonly unknown[],
  sentValues: readonly unknown[],
  elementsMax: number,
): SparseVector | LocatedViolation {
  const { length } = sentIndices;
  if (length === 0 || length > elementsMax) {
    return {
      path: ['indices'],
      code: length === 0 ? 'invalid_vector' : 'limit_exceeded',
      detail: `A sparse vector has 1 to ${elementsMax} elements; found ${length}.`,
      expected: elementsMax,
      actual: length,
    };
  }
  if (sentValues.length !== length) {
    const detail = `Expected a value for each of the ${length} indices; found ${sentValues.length}.`;
    const bound = { expected: length, actual: sentValues.length };
    return { path: ['values'], code: 'invalid_vector', detail, ...bound };
  }
  const indices = new Uint32Array(length);
  const values = new Float32Array(length);
  let isAscending = true;
  for (let i = 0; i < length; i++) {
    const violation = findElementViolation(sentIndices[i], sentValues[i], i);
    if (violation !== null) return violation;
    indices[i] = sentIndices[i] as number;
    values[i] = sentValues[i] as number;
    if (i > 0 && indices[i]! <= indices[i - 1]!) isAscending = false;
  }
  return isAscending ? { indices, values } : sorted({ indices, values });
}

function findElementViolation(index: unknown, value: unknown, i: number): LocatedViolation | null {
  const invalid = (name: string, detail: string): LocatedViolation => ({
    path: [name],
    code: 'invalid_vector',
    detail,
  });
  if (!Number.isInteger(index) || (index as number) < 0 || (index as number) > INDEX_MAX) {
    const found = typeof index === 'number' ? index : describeKind(index);
    return invalid('indices', `Index ${i} is ${found}, not an integer from 0 to ${INDEX_MAX}.`);
  }
  if (typeof value !== 'number') {
    return invalid('values', `Element ${i} is ${describeKind(value)}, not a number.`);
  }
  const stored = Math.fround(value);
  if (stored === 0) {
    return invalid('values', `Element ${i} is 0 as float32; omit zero elements.`);
  }
  if (Number.isFinite(stored)) return null;
  const detail = `Element ${i} is infinite or beyond the range of float32 (3.4028235e38).`;
  return invalid('values', detail);
}

/** Sorts by index. A repeated index is a violation. */
function sorted({ indices, values }: SparseVector): SparseVector | LocatedViolation {
  const order = Uint32Array.from(indices.keys()).sort((a, b) => indices[a]! - indices[b]!);
  const ascending = {
    indices: Uint32Array.from(order, (at) => indices[at]!),
    values: Float32Array.from(order, (at) => values[at]!),
  };
  const again = ascending.indices.findIndex((index, i) => index === ascending.indices[i + 1]);
  if (again < 0) return ascending;
  const detail = `The index ${ascending.indices[again]} occurs more than once; expected distinct indices.`;
  return { path: ['indices'], code: 'invalid_vector', detail };
}
