// Columns of ids: text, or integers as decimal text. Which texts are ids is for the caller to know,
// but for their length, which bounds what is built here.

import type { Utf8Column } from '../types.js';
import { type Column, isValid } from './columns.js';
import type { RowFaults } from './faults.js';
import { integerWriter } from './integers.js';
import { invalidArrow } from './invalid-arrow.js';
import { type ArrowField, describeType } from './schema.js';
import { isTextField, readStrings } from './strings.js';
import { TextBuilder } from './text-builder.js';

/** Sign and 20 digits. */
const INTEGER_BYTES_MAX = 21;

export interface IdsToRead {
  readonly idBytesMax: number;
  /** Of all of them. */
  readonly bytesMax: number;
  readonly faults: RowFaults;
}

export function isIdField(field: ArrowField): boolean {
  return isTextField(field) || (field.type.kind === 'int' && field.dictionary === null);
}

/** With faults its content is undefined. Throws `invalid_arrow`. */
export function readIds(column: Column, { idBytesMax, bytesMax, faults }: IdsToRead): Utf8Column {
  const { field, length } = column;
  if (!isIdField(field)) {
    throw invalidArrow(`a column of ${describeType(field)}, expected ids as text or integers`);
  }
  const { text, validity } =
    field.type.kind === 'int'
      ? { text: integerText(column, bytesMax), validity: column.validity }
      : readStrings(column, bytesMax);
  for (let row = 0; row < length && !faults.isFull; row++) {
    if (!isValid(validity, row)) {
      const detail = 'The id is null, expected text or an integer.';
      faults.add({ row, member: 'id', code: 'invalid_request', detail });
      continue;
    }
    const byteCount = text.offsets[row + 1]! - text.offsets[row]!;
    if (byteCount <= idBytesMax) continue;
    faults.add({
      row,
      member: 'id',
      code: 'limit_exceeded',
      detail: `An id has at most ${idBytesMax} bytes of UTF-8; found ${byteCount}.`,
      expected: idBytesMax,
      actual: byteCount,
    });
  }
  return text;
}

function integerText(column: Column, bytesMax: number): Utf8Column {
  const { length, validity, field } = column;
  if (field.type.kind !== 'int') throw invalidArrow(describeType(field));
  const out = new TextBuilder(length, bytesMax, INTEGER_BYTES_MAX);
  const write = integerWriter(column, field.type, out);
  for (let row = 0; row < length; row++) {
    if (isValid(validity, row)) write(row);
    out.endRow();
  }
  return out.finish();
}
