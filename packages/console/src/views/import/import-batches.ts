// Cuts the rows of a file into batches of bounded size. Where a batch ends depends only on the file, the
// plan and the row that it begins with, so that an import that goes on makes the same batches again.

import { stringifyExactJson } from '../../../../../src/common/exact-json.js';
import { describe } from './cell-values.js';
import { type ConvertedRow, convertRow } from './convert-row.js';
import type { ImportPlan } from './import-plan.js';
import type { RowSource, SourceRow } from './read/row-source.js';

/** A row that was not imported, and why. */
export interface BadRow {
  /** From 1, as people count. */
  readonly row: number;
  readonly column: string | undefined;
  readonly problem: string;
  /** The beginning of the value that is wrong. */
  readonly value: string;
}

export interface RowBatch {
  readonly rows: readonly ConvertedRow[];
  /** The number of each row in the file, from 0. */
  readonly rowNumbers: readonly number[];
  /** The row that follows the batch, from 0. */
  readonly endRow: number;
  readonly badRows: readonly BadRow[];
  /** The share of the file that was read by then. */
  readonly share: number;
}

export interface BatchOptions {
  readonly plan: ImportPlan;
  readonly dimension: number;
  readonly startRow: number;
  /** Ends with the batch that has the first bad row; its `endRow` is that row. */
  readonly stopsAtBadRow: boolean;
}

const BATCH_BYTES = 8_000_000;
const BATCH_ROWS_MAX = 10_000;
/** Bad rows also end a batch, so that a file of nothing else does not collect them all. */
const BAD_ROWS_MAX = 1_000;

export async function* batchesOf(
  source: RowSource,
  options: BatchOptions,
): AsyncGenerator<RowBatch> {
  let batch = emptyBatch();
  let row = options.startRow;
  for await (const block of source.rows(options.startRow)) {
    for (const found of block) {
      const bad = addRow(batch, found, row, source, options);
      if (bad && options.stopsAtBadRow) {
        yield { ...batch, endRow: row, share: source.share() };
        return;
      }
      row++;
      if (!isFull(batch)) continue;
      yield { ...batch, endRow: row, share: source.share() };
      batch = emptyBatch();
    }
  }
  if (batch.rows.length > 0 || batch.badRows.length > 0)
    yield { ...batch, endRow: row, share: source.share() };
}

interface OpenBatch {
  readonly rows: ConvertedRow[];
  readonly rowNumbers: number[];
  readonly badRows: BadRow[];
  byteCount: number;
}

function emptyBatch(): OpenBatch {
  return { rows: [], rowNumbers: [], badRows: [], byteCount: 0 };
}

function isFull({ rows, badRows, byteCount }: OpenBatch): boolean {
  return (
    byteCount >= BATCH_BYTES || rows.length >= BATCH_ROWS_MAX || badRows.length >= BAD_ROWS_MAX
  );
}

/** Returns whether the row is bad. */
function addRow(
  batch: OpenBatch,
  found: SourceRow,
  row: number,
  { isText }: RowSource,
  { plan, dimension }: BatchOptions,
): boolean {
  if (found.kind === 'broken') {
    const { problem, text } = found;
    batch.badRows.push({ row: row + 1, column: undefined, problem, value: text });
    return true;
  }
  const converted = convertRow(found, plan, { dimension, isText });
  if ('problem' in converted) {
    const value = describe(found.cells[converted.column]);
    batch.badRows.push({ row: row + 1, ...converted, value });
    return true;
  }
  batch.rows.push(converted);
  batch.rowNumbers.push(row);
  batch.byteCount += 4 * dimension + stringifyExactJson(converted.metadata).length;
  return false;
}

/** What the server said about rows of a batch, by their index in it. */
export interface RejectedRow {
  readonly index: number;
  readonly problem: string;
}

/** The rows from `from` on without those that the server rejected, which become bad rows. */
export function withoutRejected(
  batch: RowBatch,
  from: number,
  rejected: readonly RejectedRow[],
): RowBatch {
  const problems = new Map(rejected.map(({ index, problem }) => [index, problem]));
  const kept = batch.rows.map((_, at) => at).filter((at) => at >= from && !problems.has(at));
  return {
    rows: kept.map((at) => batch.rows[at]!),
    rowNumbers: kept.map((at) => batch.rowNumbers[at]!),
    endRow: batch.endRow,
    share: batch.share,
    badRows: [...problems].map(([at, problem]) => ({
      row: batch.rowNumbers[at]! + 1,
      column: undefined,
      problem,
      value: describe(batch.rows[at]!.id ?? batch.rows[at]!.metadata),
    })),
  };
}
