// Reads a record batch as rows to write: columns of ids, vectors and metadata. A pure function, which
// runs in any thread. The collection's rules for ids and metadata, but for their lengths, are checked
// by the caller.

import type { NamedMulti, NamedVectors, Utf8Column } from '../../common/types.js';
import { located } from './arrow-errors.js';
import { type ColumnNames, chooseVectorColumns } from './column-choice.js';
import { type Column, openColumns } from './columns.js';
import type { EncodedBatch } from './encoded-batch.js';
import { readIds } from './ids.js';
import { readMetadata } from './json-columns.js';
import { readMultiVectors } from './multi-vectors.js';
import { type RowIssue, RowIssues } from './row-issues.js';
import { readElements, type SparseCells } from './sparse-cells.js';
import { readNamedVectors, readVectors, type VectorsToRead } from './vectors.js';

export interface VectorRowsOptions extends Pick<ColumnNames, 'idColumn' | 'vectorColumn'> {
  /** Of the unnamed vector; null where rows have none. */
  readonly dimension: number | null;
  /** The dimensions of the named vectors, by name; absent for none. */
  readonly named?: ReadonlyMap<string, number>;
  /** Of the multi-vectors, by name; absent for none. */
  readonly multi?: ReadonlyMap<string, { readonly dimension: number; readonly countMax: number }>;
  /** The names of the sparse vectors; absent for none. */
  readonly sparseNames?: readonly string[];
  /** Bound on the decompressed batch. */
  readonly batchBytesMax: number;
  readonly idBytesMax: number;
  /** Whether rows change vectors that there are: they need ids, and may lack the unnamed vector. */
  readonly isPatch?: boolean;
  /** Bound on the metadata of one row. */
  readonly metadataBytesMax: number;
}

export interface VectorRows {
  readonly count: number;
  /** Null if there is no column of ids. */
  readonly ids: Utf8Column | null;
  /**
   * Row-major [count, dimension] float32, all finite; a view of the batch's body where possible. Empty where
   * rows have no unnamed vector.
   */
  readonly values: Float32Array;
  /** [count], 1 for rows that have the unnamed vector; only those of a patch may lack it, and have zeros. */
  readonly hasValues: Uint8Array;
  /** Of the named vectors that have a column and are not null in all rows. */
  readonly named: readonly NamedVectors[];
  /** The same for multi-vectors. */
  readonly multi: readonly NamedMulti[];
  /** Of the sparse vectors that have columns, as received. */
  readonly sparse: readonly SparseCells[];
  /**
   * Null if there is none. JSON objects that were written here, or text as received, known only to be
   * UTF-8.
   */
  readonly metadata: Utf8Column | null;
  /** Of the first rows that have any; if not empty, the content of the columns is undefined. */
  readonly issues: readonly RowIssue[];
}

/** By how much dictionaries, float16 and numbers as JSON may make the rows larger than the batch. */
const EXPANSION_MAX = 4;

type Unnamed = Pick<NamedVectors, 'values' | 'presence'>;

const NO_VALUES: Unnamed = { values: new Float32Array(0), presence: new Uint8Array(0) };

function readUnnamed(
  column: Column,
  toRead: VectorsToRead,
  { isPatch = false }: VectorRowsOptions,
): Unnamed {
  if (isPatch) return readNamedVectors(column, { ...toRead, name: column.field.name });
  const presence = new Uint8Array(column.length).fill(1);
  return { values: readVectors(column, toRead), presence };
}

/** Throws `invalid_arrow`, `invalid_request` or, of a column without JSON, `invalid_metadata`. */
export function readVectorRows(batch: EncodedBatch, options: VectorRowsOptions): VectorRows {
  return located(`record batch ${batch.index}`, () => {
    const { dimension, batchBytesMax, idBytesMax, metadataBytesMax } = options;
    const { named = new Map<string, number>(), multi = new Map<string, never>() } = options;
    const chosen = chooseVectorColumns(batch.fields, {
      ...options,
      hasUnnamed: dimension !== null,
      vectorNames: [...named.keys()],
      multiNames: [...multi.keys()],
    });
    const columns = openColumns(batch, batchBytesMax);
    const issues = new RowIssues();
    const bytesMax = batchBytesMax * EXPANSION_MAX;
    const unnamed =
      chosen.values === null || dimension === null
        ? NO_VALUES
        : readUnnamed(columns[chosen.values]!, { dimension, bytesMax, issues }, options);
    const vectors = chosen.named.map(({ name, index }) => {
      const toRead = { name, dimension: named.get(name)!, bytesMax, issues };
      return readNamedVectors(columns[index]!, toRead);
    });
    const lists = chosen.multi.map(({ name, index }) => {
      const { dimension: length, countMax } = multi.get(name)!;
      const toRead = { name, dimension: length, countMax, bytesMax, issues };
      return readMultiVectors(columns[index]!, toRead);
    });
    const sparse = chosen.sparse.map(({ name, indices, values: sparseValues }) => ({
      name,
      indicesAt: readElements(columns[indices]!, bytesMax),
      valuesAt: readElements(columns[sparseValues]!, bytesMax),
    }));
    const ids =
      chosen.id === null ? null : readIds(columns[chosen.id]!, { idBytesMax, bytesMax, issues });
    const metadata = readMetadata({
      count: batch.rowCount,
      objects: chosen.metadata === null ? null : columns[chosen.metadata]!,
      members: chosen.members.map((index) => columns[index]!),
      rowBytesMax: metadataBytesMax,
      bytesMax,
      issues,
    });
    return {
      count: batch.rowCount,
      ids,
      values: unnamed.values,
      hasValues: unnamed.presence,
      named: vectors.filter(({ presence }) => presence.includes(1)),
      multi: lists.filter(({ starts }) => starts.at(-1)! > 0),
      sparse,
      metadata,
      issues: issues.items,
    };
  });
}
