// Writes metadata columns as fields of an Arrow file; `metadata-reader.ts` reads them. Path `price` is the field
// `metadata.price`: double, dictionary-encoded utf8, bool or a list of these, null for other kinds; with several kinds it
// is `metadata.price:numbers`, `:strings`, `:booleans`, of elements `metadata.price[]:…`; `:residues` has what numbers
// lack of long integers. `kind.price` has the KIND of each row, `kind.price[]` those of elements. Path and role of a
// field are in its metadata; names are not parsed.

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
import { KIND, type MetadataColumn } from '../common/columns.js';
import { sharedInt32 } from '../common/shared-array.js';
import { BodyWriter, type DictionaryToWrite, FILE_ALIGNMENT } from '../formats/arrow/ipc-writer.js';

/** The roles of a path's fields. `booleans` repeat the kinds, for other readers. */
export const ROLE_TYPES = {
  kinds: 'uint8',
  numbers: 'float64',
  residues: 'int32',
  strings: 'dictionary<utf8>',
  booleans: 'bool',
  itemKinds: 'list<uint8>',
  itemNumbers: 'list<float64>',
  itemResidues: 'list<int32>',
  itemStrings: 'list<dictionary<utf8>>',
  itemBooleans: 'list<bool>',
} as const;
export type Role = keyof typeof ROLE_TYPES;

const ITEM_ROLES = {
  kinds: 'itemKinds',
  numbers: 'itemNumbers',
  residues: 'itemResidues',
  strings: 'itemStrings',
  booleans: 'itemBooleans',
} as const satisfies Partial<Record<Role, Role>>;

export const PATH_KEY = 'sagitta.path';
export const ROLE_KEY = 'sagitta.role';

/** A typed column to write: `write` adds its nodes and buffers. */
interface TypedValues {
  readonly role: 'numbers' | 'residues' | 'strings' | 'booleans';
  readonly type: DataType;
  write(body: BodyWriter): void;
}

interface FieldToWrite {
  readonly field: Field;
  write(body: BodyWriter): void;
}

/** The fields of all columns and their contents; `write` follows the order of `fields`. */
export class MetadataFields {
  readonly dictionaries: DictionaryToWrite[] = [];
  readonly #rowCount: number;
  readonly #names = new Set<string>();
  readonly #typed: FieldToWrite[] = [];
  readonly #kinds: FieldToWrite[] = [];

  constructor(columns: ReadonlyMap<string, MetadataColumn>, rowCount: number) {
    this.#rowCount = rowCount;
    for (const [path, column] of columns) this.#addColumn(path, column);
  }

  /** Typed fields first, kinds last, for people who view the file. */
  get fields(): Field[] {
    return [...this.#typed, ...this.#kinds].map(({ field }) => field);
  }

  /** Adds the nodes and buffers of all fields. */
  write(body: BodyWriter): void {
    for (const { write } of [...this.#typed, ...this.#kinds]) write(body);
  }

  #addColumn(path: string, column: MetadataColumn): void {
    const { kinds, items } = column;
    const rowCount = this.#rowCount;
    const itemCount = items === null ? 0 : items.offsets.at(-1)!;
    const values = typedValues(column, rowCount, this.dictionaries);
    const itemValues =
      items === null ? [] : typedValues(items.elements, itemCount, this.dictionaries);
    const isSingle = values.length + itemValues.length === 1;

    for (const { role, type, write } of values) {
      const name = isSingle ? `metadata.${path}` : `metadata.${path}:${role}`;
      this.#typed.push({ field: this.#field(name, type, true, path, role), write });
    }
    const kindField = this.#field(`kind.${path}`, new Uint8(), false, path, 'kinds');
    this.#kinds.push({ field: kindField, write: (body) => writePlain(body, kinds, rowCount) });
    if (items === null) return;

    const offsets = offsetsOf(items.offsets, rowCount);
    const asList = (write: (body: BodyWriter) => void) => (body: BodyWriter) => {
      writeValidity(body, kinds, rowCount, KIND.array, KIND.array);
      body.buffer(offsets);
      write(body);
    };
    for (const { role, type, write } of itemValues) {
      const name = isSingle ? `metadata.${path}` : `metadata.${path}[]:${role}`;
      const list = new List(new Field('item', type, true));
      const field = this.#field(name, list, true, path, ITEM_ROLES[role]);
      this.#typed.push({ field, write: asList(write) });
    }
    const list = new List(new Field('item', new Uint8(), false));
    this.#kinds.push({
      field: this.#field(`kind.${path}[]`, list, true, path, ITEM_ROLES.kinds),
      write: asList((body) => writePlain(body, items.elements.kinds, itemCount)),
    });
  }

  /** Makes a name unique: `a:numbers` may be a path, too, and DuckDB ignores case. */
  #field(name: string, type: DataType, isNullable: boolean, path: string, role: Role): Field {
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

/** The typed columns for the kinds that a column has; adds its dictionary to `dictionaries`. */
function typedValues(
  column: MetadataColumn,
  length: number,
  dictionaries: DictionaryToWrite[],
): TypedValues[] {
  const seen = kindsSeen(column.kinds);
  const { kinds, numbers, residues, codes, dictionary, dictionaryCount } = column;
  const result: TypedValues[] = [];
  if (seen[KIND.number]) {
    result.push({
      role: 'numbers',
      type: new Float64(),
      write(body) {
        writeValidity(body, kinds, length, KIND.number, KIND.number);
        body.buffer(numbers!.subarray(0, length), length * 8);
      },
    });
  }
  if (residues !== null) {
    result.push({
      role: 'residues',
      type: new Int32(),
      write(body) {
        writeValidity(body, kinds, length, KIND.number, KIND.number);
        body.buffer(residues.subarray(0, length), length * 4);
      },
    });
  }
  if (seen[KIND.string]) {
    const id = dictionaries.length;
    const body = new BodyWriter(FILE_ALIGNMENT);
    body.utf8(dictionary!, 0, dictionaryCount);
    dictionaries.push({ id, count: dictionaryCount, body });
    result.push({
      role: 'strings',
      type: new Dictionary(new Utf8(), new Int32(), id),
      write(target) {
        writeValidity(target, kinds, length, KIND.string, KIND.string);
        target.buffer(codes!.subarray(0, length), length * 4);
      },
    });
  }
  if (seen[KIND.true] || seen[KIND.false]) {
    result.push({
      role: 'booleans',
      type: new Bool(),
      write(body) {
        writeValidity(body, kinds, length, KIND.false, KIND.true);
        body.buffer(bitsOf(kinds, length, KIND.true, KIND.true).bits);
      },
    });
  }
  return result;
}

/** [256]: 1 for each kind that occurs. */
export function kindsSeen(kinds: Uint8Array): Uint8Array {
  const seen = new Uint8Array(256);
  for (let i = 0; i < kinds.length; i++) seen[kinds[i]!] = 1;
  return seen;
}

/** Writes one byte per row, without nulls. */
function writePlain(body: BodyWriter, kinds: Uint8Array, length: number): void {
  body.node(length);
  body.noNulls();
  body.buffer(kinds.subarray(0, length), length);
}

/** Writes node and validity of a column that has values where the kind is within low..high. */
function writeValidity(
  body: BodyWriter,
  kinds: Uint8Array,
  length: number,
  low: number,
  high: number,
): void {
  const { bits, count } = bitsOf(kinds, length, low, high);
  body.node(length, length - count);
  if (count === length) body.noNulls();
  else body.buffer(bits);
}

function bitsOf(
  kinds: Uint8Array,
  length: number,
  low: number,
  high: number,
): { bits: Uint8Array; count: number } {
  const bits = new Uint8Array((length + 7) >>> 3);
  const end = Math.min(length, kinds.length);
  let count = 0;
  for (let row = 0; row < end; row++) {
    const kind = kinds[row]!;
    if (kind >= low && kind <= high) {
      bits[row >>> 3]! |= 1 << (row & 7);
      count++;
    }
  }
  return { bits, count };
}

/** Extends offsets to all rows: rows after the last array have no elements. */
function offsetsOf(offsets: Int32Array, rowCount: number): Int32Array {
  if (offsets.length > rowCount) return offsets.subarray(0, rowCount + 1);
  const whole = sharedInt32(rowCount + 1).fill(offsets.at(-1)!);
  whole.set(offsets);
  return whole;
}
