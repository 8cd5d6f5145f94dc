// Batches of rows as the record batches of an Arrow stream: id, values, metadata, as the service
// takes them. The values are not copied.

import type { Utf8Column } from '../common/types.js';
import { encodeBatch, encodeEnd, encodeSchema } from '../formats/arrow/ipc-writer.js';
import type { RowBatch } from './readers/row-batch.js';

export const END_OF_STREAM = encodeEnd();

export function encodeRowsSchema(dimension: number): Uint8Array {
  return encodeSchema([
    { name: 'id', type: 'utf8' },
    { name: 'values', type: { vectorOf: dimension } },
    { name: 'metadata', type: 'utf8' },
  ]);
}

export function encodeRows(batch: RowBatch, ids: readonly string[]): Uint8Array[] {
  const metadata = batch.metadata ?? new Array<string>(batch.rowCount).fill('{}');
  return encodeBatch(batch.rowCount, [
    { text: utf8Column(ids), from: 0 },
    { vectors: batch.values },
    { text: utf8Column(metadata), from: 0 },
  ]);
}

function utf8Column(texts: readonly string[]): Utf8Column {
  const offsets = new Int32Array(texts.length + 1);
  for (let at = 0; at < texts.length; at++) {
    offsets[at + 1] = offsets[at]! + Buffer.byteLength(texts[at]!);
  }
  const bytes = Buffer.allocUnsafe(offsets[texts.length]!);
  // One by one: halves of characters at the ends of two texts would become a whole one.
  for (let at = 0; at < texts.length; at++) bytes.write(texts[at]!, offsets[at]);
  return { offsets, bytes };
}
