// What the worker does: reads the file, cuts it into batches and encodes them. A batch is kept until the
// next one is asked for, since the server may reject some of its rows.

import { describe } from './cell-values.js';
import { encodeBatch } from './encode-batch.js';
import {
  type BadRow,
  type BatchOptions,
  batchesOf,
  type RejectedRow,
  type RowBatch,
  withoutRejected,
} from './import-batches.js';
import type { VectorChoice } from './import-plan.js';
import { columnsOf, type ImportPlan, proposePlan, vectorChoicesOf } from './import-plan.js';
import type { SliceableFile } from './read/file-bytes.js';
import { openRows } from './read/open-rows.js';
import { ImportError, type ReadRow, type RowSource } from './read/row-source.js';

export interface FilePreview {
  readonly format: string;
  readonly rowCount: number | undefined;
  readonly columns: readonly string[];
  /** Cells as they are shown; rows that cannot be read are left out. */
  readonly rows: readonly (readonly string[])[];
  readonly vectorChoices: readonly VectorChoice[];
  readonly plan: ImportPlan | undefined;
}

/** A batch as it is sent. */
export interface EncodedBatch {
  /** An Arrow stream; empty without rows. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly rowCount: number;
  readonly endRow: number;
  readonly badRows: readonly BadRow[];
  /** The share of the file that was read. */
  readonly share: number;
}

export interface ImportReader {
  /** Throws ImportError when the file cannot be read. */
  open(file: SliceableFile): Promise<FilePreview>;
  start(options: BatchOptions): Promise<void>;
  /** Undefined after the last batch. */
  next(): Promise<EncodedBatch | undefined>;
  /** The rest of the latest batch, without its first rows, which are written, and the rejected ones. */
  again(from: number, rejected: readonly RejectedRow[]): Promise<EncodedBatch>;
}

const SAMPLE_ROWS = 100;
const SHOWN_ROWS = 8;

export function createImportReader(): ImportReader {
  let source: RowSource | undefined;
  let batches: AsyncGenerator<RowBatch> | undefined;
  /** The batch after the latest one, which is read while that is sent. */
  let following: Promise<IteratorResult<RowBatch>> | undefined;
  let latest: RowBatch | undefined;
  let dimension = 0;
  const encode = async (batch: RowBatch): Promise<EncodedBatch> => {
    latest = batch;
    const { rows, endRow, badRows, share } = batch;
    const bytes = rows.length === 0 ? new Uint8Array(0) : await encodeBatch(rows, dimension);
    return { bytes, rowCount: rows.length, endRow, badRows, share };
  };
  const read = () => {
    following = batches!.next();
    // A failure is thrown by the call that needs the batch.
    following.catch(() => {});
  };
  return {
    async open(file) {
      source = await openRows(file);
      return previewOf(source);
    },
    async start(options) {
      dimension = options.dimension;
      batches = batchesOf(source!, options);
      read();
    },
    async next() {
      const next = await following!;
      if (next.done) return undefined;
      const encoded = await encode(next.value);
      read();
      return encoded;
    },
    again: (from, rejected) => encode(withoutRejected(latest!, from, rejected)),
  };
}

async function previewOf(source: RowSource): Promise<FilePreview> {
  const sample: ReadRow[] = [];
  let problem: string | undefined;
  for await (const block of source.rows(0)) {
    for (const row of block) {
      if (row.kind === 'row') sample.push(row);
      else problem ??= row.problem;
      if (sample.length === SAMPLE_ROWS) break;
    }
    if (sample.length > 0) break;
  }
  if (sample.length === 0) {
    throw new ImportError(problem === undefined ? 'the file has no rows' : `row 1: ${problem}`);
  }
  const columns = source.columns ?? columnsOf(sample);
  return {
    format: source.title,
    rowCount: source.rowCount,
    columns,
    rows: sample
      .slice(0, SHOWN_ROWS)
      .map(({ cells }) => columns.map((column) => shown(cells[column]))),
    vectorChoices: vectorChoicesOf(columns, sample),
    plan: proposePlan(columns, sample),
  };
}

function shown(cell: unknown): string {
  if (cell === undefined) return '';
  return typeof cell === 'string' ? cell.slice(0, 200) : describe(cell);
}
