// Encodes row batches as Arrow, the format in which they are sent to the server.

import { type Bitmap, createBitmap, setBit } from '../common/bitmap.js';
import { allocateBytes, utf8ByteCount, writeUtf8 } from '../common/bytes.js';
import type { Utf8Column } from '../common/types.js';
import { encodeRecordBatch, encodeSchema, type FieldToWrite } from '../formats/arrow/ipc-writer.js';
import type { RowBatch } from './row-batch.js';

/** Encodes the schema of the batches. Without a column of ids, the server generates them. */
export function encodeRowsSchema(
  { dimension, named = [], texts }: Pick<RowBatch, 'dimension' | 'named' | 'texts'>,
  hasIds: boolean,
): Uint8Array {
  const id: FieldToWrite = { name: 'id', type: 'utf8' };
  const values: FieldToWrite = { name: 'values', type: { vectorOf: dimension } };
  return encodeSchema([
    ...(hasIds ? [id] : []),
    ...(dimension === 0 ? [] : [values]),
    ...(texts === undefined ? [] : [{ name: 'embed', type: 'utf8' } as const]),
    { name: 'metadata', type: 'utf8' },
    ...named.map((vectors): FieldToWrite => {
      const type = { vectorOf: vectors.dimension };
      return { name: `vectors.${vectors.name}`, type, isNullable: true };
    }),
  ]);
}

/** Encodes a row batch as a record batch. The values are not copied. */
export function encodeRows(batch: RowBatch, ids: readonly string[] | undefined): Uint8Array[] {
  const metadata = batch.metadata ?? new Array<string>(batch.rowCount).fill('{}');
  return encodeRecordBatch(batch.rowCount, [
    ...(ids === undefined ? [] : [{ leaf: textColumn(ids) }]),
    ...(batch.dimension === 0 ? [] : [{ vectors: batch.values }]),
    ...(batch.texts === undefined ? [] : [{ leaf: textColumn(batch.texts) }]),
    { leaf: textColumn(metadata) },
    ...(batch.named ?? []).map(({ values, presence }) => {
      return { vectors: values, presence: bitmapOf(presence) };
    }),
  ]);
}

/** Encodes strings as a UTF-8 column. The strings may contain lone surrogates. */
export function textColumn(texts: readonly string[]): Utf8Column {
  const offsets = new Int32Array(texts.length + 1);
  for (let at = 0; at < texts.length; at++) {
    offsets[at + 1] = offsets[at]! + utf8ByteCount(texts[at]!);
  }
  const bytes = allocateBytes(offsets[texts.length]!);
  // One string at a time: in joined text, lone surrogates at the borders could merge into one character.
  for (let at = 0; at < texts.length; at++) writeUtf8(bytes, texts[at]!, offsets[at]!);
  return { offsets, bytes };
}

/** Sets a bit for each flag that is not 0. */
function bitmapOf(flags: Uint8Array): Bitmap {
  const bitmap = createBitmap(flags.length);
  for (let row = 0; row < flags.length; row++) if (flags[row] !== 0) setBit(bitmap, row);
  return bitmap;
}
