// Reads the rows of a file in batches of bounded size. The end of a batch depends only on the file, the plan and its
// first row, so that a continued import produces the same batches again.

import { detectFormat, type InputFormat, openRows } from '../../../../../src/readers/formats.js';
import type { InputSource } from '../../../../../src/readers/input-source.js';
import { ReadError } from '../../../../../src/readers/read-error.js';
import type { BadRow, ReaderOptions } from '../../../../../src/readers/reader-options.js';
import { pickRows, type RowBatch, type RowReader } from '../../../../../src/readers/row-batch.js';
import { openBrowserFile } from './browser-file.js';
import { type ImportPlan, readChoicesOf } from './import-plan.js';

export interface ImportBatch {
  readonly rows: RowBatch;
  readonly badRows: readonly BadRow[];
  /** The share of the file read so far. */
  readonly share: number;
}

export interface ImportBatchOptions {
  readonly plan: ImportPlan;
  readonly dimension: number | undefined;
  readonly startRow: number;
  /** Whether to end with a batch that stops before the first bad row and lists it; `endRow` is that row. */
  readonly stopsAtBadRow: boolean;
}

const BATCH_ROWS_MAX = 10_000;

/** A file with a recognized format. */
export interface OpenFile {
  readonly source: InputSource;
  readonly format: InputFormat;
  openRows(options?: Partial<ReaderOptions>): Promise<RowReader>;
}

/** Throws ReadError for an unsupported file. */
export async function openFile(file: File): Promise<OpenFile> {
  if (file.size === 0) throw new ReadError(`${file.name}: the file is empty`);
  const source = await openBrowserFile(file);
  const found = detectFormat(source);
  if (found === undefined && source.head.includes(0)) {
    throw new ReadError(`${file.name}: found bytes of an unknown format`);
  }
  const format = found ?? 'csv';
  return {
    source,
    format,
    openRows: (options) =>
      openRows(source, format, {
        delimiter: format === 'csv' ? 'detect' : undefined,
        ...options,
        isNanNull: true,
        rowsPerBatch: BATCH_ROWS_MAX,
      }),
  };
}

export async function* importBatches(
  { source, openRows: open }: OpenFile,
  { plan, dimension, startRow, stopsAtBadRow }: ImportBatchOptions,
): AsyncGenerator<ImportBatch> {
  let badRows: BadRow[] = [];
  const reader = await open({
    ...readChoicesOf(plan),
    dimension,
    onBadRow(bad) {
      badRows.push(bad);
      return stopsAtBadRow ? 'stop' : 'skip';
    },
  });
  for await (const rows of reader.batches(startRow)) {
    const found = badRows;
    badRows = [];
    const { rowCount } = reader;
    const share =
      rowCount === undefined ? source.bytesRead() / source.byteCount! : rows.endRow / rowCount;
    yield { rows, badRows: found, share };
  }
}

/** A row that the server rejected, by its index in the batch. */
export interface RejectedRow {
  readonly index: number;
  readonly problem: string;
}

/** The rows from `from` on, without rejected rows, which become bad rows. */
export function withoutRejected(
  { rows, share }: ImportBatch,
  from: number,
  rejected: readonly RejectedRow[],
): ImportBatch {
  const problems = new Map(rejected.map(({ index, problem }) => [index, problem]));
  const kept = Array.from({ length: rows.rowCount }, (_, at) => at).filter(
    (at) => at >= from && !problems.has(at),
  );
  const idOf = (at: number) => (rows.ids?.[at] === undefined ? '' : `${rows.ids[at]}: `);
  return {
    rows: pickRows(rows, kept),
    share,
    badRows: [...problems].map(([at, problem]) => ({
      row: rows.fileRow(at),
      problem: idOf(at) + problem,
    })),
  };
}
