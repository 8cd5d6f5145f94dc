// Metadata as columns, which segments store and filters read: plain typed arrays over SharedArrayBuffers, so that views
// reach worker threads without a copy. Also the columns from which Arrow and Parquet are written.

import type { Bitmap } from './bitmap.js';
import type { JsonNumber, Utf8Column } from './types.js';

/** The kind of a row's value at a path; a column may mix kinds. */
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
  /** One KIND per row; further rows are missing. */
  readonly kinds: Uint8Array;
  /**
   * Valid where the kind is `number`. Null if the column contains no numbers; shorter than `kinds` if the last rows
   * have none.
   */
  readonly numbers: Float64Array | null;
  /**
   * What `numbers` lack of integers that float64 cannot represent: the value is the sum of both. Null if the column
   * contains no such integers, and possibly shorter like `numbers`. Since rounding preserves order, numbers sort first
   * by `numbers` and then by `residues`.
   */
  readonly residues: Int32Array | null;
  /** Indexes into `dictionary`, valid where the kind is `string`. Null or shorter like `numbers`. */
  readonly codes: Int32Array | null;
  /** Distinct strings in order of first appearance; all codes are below `dictionaryCount`. */
  readonly dictionary: Utf8Column | null;
  readonly dictionaryCount: number;
  /**
   * The elements of arrays: row i has the elements `offsets[i]..offsets[i + 1]`. Null if the column contains no arrays.
   * Rows from `offsets.length - 1` on have none.
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

/** The difference between a number and its nearest float64; less than 2^11. */
export function residueOf(value: JsonNumber): number {
  return typeof value === 'number' ? 0 : Number(value - BigInt(Number(value)));
}

/** The metadata of the rows 0..rowCount of a segment. Immutable. */
export interface MetadataView {
  readonly rowCount: number;
  /** By path, `a.b` for nested members. `flattenMetadata` defines the paths of a document. */
  readonly columns: ReadonlyMap<string, MetadataColumn>;
  /**
   * False if some paths exceed the limit of columns and are only in `json`. An existing column holds all values of its
   * path.
   */
  readonly isComplete: boolean;
  /** The id of each row. */
  readonly ids: Utf8Column;
  /** The JSON object of each row, as sent. */
  readonly json: Utf8Column;
}

/**
 * One value per row; rows without a presence bit are null, and without `presence` no row is. Text offsets need not
 * start at 0, and arrays of numbers may be shorter if the last rows are null.
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

/** One list per row; rows without a presence bit are null and have no items. */
export interface ListColumn {
  /** [count + 1], from 0: row i has the items `starts[i]..starts[i + 1]`. */
  readonly starts: Int32Array;
  readonly presence: Bitmap | null;
  readonly items: LeafColumn;
}
