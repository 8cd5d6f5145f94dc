// Rows that were read, and changed, as a batch to write.

import type { VectorBatch } from '../../common/types.js';
import { utf8ColumnOf } from '../../common/utf8-column.js';
import { columnOfVectors, hasVector, type Vector } from '../../common/vectors.js';
import type { Collection } from './collection.js';

export interface RowToWrite {
  readonly id: string;
  /** JSON text. */
  readonly metadata: string;
  /** By name, '' for the unnamed one. */
  readonly vectors: ReadonlyMap<string, Vector>;
}

export function batchOfRows(
  { definition }: Collection,
  rows: readonly RowToWrite[],
): VectorBatch & { readonly expiresAtMs?: undefined } {
  const columns = Object.entries(definition.vectors).map(([name, spec]) => ({
    name,
    ...columnOfVectors(
      spec,
      rows.map(({ vectors }) => vectors.get(name)),
    ),
  }));
  return {
    count: rows.length,
    ids: utf8ColumnOf(rows.map(({ id }) => id)),
    metadata: utf8ColumnOf(rows.map(({ metadata }) => metadata)),
    vectors: columns.filter((column) => rows.some((_, row) => hasVector(column, row))),
  };
}
