// Every entry of the tables is stored with a CRC-32 over its table, its key and its value, since lmdb has no
// checksums: a flipped bit is found when the entry is read, and so is a value under the key of another one.

import { SagittaError } from '../common/errors.js';
import { crcOf } from '../platform/crc32.js';
import type { TableName } from './store-format.js';

/** Follows the value, so that the value keeps its alignment. */
const CHECKSUM_BYTES = 4;

/** A value as it is stored. */
export interface SealedValue {
  /** Value and checksum. Not in shared memory, where lmdb on Node 20 reads past the end and crashes. */
  readonly bytes: Buffer;
  readonly checksum: number;
}

export interface OpenedValue {
  /** A view of the bytes that were opened. */
  readonly value: Uint8Array;
  readonly checksum: number;
}

const TABLE_NUMBERS: Readonly<Record<TableName, number>> = {
  meta: 0,
  values: 1,
  records: 2,
  logs: 3,
};

/** Copies the parts, which together are the value. */
export function sealValue(
  table: TableName,
  key: Buffer,
  parts: readonly Uint8Array[],
): SealedValue {
  let byteCount = CHECKSUM_BYTES;
  for (const part of parts) byteCount += part.byteLength;
  const bytes = Buffer.allocUnsafe(byteCount);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.byteLength;
  }
  const checksum = checksumOf(table, key, bytes.subarray(0, at));
  bytes.writeUInt32LE(checksum, at);
  return { bytes, checksum };
}

/** Undefined when the bytes are not what was stored under this key. */
export function openValue(
  table: TableName,
  key: Buffer,
  bytes: Uint8Array,
): OpenedValue | undefined {
  const end = bytes.byteLength - CHECKSUM_BYTES;
  if (end < 0) return undefined;
  const value = bytes.subarray(0, end);
  const checksum = storedChecksum(bytes);
  return checksum === checksumOf(table, key, value) ? { value, checksum } : undefined;
}

/** The checksum at the end of a sealed value, which is not compared with anything. */
export function storedChecksum(bytes: Uint8Array): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return view.getUint32(bytes.byteLength - CHECKSUM_BYTES, true);
}

export function damagedEntry(path: string, place: string): SagittaError {
  return new SagittaError(
    'data_corrupt',
    `The file ${path} is damaged: ${place} does not have the checksum that it was stored with. Run "sagitta verify" to find other damage, and restore a backup.`,
  );
}

function checksumOf(table: TableName, key: Buffer, value: Uint8Array): number {
  // With the length of the key, so that its last bytes cannot be taken for the first ones of a value.
  const place = Buffer.allocUnsafe(key.byteLength + 3);
  place[0] = TABLE_NUMBERS[table];
  place.writeUInt16LE(key.byteLength, 1);
  place.set(key, 3);
  return crcOf(value, crcOf(place));
}
