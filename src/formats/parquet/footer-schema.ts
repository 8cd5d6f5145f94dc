// Reads from the footer of a Parquet file which columns are UUIDs, because decoders to Arrow drop this information.
// The decoder has already read the footer, so it is assumed to be valid.
// https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift

import { decodeUtf8 } from '../../common/bytes.js';

/** Field ids in the footer. */
const SCHEMA = 2;
const NAME = 4;
const CHILD_COUNT = 5;
const LOGICAL_TYPE = 10;
const UUID = 14;

/** A file ends with the length of the footer and the magic. */
export const FOOTER_END_BYTES = 8;

/** Returns the names of the top-level columns with the logical type UUID. */
export function uuidColumnsOf(footer: Uint8Array): string[] {
  const [root, ...elements] = schemaOf(new ThriftReader(footer));
  const names: string[] = [];
  let at = 0;
  for (let child = 0; child < Number(root?.get(CHILD_COUNT) ?? 0); child++) {
    const element = elements[at];
    if (element === undefined) break;
    const type = element.get(LOGICAL_TYPE);
    if (type instanceof Map && type.has(UUID)) names.push(String(element.get(NAME)));
    at += descendantCount(elements, at) + 1;
  }
  return names;
}

/** Counts the descendants of an element. Elements are listed depth first. */
function descendantCount(elements: readonly ThriftFields[], at: number): number {
  let pending = 1;
  let end = at;
  for (; pending > 0 && end < elements.length; end++) {
    pending += Number(elements[end]!.get(CHILD_COUNT) ?? 0) - 1;
  }
  return end - at - 1;
}

function schemaOf(reader: ThriftReader): readonly ThriftFields[] {
  for (const [id, value] of reader.fields()) if (id === SCHEMA) return value as ThriftFields[];
  return [];
}

/** Values by field id: numbers, booleans, text, lists of values, or the fields of a struct. */
type ThriftFields = ReadonlyMap<number, unknown>;

/** Types of Thrift's compact protocol. */
const TRUE = 1;
const FALSE = 2;
const BYTE = 3;
const DOUBLE = 7;
const BINARY = 8;
const LIST = 9;
const SET = 10;
const STRUCT = 12;

class ThriftReader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** Reads the fields of a struct one by one. */
  *fields(): Generator<[id: number, value: unknown]> {
    let id = 0;
    while (true) {
      const head = this.#byte();
      if (head === 0) return;
      const delta = head >> 4;
      id = delta === 0 ? this.#integer() : id + delta;
      yield [id, this.#value(head & 15)];
    }
  }

  #value(type: number): unknown {
    if (type === TRUE || type === FALSE) return type === TRUE;
    if (type === BYTE) return this.#byte();
    // No column is chosen by a fraction.
    if (type === DOUBLE) return this.#take(8);
    if (type === BINARY) return decodeUtf8(this.#take(this.#varint()));
    if (type === LIST || type === SET) return this.#list();
    if (type === STRUCT) return new Map(this.fields());
    // All other types are integers, because the footer contains no maps.
    return this.#integer();
  }

  #list(): unknown[] {
    const head = this.#byte();
    const count = head >> 4 === 15 ? this.#varint() : head >> 4;
    return Array.from({ length: count }, () => this.#value(head & 15));
  }

  #byte(): number {
    return this.#bytes[this.#at++] ?? 0;
  }

  #take(byteCount: number): Uint8Array {
    this.#at += byteCount;
    return this.#bytes.subarray(this.#at - byteCount, this.#at);
  }

  #varint(): number {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = this.#byte();
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  }

  /** Reads a zigzag-encoded integer. */
  #integer(): number {
    const value = this.#varint();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }
}
