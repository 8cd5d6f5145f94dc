// The small tables that a store keeps beside the logs and segment files of collections, as Arrow streams with a
// checksum: the deleted rows of a segment, and when the rows of a write expire.

import { stringAt, utf8ColumnOf } from '../common/utf8-column.js';
import { readingStored } from '../formats/arrow/arrow-errors.js';
import type { ArrowColumn } from '../formats/arrow/columns.js';
import {
  type ColumnToWrite,
  encodeSchema,
  type FieldToWrite,
} from '../formats/arrow/ipc-writer.js';
import { expectFields } from '../formats/arrow/stored-arrow.js';
import { readUtf8 } from '../formats/arrow/strings.js';
import { decodeSealedStream, encodeSealedStream } from './sealed-stream.js';
import type { Deletions } from './visibility.js';

/** Expiry times by id, in milliseconds since the Unix epoch. */
export type ExpiryTimes = ReadonlyMap<string, number>;

const DELETIONS = tableOf('a record of deletions', [
  { name: 'row', type: 'uint32' },
  { name: 'deleted_sequence', type: 'float64' },
]);

const EXPIRIES = tableOf('a record of expiries', [
  { name: 'id', type: 'utf8' },
  { name: 'expires_at_ms', type: 'float64' },
]);

export function encodeDeletions({ rows, sequences }: Deletions): Uint8Array {
  return DELETIONS.encode(rows.length, [{ leaf: rows }, { leaf: sequences }]);
}

/** Throws `data_corrupt`. The caller checks that the rows exist. */
export function decodeDeletions(bytes: Uint8Array): Deletions {
  return DELETIONS.decode(bytes, ([rows, sequences], count) => ({
    rows: rows!.buffer(0, Uint32Array, count),
    sequences: sequences!.buffer(0, Float64Array, count),
  }));
}

export function encodeExpiries(times: ExpiryTimes): Uint8Array {
  const ids = utf8ColumnOf([...times.keys()]);
  const timesMs = Float64Array.from(times.values());
  return EXPIRIES.encode(times.size, [{ leaf: ids }, { leaf: timesMs }]);
}

/** Throws `data_corrupt`. */
export function decodeExpiries(bytes: Uint8Array): ExpiryTimes {
  return EXPIRIES.decode(bytes, ([ids, times], count) => {
    const text = readUtf8(ids!);
    const timesMs = times!.buffer(0, Float64Array, count);
    const found = new Map<string, number>();
    for (let i = 0; i < count; i++) found.set(stringAt(text, i), timesMs[i]!);
    return found;
  });
}

function tableOf(what: string, fields: readonly FieldToWrite[]) {
  const schema = encodeSchema(fields);
  return {
    encode: (rowCount: number, columns: readonly ColumnToWrite[]) =>
      encodeSealedStream(schema, rowCount, columns, new Map()),
    /** Throws `data_corrupt`. */
    decode<Table>(
      bytes: Uint8Array,
      read: (columns: readonly ArrowColumn[], rowCount: number) => Table,
    ): Table {
      const { schema: found, rowCount, columns } = decodeSealedStream(bytes);
      return readingStored(what, () => {
        expectFields(found.fields, fields);
        return read(columns, rowCount);
      });
    },
  };
}
