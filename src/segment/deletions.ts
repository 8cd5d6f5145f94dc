// Deletions of one segment as they are stored beside its file: rows and the sequences that ended
// them, a small Arrow stream with a checksum.

import { Field, Float64, Schema, Uint32 } from 'apache-arrow';
import { BodyWriter, corrupt, guarded } from '../formats/arrow/body.js';
import { STREAM_ALIGNMENT } from '../formats/arrow/ipc.js';
import { decodeSealedStream, encodeSealedStream } from './sealed-stream.js';
import type { Deletions } from './visibility.js';

const SCHEMA = new Schema([
  new Field('row', new Uint32(), false),
  new Field('deleted_sequence', new Float64(), false),
]);

export function encodeDeletions({ rows, sequences }: Deletions): Uint8Array {
  const body = new BodyWriter(STREAM_ALIGNMENT);
  for (const column of [rows, sequences]) {
    body.node(column.length);
    body.noNulls();
    body.buffer(column);
  }
  return encodeSealedStream(SCHEMA, rows.length, body, new Map());
}

/** Throws `data_corrupt`. That the rows exist is for the segment to say. */
export function decodeDeletions(bytes: Uint8Array): Deletions {
  const { schema, batch } = decodeSealedStream(bytes);
  return guarded('a record of deletions', () => {
    if (String(schema) !== String(SCHEMA))
      throw corrupt(`the fields ${schema}, expected ${SCHEMA}`);
    const count = batch.rowCount;
    batch.node(count);
    batch.skipBuffer();
    const rows = batch.buffer(Uint32Array, count);
    batch.node(count);
    batch.skipBuffer();
    return { rows, sequences: batch.buffer(Float64Array, count) };
  });
}
