// Metadata of the rows of a chunk as typed columns, from the columns that segments have for filters, and
// from the JSON where these lack a path or round its values.

import { createBitmap, hasBit, setBit } from '../../common/bitmap.js';
import {
  KIND,
  type LeafColumn,
  type ListColumn,
  type MetadataColumn,
} from '../../common/columns.js';
import type { Utf8Column } from '../../common/types.js';
import { utf8ColumnOf } from '../../common/utf8-column.js';
import { EMPTY_COLUMN } from '../../filter/column-test.js';
import { readElements } from '../../formats/json/json-scanner.js';
import type { Task } from '../../platform/pool.js';
import type { PathSource } from '../aggregate/path-columns.js';
import { visitTexts } from './metadata-texts.js';
import type { TypedField } from './typed-fields.js';

/** In the order of the fields. */
export type TypedColumns = readonly (LeafColumn | ListColumn)[];

/** Rows of a segment, and what their columns are made from. */
export interface TypedInput {
  readonly fields: readonly TypedField[];
  /** Of each field; null where it is read from the JSON. */
  readonly columns: readonly (MetadataColumn | null)[];
  /** Null when no field is read from it. */
  readonly json: Utf8Column | null;
  /** Ascending. */
  readonly rows: Int32Array;
}

export function typedInput(
  { columns, isComplete, json }: PathSource,
  fields: readonly TypedField[],
  rows: Int32Array,
): TypedInput {
  const sources = fields.map(({ path, isFromText }) => {
    const column = columns.get(path) ?? (isComplete ? EMPTY_COLUMN : null);
    return isFromText && column !== EMPTY_COLUMN ? null : column;
  });
  return { fields, columns: sources, json: sources.includes(null) ? json : null, rows };
}

export const makeTypedColumnsTask: Task<TypedInput, TypedColumns> = {
  name: 'bulk.makeTypedColumns',
  run: makeTypedColumns,
  transfer: (columns) => [...new Set(columns.flatMap(buffersOf))],
};

/** The work for these rows, in cells of a scalar column. */
export function countTypedCells({ fields, json, rows }: TypedInput): number {
  return rows.length * (fields.length + (json === null ? 0 : CELLS_PER_DOCUMENT));
}

/** Of a row whose JSON is walked over. */
const CELLS_PER_DOCUMENT = 512;

export function makeTypedColumns({ fields, columns, json, rows }: TypedInput): TypedColumns {
  const fromText = fields.filter((_, i) => columns[i] === null).map(({ path }) => path);
  const texts = json === null ? new Map() : readTexts(json, rows, fromText);
  return fields.map((field, i) => {
    const column = columns[i];
    if (column === null) return ofTexts(field, texts.get(field.path)!);
    return ofColumn(field, column!, rows);
  });
}

/** A value as it was sent; undefined where there is none. */
type CellText = string | undefined;

/** By path, the value of each row. */
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
  const { kinds, numbers } = column;
  const presence = createBitmap(rows.length);
  for (let i = 0; i < rows.length; i++) {
    // Beyond the last row with a value there are no kinds.
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
    const value = numbers![rows[i]!]!;
    leaf[i] = type === 'int64' ? BigInt(value) : value;
  }
  return { leaf, presence };
}

/** Empty where the value is no string. */
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

function ofTexts({ type, isList }: TypedField, texts: readonly CellText[]) {
  if (!isList) return leafOfTexts(type, texts);
  const presence = createBitmap(texts.length);
  const starts = new Int32Array(texts.length + 1);
  const elements: string[] = [];
  for (let i = 0; i < texts.length; i++) {
    const text = texts[i];
    if (hasValue(text)) {
      setBit(presence, i);
      for (const element of readElements(text)) elements.push(element);
    }
    starts[i + 1] = elements.length;
  }
  return { starts, presence, items: leafOfTexts(type, elements) };
}

function leafOfTexts(type: TypedField['type'], texts: readonly CellText[]): LeafColumn {
  const presence = createBitmap(texts.length);
  for (let i = 0; i < texts.length; i++) if (hasValue(texts[i])) setBit(presence, i);
  const cells = Array.from(texts, (text) => (hasValue(text) ? text : null));
  switch (type) {
    case 'json':
      return { leaf: utf8ColumnOf(cells.map((text) => text ?? '')), presence };
    case 'text':
      return {
        leaf: utf8ColumnOf(cells.map((text) => (text === null ? '' : JSON.parse(text)))),
        presence,
      };
    case 'boolean': {
      const leaf = createBitmap(texts.length);
      for (const [i, text] of cells.entries()) if (text === 'true') setBit(leaf, i);
      return { leaf, presence };
    }
    case 'int64':
      return { leaf: BigInt64Array.from(cells, toInt64), presence };
    case 'float64':
      return { leaf: Float64Array.from(cells, Number), presence };
  }
}

function hasValue(text: CellText): text is string {
  return text !== undefined && text !== 'null';
}

/** @param text an integer of 64 bits, or a number such as `1e3` that float64 has exactly. */
function toInt64(text: string | null): bigint {
  if (text === null) return 0n;
  return /^-?\d+$/.test(text) ? BigInt(text) : BigInt(Number(text));
}

function buffersOf(column: LeafColumn | ListColumn): ArrayBuffer[] {
  const views = 'leaf' in column ? arraysOf(column) : [column.starts, ...arraysOf(column.items)];
  // Short texts are in a buffer that Node shares among many.
  return views.flatMap(({ buffer, byteLength }) =>
    buffer instanceof ArrayBuffer && buffer.byteLength === byteLength ? [buffer] : [],
  );
}

/** Bitmaps are in shared memory. */
function arraysOf({ leaf }: LeafColumn): readonly ArrayBufferView[] {
  if ('words' in leaf) return [];
  return 'offsets' in leaf ? [leaf.offsets, leaf.bytes] : [leaf];
}
