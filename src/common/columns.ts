// Metadata as columns, which segments keep and filters read: plain typed arrays over SharedArrayBuffers,
// so that views are sent to worker threads without a copy. Also the columns that Arrow and Parquet are
// written from.

import type { Bitmap } from './bitmap.js';
import type { JsonNumber, Utf8Column } from './types.js';

/** The kind of a row's value at a path. A column may have mixed kinds. */
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
  /** One KIND per row; later rows are missing. */
  readonly kinds: Uint8Array;
  /**
   * Valid where the kind is `number`. Null if the column has no numbers; shorter than `kinds` if later
   * rows have none.
   */
  readonly numbers: Float64Array | null;
  /**
   * What `numbers` lack of integers that float64 does not have: the value is the sum of both. Null if the
   * column has no such integers, shorter like `numbers`. Numbers are in the order of `numbers`, and those
   * that are equal there in the order of `residues`, since rounding never changes an order.
   */
  readonly residues: Int32Array | null;
  /** Indexes into `dictionary`, valid where the kind is `string`. Null or shorter like `numbers`. */
  readonly codes: Int32Array | null;
  /** Distinct strings in order of first appearance; codes are below `dictionaryCount`. */
  readonly dictionary: Utf8Column | null;
  readonly dictionaryCount: number;
  /**
   * Elements of arrays: row i has the elements `offsets[i]..offsets[i + 1]`. Null if the column has no
   * arrays. Rows from `offsets.length - 1` on have none.
   */
  readonly items: { readonly offsets: Int32Array; readonly elements: MetadataColumn } | null;
}

/** The number of a row whose kind is `number`. */
export function numberAt({ numbers, residues }: MetadataColumn, row: number): JsonNumber {
  return joinNumber(numbers![row]!, residues?.[row] ?? 0);
}

export function joinNumber(nearest: number, residue: number): JsonNumber {
  return residue === 0 ? nearest : BigInt(nearest) + BigInt(residue);
}

/** What a column lacks of a number, given the nearest float64: less than 2^11. */
export function residueOf(value: JsonNumber): number {
  return typeof value === 'number' ? 0 : Number(value - BigInt(Number(value)));
}

/** The metadata of the rows 0..rowCount of a segment. Immutable. */
export interface MetadataView {
  readonly rowCount: number;
  /** By path, `a.b` for nested members. See `flattenMetadata` for which path a document gives. */
  readonly columns: ReadonlyMap<string, MetadataColumn>;
  /** False when paths beyond the limit of columns are in `json` only. A column has all values of its path. */
  readonly isComplete: boolean;
  /** The id of each row. */
  readonly ids: Utf8Column;
  /** The JSON object of each row, as sent. */
  readonly json: Utf8Column;
}

/**
 * One value per row, of which those without a bit are null; without `presence` none is. Offsets of text need not start
 * at 0, and arrays of numbers may be shorter where the last rows are null.
 */
export interface LeafColumn {
  readonly leaf:
    | Uint8Array
    | Int32Array
    | Uint32Array
    | BigInt64Array
    | Float32Array
    | Float64Array
    | Utf8Column
    | Bitmap;
  readonly presence?: Bitmap | null;
}

/** One list per row, of which those without a bit are null, and empty. */
export interface ListColumn {
  /** [count + 1], from 0: row i has the items `starts[i]..starts[i + 1]`. */
  readonly starts: Int32Array;
  readonly presence: Bitmap | null;
  readonly items: LeafColumn;
}
