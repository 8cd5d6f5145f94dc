// Writes metadata columns as fields of an Arrow file; `metadata-reader.ts` reads them. Path `price` becomes the field
// `metadata.price`: double, dictionary-encoded utf8, bool or a list of these, null for other kinds. A path of several
// kinds becomes `metadata.price:numbers`, `:strings`, `:booleans` and `metadata.price[]:…` for elements; `:residues` is
// what a double cannot hold of long integers. `kind.price` is the KIND of each row and `kind.price[]` of each element.
// The metadata of a field states its path and role; readers do not parse names.

import {
  Bool,
  type DataType,
  Dictionary,
  Field,
  Float64,
  Int32,
  List,
  Uint8,
  Utf8,
} from 'apache-arrow';
import { type Bitmap, createBitmap, setBit } from '../common/bitmap.js';
import { KIND, type LeafColumn, type ListColumn, type MetadataColumn } from '../common/columns.js';
import { sharedInt32 } from '../common/shared-array.js';
import {
  type ColumnToWrite,
  type DictionaryToWrite,
  encodeBody,
  FILE_ALIGNMENT,
} from '../formats/arrow/ipc-writer.js';

/** The type of each role of a field. `booleans` repeat what the kinds say, for other readers. */
export const ROLE_TYPES = {
  kinds: 'uint8',
  numbers: 'float64',
  residues: 'int32',
  strings: 'dictionary<utf8>',
  booleans: 'bool',
} as const;
export type Role = keyof typeof ROLE_TYPES;

export const PATH_KEY = 'sagitta.path';
export const ROLE_KEY = 'sagitta.role';
/** Follows the role of a field that holds the elements of arrays, as lists. */
export const ITEMS_SUFFIX = '[]';

/** The values of one role. */
interface TypedValues {
  readonly role: Exclude<Role, 'kinds'>;
  readonly type: DataType;
  readonly values: LeafColumn;
}

interface FieldWithColumn {
  readonly field: Field;
  readonly column: ColumnToWrite;
}

/** The fields of all metadata columns, and their contents in the same order. */
export class StoredMetadata {
  readonly dictionaries: DictionaryToWrite[] = [];
  readonly #rowCount: number;
  readonly #names = new Set<string>();
  readonly #typed: FieldWithColumn[] = [];
  readonly #kinds: FieldWithColumn[] = [];

  constructor(columns: ReadonlyMap<string, MetadataColumn>, rowCount: number) {
    this.#rowCount = rowCount;
    for (const [path, column] of columns) this.#addColumn(path, column);
  }

  /** Typed fields come first and kinds last, for people who view the file. */
  get fields(): Field[] {
    return [...this.#typed, ...this.#kinds].map(({ field }) => field);
  }

  get columns(): ColumnToWrite[] {
    return [...this.#typed, ...this.#kinds].map(({ column }) => column);
  }

  #addColumn(path: string, column: MetadataColumn): void {
    const { kinds, items } = column;
    const rowCount = this.#rowCount;
    const itemCount = items === null ? 0 : items.offsets.at(-1)!;
    const values = typedValues(column, rowCount, this.dictionaries);
    const itemValues =
      items === null ? [] : typedValues(items.elements, itemCount, this.dictionaries);
    const isSingle = values.length + itemValues.length === 1;

    for (const { role, type, values: leaf } of values) {
      const name = isSingle ? `metadata.${path}` : `metadata.${path}:${role}`;
      this.#typed.push({ field: this.#field(name, type, true, path, role), column: leaf });
    }
    const kindField = this.#field(`kind.${path}`, new Uint8(), false, path, 'kinds');
    this.#kinds.push({ field: kindField, column: kindsOf(kinds, rowCount) });
    if (items === null) return;

    const starts = startsOf(items.offsets, rowCount);
    const presence = rowsOfKinds(kinds, rowCount, KIND.array, KIND.array);
    const listOf = (leaf: LeafColumn): ListColumn => ({ starts, presence, items: leaf });
    for (const { role, type, values: leaf } of itemValues) {
      const name = isSingle ? `metadata.${path}` : `metadata.${path}[]:${role}`;
      const list = new List(new Field('item', type, true));
      const field = this.#field(name, list, true, path, `${role}${ITEMS_SUFFIX}`);
      this.#typed.push({ field, column: listOf(leaf) });
    }
    const list = new List(new Field('item', new Uint8(), false));
    this.#kinds.push({
      field: this.#field(`kind.${path}[]`, list, true, path, `kinds${ITEMS_SUFFIX}`),
      column: listOf(kindsOf(items.elements.kinds, itemCount)),
    });
  }

  /** Makes the name unique, because `a:numbers` may also be a path and DuckDB ignores case. */
  #field(
    name: string,
    type: DataType,
    isNullable: boolean,
    path: string,
    role: Role | `${Role}${typeof ITEMS_SUFFIX}`,
  ): Field {
    let unique = name;
    for (let i = 2; this.#names.has(unique.toLowerCase()); i++) unique = `${name}#${i}`;
    this.#names.add(unique.toLowerCase());
    const metadata = new Map([
      [PATH_KEY, JSON.stringify(path)],
      [ROLE_KEY, role],
    ]);
    return new Field(unique, type, isNullable, metadata);
  }
}

/** Returns a typed column for each kind in a column, and adds its dictionary to `dictionaries`. */
function typedValues(
  { kinds, numbers, residues, codes, dictionary, dictionaryCount }: MetadataColumn,
  length: number,
  dictionaries: DictionaryToWrite[],
): TypedValues[] {
  const seen = kindsSeen(kinds);
  const result: TypedValues[] = [];
  const add = (
    role: TypedValues['role'],
    type: DataType,
    leaf: LeafColumn['leaf'],
    [low, high]: readonly [number, number],
  ) => {
    const presence = rowsOfKinds(kinds, length, low, high);
    result.push({ role, type, values: { leaf, presence } });
  };
  const numeric = [KIND.number, KIND.number] as const;
  if (seen[KIND.number]) add('numbers', new Float64(), numbers!.subarray(0, length), numeric);
  if (residues !== null) add('residues', new Int32(), residues.subarray(0, length), numeric);
  if (seen[KIND.string]) {
    const id = dictionaries.length;
    const body = encodeBody([{ leaf: dictionary! }], dictionaryCount, FILE_ALIGNMENT);
    dictionaries.push({ id, count: dictionaryCount, body });
    const type = new Dictionary(new Utf8(), new Int32(), id);
    add('strings', type, codes!.subarray(0, length), [KIND.string, KIND.string]);
  }
  if (seen[KIND.true] || seen[KIND.false]) {
    const leaf = rowsOfKinds(kinds, length, KIND.true, KIND.true);
    add('booleans', new Bool(), leaf, [KIND.false, KIND.true]);
  }
  return result;
}

/** Returns an array of length 256 with 1 at each kind that occurs. */
export function kindsSeen(kinds: Uint8Array): Uint8Array {
  const seen = new Uint8Array(256);
  for (let i = 0; i < kinds.length; i++) seen[kinds[i]!] = 1;
  return seen;
}

function kindsOf(kinds: Uint8Array, length: number): LeafColumn {
  return { leaf: kinds.subarray(0, length), presence: null };
}

/** Returns the rows whose kind is in low..high, inclusive. */
function rowsOfKinds(kinds: Uint8Array, length: number, low: number, high: number): Bitmap {
  const rows = createBitmap(length);
  const end = Math.min(length, kinds.length);
  for (let row = 0; row < end; row++) {
    const kind = kinds[row]!;
    if (kind >= low && kind <= high) setBit(rows, row);
  }
  return rows;
}

/** Extends offsets to all rows. Rows after the last array have no elements. */
function startsOf(offsets: Int32Array, rowCount: number): Int32Array {
  if (offsets.length > rowCount) return offsets.subarray(0, rowCount + 1);
  const whole = sharedInt32(rowCount + 1).fill(offsets.at(-1)!);
  whole.set(offsets);
  return whole;
}
