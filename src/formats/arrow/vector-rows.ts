// Reads a record batch as rows to write: columns of ids, vectors and metadata. It is a pure function, which runs on any
// thread. It checks the lengths of ids and metadata; the caller checks the other rules of the collection.

import type { Limits } from '../../common/limits.js';
import type { Utf8Column } from '../../common/types.js';
import { UNNAMED } from '../../common/vectors.js';
import { located } from './arrow-errors.js';
import { type ColumnNames, chooseVectorColumns } from './column-choice.js';
import { openColumns } from './columns.js';
import type { EncodedBatch } from './encoded-batch.js';
import { readIds } from './ids.js';
import { readMetadata } from './json-columns.js';
import { type RowIssue, RowIssues } from './row-issues.js';
import { cellText, readStrings } from './strings.js';
import { ARROW_KINDS, type FoundVectors } from './vector-kinds.js';

export interface VectorRowsOptions extends ColumnNames {
  readonly limits: Pick<
    Limits,
    'bodyBytesMax' | 'metadataBytesMax' | 'multiValuesMax' | 'multiVectorsMax' | 'vectorIdBytesMax'
  >;
}

export interface VectorRows {
  readonly count: number;
  /** Null if the batch has no column of ids. */
  readonly ids: Utf8Column | null;
  /** The vectors with columns, by name. Values are finite and, if possible, views of the batch's body. */
  readonly vectors: ReadonlyMap<string, FoundVectors>;
  /** Texts in place of the unnamed vector, null for rows without one; null if the batch has no column of texts. */
  readonly texts: readonly (string | null)[] | null;
  /** JSON objects written here, or text as received, known only to be UTF-8; null if the batch has no metadata. */
  readonly metadata: Utf8Column | null;
  /** Issues of the first rows with any. If not empty, the content of the columns is undefined. */
  readonly issues: readonly RowIssue[];
}

/** The factor by which dictionaries, float16 and numbers as JSON may make the rows larger than the batch. */
const EXPANSION_MAX = 4;

/** Throws `invalid_arrow`, `invalid_request` or, for a column without a JSON form, `invalid_metadata`. */
export function readVectorRows(batch: EncodedBatch, options: VectorRowsOptions): VectorRows {
  return located(`record batch ${batch.index}`, () => {
    const { limits, isPatch = false } = options;
    const chosen = chooseVectorColumns(batch.fields, options);
    const columns = openColumns(batch, limits.bodyBytesMax);
    const issues = new RowIssues();
    const bytesMax = limits.bodyBytesMax * EXPANSION_MAX;
    const vectors = chosen.vectors.map(({ name, indexes }) => {
      const spec = options.vectors[name]!;
      const mayBeNull = name !== UNNAMED || isPatch;
      const toRead = { ...spec, name, mayBeNull, bytesMax, limits, issues };
      const own = indexes.map((index) => columns[index]!);
      return [name, ARROW_KINDS[spec.kind].read(own, toRead)] as const;
    });
    const idBytesMax = limits.vectorIdBytesMax;
    const ids =
      chosen.id === null ? null : readIds(columns[chosen.id]!, { idBytesMax, bytesMax, issues });
    const texts = chosen.embed === null ? null : readStrings(columns[chosen.embed]!, bytesMax);
    const metadata = readMetadata({
      count: batch.rowCount,
      objects: chosen.metadata === null ? null : columns[chosen.metadata]!,
      members: chosen.members.map((index) => columns[index]!),
      rowBytesMax: limits.metadataBytesMax,
      bytesMax,
      issues,
    });
    const { rowCount: count } = batch;
    return {
      count,
      ids,
      vectors: new Map(vectors),
      texts: texts && Array.from({ length: count }, (_, row) => cellText(texts, row)),
      metadata,
      issues: issues.items,
    };
  });
}
