// The stored expiries of the rows of one write, as a small Arrow stream with a checksum.

import { utf8ColumnOf } from '../common/utf8-column.js';
import { readingStored } from '../formats/arrow/arrow-errors.js';
import {
  BodyWriter,
  type FieldToWrite,
  STREAM_ALIGNMENT,
  toSchema,
} from '../formats/arrow/ipc-writer.js';
import { expectFields } from '../formats/arrow/stored-arrow.js';
import { readUtf8 } from '../formats/arrow/strings.js';
import { decodeSealedStream, encodeSealedStream } from './sealed-stream.js';
import { decodeUtf8 } from './shared-arrays.js';

const FIELDS: readonly FieldToWrite[] = [
  { name: 'id', type: 'utf8' },
  { name: 'expires_at_ms', type: 'float64' },
];
const SCHEMA = toSchema(FIELDS);

/** Milliseconds since the Unix epoch by id. */
export type ExpiryTimes = ReadonlyMap<string, number>;

export function encodeExpiries(times: ExpiryTimes): Uint8Array {
  const body = new BodyWriter(STREAM_ALIGNMENT);
  body.utf8(utf8ColumnOf([...times.keys()]), 0, times.size);
  body.node(times.size);
  body.noNulls();
  body.buffer(Float64Array.from(times.values()));
  return encodeSealedStream(SCHEMA, times.size, body, new Map());
}

/** Throws `data_corrupt`. */
export function decodeExpiries(bytes: Uint8Array): ExpiryTimes {
  const { schema, rowCount, columns } = decodeSealedStream(bytes);
  return readingStored('a record of expiries', () => {
    expectFields(schema.fields, FIELDS);
    const { offsets, bytes: text } = readUtf8(columns[0]!);
    const timesMs = columns[1]!.buffer(0, Float64Array, rowCount);
    const times = new Map<string, number>();
    for (let i = 0; i < rowCount; i++) {
      times.set(decodeUtf8(text, offsets[i]!, offsets[i + 1]!), timesMs[i]!);
    }
    return times;
  });
}
