// Reads metadata columns from the fields that `metadata-fields.ts` writes, in place and without parsing JSON. Checks
// that all indexes in a column are within bounds, so that users of the column need not.

import { KIND, type MetadataColumn } from '../common/columns.js';
import type { Utf8Column } from '../common/types.js';
import { corrupt } from '../formats/arrow/arrow-errors.js';
import type { ArrowColumn } from '../formats/arrow/columns.js';
import { readOffsets } from '../formats/arrow/offsets.js';
import { type ArrowField, describeType } from '../formats/arrow/schema.js';
import { readUtf8 } from '../formats/arrow/strings.js';
import {
  ITEMS_SUFFIX,
  kindsSeen,
  PATH_KEY,
  ROLE_KEY,
  ROLE_TYPES,
  type Role,
} from './metadata-fields.js';

/** A column whose fields have not all been read. */
interface PartialColumn {
  kinds: Uint8Array | null;
  numbers: Float64Array | null;
  residues: Int32Array | null;
  codes: Int32Array | null;
  dictionary: Utf8Column | null;
}

/** The columns of a path, with the elements of its arrays. */
interface PartialPath extends PartialColumn {
  offsets: Int32Array | null;
  elements: PartialColumn;
}

/** Throws `data_corrupt`. */
export function readMetadataColumns(
  fieldColumns: readonly ArrowColumn[],
  fieldMetadata: readonly ReadonlyMap<string, string>[],
  rowCount: number,
): Map<string, MetadataColumn> {
  const described = fieldColumns.map(({ field }, index) => {
    return pathAndRole(field, fieldMetadata[index]!, index);
  });
  const paths = new Map<string, PartialPath>();
  for (const [index, { path, role, isForItems }] of described.entries()) {
    const column = fieldColumns[index]!;
    let partial = paths.get(path);
    if (partial === undefined) {
      partial = { ...emptyColumn(), offsets: null, elements: emptyColumn() };
      paths.set(path, partial);
    }
    if (!isForItems) {
      readValues(role, column, partial);
      continue;
    }
    const elements = column.children[0]!;
    const { length } = elements;
    const offsets = readOffsets(column, false, length);
    // All lists of a path share their offsets.
    if (offsets[rowCount] !== length || (partial.offsets?.[rowCount] ?? length) !== length) {
      throw corrupt(`a list of ${length} elements in field ${index}, and another length elsewhere`);
    }
    partial.offsets ??= offsets;
    readValues(role, elements, partial.elements);
  }
  const columns = new Map<string, MetadataColumn>();
  // The kinds are in the order that the columns had in the segment that was written.
  for (const [index, { path, role, isForItems }] of described.entries()) {
    if (role === 'kinds' && !isForItems)
      columns.set(path, columnOf(index, paths.get(path)!, rowCount));
  }
  if (columns.size !== paths.size) throw corrupt(`${paths.size} paths, ${columns.size} with kinds`);
  return columns;
}

function pathAndRole(
  field: ArrowField,
  metadata: ReadonlyMap<string, string>,
  index: number,
): { path: string; role: Role; isForItems: boolean } {
  const path = JSON.parse(metadata.get(PATH_KEY) ?? 'null') as unknown;
  const text = metadata.get(ROLE_KEY) ?? '';
  const isForItems = text.endsWith(ITEMS_SUFFIX);
  const role = isForItems ? text.slice(0, -ITEMS_SUFFIX.length) : text;
  if (typeof path !== 'string' || !Object.hasOwn(ROLE_TYPES, role)) {
    throw corrupt(`no path and role of metadata field ${index}`);
  }
  const type = ROLE_TYPES[role as Role];
  const expected = isForItems ? `list<${type}>` : type;
  const found = describeType(field);
  if (found !== expected) {
    throw corrupt(`the type ${found} of metadata field ${index}`, { expected });
  }
  return { path, role: role as Role, isForItems };
}

function emptyColumn(): PartialColumn {
  return { kinds: null, numbers: null, residues: null, codes: null, dictionary: null };
}

function readValues(role: Role, column: ArrowColumn, target: PartialColumn): void {
  const { length, dictionary } = column;
  switch (role) {
    case 'kinds':
      target.kinds = column.buffer(0, Uint8Array, length);
      break;
    case 'numbers':
      target.numbers = column.buffer(0, Float64Array, length);
      break;
    case 'residues':
      target.residues = column.buffer(0, Int32Array, length);
      break;
    case 'strings':
      target.codes = column.buffer(0, Int32Array, length);
      if (dictionary?.length !== 1 || column.field.dictionary?.indexType.bitWidth !== 32) {
        throw corrupt(`no dictionary with 32-bit indexes of ${describeType(column.field)}`);
      }
      target.dictionary = readUtf8(dictionary[0]!);
      break;
    case 'booleans':
      // The kinds hold the same information.
      break;
  }
}

function columnOf(index: number, path: PartialPath, rowCount: number): MetadataColumn {
  const { kinds, offsets } = path;
  if (offsets === null) {
    if (kinds?.includes(KIND.array)) throw corrupt(`no elements in metadata field ${index}`);
    return checkedColumn(index, path, rowCount, null);
  }
  const elements = checkedColumn(index, path.elements, offsets[rowCount]!, null);
  return checkedColumn(index, path, rowCount, { offsets, elements });
}

function checkedColumn(
  index: number,
  partial: PartialColumn,
  length: number,
  items: MetadataColumn['items'],
): MetadataColumn {
  const { kinds, numbers, residues, codes, dictionary } = partial;
  const where = `in metadata field ${index}`;
  if (kinds === null || kinds.length !== length) throw corrupt(`no kinds ${where}`);
  const seen = kindsSeen(kinds);
  for (let kind = KIND.object + 1; kind < seen.length; kind++) {
    if (seen[kind]) throw corrupt(`the kind ${kind} ${where}`);
  }
  if (seen[KIND.number] && numbers === null) throw corrupt(`no numbers ${where}`);
  if (seen[KIND.string] && codes === null) throw corrupt(`no strings ${where}`);
  const dictionaryCount = dictionary === null ? 0 : dictionary.offsets.length - 1;
  if (codes !== null) {
    for (let i = 0; i < length; i++) {
      // Codes must be within bounds even if the kind is not `string`.
      if (codes[i]! >>> 0 >= dictionaryCount) {
        throw corrupt(`the code ${codes[i]} of ${dictionaryCount} strings ${where}`);
      }
    }
  }
  return { kinds, numbers, residues, codes, dictionary, dictionaryCount, items };
}
