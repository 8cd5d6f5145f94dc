// Types that all folders share: metrics, columnar rows and JSON.

import type { ElementType } from './elements.js';
import type { ColumnSpec, MultiVector, Named, SparseVector } from './vectors.js';

/** `jaccard` and `hamming` compare vectors of bits. */
export const METRICS = ['cosine', 'dot', 'euclidean', 'jaccard', 'hamming'] as const;
export type Metric = (typeof METRICS)[number];

/** Metrics that compare only vectors of bits. */
export const BIT_METRICS: ReadonlySet<Metric> = new Set(['jaccard', 'hamming']);

/** Metrics that compare vectors of any other elements. */
export const VALUE_METRICS: readonly Metric[] = METRICS.filter(
  (metric) => !BIT_METRICS.has(metric),
);

/** Whether scores come from a distance. */
export function isDistance(metric: Metric): boolean {
  return metric === 'euclidean' || metric === 'hamming';
}

/** What all vectors under one name of a collection, or all its unnamed ones, have in common. */
export interface VectorShape {
  readonly dimension: number;
  readonly metric: Metric;
  /** Absent for float32. */
  readonly element?: ElementType | undefined;
}

/** The shape of any kind of vector. Sparse vectors have no metric: they are compared by the dot product. */
export type FieldShape = ColumnSpec & { readonly metric?: Metric | undefined };

/** The vectors of a collection by name, '' for the unnamed one. Only the unnamed one is required in every record. */
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

/** Rows to be written, on their way from a request body to the log and the active segment. */
export interface VectorBatch {
  readonly count: number;
  /** Distinct, 1 to 512 bytes each. */
  readonly ids: Utf8Column;
  /** The vectors that at least one row has, each once. */
  readonly vectors: readonly Named[];
  /** One JSON object per row, the exact text that the client sent. */
  readonly metadata: Utf8Column;
  /**
   * The same metadata as fields, if the text was already parsed; absent for rows from the log, whose text the segment
   * parses.
   */
  readonly fields?: MetadataFields | undefined;
  /**
   * Per row, the sequence at which the vector must have been written; 0 if it must not exist, NaN for no condition.
   * Absent if no row has a condition.
   */
  readonly ifSequences?: Float64Array | undefined;
  /**
   * Per row, when the vector expires, in milliseconds since the Unix epoch; Infinity for never, NaN for the default of
   * the collection. Absent if all rows use the default.
   */
  readonly expiresAtMs?: Float64Array | undefined;
  /** For rows that change existing ones: by vector name, [count], 1 where the row removes the vector. */
  readonly removed?: ReadonlyMap<string, Uint8Array> | undefined;
}

/** Receives a row of the batch, a path of its metadata and the value at that path. */
export type FieldVisitor = (row: number, path: string, value: Json) => void;

/** The metadata fields of a batch, as `flattenMetadata` defines them. */
export interface MetadataFields {
  /** Visits the rows `from..to` in order. Objects and nested arrays may come without their content. */
  visit(from: number, to: number, visit: FieldVisitor): void;
}

/**
 * Rows that an engine searches and may copy to a device. Rows never change and are never removed; a later block with
 * the same key may contain more rows, in other arrays.
 */
export interface VectorBlock {
  /** Unique in the process and never reused. */
  readonly key: string;
  readonly dimension: number;
  readonly rowCount: number;
  /** Row-major, at least [rowCount, dimension] float32, over a SharedArrayBuffer; all finite. */
  readonly values: Float32Array;
  /** Only for blocks of multi-vectors: row i has the vectors `starts[i]..starts[i + 1]` in `values`. */
  readonly starts?: Int32Array;
  /** The id of each row, over SharedArrayBuffers. Ids break ties between scores. */
  readonly ids: Utf8Column;
  /** Made by the engine's row encoder; null if it has none. */
  readonly codes: RowCodes | null;
  /** Whether a later block with the same key may have another head, so that it is not worth copying. */
  readonly hasProvisionalHead?: boolean;
}

/** Names of the code arrays that grow with the rows. */
export const ROW_CODE_NAMES = ['tiles', 'coarse', 'refinement'] as const;
/** Names of all code arrays, in file order. */
export const CODE_NAMES = [...ROW_CODE_NAMES, 'basis', 'head'] as const;

/** A file as shared memory. Parts that cannot be read read as zeros. */
export interface FileMapping {
  /** The whole file, read-only. It is unmapped when no thread refers to its buffer anymore. */
  readonly bytes: Uint8Array;
  /**
   * Why a part could not be read: the file is damaged (it was truncated, or the disk failed), or a part that is not on
   * this disk was unavailable. Anything made from the bytes until then must be discarded. It never becomes null again;
   * where the part was unavailable, the file may be mapped anew.
   */
  readonly failure: MappingFailure | null;
  /** The parts that are on this disk; null if all of the file is. Reading another part waits until it was fetched. */
  readonly kept: KeptParts | null;
}

export type MappingFailure = 'damaged' | 'unavailable';

export interface KeptParts {
  /** Ascending offsets, without the end. */
  readonly ranges: readonly { readonly begin: number; readonly end: number }[];
  /** The checksum of these bytes, in sequence. */
  readonly checksum: string;
}

/** Codes of rows, over SharedArrayBuffers; the encoder defines their layout. */
export interface RowCodes {
  /** Identifies the encoder; an engine reads only its own. */
  readonly encoding: string;
  /** Eight bits per value, in panels of rows. */
  readonly tiles: Uint8Array;
  /** Two bits per value of every row, and two more. Both are null for dimensions without them. */
  readonly coarse: Uint8Array | null;
  readonly refinement: Uint8Array | null;
  /**
   * Both are null where a head would leave too many rows or was not made yet. The head of rows that may become more has
   * room for all of them.
   */
  readonly basis: Uint8Array | null;
  readonly head: Uint8Array | null;
}

/**
 * Codes of rows in the directions in which they differ most, which an engine scans before the other codes. The arrays are
 * in shared memory.
 */
export interface RowHead {
  /** The directions. Segments with equal bases may share the array. */
  readonly basis: Uint8Array;
  /** The codes of every row in these directions. */
  readonly head: Uint8Array;
}

/** Rows that no longer change. */
export interface SealedRows {
  readonly dimension: number;
  readonly rowCount: number;
  /** Row-major, at least [rowCount, dimension], in shared memory. */
  readonly values: Float32Array;
}

/** Rows to encode, and the arrays that receive their codes. */
export interface UnencodedRows {
  readonly dimension: number;
  /** Row-major, at least [to, dimension], from row 0 on. */
  readonly values: Float32Array;
  /** The rows from..to are encoded; earlier rows already have codes. */
  readonly from: number;
  readonly to: number;
  /** Codes of at least `to` rows, from `RowEncoder.allocate`. */
  readonly codes: RowCodes;
}

/** Rows whose head is encoded; their other codes do not matter. */
export interface HeadlessRows extends Omit<UnencodedRows, 'codes'> {
  /** The head of at least `to` rows, as `RowEncoder.allocateHead` returns it. */
  readonly head: RowHead;
}

export type CodeByteLengths = Readonly<Record<(typeof ROW_CODE_NAMES)[number], number>>;

/** Makes the codes that an engine scans instead of values. Codes are stored with their rows. */
export interface RowEncoder {
  /** Names the layout and meaning of the codes; must change whenever either changes. */
  readonly encoding: string;
  /** Size of each code array for `rowCount` rows; 0 for an array that the dimension does not need. */
  byteLengths(rowCount: number, dimension: number): CodeByteLengths;
  /**
   * Whether these are codes of this encoder for `rowCount` rows. The lengths and the basis are checked here, because
   * engines read codes without further checks. Their other bytes may be anything.
   */
  accepts(codes: RowCodes, rowCount: number, dimension: number): boolean;
  /** Allocates zeros in shared memory, aligned for the engine, without a head. */
  allocate(rowCount: number, dimension: number): RowCodes;
  /** Encodes on the calling thread, with the head if the codes have one: about 5 µs per thousand values, or 10. */
  encode(rows: UnencodedRows): void;
  /** Encodes many rows on the threads of the pool. When it settles, even by rejecting, no thread is still at work. */
  encodeAll(rows: UnencodedRows): Promise<void>;
  /** Allocates zeros for a head. Copies a basis that is not in shared memory. Null if it is no basis of this encoder. */
  allocateHead(rowCount: number, dimension: number, basis: Uint8Array): RowHead | null;
  /** Returns a copy of a head of at least so many rows that has no room for more. */
  trimHead(head: RowHead, rowCount: number, dimension: number): RowHead;
  /** Encodes on the threads of the pool, behind searches. When it settles, even by rejecting, no thread is at work. */
  encodeHead(rows: HeadlessRows): Promise<void>;
  /**
   * Makes a head on the threads of the pool, behind searches, in up to a second of one thread; null if none would pay
   * for these rows. When the promise settles, even by rejecting, no thread is still at work.
   * @param previous the basis of similar rows, which the head uses if it leaves hardly more rows than one of its own.
   * @param known the head that these rows already have in some basis, which is returned if its basis is the best.
   */
  makeHead(
    rows: SealedRows,
    previous: Uint8Array | null,
    known?: RowHead | null,
  ): Promise<RowHead | null>;
}

/** Types that a collection may declare for metadata. `date` is a string with a date or time as in RFC 3339. */
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

/** Declared types by metadata path. */
export type DeclaredTypes = Readonly<Record<string, DeclaredType>>;

/** How texts are turned into vectors. */
export interface EmbeddingSource {
  /** Name of the configured endpoint. */
  readonly endpoint: string;
  readonly model: string;
  /** Whether requests to the endpoint ask for the collection's dimension. */
  readonly sendsDimension: boolean;
}

/** A bigint is an integer that float64 cannot represent; see `exact-json.ts`. */
export type JsonNumber = number | bigint;

/** JSON as returned by `parseExactJson`; JSON.parse returns no bigints. */
export type Json = null | boolean | JsonNumber | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

/** The values of named vectors by name. */
export type NamedValues = Readonly<Record<string, Float32Array | MultiVector>>;
/** Sparse vectors by name. */
export type SparseVectors = Readonly<Record<string, SparseVector>>;
