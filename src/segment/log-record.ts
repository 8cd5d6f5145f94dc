// One write of a collection as it stands in the log: rows to add, ids to delete, or the deletion of
// everything. Guarantees that what is decoded is what was encoded, or throws `data_corrupt`.

import { Field, FixedSizeList, Float32, Schema, Utf8 } from 'apache-arrow';
import { assert } from '../common/errors.js';
import type { Utf8Column, VectorBatch } from '../common/types.js';
import { type BodyReader, BodyWriter, corrupt, guarded } from '../formats/arrow/body.js';
import { STREAM_ALIGNMENT } from '../formats/arrow/ipc.js';
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
  | { readonly kind: 'deleteAll'; readonly timeMs: number };

const KIND_KEY = 'sagitta.record';
const TIME_KEY = 'sagitta.time_ms';

const DELETE_SCHEMA = schemaOf('delete', [new Field('id', new Utf8(), false)]);
const DELETE_ALL_SCHEMA = schemaOf('deleteAll', []);

/** By dimension; made once, since a schema costs more than the rest of a one-row record. */
const writeSchemas = new Map<number, Schema>();
const WRITE_SCHEMAS_MAX = 256;

/** `take`: gives the bytes to write a record of rows into; new ones when absent. */
export function encodeLogRecord(
  record: LogRecord,
  take?: (byteCount: number) => Uint8Array,
): Uint8Array {
  const body = new BodyWriter(STREAM_ALIGNMENT);
  const metadata = new Map([[TIME_KEY, String(record.timeMs)]]);
  switch (record.kind) {
    case 'write': {
      const { count, ids, values, metadata: json } = record.batch;
      const dimension = values.length / count;
      assert(Number.isInteger(dimension), `${values.length} values for ${count} rows`);
      body.utf8(ids, 0, count);
      body.node(count);
      body.noNulls();
      body.node(values.length);
      body.noNulls();
      body.buffer(values);
      body.utf8(json, 0, count);
      return encodeSealedStream(writeSchema(dimension), count, body, metadata, take);
    }
    case 'delete':
      body.utf8(record.ids, 0, record.count);
      return encodeSealedStream(DELETE_SCHEMA, record.count, body, metadata);
    case 'deleteAll':
      return encodeSealedStream(DELETE_ALL_SCHEMA, 0, body, metadata);
  }
}

/** The arrays of the record are views into `bytes` where its alignment allows. */
export function decodeLogRecord(bytes: Uint8Array): LogRecord {
  const { schema, batch, metadata } = decodeSealedStream(bytes);
  return guarded('a log record', () => {
    const timeMs = Number(metadata.get(TIME_KEY) ?? Number.NaN);
    if (!Number.isFinite(timeMs)) throw corrupt(`the time ${metadata.get(TIME_KEY)}`);
    const count = batch.rowCount;
    const kind = schema.metadata.get(KIND_KEY);
    switch (kind) {
      case 'write':
        return { kind, timeMs, batch: readBatch(schema, batch) };
      case 'delete':
        expectFields(schema, DELETE_SCHEMA);
        return { kind, timeMs, ids: batch.utf8(count), count };
      case 'deleteAll':
        return { kind, timeMs };
      default:
        throw corrupt(`a record of the kind ${kind}`);
    }
  });
}

function readBatch(schema: Schema, batch: BodyReader): VectorBatch {
  const type = schema.fields[1]?.type as FixedSizeList | undefined;
  const dimension = type?.listSize ?? 0;
  expectFields(schema, writeSchema(dimension));
  const count = batch.rowCount;
  const ids = batch.utf8(count);
  batch.node(count);
  batch.skipBuffer();
  batch.node(count * dimension);
  batch.skipBuffer();
  const values = batch.buffer(Float32Array, count * dimension);
  return { count, ids, values, metadata: batch.utf8(count) };
}

function writeSchema(dimension: number): Schema {
  let schema = writeSchemas.get(dimension);
  if (schema === undefined) {
    const values = new FixedSizeList(dimension, new Field('item', new Float32(), false));
    schema = schemaOf('write', [
      new Field('id', new Utf8(), false),
      new Field('values', values, false),
      new Field('metadata', new Utf8(), false),
    ]);
    if (writeSchemas.size >= WRITE_SCHEMAS_MAX) writeSchemas.clear();
    writeSchemas.set(dimension, schema);
  }
  return schema;
}

function schemaOf(kind: LogRecord['kind'], fields: Field[]): Schema {
  return new Schema(fields, new Map([[KIND_KEY, kind]]));
}

function expectFields(found: Schema, expected: Schema): void {
  // The same object in all but the first record of a kind and dimension.
  if (checkedSchemas.get(found) === expected) return;
  if (String(found) !== String(expected))
    throw corrupt(`the fields ${found}, expected ${expected}`);
  checkedSchemas.set(found, expected);
}

const checkedSchemas = new WeakMap<Schema, Schema>();
