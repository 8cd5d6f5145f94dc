// Parses schemas into plain data, which can be sent to another thread. Every Arrow type is known, so that columns
// after one of an unused type can still be located.

import { invalidArrow } from './arrow-errors.js';
import type { FlatTable } from './flat-table.js';

export type TimeUnit = 'second' | 'millisecond' | 'microsecond' | 'nanosecond';

export interface IntType {
  readonly kind: 'int';
  readonly bitWidth: 8 | 16 | 32 | 64;
  readonly isSigned: boolean;
}

export interface FloatType {
  readonly kind: 'float';
  readonly bitWidth: 16 | 32 | 64;
}

export type ArrowType =
  | IntType
  | FloatType
  | { readonly kind: 'decimal'; readonly scale: number; readonly bitWidth: 32 | 64 | 128 | 256 }
  | { readonly kind: 'date'; readonly unit: 'day' | 'millisecond' }
  | { readonly kind: 'time'; readonly unit: TimeUnit; readonly bitWidth: 32 | 64 }
  | { readonly kind: 'timestamp'; readonly unit: TimeUnit; readonly hasZone: boolean }
  | { readonly kind: 'duration'; readonly unit: TimeUnit }
  | { readonly kind: 'interval'; readonly byteWidth: 4 | 8 | 16 }
  | { readonly kind: 'fixed_size_binary'; readonly byteWidth: number }
  | { readonly kind: 'fixed_size_list'; readonly listSize: number }
  | { readonly kind: 'union'; readonly isDense: boolean }
  | { readonly kind: 'null' | 'bool' | 'utf8' | 'large_utf8' | 'utf8_view' }
  | { readonly kind: 'binary' | 'large_binary' | 'binary_view' }
  | { readonly kind: 'list' | 'large_list' | 'list_view' | 'large_list_view' }
  | { readonly kind: 'struct' | 'map' | 'run_end_encoded' };

type TypeKind = ArrowType['kind'];

export interface ArrowField {
  readonly name: string;
  /** The type of the values, even if they are in a dictionary. */
  readonly type: ArrowType;
  readonly children: readonly ArrowField[];
  readonly dictionary: { readonly id: number; readonly indexType: IntType } | null;
  /** The name of the extension type, which is stored as `type`. */
  readonly extension: string | null;
}

export interface ArrowSchema {
  readonly fields: readonly ArrowField[];
  readonly metadata: ReadonlyMap<string, string>;
  /** Key-value metadata of each top-level field. Children keep only their extension. */
  readonly fieldMetadata: readonly ReadonlyMap<string, string>[];
}

/** More than the depth that metadata may have. */
const DEPTH_MAX = 16;
const FIELDS_MAX = 10_000;
const EXTENSION_NAME = 'ARROW:extension:name';

const UNITS: readonly TimeUnit[] = ['second', 'millisecond', 'microsecond', 'nanosecond'];
const DATE_UNITS = ['day', 'millisecond'] as const;
const PRECISIONS = [16, 32, 64] as const;
const INTERVAL_BYTES = [4, 8, 16] as const;
const INT_WIDTHS = [8, 16, 32, 64] as const;
const TIME_WIDTHS = [32, 64] as const;
const DECIMAL_WIDTHS = [32, 64, 128, 256] as const;

/** Types without parameters, by number in the format. */
const PLAIN_KINDS = {
  1: 'null',
  4: 'binary',
  5: 'utf8',
  6: 'bool',
  12: 'list',
  13: 'struct',
  17: 'map',
  19: 'large_binary',
  20: 'large_utf8',
  21: 'large_list',
  22: 'run_end_encoded',
  23: 'binary_view',
  24: 'utf8_view',
  25: 'list_view',
  26: 'large_list_view',
} as const satisfies Record<number, TypeKind>;

/** The number of children of each type. Structs and unions have any number, and other types none. */
const CHILD_COUNTS: { readonly [kind in TypeKind]?: number } = {
  list: 1,
  large_list: 1,
  list_view: 1,
  large_list_view: 1,
  fixed_size_list: 1,
  map: 1,
  run_end_encoded: 2,
};

/** Throws `invalid_arrow`. */
export function parseSchema(table: FlatTable): ArrowSchema {
  if (table.int16(0) !== 0)
    throw invalidArrow('a big-endian schema', { expected: 'a little-endian schema' });
  const count = { left: FIELDS_MAX };
  const fieldMetadata: ReadonlyMap<string, string>[] = [];
  const fields = readFields(table, 1, 1, count, fieldMetadata);
  return { fields, metadata: readKeyValues(table, 2), fieldMetadata };
}

function readFields(
  table: FlatTable,
  index: number,
  depth: number,
  count: { left: number },
  metadata?: ReadonlyMap<string, string>[],
): ArrowField[] {
  const fields: ArrowField[] = [];
  for (const field of table.tables(index)) {
    if (--count.left < 0) throw invalidArrow(`more than ${FIELDS_MAX} fields in the schema`);
    if (depth > DEPTH_MAX) throw invalidArrow(`a schema more than ${DEPTH_MAX} levels deep`);
    const keyValues = readKeyValues(field, 6);
    fields.push(readField(field, depth, count, keyValues.get(EXTENSION_NAME) ?? null));
    metadata?.push(keyValues);
  }
  return fields;
}

function readField(
  table: FlatTable,
  depth: number,
  count: { left: number },
  extension: string | null,
): ArrowField {
  const name = table.text(0);
  const type = readType(table.uint8(2), table.table(3), name);
  const children = readFields(table, 5, depth + 1, count);
  const expected = CHILD_COUNTS[type.kind] ?? 0;
  const isFree = type.kind === 'struct' || type.kind === 'union';
  if (!isFree && children.length !== expected) {
    throw invalidArrow(`${children.length} children of ${quoted(name)} (${type.kind})`, {
      expected,
    });
  }
  if (type.kind === 'map') {
    const entries = children[0]!;
    if (entries.type.kind !== 'struct' || entries.children.length !== 2 || entries.dictionary) {
      throw invalidArrow(`a map ${quoted(name)} whose entries are not pairs`);
    }
  }
  return {
    name,
    type,
    children,
    dictionary: readEncoding(table.table(4)),
    extension,
  };
}

function readEncoding(table: FlatTable | null): ArrowField['dictionary'] {
  if (table === null) return null;
  const index = table.table(1);
  return {
    id: table.int64(0),
    indexType: index === null ? { kind: 'int', bitWidth: 32, isSigned: true } : readInt(index),
  };
}

function readInt(table: FlatTable): IntType {
  const bitWidth = oneOf(INT_WIDTHS, table.int32(0), 'bits of an integer');
  return { kind: 'int', bitWidth, isSigned: table.bool(1) };
}

function readType(number: number, table: FlatTable | null, name: string): ArrowType {
  if (table === null) throw invalidArrow(`the field ${quoted(name)} without a type`);
  switch (number) {
    case 2:
      return readInt(table);
    case 3:
      return { kind: 'float', bitWidth: entry(PRECISIONS, table.int16(0), 'precision') };
    case 7: {
      const bitWidth = oneOf(DECIMAL_WIDTHS, table.int32(2, 128), 'bits of a decimal');
      const scale = table.int32(1);
      // 256 bits hold 77 digits; a much larger scale would be written as that many zeros.
      if (Math.abs(scale) > 100) throw invalidArrow(`a decimal of scale ${scale}`);
      return { kind: 'decimal', scale, bitWidth };
    }
    case 8:
      return { kind: 'date', unit: entry(DATE_UNITS, table.int16(0, 1), 'unit of dates') };
    case 9: {
      const bitWidth = oneOf(TIME_WIDTHS, table.int32(1, 32), 'bits of a time');
      return { kind: 'time', unit: entry(UNITS, table.int16(0, 1), 'unit'), bitWidth };
    }
    case 10: {
      const unit = entry(UNITS, table.int16(0), 'unit');
      return { kind: 'timestamp', unit, hasZone: table.text(1) !== '' };
    }
    case 11:
      return { kind: 'interval', byteWidth: entry(INTERVAL_BYTES, table.int16(0), 'interval') };
    case 14:
      return { kind: 'union', isDense: table.int16(0) === 1 };
    case 15:
      return { kind: 'fixed_size_binary', byteWidth: notNegative(table.int32(0), 'bytes') };
    case 16:
      return { kind: 'fixed_size_list', listSize: notNegative(table.int32(0), 'elements') };
    case 18:
      return { kind: 'duration', unit: entry(UNITS, table.int16(0, 1), 'unit') };
    default: {
      const kind = PLAIN_KINDS[number as keyof typeof PLAIN_KINDS];
      if (kind === undefined)
        throw invalidArrow(`an unknown type ${number} of the field ${quoted(name)}`);
      return { kind };
    }
  }
}

export function readKeyValues(table: FlatTable, index: number): Map<string, string> {
  const values = new Map<string, string>();
  for (const entry of table.tables(index)) values.set(entry.text(0), entry.text(1));
  return values;
}

/** Whether the values are lists of varying length and not in a dictionary. */
export function isListOfAnyLength({ type, dictionary }: ArrowField): boolean {
  return dictionary === null && LISTS.includes(type.kind);
}

const LISTS: readonly TypeKind[] = ['list', 'large_list', 'list_view', 'large_list_view'];

/** Describes the type, as in `fixed_size_list<float32>[3]`, `dictionary<utf8>` or `uint8`. */
export function describeType({ type, children, dictionary }: ArrowField): string {
  let text: string = type.kind;
  if (type.kind === 'int') text = `${type.isSigned ? '' : 'u'}int${type.bitWidth}`;
  if (type.kind === 'float') text = `float${type.bitWidth}`;
  if (children.length > 0 && type.kind !== 'struct' && type.kind !== 'map') {
    text += `<${describeType(children[0]!)}>`;
  }
  if (type.kind === 'fixed_size_list') text += `[${type.listSize}]`;
  return dictionary === null ? text : `dictionary<${text}>`;
}

export function quoted(name: string): string {
  return JSON.stringify(name.length > 60 ? `${name.slice(0, 60)}…` : name);
}

function oneOf<Value extends number>(
  allowed: readonly Value[],
  found: number,
  what: string,
): Value {
  const value = allowed.find((candidate) => candidate === found);
  if (value === undefined) {
    throw invalidArrow(`${found} ${what}`, { expected: `one of ${allowed.join(', ')}` });
  }
  return value;
}

function entry<Value>(table: readonly Value[], index: number, what: string): Value {
  const value = table[index];
  if (value === undefined)
    throw invalidArrow(`${what} ${index}`, { expected: `0 to ${table.length - 1}` });
  return value;
}

function notNegative(value: number, what: string): number {
  if (value < 0) throw invalidArrow(`a type of ${value} ${what}`);
  return value;
}
