// Small records in the store: Arrow IPC streams of one batch, followed by a trailer, which Arrow readers
// ignore. The trailer consists of four letters for the format and the CRC-32 of everything before it.

import { corrupt } from '../formats/arrow/arrow-errors.js';
import {
  type ColumnToWrite,
  encodeBody,
  layOutArrowStream,
  STREAM_ALIGNMENT,
} from '../formats/arrow/ipc-writer.js';
import { decodeArrowStream, type StoredBatch } from '../formats/arrow/stored-arrow.js';
import { crcOf } from '../platform/crc32.js';

const FORMAT = Buffer.from('SGT1');
const TRAILER_BYTES = FORMAT.length + 4;

/** @param allocate provides the bytes to write to; new ones by default. */
export function encodeSealedStream(
  schemaMessage: Uint8Array,
  rowCount: number,
  columns: readonly ColumnToWrite[],
  metadata: Map<string, string>,
  allocate: (byteCount: number) => Uint8Array = (byteCount) => new Uint8Array(byteCount),
): Uint8Array {
  const body = encodeBody(columns, rowCount, STREAM_ALIGNMENT);
  const stream = layOutArrowStream(schemaMessage, rowCount, body, metadata);
  const bytes = stream.copyInto(allocate(stream.length + TRAILER_BYTES));
  const trailer = bytes.subarray(stream.length);
  trailer.set(FORMAT);
  const crc = crcOf(bytes.subarray(0, stream.length + FORMAT.length));
  new DataView(bytes.buffer, bytes.byteOffset).setUint32(stream.length + FORMAT.length, crc, true);
  return bytes;
}

/** Decodes a record, in place if `bytes` is aligned to 8 bytes, otherwise from a copy. Throws `data_corrupt`. */
export function decodeSealedStream(bytes: Uint8Array): StoredBatch {
  const length = bytes.length - TRAILER_BYTES;
  const format = Buffer.from(bytes.subarray(Math.max(0, length), length + FORMAT.length));
  if (length < 0 || !format.equals(FORMAT)) {
    throw corrupt(`the ending ${JSON.stringify(format.toString('latin1'))}`, {
      expected: `${FORMAT}`,
    });
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const expected = view.getUint32(length + FORMAT.length, true);
  const found = crcOf(bytes.subarray(0, length + FORMAT.length));
  if (found !== expected) {
    throw corrupt(`the checksum ${found} over ${bytes.length} bytes`, { expected });
  }
  const isAligned = bytes.byteOffset % 8 === 0;
  return decodeArrowStream(
    isAligned
      ? new Uint8Array(bytes.buffer, bytes.byteOffset, length)
      : new Uint8Array(bytes).subarray(0, length),
  );
}
