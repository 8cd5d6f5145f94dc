// Writes a table as CSV (RFC 4180): a line with the names of the columns, then a line per row. Text is quoted and
// numbers are not, so that "1" and 1 remain distinct. Lists and documents are JSON in a quoted cell, and nulls are
// empty.

import type { Utf8Column } from '../../common/types.js';
import type { ColumnToWrite } from '../../formats/arrow/ipc-writer.js';
import { JsonWriter } from '../../formats/json/json-writer.js';
import type { Task, WorkerPool } from '../../platform/pool.js';
import { CSV } from '../wire/media-types.js';
import { type CellWriter, estimateBytes, jsonCell } from './row-json.js';
import type { Table, TableField, TableFormat } from './table.js';
import { LINE_BYTES, type LinesInput, TEXT_CHUNK_BYTES, textOfBatches } from './text-batches.js';

const QUOTE = 0x22;
const COMMA = 0x2c;
const LINE_FEED = 0x0a;

export const CSV_TABLE: TableFormat = {
  type: CSV,
  extension: 'csv',
  chunkBytesMax: TEXT_CHUNK_BYTES,
  hasColumns: true,
  hasVectorLists: true,
  write: csvFile,
};

export const writeCsvTask: Task<LinesInput, Uint8Array> = {
  name: 'replies.writeCsv',
  run: linesOf,
  transfer: ({ buffer }) => [buffer as ArrayBuffer],
};

/** The names are sent with the first batch: an earlier error can still become a problem reply. */
async function* csvFile(table: Table, pool: WorkerPool | null): AsyncGenerator<Uint8Array> {
  const head = Buffer.from(`${table.fields.map(({ name }) => nameCell(name)).join(',')}\n`);
  let isBegun = false;
  for await (const lines of textOfBatches(table, writeCsvTask, pool)) {
    if (!isBegun) yield head;
    isBegun = true;
    if (lines.length > 0) yield lines;
  }
  if (!isBegun) yield head;
}

function nameCell(name: string): string {
  return /[",\r\n]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name;
}

function linesOf({ fields, batch: { columns, count } }: LinesInput): Uint8Array {
  const csv = new JsonWriter(estimateBytes(columns, count) + count * LINE_BYTES);
  const cells = fields.map((field, i) => cellOf(field, columns[i]!));
  for (let row = 0; row < count; row++) {
    for (let i = 0; i < cells.length; i++) {
      if (i > 0) csv.byte(COMMA);
      if (cells[i]!.isPresent(row)) cells[i]!.write(csv, row);
    }
    csv.byte(LINE_FEED);
  }
  return csv.written();
}

function cellOf(field: TableField, column: ColumnToWrite): CellWriter {
  const { isPresent, write: writeJson } = jsonCell(field, column);
  const { type } = field;
  const isNumber = typeof type === 'string' && type !== 'utf8' && type !== 'json';
  if (isNumber) return { isPresent, write: writeJson };
  const write = type === 'utf8' ? textWriter(column) : writeJson;
  return {
    isPresent,
    write(csv, row) {
      csv.byte(QUOTE);
      const start = csv.end;
      write(csv, row);
      csv.doubleQuotes(start);
      csv.byte(QUOTE);
    },
  };
}

/** Writes text without the quotes and escapes of JSON. */
function textWriter(column: ColumnToWrite): CellWriter['write'] {
  const { offsets, bytes } = (column as { leaf: Utf8Column }).leaf;
  return (csv, row) => csv.raw(bytes, offsets[row]!, offsets[row + 1]!);
}
