// Reads columns of ids: text, integers as decimal text, UUIDs in their usual form, each also in a dictionary. Checks their length
// and that none is null; whether a text is a valid id is for the caller to check.

import type { Utf8Column } from '../../common/types.js';
import { invalidArrow } from './arrow-errors.js';
import { type Column, isValid } from './columns.js';
import { integerWriter } from './numbers.js';
import type { RowIssues } from './row-issues.js';
import { type ArrowField, describeType } from './schema.js';
import { gatherDictionary, isTextField, readStrings, type Strings } from './strings.js';
import { Utf8Builder } from './utf8-builder.js';
import { isUuid, UUID_CHARACTERS, uuidReader } from './uuids.js';

/** A sign and 20 digits. */
const INTEGER_BYTES_MAX = 21;

export interface IdsToRead {
  readonly idBytesMax: number;
  /** Bound on all ids together. */
  readonly bytesMax: number;
  readonly issues: RowIssues;
  /** The member of the issues: `id` when absent. */
  readonly member?: 'id' | 'query_id';
}

export function isIdField(field: ArrowField): boolean {
  return isTextField(field) || field.type.kind === 'int' || isUuid(field);
}

/** The text of each row; undefined content if there are issues. Throws `invalid_arrow`. */
export function readIds(
  column: Column,
  { idBytesMax, bytesMax, issues, member = 'id' }: IdsToRead,
): Utf8Column {
  const { field, length } = column;
  if (!isIdField(field)) {
    throw invalidArrow(
      `a column of ${describeType(field)}, expected ids as text, integers or UUIDs`,
    );
  }
  const { text, validity } = readTexts(column, bytesMax);
  for (let row = 0; row < length && !issues.isFull; row++) {
    if (!isValid(validity, row)) {
      const detail = 'The id is null, expected text, an integer or a UUID.';
      issues.add({ row, member, code: 'invalid_request', detail });
      continue;
    }
    const byteCount = text.offsets[row + 1]! - text.offsets[row]!;
    if (byteCount <= idBytesMax) continue;
    issues.add({
      row,
      member,
      code: 'limit_exceeded',
      detail: `An id has at most ${idBytesMax} bytes of UTF-8; found ${byteCount}.`,
      expected: idBytesMax,
      actual: byteCount,
    });
  }
  return text;
}

function readTexts(column: Column, bytesMax: number): Strings {
  const { field, dictionary, validity } = column;
  if (isTextField(field)) return readStrings(column, bytesMax);
  if (dictionary !== null) return gatherDictionary(column, dictionary, bytesMax, readTexts);
  const text = isUuid(field) ? uuidText(column, bytesMax) : integerText(column, bytesMax);
  return { text, validity };
}

function uuidText(column: Column, bytesMax: number): Utf8Column {
  const { length, validity } = column;
  const out = new Utf8Builder(length, bytesMax, UUID_CHARACTERS);
  const read = uuidReader(column);
  for (let row = 0; row < length; row++) {
    if (isValid(validity, row)) out.ascii(read(row));
    out.endRow();
  }
  return out.finish();
}

function integerText(column: Column, bytesMax: number): Utf8Column {
  const { length, validity, field } = column;
  if (field.type.kind !== 'int') throw invalidArrow(describeType(field));
  const out = new Utf8Builder(length, bytesMax, INTEGER_BYTES_MAX);
  const write = integerWriter(column, field.type, out);
  for (let row = 0; row < length; row++) {
    if (isValid(validity, row)) write(row);
    out.endRow();
  }
  return out.finish();
}
