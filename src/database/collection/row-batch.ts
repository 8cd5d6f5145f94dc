// Rows that were read, and changed, as a batch to write.

import { multiColumnOf } from '../../common/multi-column.js';
import { sparseColumnOf } from '../../common/sparse-column.js';
import type {
  MultiVector,
  NamedMulti,
  NamedSparse,
  NamedVectors,
  SparseVector,
  VectorBatch,
} from '../../common/types.js';
import { utf8ColumnOf } from '../../common/utf8-column.js';
import { elementBytes } from '../../segment/sparse-field.js';
import { type VectorsToSet, valuesPerRow } from '../api.js';
import type { Collection } from './collection.js';
import type { CollectionDefinition } from './manifest.js';
import type { RowAddress } from './rows.js';

type SparseToSet = Readonly<Record<string, SparseVector | null>>;

export interface RowToWrite {
  readonly id: string;
  /** JSON text. */
  readonly metadata: string;
  /** Undefined in a collection without the unnamed vector. */
  readonly values?: Float32Array | undefined;
  /** Null for a vector that the row does not have. */
  readonly vectors?: VectorsToSet | undefined;
  readonly sparseVectors?: SparseToSet | undefined;
}

export function batchOfRows(
  { definition }: Collection,
  rows: readonly RowToWrite[],
): VectorBatch & { readonly expiresAtMs?: undefined } {
  const { dimension = 0 } = definition;
  const values = new Float32Array(rows.length * dimension);
  for (const [i, row] of rows.entries()) {
    if (row.values !== undefined) values.set(row.values, i * dimension);
  }
  const vectors = rows.map((row) => row.vectors ?? {});
  return {
    count: rows.length,
    ids: utf8ColumnOf(rows.map(({ id }) => id)),
    values,
    metadata: utf8ColumnOf(rows.map(({ metadata }) => metadata)),
    named: namedVectorsOf(definition, vectors),
    multi: multiVectorsOf(definition, vectors),
    sparse: sparseVectorsOf(
      definition,
      rows.map((row) => row.sparseVectors ?? {}),
    ),
  };
}

/** The bytes of the vectors of a stored row. */
export function vectorBytesOf({ definition }: Collection, { segment, row }: RowAddress): number {
  let byteCount = 4 * valuesPerRow(definition) + segment.multiBytes(row);
  for (const field of segment.sparseFields) byteCount += elementBytes(field.column(), row, 1);
  return byteCount;
}

/** Undefined where no row has one. */
function namedVectorsOf(
  definition: CollectionDefinition,
  rows: readonly VectorsToSet[],
): readonly NamedVectors[] | undefined {
  const named = Object.entries(definition.vectors ?? {}).flatMap(([name, { dimension }]) => {
    const presence = new Uint8Array(rows.length);
    const values = new Float32Array(rows.length * dimension);
    for (const [i, row] of rows.entries()) {
      const vector = vectorIn(row, name);
      if (!(vector instanceof Float32Array)) continue;
      values.set(vector, i * dimension);
      presence[i] = 1;
    }
    if (!presence.includes(1)) return [];
    return [{ name, dimension, values, presence }];
  });
  return named.length === 0 ? undefined : named;
}

/** The same for sparse vectors. */
function sparseVectorsOf(
  definition: CollectionDefinition,
  rows: readonly SparseToSet[],
): readonly NamedSparse[] | undefined {
  const sparse = Object.keys(definition.sparseVectors ?? {}).flatMap((name) => {
    const vectorAt = (i: number) =>
      (Object.hasOwn(rows[i]!, name) ? rows[i]![name] : null) ?? undefined;
    const column = sparseColumnOf(rows.length, vectorAt);
    return column.indices.length === 0 ? [] : [{ name, ...column }];
  });
  return sparse.length === 0 ? undefined : sparse;
}

/** The same for multi-vectors. */
function multiVectorsOf(
  definition: CollectionDefinition,
  rows: readonly VectorsToSet[],
): readonly NamedMulti[] | undefined {
  const multi = Object.entries(definition.multiVectors ?? {}).flatMap(([name, { dimension }]) => {
    const column = multiColumnOf(rows.length, dimension, (row) => {
      const vector = vectorIn(rows[row]!, name);
      return vector === null || vector instanceof Float32Array ? undefined : vector;
    });
    return column.values.length === 0 ? [] : [{ name, ...column }];
  });
  return multi.length === 0 ? undefined : multi;
}

/** Also of a vector named like a member of every object. */
function vectorIn(row: VectorsToSet, name: string): Float32Array | MultiVector | null {
  return Object.hasOwn(row, name) ? row[name]! : null;
}
