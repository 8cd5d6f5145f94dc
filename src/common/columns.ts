// Metadata as columns: the form that segments keep and filters read. Plain typed arrays over
// SharedArrayBuffers, so that a view reaches a worker thread without a copy.

import type { Utf8Column } from './types.js';

/** What a row holds at a path. Mixed kinds in one column are normal. */
export const KIND = {
  missing: 0,
  null: 1,
  false: 2,
  true: 3,
  number: 4,
  string: 5,
  array: 6,
  object: 7,
} as const;

export interface MetadataColumn {
  /** One of KIND a row; rows at and after its length are missing. */
  readonly kinds: Uint8Array;
  /** Valid where the kind is `number`. Null while the column has no number; may be shorter than `kinds` when later rows have none. */
  readonly numbers: Float64Array | null;
  /** Index into `dictionary` where the kind is `string`. Same rule for null and length. */
  readonly codes: Int32Array | null;
  /** Distinct strings in order of first appearance; `codes` never reach past `dictionaryCount`. */
  readonly dictionary: Utf8Column | null;
  readonly dictionaryCount: number;
  /** Elements of arrays: row i has elements `offsets[i]..offsets[i + 1]` of `elements`. Null while the column has no array. Rows at and after `offsets.length - 1` have none. */
  readonly items: { readonly offsets: Int32Array; readonly elements: MetadataColumn } | null;
}

/** The metadata of the rows 0..rowCount of one segment, immutable for its reader. */
export interface MetadataView {
  readonly rowCount: number;
  /** By path, `a.b` for nested members. See `metadataPaths` for which path a document gives. */
  readonly columns: ReadonlyMap<string, MetadataColumn>;
  /** False when paths beyond the bound on columns exist only in `json`. A path with a column is always whole. */
  readonly isComplete: boolean;
  /** The JSON object of each row, as sent. */
  readonly json: Utf8Column;
}
