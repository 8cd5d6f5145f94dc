// Reads columns of text in any layout (utf8, views, dictionaries) as offsets and bytes, in place if they are stored
// that way. Every string is checked to be valid UTF-8.

import { isUtf8 } from '../../common/bytes.js';
import type { Utf8Column } from '../../common/types.js';
import { stringAt } from '../../common/utf8-column.js';
import { invalidArrow } from './arrow-errors.js';
import { type ArrowColumn, isValid } from './columns.js';
import { readIndexes, readOffsets } from './offsets.js';
import { type ArrowField, describeType, quoted } from './schema.js';

export interface Strings {
  readonly text: Utf8Column;
  /** Bits, 1 for a string; null if no value is null. The span of a null value is meaningless. */
  readonly validity: Uint8Array | null;
}

/** Returns the text of a row; null if the column is absent or the row is null. */
export function cellText(cells: Strings | null, row: number): string | null {
  return cells === null || !isValid(cells.validity, row) ? null : stringAt(cells.text, row);
}

const VIEW_BYTES = 16;
/** A string of up to this length is stored in the view itself. */
const INLINE_BYTES_MAX = 12;

export function isTextField({ type }: ArrowField): boolean {
  return type.kind === 'utf8' || type.kind === 'large_utf8' || type.kind === 'utf8_view';
}

/**
 * Throws `invalid_arrow`.
 * @param bytesMax limit for text gathered from views and dictionaries.
 */
export function readStrings(column: ArrowColumn, bytesMax: number): Strings {
  const { dictionary } = column;
  if (dictionary !== null) return gatherDictionary(column, dictionary, bytesMax, readStrings);
  const strings = readPlain(column, bytesMax);
  checkUtf8(column, strings);
  return strings;
}

function readPlain(column: ArrowColumn, bytesMax: number): Strings {
  const { kind } = column.field.type;
  if (kind === 'utf8_view') return gatherViews(column, bytesMax);
  if (kind !== 'utf8' && kind !== 'large_utf8') {
    throw invalidArrow(`a column of ${describeType(column.field)}`, { expected: 'text' });
  }
  return { text: readUtf8(column), validity: column.validity };
}

/** Reads a utf8 or large_utf8 column in place. Checks the offsets but not the text. Throws `invalid_arrow`. */
export function readUtf8(column: ArrowColumn): Utf8Column {
  const byteCount = column.byteLength(1);
  const offsets = readOffsets(column, column.field.type.kind === 'large_utf8', byteCount);
  return { offsets, bytes: column.buffer(1, Uint8Array, byteCount) };
}

function gatherViews(column: ArrowColumn, bytesMax: number): Strings {
  const { length, validity, bufferCount } = column;
  const words = column.buffer(0, Int32Array, length * (VIEW_BYTES / 4));
  const views = new Uint8Array(words.buffer, words.byteOffset, words.byteLength);
  const data = Array.from({ length: bufferCount - 1 }, (_, i) =>
    column.buffer(i + 1, Uint8Array, column.byteLength(i + 1)),
  );
  const offsets = new Int32Array(length + 1);
  let end = 0;
  for (let row = 0; row < length; row++) {
    if (isValid(validity, row)) {
      const byteCount = words[row * 4]!;
      if (byteCount < 0) throw wrongView(column, row);
      if (byteCount > INLINE_BYTES_MAX) {
        const source = data[words[row * 4 + 2]!];
        const start = words[row * 4 + 3]!;
        if (source === undefined || start < 0 || start + byteCount > source.length) {
          throw wrongView(column, row);
        }
      }
      end += byteCount;
      if (end > bytesMax) throw tooMuchText(column, bytesMax);
    }
    offsets[row + 1] = end;
  }
  const bytes = new Uint8Array(end);
  for (let row = 0; row < length; row++) {
    const start = offsets[row]!;
    const byteCount = offsets[row + 1]! - start;
    if (byteCount > INLINE_BYTES_MAX) {
      const from = words[row * 4 + 3]!;
      bytes.set(data[words[row * 4 + 2]!]!.subarray(from, from + byteCount), start);
    } else {
      const from = row * VIEW_BYTES + 4;
      for (let i = 0; i < byteCount; i++) bytes[start + i] = views[from + i]!;
    }
  }
  return { text: { offsets, bytes }, validity };
}

/**
 * Returns the values at the indexes of a column with a dictionary, as text. Throws `invalid_arrow`.
 * @param parts the dictionary and its deltas.
 * @param bytesMax limit for the text of all rows.
 * @param read reads the values of a part as text.
 */
export function gatherDictionary(
  column: ArrowColumn,
  parts: readonly ArrowColumn[],
  bytesMax: number,
  read: (part: ArrowColumn, bytesMax: number) => Strings,
): Strings {
  const { text, validity, count } = concatenate(parts, (part) => read(part, bytesMax));
  const indexes = readIndexes(column, count);
  return gather({ text, validity }, indexes, bytesMax, column);
}

/** Returns the strings at these indexes. Index -1 means null. */
function gather(
  { text, validity }: Strings,
  indexes: Int32Array,
  bytesMax: number,
  column: ArrowColumn,
): Strings {
  const { length } = indexes;
  const offsets = new Int32Array(length + 1);
  const isPresent = new Uint8Array(Math.ceil(length / 8));
  let presentCount = 0;
  let end = 0;
  for (let row = 0; row < length; row++) {
    const index = indexes[row]!;
    if (index >= 0 && isValid(validity, index)) {
      end += text.offsets[index + 1]! - text.offsets[index]!;
      if (end > bytesMax) throw tooMuchText(column, bytesMax);
      isPresent[row >> 3]! |= 1 << (row & 7);
      presentCount++;
    }
    offsets[row + 1] = end;
  }
  const bytes = new Uint8Array(end);
  for (let row = 0; row < length; row++) {
    const start = offsets[row]!;
    const byteCount = offsets[row + 1]! - start;
    if (byteCount === 0) continue;
    const from = text.offsets[indexes[row]!]!;
    if (byteCount > 32) {
      bytes.set(text.bytes.subarray(from, from + byteCount), start);
    } else {
      for (let i = 0; i < byteCount; i++) bytes[start + i] = text.bytes[from + i]!;
    }
  }
  return { text: { offsets, bytes }, validity: presentCount === length ? null : isPresent };
}

function concatenate(
  parts: readonly ArrowColumn[],
  readPart: (part: ArrowColumn) => Strings,
): Strings & { count: number } {
  const read = parts.map(readPart);
  const count = parts.reduce((sum, { length }) => sum + length, 0);
  if (read.length === 1) return { ...read[0]!, count };
  const byteCount = read.reduce((sum, { text }, i) => sum + span(text, parts[i]!.length), 0);
  const offsets = new Int32Array(count + 1);
  const bytes = new Uint8Array(byteCount);
  const validity = read.some((strings) => strings.validity !== null)
    ? new Uint8Array(Math.ceil(count / 8))
    : null;
  let row = 0;
  let end = 0;
  read.forEach((strings, i) => {
    const { text } = strings;
    const start = text.offsets[0]!;
    const { length } = parts[i]!;
    for (let j = 0; j < length; j++) {
      if (validity !== null && isValid(strings.validity, j)) {
        validity[row >> 3]! |= 1 << (row & 7);
      }
      offsets[++row] = end + text.offsets[j + 1]! - start;
    }
    bytes.set(text.bytes.subarray(start, text.offsets[length]!), end);
    end = offsets[row]!;
  });
  return { text: { offsets, bytes }, validity, count };
}

function span({ offsets }: Utf8Column, count: number): number {
  return offsets[count]! - offsets[0]!;
}

function checkUtf8(column: ArrowColumn, { text, validity }: Strings): void {
  const { offsets, bytes } = text;
  const { length } = column;
  if (isUtf8(bytes.subarray(offsets[0]!, offsets[length]!))) {
    let isWhole = true;
    // The text as a whole is valid, but a string that starts inside a character is not.
    for (let row = 1; row < length; row++) {
      const offset = offsets[row]!;
      if (offset < offsets[length]! && (bytes[offset]! & 0xc0) === 0x80) isWhole = false;
    }
    if (isWhole) return;
  }
  for (let row = 0; row < length; row++) {
    if (!isValid(validity, row) || isUtf8(bytes.subarray(offsets[row]!, offsets[row + 1]!)))
      continue;
    throw invalidArrow(
      `text that is not UTF-8 in row ${row} of column ${quoted(column.field.name)}`,
    );
  }
}

function wrongView(column: ArrowColumn, row: number): Error {
  return invalidArrow(
    `a view that reaches outside its buffer in row ${row} of ${quoted(column.field.name)}`,
  );
}

function tooMuchText({ field }: ArrowColumn, bytesMax: number): Error {
  return invalidArrow(`more than ${bytesMax} bytes of text in column ${quoted(field.name)}`, {
    advice: 'Send smaller batches.',
  });
}
