// Words that every folder shares: metrics and columnar rows.

export const METRICS = ['cosine', 'dot', 'euclidean'] as const;
export type Metric = (typeof METRICS)[number];

/**
 * Strings as Arrow's utf8: string i is `bytes[offsets[i]..offsets[i + 1])`. Offsets start at 0 or
 * later and never decrease. Both arrays may be longer than what is in use.
 */
export interface Utf8Column {
  /** Length count + 1 at least. */
  readonly offsets: Int32Array;
  readonly bytes: Uint8Array;
}

/** Rows on their way in: from a request body to the log and the active segment. */
export interface VectorBatch {
  readonly count: number;
  /** Distinct, 1 to 512 bytes each. */
  readonly ids: Utf8Column;
  /** Row-major [count, dimension] float32, all finite. */
  readonly values: Float32Array;
  /** One JSON object a row, the very text that the client sent. */
  readonly metadata: Utf8Column;
  /**
   * The same metadata as fields, from whoever has parsed its text already; absent for rows of the
   * log, whose text the segment parses.
   */
  readonly fields?: MetadataFields | undefined;
}

/** Gets the row in the batch, a path of its metadata and the value there. */
export type FieldVisitor = (row: number, path: string, value: Json) => void;

/** The fields of the metadata of a batch, as `flattenMetadata` gives them. */
export interface MetadataFields {
  /** Visits the rows `from..to` in order. Objects and inner arrays may come without their content. */
  visit(from: number, to: number, visit: FieldVisitor): void;
}

/**
 * Rows that an engine may keep a copy of (on a device, in WebAssembly memory). Rows never change
 * and never go; a later block with the same key may have more of them, in arrays of its own.
 */
export interface VectorBlock {
  /** Unique in the process and never reused. */
  readonly key: string;
  readonly dimension: number;
  readonly rowCount: number;
  /** Row-major [rowCount, dimension] float32 at least, over a SharedArrayBuffer; all finite. */
  readonly values: Float32Array;
  /** The id of each row, over SharedArrayBuffers; a row's id decides among equal scores. */
  readonly ids: Utf8Column;
  /** What the engine's row encoder made of the rows, over a SharedArrayBuffer; null when there is none. */
  readonly codes: Uint8Array | null;
}

/** Rows, and where their codes belong. */
export interface UnencodedRows {
  readonly dimension: number;
  /** Row-major [to, dimension] at least, from row 0 on. */
  readonly values: Float32Array;
  /** The rows from..to are encoded; rows before have their codes already. */
  readonly from: number;
  readonly to: number;
  /** Room for the codes of `to` rows, as `RowEncoder.allocate` made it. */
  readonly codes: Uint8Array;
}

/** Makes what an engine scans in place of values. The codes live and go with the rows. */
export interface RowEncoder {
  /** Bytes of the codes of the first `rowCount` rows. */
  byteLength(rowCount: number, dimension: number): number;
  /** Zeros, in shared memory, aligned as the engine likes it. */
  allocate(byteLength: number): Uint8Array;
  /** On the calling thread: 0.2 to 1 µs a thousand values. */
  encode(rows: UnencodedRows): void;
  /** Many rows, in the threads of the pool. */
  encodeAll(rows: UnencodedRows): Promise<void>;
}

/** JSON as JSON.parse gives it. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };
