// Rows from Parquet: decoded row group by row group into Arrow, of which arrow-rows.ts makes rows, so
// that a column means the same in both. The file is read where the row groups are, never as a whole.

import { openAsBlob } from 'node:fs';
import type { ParquetFile, RecordBatch } from 'parquet-wasm/node';
import { CliError } from '../failure.js';
import { rowsOfArrow } from './arrow-rows.js';
import type { ReadOptions, RowBatch, RowReader } from './row-batch.js';
import type { InputSource } from './source.js';

/** The decoder lives in 4 GB of WebAssembly, where a row group lies packed and its batches unpacked. */
const GROUP_BYTES_MAX = 1_500_000_000;

export async function openParquet(source: InputSource, options: ReadOptions): Promise<RowReader> {
  const { ParquetFile } = await import('parquet-wasm/node');
  const { name } = source;
  const file = await readable(name, async () =>
    ParquetFile.fromFile(await openAsBlob(source.path!)),
  );
  const metadata = file.metadata();
  const groups = metadata.rowGroups().map((group) => ({
    rowCount: group.numRows(),
    byteCount: group.compressedSize(),
  }));
  const rowCount = metadata.fileMetadata().numRows();

  async function* batches(startRow: number): AsyncGenerator<RowBatch> {
    let firstRow = 0;
    for (const [group, facts] of groups.entries()) {
      const endRow = firstRow + facts.rowCount;
      if (endRow > startRow) {
        if (facts.byteCount > GROUP_BYTES_MAX) {
          throw new CliError(
            `${name}: row group ${group} has ${facts.byteCount} bytes, expected at most ` +
              `${GROUP_BYTES_MAX}; write the file with smaller row groups`,
          );
        }
        const stream = arrowOf(name, file, group, options.rowsPerBatch);
        for await (const batch of rowsOfArrow(name, stream, options, startRow, firstRow)) {
          yield batch;
        }
        source.markRead(endRow / rowCount);
      }
      firstRow = endRow;
    }
  }
  return { rowCount, batches };
}

/** A row group as one Arrow stream: each batch comes as a stream of its own, with the schema again. */
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

/** What the decoder throws is text, or a trap without any. */
async function readable<Value>(name: string, read: () => Promise<Value>): Promise<Value> {
  try {
    return await read();
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new CliError(`${name}: cannot be read as Parquet: ${reason}`, { cause });
  }
}
