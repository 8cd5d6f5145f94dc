// Reads columns of ids: text, integers as decimal text, and UUIDs in their usual form, each with or without a
// dictionary. Checks that ids are not null and not too long; the caller checks whether a text is a valid id.

import type { Utf8Column } from '../../common/types.js';
import { invalidArrow } from './arrow-errors.js';
import { type ArrowColumn, isValid } from './columns.js';
import { integerWriter } from './numbers.js';
import type { RowIssues } from './row-issues.js';
import { type ArrowField, describeType, type IntType } from './schema.js';
import { gatherDictionary, isTextField, readStrings, type Strings } from './strings.js';
import { Utf8Builder } from './utf8-builder.js';
import { isUuid, UUID_CHARACTERS, uuidWriter } from './uuids.js';

/** A sign and up to 20 digits. */
const INTEGER_BYTES_MAX = 21;

export interface IdsToRead {
  readonly idBytesMax: number;
  /** Limit for all ids together. */
  readonly bytesMax: number;
  readonly issues: RowIssues;
  /** The member that issues are about; `id` by default. */
  readonly member?: 'id' | 'query_id';
}

export function isIdField(field: ArrowField): boolean {
  return isTextField(field) || field.type.kind === 'int' || isUuid(field);
}

/** Returns the text of each row. The content is undefined if there are issues. Throws `invalid_arrow`. */
export function readIds(
  column: ArrowColumn,
  { idBytesMax, bytesMax, issues, member = 'id' }: IdsToRead,
): Utf8Column {
  const { field, length } = column;
  if (!isIdField(field)) {
    throw invalidArrow(`a column of ${describeType(field)}`, {
      expected: 'ids as text, integers or UUIDs',
    });
  }
  const { text, validity } = readTexts(column, bytesMax);
  for (let row = 0; row < length && !issues.isFull; row++) {
    if (!isValid(validity, row)) {
      const detail = 'Expected text, an integer or a UUID; found null.';
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

function readTexts(column: ArrowColumn, bytesMax: number): Strings {
  const { field, dictionary, validity, length } = column;
  if (isTextField(field)) return readStrings(column, bytesMax);
  if (dictionary !== null) return gatherDictionary(column, dictionary, bytesMax, readTexts);
  const out = new Utf8Builder(
    length,
    bytesMax,
    isUuid(field) ? UUID_CHARACTERS : INTEGER_BYTES_MAX,
  );
  const write = isUuid(field)
    ? uuidWriter(column, out)
    : integerWriter(column, field.type as IntType, out);
  for (let row = 0; row < length; row++) {
    if (isValid(validity, row)) write(row);
    out.endRow();
  }
  return { text: out.finish(), validity };
}
