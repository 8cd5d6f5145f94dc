// Columns of single numbers or texts with nulls, as parameters of queries come in.

import { invalidArrow } from './arrow-errors.js';
import { type Column, isValid } from './columns.js';
import { floatReader } from './floats.js';
import { narrowIntegers, wideIntegers } from './integers.js';
import { describeType, quoted } from './schema.js';
import { isTextField, readStrings } from './strings.js';

/** Of integers and floats of any width; null where the row has none. Throws `invalid_arrow`. */
export function readNumbers(column: Column): (row: number) => number | null {
  const { validity, field } = column;
  // As writers make it of a list of nulls.
  if (field.type.kind === 'null' && field.dictionary === null) return () => null;
  const read = numberReader(column);
  return (row) => (isValid(validity, row) ? read(row) : null);
}

function numberReader(column: Column): (row: number) => number {
  const { field } = column;
  const { type } = field;
  if (field.dictionary === null && type.kind === 'int') {
    if (type.bitWidth === 64) {
      const read = wideIntegers(column, type.isSigned);
      return (row) => Number(read(row));
    }
    const values = narrowIntegers(column, type);
    return (row) => values[row]!;
  }
  if (field.dictionary === null && type.kind === 'float') return floatReader(column, type.bitWidth);
  throw invalidArrow(`${describeType(field)} in ${quoted(field.name)}, expected numbers`);
}

/** Of text in any form; null where the row has none. Throws `invalid_arrow`. */
export function readTexts(column: Column, bytesMax: number): (row: number) => string | null {
  const { field } = column;
  if (field.type.kind === 'null' && field.dictionary === null) return () => null;
  if (!isTextField(field)) {
    throw invalidArrow(`${describeType(field)} in ${quoted(field.name)}, expected text`);
  }
  const { text, validity } = readStrings(column, bytesMax);
  const { offsets, bytes } = text;
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return (row) =>
    isValid(validity, row) ? buffer.toString('utf8', offsets[row]!, offsets[row + 1]!) : null;
}
