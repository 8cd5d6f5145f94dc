// Rows of CSV (RFC 4180) with a header line; the delimiter is a comma, semicolon or tab, whichever the
// header has most of. Reads text in pieces and keeps no more than one record of it.

import { type SliceableFile, textsOf } from './file-bytes.js';
import {
  BLOCK_ROWS,
  ImportError,
  type RowSource,
  type SourceRow,
  TEXT_EXCERPT_MAX,
} from './row-source.js';

interface CsvRecord {
  readonly cells: readonly string[];
  /** Indexes of the cells in quotes. */
  readonly quoted: ReadonlySet<number>;
}

const DELIMITERS = [',', '\t', ';'] as const;
/** A quoted cell that never ends would otherwise collect the rest of the file. */
const CELL_CHARACTERS_MAX = 16_000_000;

/** Throws ImportError without a header, or when it names a column twice. */
export async function openCsv(file: SliceableFile): Promise<RowSource> {
  let position = 0;
  const open = () =>
    recordsOf(
      textsOf(file, (at) => {
        position = at;
      }),
    );
  const first = await open().next();
  if (first.done) throw new ImportError('the file is empty; expected a header line');
  const columns = first.value.cells.map((name) => name.trim());
  const twice = columns.find((name, at) => columns.indexOf(name) !== at);
  if (twice !== undefined) throw new ImportError(`the header names the column ${twice} twice`);
  return {
    title: 'CSV',
    rowCount: undefined,
    isText: true,
    columns,
    rows: (startRow) => blocksOf(open(), columns, startRow),
    share: () => (file.size === 0 ? 1 : position / file.size),
  };
}

async function* blocksOf(
  records: AsyncGenerator<CsvRecord>,
  columns: readonly string[],
  startRow: number,
): AsyncGenerator<readonly SourceRow[]> {
  let block: SourceRow[] = [];
  // The header is record -1.
  let row = -1;
  for await (const record of records) {
    if (row++ < startRow) continue;
    block.push(rowOf(record, columns));
    if (block.length < BLOCK_ROWS) continue;
    yield block;
    block = [];
  }
  if (block.length > 0) yield block;
}

function rowOf({ cells, quoted }: CsvRecord, columns: readonly string[]): SourceRow {
  if (cells.length !== columns.length) {
    const problem = `found ${cells.length} cells, expected ${columns.length} as in the header`;
    return { kind: 'broken', problem, text: cells.join(',').slice(0, TEXT_EXCERPT_MAX) };
  }
  return {
    kind: 'row',
    cells: Object.fromEntries(columns.map((name, at) => [name, cells[at]])),
    quoted: new Set([...quoted].map((at) => columns[at]!)),
  };
}

/** Records that are not blank lines. */
async function* recordsOf(texts: AsyncIterable<string>): AsyncGenerator<CsvRecord> {
  const cutter = new RecordCutter();
  for await (const text of texts) yield* cutter.add(text);
  yield* cutter.end();
}

/** Cuts text into records; a record may begin in one piece of text and end in another. */
class RecordCutter {
  #delimiter: string | undefined;
  /** Text that was not cut yet. */
  #rest = '';

  /** The records that are complete. */
  *add(text: string): Generator<CsvRecord> {
    this.#rest += text;
    yield* this.#cut(false);
    if (this.#rest.length > CELL_CHARACTERS_MAX) {
      throw new ImportError('found a record of more than 16 MB; a quote may be missing');
    }
  }

  *end(): Generator<CsvRecord> {
    yield* this.#cut(true);
  }

  *#cut(isEnd: boolean): Generator<CsvRecord> {
    let start = 0;
    while (start < this.#rest.length) {
      const end = endOfRecord(this.#rest, start);
      if (end === -1 && !isEnd) break;
      const text = this.#rest.slice(start, end === -1 ? undefined : end).replace(/\r$/, '');
      start = end === -1 ? this.#rest.length : end + 1;
      if (text.trim() === '') continue;
      this.#delimiter ??= delimiterOf(text);
      yield cellsOf(text, this.#delimiter);
    }
    this.#rest = this.#rest.slice(start);
  }
}

/** The index of the newline that ends the record, which is not in quotes; -1 if it is not there yet. */
function endOfRecord(text: string, start: number): number {
  let at = start;
  while (true) {
    const newline = text.indexOf('\n', at);
    const quote = text.indexOf('"', at);
    if (quote === -1 || (newline !== -1 && newline < quote)) return newline;
    const closing = text.indexOf('"', quote + 1);
    // A doubled quote is the end of one quoted part and the beginning of the next.
    if (closing === -1) return -1;
    at = closing + 1;
  }
}

function delimiterOf(header: string): string {
  const counts = DELIMITERS.map((delimiter) => header.split(delimiter).length);
  return DELIMITERS[counts.indexOf(Math.max(...counts))]!;
}

function cellsOf(text: string, delimiter: string): CsvRecord {
  const cells: string[] = [];
  const quoted = new Set<number>();
  let at = 0;
  while (at <= text.length) {
    if (text[at] === '"') {
      const end = endOfQuoted(text, at);
      quoted.add(cells.length);
      cells.push(text.slice(at + 1, end).replaceAll('""', '"'));
      const next = text.indexOf(delimiter, end);
      at = next === -1 ? text.length + 1 : next + 1;
    } else {
      const next = text.indexOf(delimiter, at);
      cells.push(text.slice(at, next === -1 ? undefined : next));
      at = next === -1 ? text.length + 1 : next + 1;
    }
  }
  return { cells, quoted };
}

/** The index of the quote that ends the cell whose quote is at `start`. */
function endOfQuoted(text: string, start: number): number {
  let at = start + 1;
  while (true) {
    const quote = text.indexOf('"', at);
    if (quote === -1) return text.length;
    if (text[quote + 1] !== '"') return quote;
    at = quote + 2;
  }
}
