// Writes the rows of a batch as JSON with a member per field, nested in objects as its path says. Nulls are
// omitted, and so is a nested object all of whose lists are empty. Runs on any thread.

import { type Bitmap, hasBit } from '../../common/bitmap.js';
import type { LeafColumn } from '../../common/columns.js';
import type { ColumnToWrite, FieldToWrite } from '../../formats/arrow/ipc-writer.js';
import type { JsonWriter } from '../../formats/json/json-writer.js';
import { columnBytes, type TableField } from './table.js';

/** Writes a row: a value, or members without braces. */
export type WriteRow = (json: JsonWriter, row: number) => void;

/** Writes the values of a column. Values that are not present are null and must not be written. */
export interface CellWriter {
  readonly isPresent: (row: number) => boolean;
  readonly write: WriteRow;
}

interface Member extends CellWriter {
  /** The name and the colon. */
  readonly head: Buffer;
}

const COMMA = 0x2c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

export function rowWriter(
  fields: readonly TableField[],
  columns: readonly ColumnToWrite[],
): WriteRow {
  return writerOf(membersOf(fields, columns, 0));
}

/** The approximate size of the rows, without the names of their members. */
export function estimateBytes(columns: readonly ColumnToWrite[], count: number): number {
  return columns.reduce(
    (sum, column) => sum + columnBytes(column, count) * charactersPerByte(column),
    0,
  );
}

/** A number of an embedding takes 10 to 11 characters. */
const charactersPerByte = (column: ColumnToWrite) =>
  'leaf' in column && 'offsets' in column.leaf ? 1 : 3;

function writerOf(members: readonly Member[]): WriteRow {
  return (json, row) => {
    let isFirst = true;
    for (const { head, isPresent, write } of members) {
      if (!isPresent(row)) continue;
      if (!isFirst) json.byte(COMMA);
      isFirst = false;
      json.raw(head, 0, head.length);
      write(json, row);
    }
  };
}

/** The members at a depth: consecutive fields with the same name there form an object. */
function membersOf(
  fields: readonly TableField[],
  columns: readonly ColumnToWrite[],
  depth: number,
): Member[] {
  const members: Member[] = [];
  for (let from = 0; from < fields.length; ) {
    const path = pathOf(fields[from]!);
    const name = path[depth]!;
    let to = from + 1;
    if (path.length === depth + 1) {
      members.push({ head: headOf(name), ...jsonCell(fields[from]!, columns[from]!) });
    } else {
      while (to < fields.length && pathOf(fields[to]!)[depth] === name) to++;
      const inner = columns.slice(from, to);
      const write = writerOf(membersOf(fields.slice(from, to), inner, depth + 1));
      members.push({
        head: headOf(name),
        isPresent:
          depth === 0 ? () => true : (row) => inner.some((column) => hasItems(column, row)),
        write(json, row) {
          json.byte(OPEN_BRACE);
          write(json, row);
          json.byte(CLOSE_BRACE);
        },
      });
    }
    from = to;
  }
  return members;
}

const pathOf = ({ name, path = [name] }: TableField) => path;
const headOf = (name: string) => Buffer.from(`${JSON.stringify(name)}:`);

function hasItems(column: ColumnToWrite, row: number): boolean {
  return !('starts' in column) || column.starts[row + 1]! > column.starts[row]!;
}

export function jsonCell({ type }: FieldToWrite, column: ColumnToWrite): CellWriter {
  if ('multi' in column) return multiCell(column.multi);
  if ('elements' in column) return { isPresent: always, write: listWriter(column) };
  if ('vectors' in column) {
    const { vectors, presence } = column;
    const { vectorOf: dimension } = type as { vectorOf: number };
    return {
      isPresent: presenceOf(presence),
      write: (json, row) => json.vector(vectors, row * dimension, (row + 1) * dimension),
    };
  }
  if ('items' in column) {
    const write = leafWriter(column.items, isJson(type));
    const isPresent = presenceOf(column.items.presence);
    return {
      isPresent: presenceOf(column.presence),
      write(json, row) {
        json.byte(OPEN_BRACKET);
        for (let item = column.starts[row]!; item < column.starts[row + 1]!; item++) {
          if (item > column.starts[row]!) json.byte(COMMA);
          if (isPresent(item)) write(json, item);
          else json.ascii('null');
        }
        json.byte(CLOSE_BRACKET);
      },
    };
  }
  return { isPresent: presenceOf(column.presence), write: leafWriter(column, isJson(type)) };
}

const always = () => true;

const presenceOf = (presence: Bitmap | null | undefined) =>
  presence == null ? always : (row: number) => hasBit(presence, row);

function isJson(type: FieldToWrite['type']): boolean {
  return (
    type === 'json' ||
    (typeof type === 'object' && 'listOfNullable' in type && type.listOfNullable === 'json')
  );
}

function leafWriter({ leaf }: LeafColumn, isDocument: boolean): WriteRow {
  if ('words' in leaf) return (json, row) => json.ascii(hasBit(leaf, row) ? 'true' : 'false');
  if ('offsets' in leaf) {
    return isDocument
      ? (json, row) => json.document(leaf, row)
      : (json, row) => json.text(leaf, row);
  }
  if (leaf instanceof Float32Array) return (json, row) => json.float(leaf[row]!);
  if (leaf instanceof Int32Array) return (json, row) => json.integer(leaf[row]!);
  // String() loses the sign of zero.
  return (json, row) => json.ascii(Object.is(leaf[row], -0) ? '-0' : String(leaf[row]!));
}

function listWriter({
  starts,
  elements,
}: Extract<ColumnToWrite, { readonly elements: unknown }>): WriteRow {
  return (json, row) => {
    const [start, end] = [starts[row]!, starts[row + 1]!];
    if (elements instanceof Float32Array) json.vector(elements, start, end);
    else json.ascii(`[${elements.subarray(start, end).join()}]`);
  };
}

function multiCell({
  dimension,
  starts,
  values,
}: Extract<ColumnToWrite, { readonly multi: unknown }>['multi']): CellWriter {
  return {
    isPresent: (row) => starts[row + 1]! > starts[row]!,
    write(json, row) {
      json.byte(OPEN_BRACKET);
      for (let i = starts[row]!; i < starts[row + 1]!; i++) {
        if (i > starts[row]!) json.byte(COMMA);
        json.vector(values, i * dimension, (i + 1) * dimension);
      }
      json.byte(CLOSE_BRACKET);
    },
  };
}
