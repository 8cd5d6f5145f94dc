// Reads rows from Parquet. Row groups are decoded one by one into Arrow, which arrow-rows.ts reads, so columns mean the
// same in both formats. Only the current row group is in memory.

import type { ParquetFile, RecordBatch } from 'parquet-wasm';
import { FOOTER_END_BYTES, uuidColumnsOf } from '../formats/parquet/footer-schema.js';
import { rowsOfArrow, sampleOfArrow } from './arrow-rows.js';
import type { InputSource } from './input-source.js';
import { ReadError } from './read-error.js';
import type { ReaderOptions } from './reader-options.js';
import type { RowBatch, RowReader, Sample } from './row-batch.js';

/** A compressed row group and its decoded batches have to fit into the decoder's 4 GB of WebAssembly memory. */
const GROUP_BYTES_MAX = 1_500_000_000;

export async function openParquet(source: InputSource, options: ReaderOptions): Promise<RowReader> {
  const { name } = source;
  const file = await openFile(source);
  const groups = rowGroupsOf(file);
  const rowCount = file.metadata().fileMetadata().numRows();
  const uuidColumns = uuidColumnsOf(await readFooter(source));

  async function* batches(startRow: number): AsyncGenerator<RowBatch> {
    let firstRow = 0;
    let isStopped = false;
    const { onBadRow } = options;
    const onBad: ReaderOptions['onBadRow'] = (bad) => {
      const decision = onBadRow!(bad);
      isStopped = decision === 'stop';
      return decision;
    };
    const watched = { ...options, onBadRow: onBadRow && onBad };
    for (const [group, { rowCount: groupRows, byteCount }] of groups.entries()) {
      const endRow = firstRow + groupRows;
      // For a row group without rows the decoder returns nothing, not even a schema.
      if (groupRows > 0 && endRow > startRow) {
        if (byteCount > GROUP_BYTES_MAX) {
          throw new ReadError(
            `${name}: row group ${group} has ${byteCount} bytes, expected at most ` +
              `${GROUP_BYTES_MAX}; rewrite the file with smaller row groups`,
          );
        }
        const stream = arrowOf(name, file, group, options.rowsPerBatch);
        const place = { format: 'Parquet', firstRow, uuidColumns };
        let row = Math.max(startRow, firstRow);
        for await (const batch of rowsOfArrow(name, stream, watched, startRow, place)) {
          row = batch.endRow;
          yield batch;
          if (isStopped) return;
        }
        if (row !== endRow) {
          throw new ReadError(
            `${name}: invalid Parquet: row group ${group} ends after row ${row}, expected row ${endRow}`,
          );
        }
      }
      firstRow = endRow;
    }
  }
  async function sample(count: number): Promise<Sample> {
    const group = groups.findIndex((each) => each.rowCount > 0);
    if (group === -1) return { columns: [], rows: [] };
    return await sampleOfArrow(name, arrowOf(name, file, group, count), count, {
      format: 'Parquet',
      firstRow: 0,
      uuidColumns,
    });
  }
  return { rowCount, batches, sample };
}

function rowGroupsOf(file: ParquetFile): { rowCount: number; byteCount: number }[] {
  return file
    .metadata()
    .rowGroups()
    .map((group) => ({ rowCount: group.numRows(), byteCount: group.compressedSize() }));
}

async function openFile({ name, file }: InputSource): Promise<ParquetFile> {
  const { ParquetFile } = await file!.packages.parquet();
  return await wrapErrors(name, async () => ParquetFile.fromFile(await file!.blob()));
}

async function readFooter({ file }: InputSource): Promise<Uint8Array> {
  const { byteCount } = file!;
  const start = byteCount - FOOTER_END_BYTES;
  const end = await file!.read(start, byteCount);
  const footerBytes = new DataView(end.buffer, end.byteOffset).getUint32(0, true);
  return await file!.read(start - footerBytes, start);
}

/** Yields an Arrow stream for each row group that has rows. */
export async function* arrowStreamsOf(
  source: InputSource,
  batchSize: number,
): AsyncGenerator<AsyncIterable<Uint8Array>> {
  const file = await openFile(source);
  for (const [group, { rowCount }] of rowGroupsOf(file).entries()) {
    if (rowCount > 0) yield arrowOf(source.name, file, group, batchSize);
  }
}

/** A row group as one Arrow stream, joined from the decoder's batches, each of which is a stream with a schema. */
async function* arrowOf(
  name: string,
  file: ParquetFile,
  group: number,
  batchSize: number,
): AsyncGenerator<Uint8Array> {
  const stream = await wrapErrors(name, () => file.stream({ rowGroups: [group], batchSize }));
  const reader = (stream as ReadableStream<RecordBatch>).getReader();
  let isFirst = true;
  while (true) {
    const next = await wrapErrors(name, () => reader.read());
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

/** Adds the file name to errors of the decoder, which throws strings and WebAssembly traps. */
async function wrapErrors<Value>(name: string, read: () => Promise<Value>): Promise<Value> {
  try {
    return await rejectOnTrap(read);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ReadError(`${name}: invalid Parquet: ${reason}`, { cause });
  }
}

/**
 * Also rejects when the decoder traps in one of its own callbacks, as it does for some damaged files: its promise would
 * never settle, and the uncaught exception would end the process without a message.
 */
async function rejectOnTrap<Value>(read: () => Promise<Value>): Promise<Value> {
  let onTrap: (error: unknown) => void = () => {};
  const trapped = new Promise<never>((_, reject) => {
    onTrap = reject;
  });
  const stopWatching = watchTraps(onTrap);
  try {
    return await Promise.race([read(), trapped]);
  } finally {
    stopWatching();
  }
}

/** Calls `onTrap` for uncaught exceptions of WebAssembly, in Node and in browsers. */
function watchTraps(onTrap: (error: unknown) => void): () => void {
  const { process } = globalThis as { readonly process?: ExceptionSource };
  if (process?.on === undefined) {
    const page = globalThis as unknown as ErrorSource;
    const listener = (event: UncaughtError) => {
      if (!isTrap(event.error)) return;
      event.preventDefault();
      onTrap(event.error);
    };
    page.addEventListener('error', listener);
    return () => page.removeEventListener('error', listener);
  }
  const listener = (error: unknown) => {
    if (!isTrap(error)) throw error;
    onTrap(error);
  };
  process.on('uncaughtException', listener);
  return () => process.off('uncaughtException', listener);
}

interface ExceptionSource {
  on(event: 'uncaughtException', listener: (error: unknown) => void): unknown;
  off(event: 'uncaughtException', listener: (error: unknown) => void): unknown;
}

interface UncaughtError {
  readonly error: unknown;
  preventDefault(): void;
}

interface ErrorSource {
  addEventListener(event: 'error', listener: (event: UncaughtError) => void): void;
  removeEventListener(event: 'error', listener: (event: UncaughtError) => void): void;
}

function isTrap(error: unknown): boolean {
  return error instanceof Error && error.name === 'RuntimeError' && /wasm/.test(error.stack ?? '');
}
