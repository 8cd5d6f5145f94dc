// A batch of strangers as rows to write: ids, vectors and metadata in columns. Pure, so that it can
// run in any thread. What a collection asks of ids and metadata beyond their bytes is not checked here.

import type { Utf8Column } from '../../common/types.js';
import { located } from './arrow-errors.js';
import { type ColumnNames, chooseVectorColumns } from './column-choice.js';
import { openColumns } from './columns.js';
import type { EncodedBatch } from './encoded-batch.js';
import { readIds } from './ids.js';
import { readMetadata } from './json-columns.js';
import { type RowIssue, RowIssues } from './row-issues.js';
import { readVectors } from './vectors.js';

export interface VectorRowsOptions extends ColumnNames {
  readonly dimension: number;
  /** Of the batch, decompressed. */
  readonly batchBytesMax: number;
  readonly idBytesMax: number;
  /** Of one row. */
  readonly metadataBytesMax: number;
}

export interface VectorRows {
  readonly count: number;
  /** Null where there is no column of ids. */
  readonly ids: Utf8Column | null;
  /** Row-major [count, dimension] float32, all finite; a view of the batch's body where it can be. */
  readonly values: Float32Array;
  /**
   * Null where there is none. JSON objects that were written here, or text as it came, of which
   * nothing is known but that it is UTF-8.
   */
  readonly metadata: Utf8Column | null;
  /** Of the first rows, by member; with any, the columns' content is undefined. */
  readonly issues: readonly RowIssue[];
}

/**
 * What is expanded here (dictionaries, float16, JSON of numbers) may be larger than the batch, but
 * not by any factor.
 */
const EXPANSION_MAX = 4;

/** Throws `invalid_arrow`, `invalid_request` or, of a column without JSON, `invalid_metadata`. */
export function readVectorRows(batch: EncodedBatch, options: VectorRowsOptions): VectorRows {
  return located(`record batch ${batch.index}`, () => {
    const { dimension, batchBytesMax, idBytesMax, metadataBytesMax } = options;
    const chosen = chooseVectorColumns(batch.fields, options);
    const columns = openColumns(batch, batchBytesMax);
    const issues = new RowIssues();
    const bytesMax = batchBytesMax * EXPANSION_MAX;
    const values = readVectors(columns[chosen.values]!, { dimension, bytesMax, issues });
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
    return { count: batch.rowCount, ids, values, metadata, issues: issues.items };
  });
}
