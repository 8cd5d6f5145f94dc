// Writes the part of Thrift's compact protocol that the metadata of Parquet files needs.
// https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md

const I32 = 5;
const I64 = 6;
const BINARY = 8;
const LIST = 9;
const STRUCT = 12;

/** Types of list elements, by number in the protocol. */
type Element = typeof I32 | typeof BINARY | typeof STRUCT;

/** Writes a struct. Its fields must be written in ascending order of their ids. */
export class ThriftStruct {
  readonly #bytes: number[];
  #lastId = 0;

  constructor(bytes: number[] = []) {
    this.#bytes = bytes;
  }

  i32(id: number, value: number): this {
    return this.#integer(id, I32, value);
  }

  /** @param value a safe integer. */
  i64(id: number, value: number): this {
    return this.#integer(id, I64, value);
  }

  text(id: number, value: string): this {
    this.#field(id, BINARY);
    this.#text(value);
    return this;
  }

  struct(id: number, write: (struct: ThriftStruct) => void): this {
    this.#field(id, STRUCT);
    this.#struct(write);
    return this;
  }

  i32List(id: number, values: readonly number[]): this {
    this.#list(id, I32, values.length);
    for (const value of values) this.#varint(zigzag(value));
    return this;
  }

  textList(id: number, values: readonly string[]): this {
    this.#list(id, BINARY, values.length);
    for (const value of values) this.#text(value);
    return this;
  }

  structList<Item>(
    id: number,
    items: readonly Item[],
    write: (struct: ThriftStruct, item: Item) => void,
  ): this {
    this.#list(id, STRUCT, items.length);
    for (const item of items) this.#struct((struct) => write(struct, item));
    return this;
  }

  /** Ends the outermost struct and returns its bytes. */
  end(): Uint8Array {
    this.#bytes.push(0);
    return Uint8Array.from(this.#bytes);
  }

  #integer(id: number, type: number, value: number): this {
    this.#field(id, type);
    this.#varint(zigzag(value));
    return this;
  }

  /** Writes a field header in its short form, which suffices because ids in Parquet's structs are close together. */
  #field(id: number, type: number): void {
    this.#bytes.push(((id - this.#lastId) << 4) | type);
    this.#lastId = id;
  }

  #list(id: number, element: Element, count: number): void {
    this.#field(id, LIST);
    if (count < 15) {
      this.#bytes.push((count << 4) | element);
    } else {
      this.#bytes.push(0xf0 | element);
      this.#varint(count);
    }
  }

  #struct(write: (struct: ThriftStruct) => void): void {
    write(new ThriftStruct(this.#bytes));
    this.#bytes.push(0);
  }

  #text(value: string): void {
    const bytes = Buffer.from(value);
    this.#varint(bytes.length);
    for (const byte of bytes) this.#bytes.push(byte);
  }

  #varint(value: number): void {
    pushVarint(this.#bytes, value);
  }
}

/** Appends unsigned LEB128, which Parquet's levels use, too. */
export function pushVarint(bytes: number[], value: number): void {
  let rest = value;
  while (rest >= 0x80) {
    bytes.push((rest % 0x80) | 0x80);
    rest = Math.floor(rest / 0x80);
  }
  bytes.push(rest);
}

/** Uses arithmetic because bit operations are limited to 32 bits. */
function zigzag(value: number): number {
  return value >= 0 ? value * 2 : -value * 2 - 1;
}
