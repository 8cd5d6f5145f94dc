// Rows from Parquet. Row groups are decoded one by one into Arrow, which arrow-rows.ts reads, so that
// columns mean the same in both formats. Only the current row group is in memory.

import { openAsBlob } from 'node:fs';
import { open } from 'node:fs/promises';
import type { ParquetFile, RecordBatch } from 'parquet-wasm/node';
import { FOOTER_END_BYTES, uuidColumnsOf } from '../../formats/parquet/footer-schema.js';
import { CliError } from '../failure.js';
import { rowsOfArrow } from './arrow-rows.js';
import type { ReadOptions, RowBatch, RowReader } from './row-batch.js';
import type { InputSource } from './source.js';

/** The decoder has 4 GB of WebAssembly memory for a compressed row group and its decoded batches. */
const GROUP_BYTES_MAX = 1_500_000_000;

export async function openParquet(source: InputSource, options: ReadOptions): Promise<RowReader> {
  const { name } = source;
  const file = await openFile(source);
  const groups = rowGroupsOf(file);
  const rowCount = file.metadata().fileMetadata().numRows();
  const uuidColumns = uuidColumnsOf(await readFooter(source));

  async function* batches(startRow: number): AsyncGenerator<RowBatch> {
    let firstRow = 0;
    for (const [group, { rowCount: groupRows, byteCount }] of groups.entries()) {
      const endRow = firstRow + groupRows;
      // Of a row group without rows the decoder gives nothing, not even a schema.
      if (groupRows > 0 && endRow > startRow) {
        if (byteCount > GROUP_BYTES_MAX) {
          throw new CliError(
            `${name}: row group ${group} has ${byteCount} bytes, expected at most ` +
              `${GROUP_BYTES_MAX}; rewrite the file with smaller row groups`,
          );
        }
        const stream = arrowOf(name, file, group, options.rowsPerBatch);
        const place = { format: 'Parquet', firstRow, uuidColumns };
        let row = Math.max(startRow, firstRow);
        for await (const batch of rowsOfArrow(name, stream, options, startRow, place)) {
          row += batch.rowCount;
          yield batch;
        }
        if (row !== endRow) {
          throw new CliError(
            `${name}: invalid Parquet: row group ${group} ends after row ${row}, expected row ${endRow}`,
          );
        }
      }
      firstRow = endRow;
    }
  }
  return { rowCount, batches };
}

function rowGroupsOf(file: ParquetFile): { rowCount: number; byteCount: number }[] {
  return file
    .metadata()
    .rowGroups()
    .map((group) => ({ rowCount: group.numRows(), byteCount: group.compressedSize() }));
}

async function openFile({ name, path }: InputSource): Promise<ParquetFile> {
  const { ParquetFile } = await import('parquet-wasm/node');
  return await readable(name, async () => ParquetFile.fromFile(await openAsBlob(path!)));
}

async function readFooter({ path, byteCount }: InputSource): Promise<Uint8Array> {
  const handle = await open(path!);
  try {
    const end = Buffer.alloc(FOOTER_END_BYTES);
    await handle.read(end, 0, end.length, byteCount! - end.length);
    const footer = Buffer.alloc(end.readUInt32LE(0));
    await handle.read(footer, 0, footer.length, byteCount! - end.length - footer.length);
    return footer;
  } finally {
    await handle.close();
  }
}

/** Each row group that has rows, as an Arrow stream. */
export async function* arrowStreamsOf(
  source: InputSource,
  batchSize: number,
): AsyncGenerator<AsyncIterable<Uint8Array>> {
  const file = await openFile(source);
  for (const [group, { rowCount }] of rowGroupsOf(file).entries()) {
    if (rowCount > 0) yield arrowOf(source.name, file, group, batchSize);
  }
}

/** A row group as one Arrow stream. The decoder returns each batch as a stream with its own schema. */
async function* arrowOf(
  name: string,
  file: ParquetFile,
  group: number,
  batchSize: number,
): AsyncGenerator<Uint8Array> {
  const stream = await readable(name, () => file.stream({ rowGroups: [group], batchSize }));
  const reader = (stream as ReadableStream<RecordBatch>).getReader();
  let isFirst = true;
  while (true) {
    const next = await readable(name, () => reader.read());
    if (next.done) break;
    const bytes = next.value.intoIPCStream();
    const start = isFirst ? 0 : endOfFirstMessage(bytes);
    yield bytes.subarray(start, bytes.length - END_OF_STREAM_BYTES);
    isFirst = false;
  }
}

const END_OF_STREAM_BYTES = 8;

function endOfFirstMessage(bytes: Uint8Array): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return 8 + view.getInt32(4, true);
}

/** Adds the file's name to errors of the decoder, which throws strings or WebAssembly traps. */
async function readable<Value>(name: string, read: () => Promise<Value>): Promise<Value> {
  try {
    return await orTrap(read);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new CliError(`${name}: invalid Parquet: ${reason}`, { cause });
  }
}

/**
 * Rejects also when the decoder traps in a callback of its own, as it does for some damaged files: its promise would
 * never be settled, and the uncaught exception would end the process without a message.
 */
async function orTrap<Value>(read: () => Promise<Value>): Promise<Value> {
  let onException: (error: unknown) => void = () => {};
  const trapped = new Promise<never>((_, reject) => {
    onException = (error) => {
      if (!isTrap(error)) throw error;
      reject(error);
    };
  });
  process.on('uncaughtException', onException);
  try {
    return await Promise.race([read(), trapped]);
  } finally {
    process.off('uncaughtException', onException);
  }
}

function isTrap(error: unknown): boolean {
  return error instanceof Error && error.name === 'RuntimeError' && /wasm/.test(error.stack ?? '');
}
