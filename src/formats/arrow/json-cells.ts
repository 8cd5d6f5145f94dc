// Writes the values of columns of any type as JSON. A writer is created once per column. A value without a JSON form
// is recorded in the context, and the caller reports its row.

import { decodeLatin1, decodeUtf8, encodeUtf8 } from '../../common/bytes.js';
import { numberText } from '../../common/exact-json.js';
import { float32Text } from '../../common/float-text.js';
import { invalidArrow } from './arrow-errors.js';
import { type ArrowColumn, isValid } from './columns.js';
import { JSON_EXTENSION } from './json-fields.js';
import { dateText, durationText, MS_PER_DAY, timestampText, timeText } from './json-times.js';
import { floatReader, integerWriter, narrowIntegers, wideIntegers } from './numbers.js';
import { readIndexes, readSpans } from './offsets.js';
import { describeType, type IntType } from './schema.js';
import { readStrings } from './strings.js';
import type { Utf8Builder } from './utf8-builder.js';
import { isUuid, uuidWriter } from './uuids.js';

export interface CellContext {
  readonly out: Utf8Builder;
  /** Limit for text gathered from views and dictionaries. */
  readonly bytesMax: number;
  /** Whether NaN is written as null instead of being a problem. */
  readonly isNanNull: boolean;
  /** What is wrong with the current row, as a phrase after "found"; null if nothing is. */
  problem: string | null;
  /** The path to the problem: the name of the column and of the members within it. */
  problemPath: string[];
}

/** Writes the value of one row to the context's output. */
export type WriteCell = (row: number) => void;

const [COMMA, OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE] = [...',[]{}'].map(
  (character) => character.charCodeAt(0),
) as [number, number, number, number, number];

const INT32: IntType = { kind: 'int', bitWidth: 32, isSigned: true };

/** Creates a writer for a column whose type has a JSON form (see `jsonViolation`). Throws `invalid_arrow`. */
export function cellWriter(column: ArrowColumn, context: CellContext): WriteCell {
  const { out } = context;
  const { validity } = column;
  const write =
    column.dictionary === null
      ? valueWriter(column, context)
      : dictionaryWriter(column, column.dictionary, context);
  if (validity === null) return write;
  return (row) => {
    if (isValid(validity, row)) write(row);
    else out.ascii('null');
  };
}

function valueWriter(column: ArrowColumn, context: CellContext): WriteCell {
  const { field, length } = column;
  const { type } = field;
  const { out } = context;
  switch (type.kind) {
    case 'null':
      return () => out.ascii('null');
    case 'bool': {
      const bits = column.buffer(0, Uint8Array, Math.ceil(length / 8));
      return (row) => out.ascii(isValid(bits, row) ? 'true' : 'false');
    }
    case 'int':
      return integerWriter(column, type, out);
    case 'float':
      return floatWriter(column, type.bitWidth, context);
    case 'decimal': {
      const read = unscaledDecimals(column, type.bitWidth);
      return (row) => out.ascii(decimalText(read(row), type.scale));
    }
    case 'utf8':
    case 'large_utf8':
    case 'utf8_view':
      return textWriter(column, context);
    case 'list':
    case 'large_list':
    case 'list_view':
    case 'large_list_view':
    case 'fixed_size_list':
      return listWriter(column, context);
    case 'struct': {
      const writeMembers = membersWriter(column.children, context);
      return (row) => {
        out.byte(OPEN_BRACE);
        writeMembers(row, true);
        out.byte(CLOSE_BRACE);
      };
    }
    case 'map':
      return mapWriter(column, context);
    case 'date':
    case 'time':
    case 'timestamp':
    case 'duration':
      return timeWriter(column, context);
    default:
      if (isUuid(field)) return quotedUuidWriter(column, context);
      throw invalidArrow(`a column of ${describeType(field)}, which has no JSON form`);
  }
}

/** Creates a writer of `"name":value` for each column, with a comma before the first unless `isFirst`. */
export function membersWriter(
  columns: readonly ArrowColumn[],
  context: CellContext,
): (row: number, isFirst: boolean) => void {
  const { out } = context;
  const members = columns.map((column) => ({
    name: column.field.name,
    prefix: encodeUtf8(`,${JSON.stringify(column.field.name)}:`),
    write: cellWriter(column, context),
  }));
  return (row, isFirst) => {
    let commaBytes = isFirst ? 1 : 0;
    for (const { name, prefix, write } of members) {
      // The row is invalid already.
      if (context.problem !== null) return;
      out.raw(prefix, commaBytes, prefix.length);
      commaBytes = 0;
      write(row);
      if (context.problem !== null) context.problemPath.unshift(name);
    }
  };
}

function floatWriter(column: ArrowColumn, bitWidth: 16 | 32 | 64, context: CellContext): WriteCell {
  const { out } = context;
  const read = floatReader(column, bitWidth);
  return (row) => {
    const value = read(row);
    if (context.isNanNull && Number.isNaN(value)) {
      out.ascii('null');
    } else if (!Number.isFinite(value)) {
      context.problem = String(value);
    } else if (value === (value | 0) && !Object.is(value, -0)) {
      out.integer(value);
    } else {
      out.ascii(bitWidth === 64 && value !== 0 ? numberText(value) : shortFloat32(value));
    }
  };
}

/** `float32Text` is fast for usual magnitudes but writes up to 17 digits for others. */
function shortFloat32(value: number): string {
  const magnitude = Math.abs(value);
  if (magnitude === 0 || (magnitude >= 1e-7 && magnitude < 1e7)) return float32Text(value);
  for (let digits = 6; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return numberText(short);
  }
  return numberText(Number(value.toPrecision(9)));
}

function textWriter(column: ArrowColumn, context: CellContext): WriteCell {
  const { out } = context;
  const { offsets, bytes } = readStrings(column, context.bytesMax).text;
  if (column.field.extension !== JSON_EXTENSION) {
    return (row) => out.quoted(bytes, offsets[row]!, offsets[row + 1]!);
  }
  return (row) => {
    const [from, to] = [offsets[row]!, offsets[row + 1]!];
    try {
      JSON.parse(decodeUtf8(bytes, from, to));
    } catch {
      context.problem = 'text that is not JSON';
      return;
    }
    out.raw(bytes, from, to);
  };
}

function listWriter(column: ArrowColumn, context: CellContext): WriteCell {
  const { out } = context;
  const { type } = column.field;
  const write = cellWriter(column.children[0]!, context);
  const size = type.kind === 'fixed_size_list' ? type.listSize : null;
  const spans = size === null ? readSpans(column) : null;
  return (row) => {
    const start = spans === null ? row * size! : spans.starts[row]!;
    const end = spans === null ? start + size! : spans.ends[row]!;
    out.byte(OPEN_BRACKET);
    for (let i = start; i < end; i++) {
      if (i > start) out.byte(COMMA);
      write(i);
    }
    out.byte(CLOSE_BRACKET);
  };
}

/** Keys are text. A repeated key is a problem because JSON readers differ in which value they keep. */
function mapWriter(column: ArrowColumn, context: CellContext): WriteCell {
  const { out } = context;
  const { starts, ends } = readSpans(column);
  const entries = column.children[0]!;
  const [keys, values] = entries.children as [ArrowColumn, ArrowColumn];
  const { text, validity } = readStrings(keys, context.bytesMax);
  const write = cellWriter(values, context);
  return (row) => {
    const [start, end] = [starts[row]!, ends[row]!];
    const names = new Set<string>();
    out.byte(OPEN_BRACE);
    for (let i = start; i < end; i++) {
      if (!isValid(entries.validity, i) || !isValid(validity, i)) {
        context.problem = 'a map with a null key';
        return;
      }
      if (i > start) out.byte(COMMA);
      const [from, to] = [text.offsets[i]!, text.offsets[i + 1]!];
      out.quoted(text.bytes, from, to);
      out.ascii(':');
      write(i);
      if (end - start === 1) continue;
      names.add(decodeLatin1(text.bytes, from, to));
    }
    if (end - start > 1 && names.size < end - start) context.problem = 'a map with a repeated key';
    out.byte(CLOSE_BRACE);
  };
}

function dictionaryWriter(
  column: ArrowColumn,
  parts: readonly ArrowColumn[],
  context: CellContext,
): WriteCell {
  const { out } = context;
  const starts = [0];
  for (const { length } of parts) starts.push(starts.at(-1)! + length);
  const indexes = readIndexes(column, starts.at(-1)!);
  const writers = parts.map((part) => cellWriter(part, context));
  return (row) => {
    const index = indexes[row]!;
    if (index < 0) {
      out.ascii('null');
      return;
    }
    let part = 0;
    if (parts.length > 1) {
      // A binary search finds the last part that starts at or before the index.
      let end = parts.length;
      while (end - part > 1) {
        const middle = (part + end) >> 1;
        if (starts[middle]! <= index) part = middle;
        else end = middle;
      }
    }
    writers[part]!(index - starts[part]!);
  };
}

function timeWriter(column: ArrowColumn, context: CellContext): WriteCell {
  const { out } = context;
  const { type } = column.field;
  const isNarrow =
    (type.kind === 'date' && type.unit === 'day') || (type.kind === 'time' && type.bitWidth === 32);
  const narrow = isNarrow ? narrowIntegers(column, INT32) : null;
  const read = narrow === null ? wideIntegers(column, true) : (row: number) => narrow[row]!;
  const toText = (value: number | bigint): string | null => {
    if (type.kind === 'timestamp') return timestampText(value, type.unit, type.hasZone);
    if (type.kind === 'time') return timeText(value, type.unit);
    if (type.kind === 'duration') return durationText(value, type.unit);
    const isDay = type.kind === 'date' && type.unit === 'day';
    const days = isDay ? Number(value) : Number(value) / MS_PER_DAY;
    return Number.isInteger(days) ? dateText(days) : timestampText(value, 'millisecond', false);
  };
  return (row) => {
    const text = toText(read(row));
    if (text === null) context.problem = `a ${type.kind} out of range`;
    else out.ascii(`"${text}"`);
  };
}

function quotedUuidWriter(column: ArrowColumn, { out }: CellContext): WriteCell {
  const write = uuidWriter(column, out);
  return (row) => {
    out.ascii('"');
    write(row);
    out.ascii('"');
  };
}

/** Reads the unscaled integer of a decimal of 32 to 256 bits. */
function unscaledDecimals(column: ArrowColumn, bitWidth: number): (row: number) => bigint {
  const words = bitWidth / 32;
  const values = column.buffer(0, Int32Array, column.length * words);
  return (row) => {
    const last = row * words + words - 1;
    // Only the highest word is signed.
    let value = BigInt(values[last]!);
    for (let i = last - 1; i >= row * words; i--) value = (value << 32n) | BigInt(values[i]! >>> 0);
    return value;
  };
}

/** Returns `value` / 10^scale, exactly. */
function decimalText(value: bigint, scale: number): string {
  if (scale === 0 || (scale < 0 && value === 0n)) return String(value);
  const sign = value < 0n ? '-' : '';
  const digits = String(value < 0n ? -value : value);
  if (scale < 0) return `${sign}${digits}${'0'.repeat(-scale)}`;
  const padded = digits.padStart(scale + 1, '0');
  return `${sign}${padded.slice(0, -scale)}.${padded.slice(-scale)}`;
}
