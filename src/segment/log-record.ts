// A log record: one write to a collection, which adds rows or a file of rows, deletes ids or deletes everything. Decoding
// gives exactly what was encoded or throws `data_corrupt`.

import type { Utf8Column, VectorBatch } from '../common/types.js';
import { bytesOfRows, type ColumnSpec, describeSpec, type Named } from '../common/vectors.js';
import { corrupt, readingStored } from '../formats/arrow/arrow-errors.js';
import { encodeSchema, type FieldToWrite } from '../formats/arrow/ipc-writer.js';
import type { ArrowSchema } from '../formats/arrow/schema.js';
import { expectFields, type StoredBatch } from '../formats/arrow/stored-arrow.js';
import { readUtf8 } from '../formats/arrow/strings.js';
import type { BlockRange } from '../platform/blocks.js';
import type { Task } from '../platform/pool.js';
import { RowColumns } from './row-columns.js';
import { decodeSealedStream, encodeSealedStream } from './sealed-stream.js';

export type LogRecord =
  /** `timeMs`: milliseconds since the Unix epoch. */
  | { readonly kind: 'write'; readonly timeMs: number; readonly batch: VectorBatch }
  | {
      readonly kind: 'delete';
      readonly timeMs: number;
      readonly ids: Utf8Column;
      readonly count: number;
    }
  | { readonly kind: 'deleteAll'; readonly timeMs: number }
  /** Adds the rows of a file that every node of a cluster can read. */
  | { readonly kind: 'file'; readonly timeMs: number; readonly file: SharedSegment };

/** The file of a sealed segment that was shared before its rows had a sequence. */
export interface SharedSegment {
  /** Its name in the shared files. */
  readonly blob: string;
  readonly rowCount: number;
  readonly byteLength: number;
  readonly checksum: string;
  /** See `digestOfBlocks`. */
  readonly digest: string;
  /** The blocks of the file that are kept where its vectors are not. */
  readonly kept: readonly BlockRange[];
  /** See `Segment.homeKey`. */
  readonly homeKey: string;
}

const KIND_KEY = 'sagitta.record';
const TIME_KEY = 'sagitta.time_ms';
/** JSON: a SharedSegment. */
const FILE_KEY = 'sagitta.file';

const DELETE_FIELDS: readonly FieldToWrite[] = [{ name: 'id', type: 'utf8' }];
const DELETE_SCHEMA = schemaOf('delete', DELETE_FIELDS);
const DELETE_ALL_SCHEMA = schemaOf('deleteAll', []);
const FILE_SCHEMA = schemaOf('file', []);

interface WriteFormat {
  readonly columns: RowColumns;
  /** The encoded message. */
  readonly schema: Uint8Array;
}

/** Cached by names and specs of the vectors, because a schema costs more than the rest of a one-row record. */
const writeFormats = new Map<string, WriteFormat>();
const WRITE_FORMATS_MAX = 256;

/** @param allocate provides the bytes for a record of kind `write`; new ones by default. */
export function encodeLogRecord(
  record: LogRecord,
  allocate?: (byteCount: number) => Uint8Array,
): Uint8Array {
  const metadata = new Map([[TIME_KEY, String(record.timeMs)]]);
  switch (record.kind) {
    case 'write': {
      const { count, ids, metadata: json, vectors } = record.batch;
      const { columns, schema } = writeFormat(vectors);
      const written = columns.write({ ids, json, vectors, insertedSequences: null });
      return encodeSealedStream(schema, count, written, metadata, allocate);
    }
    case 'delete': {
      const columns = [{ leaf: record.ids }];
      return encodeSealedStream(DELETE_SCHEMA, record.count, columns, metadata);
    }
    case 'deleteAll':
      return encodeSealedStream(DELETE_ALL_SCHEMA, 0, [], metadata);
    case 'file':
      metadata.set(FILE_KEY, JSON.stringify(record.file));
      return encodeSealedStream(FILE_SCHEMA, 0, [], metadata);
  }
}

/** Whether an encoded record is of the kind `file`, which shows without decoding it. */
export function isFileRecord(bytes: Uint8Array): boolean {
  return Buffer.compare(bytes.subarray(0, FILE_SCHEMA.length), FILE_SCHEMA) === 0;
}

/** A record of kind `write` to encode on a worker. */
interface WriteToEncode {
  readonly timeMs: number;
  readonly batch: Omit<VectorBatch, 'fields'>;
  /** Owned by the task, which returns it as the record. */
  readonly room: Uint8Array;
}

/** Encodes the record into `room`, or into new bytes if that is too small. */
export const encodeWriteTask: Task<WriteToEncode, Uint8Array> = {
  name: 'segment.encodeWrite',
  priority: 'write',
  run: ({ timeMs, batch, room }) =>
    encodeLogRecord({ kind: 'write', timeMs, batch }, (byteCount) =>
      byteCount <= room.length ? room.subarray(0, byteCount) : new Uint8Array(byteCount),
    ),
  transfer: ({ buffer }) => [buffer as ArrayBuffer],
};

/** An upper bound of the schema, the description of the batch and the padding of its columns. */
const RECORD_OVERHEAD_BYTES = 16 * 1024;
/** An upper bound of what one vector adds to the schema, the description and the padding. */
const VECTORS_OVERHEAD_BYTES = 1024;
/** Per row: the presence bit, or the offsets of the lists of indices and values. */
const VECTORS_ROW_BYTES = 8;

/** Returns an upper bound of the bytes of the record of a batch. */
export function recordBytesMax({ count, ids, metadata, vectors }: VectorBatch): number {
  const textBytes = [ids, metadata].reduce(
    (sum, { offsets }) => sum + offsets[count]! - offsets[0]! + 4 * (count + 1),
    0,
  );
  const vectorBytes = vectors.reduce(
    (sum, column) =>
      sum +
      bytesOfRows(column, 0, count) +
      VECTORS_ROW_BYTES * (count + 1) +
      VECTORS_OVERHEAD_BYTES,
    0,
  );
  return vectorBytes + textBytes + RECORD_OVERHEAD_BYTES;
}

/** Decodes a record. Its arrays are views into `bytes` where alignment allows. Throws `data_corrupt`. */
export function decodeLogRecord(bytes: Uint8Array): LogRecord {
  const decoded = decodeSealedStream(bytes);
  return readingStored('a log record', () => {
    const { schema, rowCount, columns, metadata } = decoded;
    const timeMs = Number(metadata.get(TIME_KEY) ?? Number.NaN);
    if (!Number.isFinite(timeMs)) throw corrupt(`the time ${metadata.get(TIME_KEY)}`);
    const kind = schema.metadata.get(KIND_KEY);
    switch (kind) {
      case 'write':
        return { kind, timeMs, batch: readBatch(decoded) };
      case 'delete':
        expectFields(schema.fields, DELETE_FIELDS);
        return { kind, timeMs, ids: readUtf8(columns[0]!), count: rowCount };
      case 'deleteAll':
        return { kind, timeMs };
      case 'file':
        return { kind, timeMs, file: JSON.parse(metadata.get(FILE_KEY)!) as SharedSegment };
      default:
        throw corrupt(`a record of the kind ${kind}`);
    }
  });
}

function readBatch({ schema, rowCount, columns }: StoredBatch): VectorBatch {
  const layout = columnsOf(schema);
  const { ids, json, vectors } = layout.read(columns);
  return { count: rowCount, ids, metadata: json, vectors };
}

/** Checked columns by schema. The reader returns the same object for the same schema. */
const columnsOfSchemas = new WeakMap<ArrowSchema, RowColumns>();

/** Throws `data_corrupt`. */
function columnsOf(schema: ArrowSchema): RowColumns {
  let columns = columnsOfSchemas.get(schema);
  if (columns === undefined) {
    columns = RowColumns.of(schema, { hasSequences: false });
    expectFields(schema.fields, columns.fields);
    columnsOfSchemas.set(schema, columns);
  }
  return columns;
}

function writeFormat(vectors: readonly Named<ColumnSpec>[]): WriteFormat {
  const key = vectors.map((vector) => vector.name + describeSpec(vector)).join();
  let format = writeFormats.get(key);
  if (format === undefined) {
    const columns = new RowColumns(vectors, { hasSequences: false });
    const metadata = new Map([[KIND_KEY, 'write'], ...columns.metadata]);
    format = { columns, schema: encodeSchema(columns.fields, metadata) };
    if (writeFormats.size >= WRITE_FORMATS_MAX) writeFormats.clear();
    writeFormats.set(key, format);
  }
  return format;
}

function schemaOf(kind: LogRecord['kind'], fields: readonly FieldToWrite[]): Uint8Array {
  return encodeSchema(fields, new Map([[KIND_KEY, kind]]));
}
