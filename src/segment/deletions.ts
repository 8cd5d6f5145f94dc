// The stored deletions of a segment, beside its file: rows and the sequences of their deletion, as a
// small Arrow stream with a checksum.

import { readingStored } from '../formats/arrow/arrow-errors.js';
import {
  BodyWriter,
  type FieldToWrite,
  STREAM_ALIGNMENT,
  toSchema,
} from '../formats/arrow/ipc-writer.js';
import { expectFields } from '../formats/arrow/stored-arrow.js';
import { decodeSealedStream, encodeSealedStream } from './sealed-stream.js';
import type { Deletions } from './visibility.js';

const FIELDS: readonly FieldToWrite[] = [
  { name: 'row', type: 'uint32' },
  { name: 'deleted_sequence', type: 'float64' },
];
const SCHEMA = toSchema(FIELDS);

export function encodeDeletions({ rows, sequences }: Deletions): Uint8Array {
  const body = new BodyWriter(STREAM_ALIGNMENT);
  for (const column of [rows, sequences]) {
    body.node(column.length);
    body.noNulls();
    body.buffer(column);
  }
  return encodeSealedStream(SCHEMA, rows.length, body, new Map());
}

/** Throws `data_corrupt`. The caller checks that the rows exist. */
export function decodeDeletions(bytes: Uint8Array): Deletions {
  const { schema, rowCount, columns } = decodeSealedStream(bytes);
  return readingStored('a record of deletions', () => {
    expectFields(schema.fields, FIELDS);
    return {
      rows: columns[0]!.buffer(0, Uint32Array, rowCount),
      sequences: columns[1]!.buffer(0, Float64Array, rowCount),
    };
  });
}
