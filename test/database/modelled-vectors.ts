// The named, sparse and multi-vectors of the model, which can be added and dropped, and their scores. All numbers are
// small integers, so that scores are exact and ties are real.

import assert from 'node:assert/strict';
import type { Named, SparseVector, VectorKind } from '../../src/common/vectors.js';
import type { VectorRecord, VectorsChange } from '../../src/database/api/database-api.js';
import type { QueryRequest } from '../../src/database/api/query-api.js';
import { columnsOf } from '../vector-columns.js';

const NAMES = ['title', 'image', 'words'];
const KINDS: readonly VectorKind[] = ['dense', 'multi', 'sparse'];
const INDEXES_MAX = 6;

interface Shape {
  readonly kind: VectorKind;
  readonly dimension: number;
}

/** The values of a dense vector, of consecutive vectors, or by index. */
type Values = readonly number[];

/** Vectors by name; null removes a vector. */
export type ModelVectors = Readonly<Record<string, Values | null>>;

export class ModelledVectors {
  readonly #below: (n: number) => number;
  #shapes = new Map<string, Shape>();

  constructor(below: (n: number) => number) {
    this.#below = below;
  }

  /** Adds or drops a vector in the model, and returns the change for the database. */
  change(): { readonly change: VectorsChange; readonly dropped: string | null } {
    const name = NAMES[this.#below(NAMES.length)]!;
    const shape = this.#shapes.get(name);
    if (shape !== undefined) {
      this.#shapes.delete(name);
      const member = shape.kind === 'sparse' ? 'sparseVectors' : 'vectors';
      return { change: { [member]: { [name]: null } }, dropped: name };
    }
    const kind = KINDS[this.#below(KINDS.length)]!;
    const dimension = kind === 'sparse' ? INDEXES_MAX : 1 + this.#below(4);
    this.#shapes.set(name, { kind, dimension });
    const change =
      kind === 'sparse'
        ? { sparseVectors: { [name]: { kind } } }
        : { vectors: { [name]: { kind, dimension, metric: 'dot' as const } } };
    return { change, dropped: null };
  }

  /** Some of the existing vectors, with nulls if a row may remove them. */
  random({ mayRemove = false } = {}): ModelVectors {
    const vectors: Record<string, Values | null> = {};
    for (const [name, { kind, dimension }] of this.#shapes) {
      const lot = this.#below(4);
      if (lot < 2) continue;
      if (mayRemove && lot === 2) vectors[name] = null;
      else vectors[name] = this.#values(dimension * (kind === 'multi' ? 1 + this.#below(3) : 1));
    }
    return vectors;
  }

  #values(count: number): Values {
    const values = Array.from({ length: count }, () => this.#below(7) - 3);
    // A sparse vector must have an element that is not 0.
    values[0] = values[0] === 0 ? 1 : values[0]!;
    return values;
  }

  columnsOf(rows: readonly ModelVectors[]): Named[] {
    const vectors = rows.map((row) =>
      Object.fromEntries(
        Object.entries(row).map(([name, values]) => {
          const isSparse = this.#shapes.get(name)!.kind === 'sparse';
          return [name, isSparse ? sparseOf(values) : values];
        }),
      ),
    );
    return columnsOf(Object.fromEntries(this.#shapes), vectors);
  }

  /** The rows that remove a vector, by the name of the vector. */
  removedBy(rows: readonly ModelVectors[]): Map<string, Uint8Array> {
    const removed = new Map<string, Uint8Array>();
    for (const name of this.#shapes.keys()) {
      const flags = Uint8Array.from(rows, (row) => (row[name] === null ? 1 : 0));
      if (flags.includes(1)) removed.set(name, flags);
    }
    return removed;
  }

  assertSame(
    { vectors = {}, sparseVectors = {} }: Pick<VectorRecord, 'vectors' | 'sparseVectors'>,
    expected: ModelVectors,
  ): void {
    const found: Record<string, Values> = {};
    for (const [name, vector] of Object.entries(vectors)) {
      found[name] = [...(vector instanceof Float32Array ? vector : vector.values)];
    }
    for (const [name, { indices, values }] of Object.entries(sparseVectors)) {
      const all = new Array<number>(INDEXES_MAX).fill(0);
      for (const [i, index] of indices.entries()) all[index] = values[i]!;
      found[name] = all;
    }
    assert.deepEqual(found, expected);
  }

  /** A query by one of the vectors; null while none exists. */
  randomQuery(): {
    readonly request: QueryRequest;
    /** Null for a row that is not ranked. */
    readonly score: (vectors: ModelVectors) => number | null;
  } | null {
    const name = [...this.#shapes.keys()][this.#below(this.#shapes.size)];
    if (name === undefined) return null;
    const { kind, dimension } = this.#shapes.get(name)!;
    const query = this.#values(kind === 'multi' ? 2 * dimension : dimension);
    const values = Float32Array.from(query);
    const searched = {
      dense: { vector: values },
      multi: { multiVector: vectorsIn(query, dimension).map((one) => Float32Array.from(one)) },
      sparse: { sparse: sparseOf(query)! },
    }[kind];
    const score = (vectors: ModelVectors) => {
      const row = vectors[name];
      if (!row) return null;
      if (kind === 'sparse')
        return row.some((v, i) => v * query[i]! !== 0) ? dot(row, query) : null;
      return kind === 'dense' ? dot(row, query) : maxSim(query, row, dimension);
    };
    return { request: { ...searched, using: name }, score };
  }
}

function sparseOf(values: Values | null | undefined): SparseVector | undefined {
  if (!values) return undefined;
  const elements = [...values.entries()].filter(([, value]) => value !== 0);
  return {
    indices: Uint32Array.from(elements, ([index]) => index),
    values: Float32Array.from(elements, ([, value]) => value),
  };
}

function dot(left: Values, right: Values): number {
  return left.reduce((sum, value, i) => sum + value * right[i]!, 0);
}

function maxSim(query: Values, row: Values, dimension: number): number {
  const vectors = vectorsIn(row, dimension);
  return vectorsIn(query, dimension).reduce(
    (sum, one) => sum + Math.max(...vectors.map((other) => dot(one, other))),
    0,
  );
}

function vectorsIn(values: Values, dimension: number): Values[] {
  return Array.from({ length: values.length / dimension }, (_, i) =>
    values.slice(i * dimension, (i + 1) * dimension),
  );
}
