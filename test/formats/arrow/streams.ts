// Helpers for tests of Arrow streams: chunks, rows as objects, and streams of a few columns.

import { DEFAULT_LIMITS } from '../../../src/common/limits.js';
import type { Utf8Column } from '../../../src/common/types.js';
import { type DenseColumn, UNNAMED } from '../../../src/common/vectors.js';
import type { EncodedBatch } from '../../../src/formats/arrow/encoded-batch.js';
import {
  encodeEnd,
  encodeRecordBatch,
  encodeSchema,
} from '../../../src/formats/arrow/ipc-writer.js';
import { ArrowStreamReader } from '../../../src/formats/arrow/stream-reader.js';
import { readVectorRows, type VectorRows } from '../../../src/formats/arrow/vector-rows.js';

export const BATCH_BYTES_MAX = 1_000_000;

export async function* chunked(bytes: Uint8Array, chunkBytes = bytes.length) {
  for (let at = 0; at < bytes.length; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes);
}

export async function batchesOf(bytes: Uint8Array, chunkBytes?: number): Promise<EncodedBatch[]> {
  const options = { batchBytesMax: BATCH_BYTES_MAX };
  const batches: EncodedBatch[] = [];
  for await (const batch of new ArrowStreamReader(chunked(bytes, chunkBytes), options).batches()) {
    // A batch arrives in a thread as a clone.
    batches.push(structuredClone(batch));
  }
  return batches;
}

export interface Row {
  readonly id: string | null;
  readonly values: number[];
  readonly metadata: string | null;
}

export interface ReadOptions {
  readonly dimension?: number;
  readonly idColumn?: string;
  readonly vectorColumn?: string;
  readonly metadataBytesMax?: number;
}

export function readBatch(
  batch: EncodedBatch,
  { dimension = 2, metadataBytesMax = 4_096, ...options }: ReadOptions = {},
): VectorRows & { readonly values: Float32Array } {
  const bounds = { bodyBytesMax: BATCH_BYTES_MAX, vectorIdBytesMax: 512, metadataBytesMax };
  const rows = readVectorRows(batch, {
    vectors: { [UNNAMED]: { kind: 'dense', dimension } },
    limits: { ...DEFAULT_LIMITS, ...bounds },
    ...options,
  });
  const unnamed = rows.vectors.get(UNNAMED) as DenseColumn;
  return { ...rows, values: unnamed.values };
}

/** Returns every row. An issue is an error. */
export async function rowsOf(
  bytes: Uint8Array,
  options: ReadOptions = {},
  chunkBytes?: number,
): Promise<Row[]> {
  const batches = await batchesOf(bytes, chunkBytes);
  return batches.flatMap((batch) => rowsOfBatch(readBatch(batch, options)));
}

export function rowsOfBatch({
  count,
  ids,
  values,
  metadata,
  issues,
}: ReturnType<typeof readBatch>): Row[] {
  if (issues.length > 0) throw new Error(JSON.stringify(issues));
  const dimension = values.length / count;
  return Array.from({ length: count }, (_, i) => ({
    id: ids === null ? null : textAt(ids, i),
    values: [...values.subarray(i * dimension, (i + 1) * dimension)],
    metadata: metadata === null ? null : textAt(metadata, i),
  }));
}

export function textAt({ offsets, bytes }: Utf8Column, row: number): string {
  return Buffer.from(bytes.subarray(offsets[row], offsets[row + 1])).toString();
}

export function textColumn(texts: readonly string[]): Utf8Column {
  const offsets = [0];
  for (const text of texts) offsets.push(offsets.at(-1)! + Buffer.byteLength(text));
  return { offsets: Int32Array.from(offsets), bytes: Buffer.from(texts.join('')) };
}

/** Returns a stream of ids and vectors of two elements, with a batch for each list of ids. */
export function plainStream(batches: readonly (readonly string[])[]): Uint8Array[] {
  const fields = [
    { name: 'id', type: 'utf8' },
    { name: 'values', type: { vectorOf: 2 } },
  ] as const;
  return [
    encodeSchema(fields),
    ...batches.map((ids) =>
      Buffer.concat(
        encodeRecordBatch(ids.length, [
          { leaf: textColumn(ids) },
          { vectors: Float32Array.from({ length: ids.length * 2 }, (_, i) => i) },
        ]),
      ),
    ),
    encodeEnd(),
  ];
}
