// Types that all folders share: metrics, columnar rows and JSON.

import type { ElementType } from './elements.js';
import type { ColumnSpec, MultiVector, Named, SparseVector } from './vectors.js';

/** `jaccard` and `hamming` compare vectors of bits. */
export const METRICS = ['cosine', 'dot', 'euclidean', 'jaccard', 'hamming'] as const;
export type Metric = (typeof METRICS)[number];

/** Those that compare vectors of bits only. */
export const BIT_METRICS: ReadonlySet<Metric> = new Set(['jaccard', 'hamming']);

/** Those that compare vectors of any elements. */
export const VALUE_METRICS: readonly Metric[] = METRICS.filter(
  (metric) => !BIT_METRICS.has(metric),
);

/** Whether scores come from a distance. */
export function isDistance(metric: Metric): boolean {
  return metric === 'euclidean' || metric === 'hamming';
}

/** What all vectors of one name, or all unnamed ones, of a collection have in common. */
export interface VectorShape {
  readonly dimension: number;
  readonly metric: Metric;
  /** Absent for float32. */
  readonly element?: ElementType | undefined;
}

/** What all vectors of one name have in common. Sparse vectors have no metric: they are compared by the dot product. */
export type FieldShape = ColumnSpec & { readonly metric?: Metric | undefined };

/** The vectors of a collection by name, '' for the unnamed one. Records may lack any but that. */
export type FieldShapes = Readonly<Record<string, FieldShape>>;

/**
 * Strings as in Arrow's utf8: string i is `bytes[offsets[i]..offsets[i + 1])`. Offsets never decrease and
 * need not start at 0. Both arrays may be longer than needed.
 */
export interface Utf8Column {
  /** At least count + 1 offsets. */
  readonly offsets: Int32Array;
  readonly bytes: Uint8Array;
}

/** Rows on their way in: from a request body to the log and the active segment. */
export interface VectorBatch {
  readonly count: number;
  /** Distinct, 1 to 512 bytes each. */
  readonly ids: Utf8Column;
  /** Those that any of the rows has, each once. */
  readonly vectors: readonly Named[];
  /** One JSON object per row, the exact text that the client sent. */
  readonly metadata: Utf8Column;
  /**
   * The same metadata as fields, if the text was parsed before; absent for rows of the log, whose text
   * the segment parses.
   */
  readonly fields?: MetadataFields | undefined;
  /**
   * Per row, the sequence that the vector must have been written at, 0 for no such vector; NaN for a
   * row without a condition. Absent where no row has one.
   */
  readonly ifSequences?: Float64Array | undefined;
  /**
   * Per row, when the vector expires, in milliseconds since the Unix epoch; Infinity for never, NaN for
   * the default of the collection. Absent where all rows have the default.
   */
  readonly expiresAtMs?: Float64Array | undefined;
  /** By the name of a vector: [count], 1 for rows that remove it. Only of rows that change others. */
  readonly removed?: ReadonlyMap<string, Uint8Array> | undefined;
}

/** Called with a row of the batch, a path of its metadata and the value there. */
export type FieldVisitor = (row: number, path: string, value: Json) => void;

/** The fields of the metadata of a batch, as `flattenMetadata` gives them. */
export interface MetadataFields {
  /** Visits the rows `from..to` in order. Objects and inner arrays may come without their content. */
  visit(from: number, to: number, visit: FieldVisitor): void;
}

/**
 * Rows that an engine searches and may copy to a device. Rows never change and are never removed; a
 * later block with the same key may have more rows, in other arrays.
 */
export interface VectorBlock {
  /** Unique in the process and never reused. */
  readonly key: string;
  readonly dimension: number;
  readonly rowCount: number;
  /** Row-major, at least [rowCount, dimension] float32, over a SharedArrayBuffer; all finite. */
  readonly values: Float32Array;
  /**
   * In blocks of multi-vectors, whose rows have lists of vectors in `values`: row i has the vectors
   * `starts[i]..starts[i + 1]`.
   */
  readonly starts?: Int32Array;
  /** The id of each row, over SharedArrayBuffers. Ids break ties of scores. */
  readonly ids: Utf8Column;
  /** Made by the engine's row encoder; null without one. */
  readonly codes: RowCodes | null;
}

/** The names of the arrays of codes, in the order in which files have them. */
export const CODE_NAMES = ['tiles', 'coarse', 'refinement'] as const;

/** A file as shared memory. The part of a file that cannot be read, because it was cut, reads as zeros. */
export interface FileMapping {
  /** The whole file, read-only. It is unmapped when no thread refers to its buffer any more. */
  readonly bytes: Uint8Array;
  /** Whether a part could not be read. What was made from the bytes before must not be used then. */
  readonly isDamaged: boolean;
}

/** Codes of rows, over SharedArrayBuffers; the encoder defines their layout. */
export interface RowCodes {
  /** That of the encoder; an engine reads no other. */
  readonly encoding: string;
  /** Eight bits per value, in panels of rows. */
  readonly tiles: Uint8Array;
  /** Two bits per value of every row, and two more. Both are null for dimensions that have none. */
  readonly coarse: Uint8Array | null;
  readonly refinement: Uint8Array | null;
}

/** Rows to encode, and the arrays for their codes. */
export interface UnencodedRows {
  readonly dimension: number;
  /** Row-major, at least [to, dimension], from row 0 on. */
  readonly values: Float32Array;
  /** The rows from..to are encoded; earlier rows have codes already. */
  readonly from: number;
  readonly to: number;
  /** Room for the codes of `to` rows, from `RowEncoder.allocate`. */
  readonly codes: RowCodes;
}

export type CodeByteLengths = Readonly<Record<(typeof CODE_NAMES)[number], number>>;

/** Makes the codes that an engine scans instead of values. Codes are kept with their rows. */
export interface RowEncoder {
  /** Names the layout and the meaning of the codes; another name for every change of either. */
  readonly encoding: string;
  /** Bytes of each array of codes of `rowCount` rows; 0 for an array that the dimension does not have. */
  byteLengths(rowCount: number, dimension: number): CodeByteLengths;
  /** Allocates zeros in shared memory, aligned for the engine. */
  allocate(rowCount: number, dimension: number): RowCodes;
  /** Encodes on the calling thread: about 5 µs per thousand values. */
  encode(rows: UnencodedRows): void;
  /** Encodes rows, many of them in the threads of the pool. Nothing is under way when it has ended, also in vain. */
  encodeAll(rows: UnencodedRows): Promise<void>;
}

/** Types that a collection may declare for metadata. `date`: a string with a date or time of RFC 3339. */
export const DECLARED_TYPES = [
  'string',
  'number',
  'integer',
  'boolean',
  'date',
  'object',
  'string[]',
  'number[]',
  'integer[]',
  'boolean[]',
  'date[]',
] as const;
export type DeclaredType = (typeof DECLARED_TYPES)[number];

/** Types by path of the metadata. */
export type DeclaredTypes = Readonly<Record<string, DeclaredType>>;

/** Where the vectors of texts come from. */
export interface EmbeddingSource {
  /** The name of an endpoint in the configuration. */
  readonly endpoint: string;
  readonly model: string;
  /** Whether the endpoint is asked for vectors of the collection's dimension. */
  readonly sendsDimension: boolean;
}

/** A bigint is an integer that float64 does not have; see `exact-json.ts`. */
export type JsonNumber = number | bigint;

/** JSON as returned by `parseExactJson`; that of JSON.parse has no bigints. */
export type Json = null | boolean | JsonNumber | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

/** The values of named vectors, by name. */
export type NamedValues = Readonly<Record<string, Float32Array | MultiVector>>;
/** Sparse vectors by name. */
export type SparseVectors = Readonly<Record<string, SparseVector>>;
