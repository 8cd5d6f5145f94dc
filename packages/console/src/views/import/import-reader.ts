// The reader that runs in the worker: reads the file in batches and encodes them. A batch is kept until the next one is
// requested, because the server may reject some of its rows.

import { joinBytes } from '../../../../../src/common/bytes.js';
import { stringifyExactJson } from '../../../../../src/common/exact-json.js';
import { encodeEnd } from '../../../../../src/formats/arrow/ipc-writer.js';
import { encodeRows, encodeRowsSchema } from '../../../../../src/readers/encode-rows.js';
import { INPUT_FORMATS } from '../../../../../src/readers/formats.js';
import { ReadError } from '../../../../../src/readers/read-error.js';
import type { BadRow } from '../../../../../src/readers/reader-options.js';
import type { RowBatch } from '../../../../../src/readers/row-batch.js';
import {
  type ImportBatch,
  type ImportBatchOptions,
  importBatches,
  type OpenFile,
  openFile,
  type RejectedRow,
  withoutRejected,
} from './import-batches.js';
import { type ImportPlan, proposePlan, type VectorChoice, vectorChoicesOf } from './import-plan.js';

export interface FilePreview {
  readonly format: string;
  readonly rowCount: number | undefined;
  readonly columns: readonly string[];
  /** Formatted cells; unreadable rows are left out. */
  readonly rows: readonly (readonly string[])[];
  readonly vectorChoices: readonly VectorChoice[];
  readonly plan: ImportPlan | undefined;
}

/** A batch to send. */
export interface EncodedImportBatch {
  /** An Arrow stream; empty if the batch has no rows. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly rowCount: number;
  /** The index of the row that follows the batch in the file. */
  readonly endRow: number;
  readonly badRows: readonly BadRow[];
  /** The share of the file read so far. */
  readonly share: number;
}

export interface ImportReader {
  /** Throws ReadError if the file cannot be read. */
  open(file: File): Promise<FilePreview>;
  start(options: ImportBatchOptions): Promise<void>;
  /** Undefined after the last batch. */
  next(): Promise<EncodedImportBatch | undefined>;
  /** The latest batch without its first `from` rows, which have been written, and without the rejected rows. */
  rest(from: number, rejected: readonly RejectedRow[]): Promise<EncodedImportBatch>;
}

const SAMPLE_ROWS = 100;
const SHOWN_ROWS = 8;
const SHOWN_CHARACTERS = 200;

export function createImportReader(): ImportReader {
  let file: OpenFile | undefined;
  let batches: AsyncGenerator<ImportBatch> | undefined;
  /** The next batch, which is read while the latest one is being sent. */
  let following: Promise<IteratorResult<ImportBatch>> | undefined;
  let latest: ImportBatch | undefined;
  let hasIds = false;
  const encode = (batch: ImportBatch): EncodedImportBatch => {
    latest = batch;
    const { rows, badRows, share } = batch;
    const { rowCount, endRow } = rows;
    const bytes = rowCount === 0 ? new Uint8Array(0) : encodeStream(rows, hasIds);
    return { bytes, rowCount, endRow, badRows, share };
  };
  const read = () => {
    following = batches!.next();
    // The call that needs the batch throws the error.
    following.catch(() => {});
  };
  return {
    async open(chosen) {
      file = await openFile(chosen);
      return await previewOf(file);
    },
    async start(options) {
      hasIds = options.plan.idColumn !== undefined;
      batches = importBatches(file!, options);
      read();
    },
    async next() {
      const next = await following!;
      if (next.done) return undefined;
      const encoded = encode(next.value);
      read();
      return encoded;
    },
    rest: async (from, rejected) => encode(withoutRejected(latest!, from, rejected)),
  };
}

async function previewOf({ source, format, openRows }: OpenFile): Promise<FilePreview> {
  const reader = await openRows({ onBadRow: () => 'skip' });
  const sample = await reader.sample(SAMPLE_ROWS);
  const { columns, rows } = sample;
  if (rows.length === 0) throw new ReadError(`${source.name}: the file has no rows`);
  return {
    format: INPUT_FORMATS[format].title,
    rowCount: reader.rowCount,
    columns,
    rows: rows.slice(0, SHOWN_ROWS).map((row) => columns.map((column) => shown(row[column]))),
    vectorChoices: vectorChoicesOf(sample),
    plan: proposePlan(sample),
  };
}

function shown(cell: unknown): string {
  if (cell === undefined) return '';
  if (typeof cell === 'string') return cell.slice(0, SHOWN_CHARACTERS);
  const value = cell instanceof Float32Array ? [...cell] : cell;
  return stringifyExactJson(value).slice(0, SHOWN_CHARACTERS);
}

function encodeStream(rows: RowBatch, hasIds: boolean): Uint8Array<ArrayBuffer> {
  const ids = hasIds ? (rows.ids as readonly string[] | undefined) : undefined;
  const parts = [encodeRowsSchema(rows, ids !== undefined), ...encodeRows(rows, ids), encodeEnd()];
  return joinBytes(parts) as Uint8Array<ArrayBuffer>;
}
