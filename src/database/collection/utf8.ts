// Small columns of strings, made and read one at a time.

import type { Utf8Column, VectorBatch } from '../../common/types.js';

export function stringAt(column: Utf8Column, index: number): string {
  const { bytes, offsets } = column;
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString(
    'utf8',
    offsets[index]!,
    offsets[index + 1]!,
  );
}

export function utf8ColumnOf(strings: readonly string[]): Utf8Column {
  const offsets = new Int32Array(strings.length + 1);
  let byteLength = 0;
  for (let i = 0; i < strings.length; i++) {
    byteLength += Buffer.byteLength(strings[i]!);
    offsets[i + 1] = byteLength;
  }
  const bytes = Buffer.alloc(byteLength);
  for (let i = 0; i < strings.length; i++) bytes.write(strings[i]!, offsets[i]!);
  return { offsets, bytes };
}

export function singleRowBatch(id: string, values: Float32Array, metadata: string): VectorBatch {
  return { count: 1, ids: utf8ColumnOf([id]), values, metadata: utf8ColumnOf([metadata]) };
}
