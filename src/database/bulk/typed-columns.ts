// Metadata of the rows of a chunk as typed columns, from the columns of the segment, or from its JSON
// for paths without a column. Paths with values of several types become JSON text as sent.

import { createBitmap, hasBit, setBit } from '../../common/bitmap.js';
import {
  KIND,
  type LeafColumn,
  type ListColumn,
  type MetadataColumn,
  numberAt,
} from '../../common/columns.js';
import type { Utf8Column } from '../../common/types.js';
import { stringAt, utf8ColumnOf } from '../../common/utf8-column.js';
import { EMPTY_COLUMN } from '../../filter/column-plans.js';
import { readMembers } from '../../formats/json/json-scanner.js';
import type { Task } from '../../platform/pool.js';
import { buildColumns, type PathSource } from '../aggregate/path-columns.js';
import type { TypedField } from './typed-fields.js';

/** One column per field, in the order of the fields. */
export type TypedColumns = readonly (LeafColumn | ListColumn)[];

/** Rows of a segment, and the sources of their typed columns. */
export interface TypedInput {
  readonly fields: readonly TypedField[];
  /** The column of each field; null if the field is read from the JSON. */
  readonly columns: readonly (MetadataColumn | null)[];
  /** Null if no field is read from it. */
  readonly json: Utf8Column | null;
  /** Ascending. */
  readonly rows: Int32Array;
}

export function typedInput(
  { columns, isComplete, json }: PathSource,
  fields: readonly TypedField[],
  rows: Int32Array,
): TypedInput {
  const sources = fields.map(({ path, type }) => {
    const column = columns.get(path) ?? (isComplete ? EMPTY_COLUMN : null);
    return type === 'json' && column !== EMPTY_COLUMN ? null : column;
  });
  return { fields, columns: sources, json: sources.includes(null) ? json : null, rows };
}

export const makeTypedColumnsTask: Task<TypedInput, TypedColumns> = {
  name: 'bulk.makeTypedColumns',
  run: makeTypedColumns,
  transfer: (columns) => [...new Set(columns.flatMap(buffersOf))],
};

/** The work for the rows, in cells of a scalar column. */
export function countTypedCells({ fields, json, rows }: TypedInput): number {
  return rows.length * (fields.length + (json === null ? 0 : CELLS_PER_DOCUMENT));
}

/** The work of parsing the JSON of a row, in cells. */
const CELLS_PER_DOCUMENT = 512;

export function makeTypedColumns({ fields, columns, json, rows }: TypedInput): TypedColumns {
  const unread = fields.filter((_, i) => columns[i] === null);
  const textPaths = unread.filter(({ type }) => type === 'json').map(({ path }) => path);
  const paths = unread.filter(({ type }) => type !== 'json').map(({ path }) => path);
  const texts = textPaths.length === 0 ? NO_TEXTS : readTexts(json!, rows, textPaths);
  const built = paths.length === 0 ? NO_COLUMNS : buildColumns(json!, paths, numbered(rows));
  // Columns built from the JSON contain only these rows.
  const builtRows = paths.length === 0 ? rows : rows.map((_, i) => i);
  return fields.map((field, i) => {
    if (field.type === 'json') return ofTexts(texts.get(field.path) ?? new Array(rows.length));
    const column = columns[i]!;
    if (column !== null) return ofColumn(field, column, rows);
    return ofColumn(field, built.get(field.path)!, builtRows);
  });
}

function* numbered(rows: Int32Array): Generator<readonly [row: number, columnRow: number]> {
  for (let i = 0; i < rows.length; i++) yield [rows[i]!, i];
}

/** A value as sent; undefined for none. */
type CellText = string | undefined;

const NO_TEXTS: ReadonlyMap<string, CellText[]> = new Map();
const NO_COLUMNS: ReadonlyMap<string, MetadataColumn> = new Map();

/** The values of the rows, by path. */
function readTexts(
  json: Utf8Column,
  rows: Int32Array,
  paths: readonly string[],
): ReadonlyMap<string, CellText[]> {
  const texts = new Map(paths.map((path) => [path, new Array<CellText>(rows.length)]));
  for (let i = 0; i < rows.length; i++) {
    visitTexts(json, rows[i]!, (path, text) => {
      const cells = texts.get(path);
      if (cells !== undefined) cells[i] = text;
    });
  }
  return texts;
}

/** Calls `visit` for the paths of a row in the order of `flattenMetadata`. The last visit of a path wins. */
function visitTexts(
  json: Utf8Column,
  row: number,
  visit: (path: string, text: string) => void,
): void {
  visitMembers(stringAt(json, row), visit, '');
}

function visitMembers(
  object: string,
  visit: (path: string, text: string) => void,
  prefix: string,
): void {
  // The last of equal names wins, as in JSON.parse.
  const members = new Map(readMembers(object).map(({ name, text }) => [name, text]));
  const names = [...members.keys()];
  if (names.some((name) => name.includes('.'))) names.sort((a, b) => a.length - b.length);
  for (const name of names) {
    const text = members.get(name)!;
    const path = prefix + name;
    if (text.startsWith('{')) visitMembers(text, visit, `${path}.`);
    visit(path, text);
  }
}

function ofColumn(
  { type, isList }: TypedField,
  column: MetadataColumn,
  rows: Int32Array,
): LeafColumn | ListColumn {
  if (!isList) return leafOfColumn(type, column, rows);
  const presence = createBitmap(rows.length);
  const starts = new Int32Array(rows.length + 1);
  const elementRows: number[] = [];
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i]!;
    if (column.kinds[row] === KIND.array) {
      setBit(presence, i);
      const { offsets } = column.items!;
      for (let at = offsets[row]!; at < offsets[row + 1]!; at++) elementRows.push(at);
    }
    starts[i + 1] = elementRows.length;
  }
  const elements = column.items?.elements ?? EMPTY_COLUMN;
  return { starts, presence, items: leafOfColumn(type, elements, Int32Array.from(elementRows)) };
}

function leafOfColumn(
  type: TypedField['type'],
  column: MetadataColumn,
  rows: Int32Array,
): LeafColumn {
  const { kinds } = column;
  const presence = createBitmap(rows.length);
  for (let i = 0; i < rows.length; i++) {
    // Columns end with their last row that has a value.
    if ((kinds[rows[i]!] ?? KIND.missing) > KIND.null) setBit(presence, i);
  }
  if (type === 'text') return { leaf: stringsOf(column, rows), presence };
  if (type === 'boolean') {
    const leaf = createBitmap(rows.length);
    for (let i = 0; i < rows.length; i++) if (kinds[rows[i]!] === KIND.true) setBit(leaf, i);
    return { leaf, presence };
  }
  const leaf = type === 'int64' ? new BigInt64Array(rows.length) : new Float64Array(rows.length);
  for (let i = 0; i < rows.length; i++) {
    if (!hasBit(presence, i)) continue;
    const value = numberAt(column, rows[i]!);
    leaf[i] = type === 'int64' ? BigInt(value) : Number(value);
  }
  return { leaf, presence };
}

/** The strings of the rows; empty for other values. */
function stringsOf({ kinds, codes, dictionary }: MetadataColumn, rows: Int32Array): Utf8Column {
  const offsets = new Int32Array(rows.length + 1);
  for (let i = 0; i < rows.length; i++) {
    const code = kinds[rows[i]!] === KIND.string ? codes![rows[i]!]! : -1;
    const byteCount = code < 0 ? 0 : dictionary!.offsets[code + 1]! - dictionary!.offsets[code]!;
    offsets[i + 1] = offsets[i]! + byteCount;
  }
  const bytes = new Uint8Array(offsets[rows.length]!);
  for (let i = 0; i < rows.length; i++) {
    if (offsets[i] === offsets[i + 1]) continue;
    const code = codes![rows[i]!]!;
    const { offsets: starts, bytes: source } = dictionary!;
    bytes.set(source.subarray(starts[code]!, starts[code + 1]!), offsets[i]);
  }
  return { offsets, bytes };
}

function ofTexts(texts: readonly CellText[]): LeafColumn {
  const presence = createBitmap(texts.length);
  const cells = Array.from(texts, (text = 'null') => (text === 'null' ? '' : text));
  for (let i = 0; i < cells.length; i++) if (cells[i] !== '') setBit(presence, i);
  return { leaf: utf8ColumnOf(cells), presence };
}

function buffersOf(column: LeafColumn | ListColumn): ArrayBuffer[] {
  const views = 'leaf' in column ? arraysOf(column) : [column.starts, ...arraysOf(column.items)];
  // Node keeps short texts in shared buffers, which cannot be transferred.
  return views.flatMap(({ buffer, byteLength }) =>
    buffer instanceof ArrayBuffer && buffer.byteLength === byteLength ? [buffer] : [],
  );
}

/** The arrays to transfer; bitmaps are in shared memory. */
function arraysOf({ leaf }: LeafColumn): readonly ArrayBufferView[] {
  if ('words' in leaf) return [];
  return 'offsets' in leaf ? [leaf.offsets, leaf.bytes] : [leaf];
}
