// Walks the FlatBuffers metadata of Arrow before apache-arrow decodes it, since that trusts every
// offset and count: one changed byte can make it read four thousand million nodes. Guarantees that
// tables, vectors and strings lie inside the bytes and that there are not more of them than bytes.

import { corrupt } from './body.js';

/** What a field of a table refers to; scalars and unknown tables need no look. */
type Reference =
  | Table
  | 'string'
  | { readonly table: () => Table }
  | { readonly elementBytes: number };
/** By index of the field; a hole is a scalar. */
interface Table {
  readonly name: string;
  readonly fields: { readonly [index: number]: Reference };
}

const KEY_VALUE: Table = { name: 'KeyValue', fields: { 0: 'string', 1: 'string' } };
const KEY_VALUES = { table: () => KEY_VALUE };
const FIELD: Table = {
  name: 'Field',
  fields: { 0: 'string', 5: { table: () => FIELD }, 6: KEY_VALUES },
};
const SCHEMA: Table = {
  name: 'Schema',
  fields: { 1: { table: () => FIELD }, 2: KEY_VALUES, 3: { elementBytes: 8 } },
};
const RECORD_BATCH: Table = {
  name: 'RecordBatch',
  fields: { 1: { elementBytes: 16 }, 2: { elementBytes: 16 }, 4: { elementBytes: 8 } },
};
const DICTIONARY_BATCH: Table = { name: 'DictionaryBatch', fields: { 1: RECORD_BATCH } };
const FOOTER: Table = {
  name: 'Footer',
  fields: { 1: SCHEMA, 2: { elementBytes: 24 }, 3: { elementBytes: 24 }, 4: KEY_VALUES },
};
const MESSAGE: Table = { name: 'Message', fields: { 4: KEY_VALUES } };

/** By MessageHeader; the header is the message's field 2. */
const HEADERS: { readonly [type: number]: Table } = {
  1: SCHEMA,
  2: DICTIONARY_BATCH,
  3: RECORD_BATCH,
};
const HEADER_TYPE_FIELD = 1;
const HEADER_FIELD = 2;

/** Ours are a schema of lists of values: three. */
const DEPTH_MAX = 8;

/** Throws `data_corrupt`. */
export function checkFooter(bytes: Uint8Array): void {
  new Walk(bytes).root(FOOTER);
}

/** Throws `data_corrupt`. */
export function checkMessage(bytes: Uint8Array): void {
  const walk = new Walk(bytes);
  const message = walk.root(MESSAGE);
  const typeAt = walk.fieldAt(message, HEADER_TYPE_FIELD);
  const type = typeAt === 0 ? 0 : walk.uint8(typeAt);
  const header = HEADERS[type];
  const headerAt = walk.fieldAt(message, HEADER_FIELD);
  if (header === undefined || headerAt === 0) throw corrupt(`a message of type ${type}`);
  walk.table(headerAt + walk.uint32(headerAt), header, 1);
}

class Walk {
  readonly #view: DataView;
  /** Tables may overlap; without a bound a few bytes could stand for any number of them. */
  #tablesLeft: number;

  constructor(bytes: Uint8Array) {
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#tablesLeft = bytes.byteLength;
  }

  root(table: Table): number {
    const at = this.uint32(0);
    this.table(at, table, 0);
    return at;
  }

  table(at: number, { name, fields }: Table, depth: number): void {
    this.#tablesLeft--;
    if (depth > DEPTH_MAX || this.#tablesLeft < 0) throw corrupt(`too many tables in a ${name}`);
    for (const [index, reference] of Object.entries(fields)) {
      const fieldAt = this.fieldAt(at, Number(index));
      if (fieldAt === 0) continue;
      const target = fieldAt + this.uint32(fieldAt);
      if (reference === 'string') {
        this.#vectorLength(target, 1);
      } else if ('elementBytes' in reference) {
        this.#vectorLength(target, reference.elementBytes);
      } else if ('table' in reference) {
        const length = this.#vectorLength(target, 4);
        for (let i = 0; i < length; i++) {
          const elementAt = target + 4 + i * 4;
          this.table(elementAt + this.uint32(elementAt), reference.table(), depth + 1);
        }
      } else {
        this.table(target, reference, depth + 1);
      }
    }
  }

  /** Where the field of the table lies, or 0 when it is absent. */
  fieldAt(table: number, index: number): number {
    this.#expect(table, 4);
    const layout = table - this.#view.getInt32(table, true);
    this.#expect(layout, 4);
    const entry = 4 + index * 2;
    if (entry + 2 > this.#view.getInt16(layout, true)) return 0;
    this.#expect(layout + entry, 2);
    const offset = this.#view.getInt16(layout + entry, true);
    return offset === 0 ? 0 : table + offset;
  }

  uint8(at: number): number {
    this.#expect(at, 1);
    return this.#view.getUint8(at);
  }

  uint32(at: number): number {
    this.#expect(at, 4);
    return this.#view.getUint32(at, true);
  }

  #vectorLength(at: number, elementBytes: number): number {
    const length = this.uint32(at);
    this.#expect(at + 4, length * elementBytes);
    return length;
  }

  #expect(at: number, byteCount: number): void {
    if (!(at >= 0 && at + byteCount <= this.#view.byteLength)) {
      throw corrupt(
        `a reference to bytes ${at} to ${at + byteCount} of ${this.#view.byteLength} bytes of metadata`,
      );
    }
  }
}
