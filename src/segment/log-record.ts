// A log record: one write of a collection, which adds rows, deletes ids or deletes everything. A
// decoded record is exactly what was encoded; otherwise decoding throws `data_corrupt`.

import type { Schema } from 'apache-arrow';
import { assert } from '../common/errors.js';
import type { NamedVectors, Utf8Column, VectorBatch } from '../common/types.js';
import { corrupt, readingStored } from '../formats/arrow/arrow-errors.js';
import { type Column, isValid } from '../formats/arrow/columns.js';
import {
  BodyWriter,
  type FieldToWrite,
  STREAM_ALIGNMENT,
  toSchema,
} from '../formats/arrow/ipc-writer.js';
import type { ArrowField, ArrowSchema } from '../formats/arrow/schema.js';
import { expectFields, type StoredBatch } from '../formats/arrow/stored-arrow.js';
import { readUtf8 } from '../formats/arrow/strings.js';
import type { Task } from '../platform/pool.js';
import { multiOfField, readMulti } from './multi-columns.js';
import { multiBytes } from './multi-field.js';
import { bitmapOfFlags, columnOfName, nameOfColumn, readValues } from './named-columns.js';
import { type RowShape, rowColumns, rowFields, writeRows } from './row-columns.js';
import { decodeSealedStream, encodeSealedStream } from './sealed-stream.js';
import { readSparse, sparseNames } from './sparse-columns.js';
import { elementBytes } from './sparse-field.js';

export type LogRecord =
  /** `timeMs`: milliseconds since the Unix epoch. */
  | { readonly kind: 'write'; readonly timeMs: number; readonly batch: VectorBatch }
  | {
      readonly kind: 'delete';
      readonly timeMs: number;
      readonly ids: Utf8Column;
      readonly count: number;
    }
  | { readonly kind: 'deleteAll'; readonly timeMs: number };

const KIND_KEY = 'sagitta.record';
const TIME_KEY = 'sagitta.time_ms';

const DELETE_FIELDS: readonly FieldToWrite[] = [{ name: 'id', type: 'utf8' }];
const DELETE_SCHEMA = schemaOf('delete', DELETE_FIELDS);
const DELETE_ALL_SCHEMA = schemaOf('deleteAll', []);

interface WriteFormat {
  readonly columns: ReturnType<typeof rowColumns>;
  readonly schema: Schema;
}

/** By the names and dimensions of the vectors, kept because a schema costs more than the rest of a one-row record. */
const writeFormats = new Map<string, WriteFormat>();
const WRITE_FORMATS_MAX = 256;

/** Rows of a record have no sequences of their own: all have that of the record. */
const NO_SEQUENCES = new Float64Array();

/** Encodes a record. `take` provides the bytes for records of rows; new ones by default. */
export function encodeLogRecord(
  record: LogRecord,
  take?: (byteCount: number) => Uint8Array,
): Uint8Array {
  const body = new BodyWriter(STREAM_ALIGNMENT);
  const metadata = new Map([[TIME_KEY, String(record.timeMs)]]);
  switch (record.kind) {
    case 'write': {
      const { count, values, named = [], multi = [], sparse = [] } = record.batch;
      const dimension = values.length / count;
      assert(Number.isInteger(dimension), `${values.length} values for ${count} rows`);
      const namesOfSparse = sparse.map(({ name }) => name);
      const { columns, schema } = writeFormat({ dimension, named, multi, sparse: namesOfSparse });
      writeRows(columns, body, {
        ...record.batch,
        named: named.map((vectors) => {
          return { values: vectors.values, presence: bitmapOfFlags(vectors.presence) };
        }),
        multi,
        sparse,
        insertedSequences: NO_SEQUENCES,
      });
      return encodeSealedStream(schema, count, body, metadata, take);
    }
    case 'delete':
      body.utf8(record.ids, 0, record.count);
      return encodeSealedStream(DELETE_SCHEMA, record.count, body, metadata);
    case 'deleteAll':
      return encodeSealedStream(DELETE_ALL_SCHEMA, 0, body, metadata);
  }
}

/** A record of rows to encode elsewhere, where functions cannot go. */
interface WriteToEncode {
  readonly timeMs: number;
  readonly batch: Omit<VectorBatch, 'fields'>;
  /** Owned by the task, which returns it as the record. */
  readonly room: Uint8Array;
}

/** Encodes a record of rows in its room, or in new bytes if that is too short. */
export const encodeWriteTask: Task<WriteToEncode, Uint8Array> = {
  name: 'segment.encodeWrite',
  priority: 'write',
  run: ({ timeMs, batch, room }) =>
    encodeLogRecord({ kind: 'write', timeMs, batch }, (byteCount) =>
      byteCount <= room.length ? room.subarray(0, byteCount) : new Uint8Array(byteCount),
    ),
  transfer: ({ buffer }) => [buffer as ArrayBuffer],
};

/** More than the schema, the description of the batch, and the padding of its columns take. */
const RECORD_OVERHEAD_BYTES = 16 * 1024;
/** The same for a named vector, a multi-vector or a sparse vector. */
const NAMED_OVERHEAD_BYTES = 1024;

/** At least the bytes of the record of a batch. */
export function recordBytesMax(batch: VectorBatch): number {
  const { count, ids, values, metadata, named = [], multi = [], sparse = [] } = batch;
  const textBytes = [ids, metadata].reduce(
    (sum, { offsets }) => sum + offsets[count]! - offsets[0]! + 4 * (count + 1),
    0,
  );
  const namedBytes = named.reduce(
    (sum, vectors) => sum + vectors.values.byteLength + count + NAMED_OVERHEAD_BYTES,
    0,
  );
  const multiByteCount = multi.reduce(
    (sum, column) => sum + multiBytes(column, 0, count) + 4 * (count + 1) + NAMED_OVERHEAD_BYTES,
    0,
  );
  const sparseBytes = sparse.reduce(
    (sum, column) => sum + elementBytes(column, 0, count) + 8 * (count + 1) + NAMED_OVERHEAD_BYTES,
    0,
  );
  const vectorBytes = values.byteLength + namedBytes + multiByteCount + sparseBytes;
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
        checkFields(schema, 'delete', () => DELETE_FIELDS);
        return { kind, timeMs, ids: readUtf8(columns[0]!), count: rowCount };
      case 'deleteAll':
        return { kind, timeMs };
      default:
        throw corrupt(`a record of the kind ${kind}`);
    }
  });
}

function readBatch({ schema, rowCount, columns }: StoredBatch): VectorBatch {
  const { fields } = schema;
  const dimension = dimensionOf(fields.find(({ name }) => name === 'values'));
  const shapesOfMulti = fields.flatMap((field) => multiOfField(field) ?? []);
  const vectorsOfRows = fields.flatMap((field) => {
    const name = nameOfColumn(field.name);
    const isNamed = name !== undefined && multiOfField(field) === undefined;
    return isNamed ? [{ name, dimension: dimensionOf(field) }] : [];
  });
  const namesOfSparse = sparseNames(fields.map(({ name }) => name));
  checkFields(schema, 'write', () =>
    rowFields(
      columnsOf({
        dimension,
        named: vectorsOfRows,
        multi: shapesOfMulti,
        sparse: namesOfSparse,
      }),
    ),
  );
  const byName = new Map(fields.map(({ name }, i) => [name, columns[i]!]));
  const named = vectorsOfRows.map((vector) => {
    return readNamed(vector, byName.get(columnOfName(vector.name))!);
  });
  const sparse = namesOfSparse.map((name) => readSparse(name, byName));
  const multi = shapesOfMulti.map((shape) => {
    return readMulti(shape, byName.get(columnOfName(shape.name))!);
  });
  return {
    count: rowCount,
    ids: readUtf8(byName.get('id')!),
    values: readValues(byName.get('values'), rowCount * dimension),
    metadata: readUtf8(byName.get('metadata')!),
    ...(named.length === 0 ? {} : { named }),
    ...(sparse.length === 0 ? {} : { sparse }),
    ...(multi.length === 0 ? {} : { multi }),
  };
}

function dimensionOf(field: ArrowField | undefined): number {
  return field?.type.kind === 'fixed_size_list' ? field.type.listSize : 0;
}

function readNamed(vector: NamedShape, { length, validity, children }: Column): NamedVectors {
  const values = children[0]!.buffer(0, Float32Array, length * vector.dimension);
  const presence = new Uint8Array(length);
  for (let row = 0; row < length; row++) presence[row] = isValid(validity, row) ? 1 : 0;
  return { ...vector, values, presence };
}

type NamedShape = Pick<NamedVectors, 'name' | 'dimension'>;

type Vectors = Omit<RowShape, 'hasSequences'>;

function writeFormat(vectors: Vectors): WriteFormat {
  const { dimension, named, multi, sparse } = vectors;
  const describe = (shape: NamedShape) => `${shape.name}:${shape.dimension}`;
  const ofMulti = multi.map((shape) => `${describe(shape)}*`);
  const key = [dimension, ...named.map(describe), ...ofMulti, ...sparse].join();
  let format = writeFormats.get(key);
  if (format === undefined) {
    const columns = columnsOf(vectors);
    format = { columns, schema: schemaOf('write', rowFields(columns)) };
    if (writeFormats.size >= WRITE_FORMATS_MAX) writeFormats.clear();
    writeFormats.set(key, format);
  }
  return format;
}

function columnsOf(vectors: Vectors) {
  return rowColumns({ ...vectors, hasSequences: false });
}

function schemaOf(kind: LogRecord['kind'], fields: readonly FieldToWrite[]): Schema {
  return toSchema(fields, new Map([[KIND_KEY, kind]]));
}

/** The kind for which a schema was checked. The reader returns the same object for the same schema. */
const checkedSchemas = new WeakMap<ArrowSchema, LogRecord['kind']>();

function checkFields(
  found: ArrowSchema,
  kind: LogRecord['kind'],
  expected: () => readonly FieldToWrite[],
): void {
  if (checkedSchemas.get(found) === kind) return;
  expectFields(found.fields, expected());
  checkedSchemas.set(found, kind);
}
