// The operations of a commit as the bytes of a fragment: the length of a header, the header as JSON, then the records and
// values one after another.

import { SagittaError } from '../../common/errors.js';
import type { StoreOperation } from '../../storage/store.js';

const LENGTH_BYTES = 4;
/** The alignment of Arrow buffers. */
const ALIGNMENT = 8;

/** An operation as JSON; `byteCount` stands for its record or value. */
type OperationHeader =
  | { kind: 'append'; log: string; sequence: number; byteCount: number }
  | { kind: 'put'; key: readonly string[]; byteCount: number }
  | Exclude<StoreOperation, { kind: 'append' | 'put' }>;

export function encodeOperations(operations: readonly StoreOperation[]): Uint8Array {
  const payloads: Uint8Array[] = [];
  const header = operations.map((operation): OperationHeader => {
    if (operation.kind === 'append') {
      const { record, ...rest } = operation;
      payloads.push(record);
      return { ...rest, byteCount: record.byteLength };
    }
    if (operation.kind === 'put') {
      const { value, ...rest } = operation;
      payloads.push(value);
      return { ...rest, byteCount: value.byteLength };
    }
    return operation;
  });
  const json = alignedJson(header);
  const length = Buffer.allocUnsafe(LENGTH_BYTES);
  length.writeUInt32LE(json.length);
  return Buffer.concat([length, json, ...payloads]);
}

/** Padded with spaces so that the first record after it is aligned and need not be copied when it is decoded. */
function alignedJson(header: readonly OperationHeader[]): Buffer {
  const text = JSON.stringify(header);
  const end = LENGTH_BYTES + Buffer.byteLength(text);
  return Buffer.from(text + ' '.repeat(-end & (ALIGNMENT - 1)));
}

/** The records and values are views of the bytes. Throws `data_corrupt`; `where` names the bytes in messages. */
export function decodeOperations(bytes: Uint8Array, where: string): StoreOperation[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = LENGTH_BYTES + (bytes.length < LENGTH_BYTES ? 0 : view.getUint32(0, true));
  if (at > bytes.length) throw notOperations(where);
  const header = readHeader(bytes.subarray(LENGTH_BYTES, at), where);
  const take = (byteCount: number) => {
    if (at + byteCount > bytes.length) throw notOperations(where);
    at += byteCount;
    return bytes.subarray(at - byteCount, at);
  };
  return header.map((operation): StoreOperation => {
    if (operation.kind === 'append') {
      const { byteCount, ...rest } = operation;
      return { ...rest, record: take(byteCount) };
    }
    if (operation.kind === 'put') {
      const { byteCount, ...rest } = operation;
      return { ...rest, value: take(byteCount) };
    }
    return operation;
  });
}

function readHeader(bytes: Uint8Array, where: string): OperationHeader[] {
  try {
    return JSON.parse(Buffer.from(bytes).toString()) as OperationHeader[];
  } catch {
    throw notOperations(where);
  }
}

function notOperations(where: string): SagittaError {
  return new SagittaError(
    'data_corrupt',
    `${where} is damaged: its bytes are not the operations of a commit.`,
  );
}
