// Opens the columns of an encoded batch as views of its buffers. A compressed buffer is decompressed when it is first
// read. Checks that buffers are as long as their columns need. The code that follows offsets and indexes in the
// buffers checks them (offsets.ts, strings.ts).

import { invalidArrow } from './arrow-errors.js';
import { decompressInto, uncompressedLengths } from './compression.js';
import type { EncodedBatch, EncodedBody, EncodedDictionaries } from './encoded-batch.js';
import { type ArrowField, type ArrowType, describeType, quoted } from './schema.js';

type ArrayOf<T> = {
  new (buffer: ArrayBufferLike, byteOffset: number, length: number): T;
  readonly BYTES_PER_ELEMENT: number;
};

export interface ArrowColumn {
  readonly field: ArrowField;
  readonly length: number;
  /** Bits, 1 for a value; null if there are no nulls. */
  readonly validity: Uint8Array | null;
  readonly children: readonly ArrowColumn[];
  /** The values that indexes refer to, the dictionary and its deltas; null without a dictionary. */
  readonly dictionary: readonly ArrowColumn[] | null;
  /** The number of buffers after the validity. */
  readonly bufferCount: number;
  /** Returns the first `length` elements of a buffer, counted from 0 after the validity. Throws `invalid_arrow`. */
  buffer<View>(index: number, ArrayType: ArrayOf<View>, length: number): View;
  byteLength(index: number): number;
}

/** The number of buffers after the validity. Columns of views have additional ones, by their variadic count. */
const BUFFER_COUNTS: { readonly [kind in ArrowType['kind']]: number } = {
  null: 0,
  int: 1,
  float: 1,
  bool: 1,
  decimal: 1,
  date: 1,
  time: 1,
  timestamp: 1,
  duration: 1,
  interval: 1,
  fixed_size_binary: 1,
  utf8: 2,
  large_utf8: 2,
  utf8_view: 1,
  binary: 2,
  large_binary: 2,
  binary_view: 1,
  list: 1,
  large_list: 1,
  list_view: 2,
  large_list_view: 2,
  fixed_size_list: 0,
  struct: 0,
  map: 1,
  union: 1,
  run_end_encoded: 0,
};

/**
 * Throws `invalid_arrow`.
 * @param bytesMax limit for the decompressed batch.
 */
export function openColumns(
  batch: Pick<EncodedBatch, 'fields' | 'rowCount' | 'body' | 'dictionaries'>,
  bytesMax: number,
): ArrowColumn[] {
  const { body, dictionaries } = batch;
  // Columns of nulls take no bytes, so without this limit a hundred bytes could demand any amount of work.
  if (batch.rowCount > bytesMax) throw invalidArrow(`${batch.rowCount} rows in a batch`);
  return new BodyReader(body, dictionaries, bytesMax).columns(batch.fields, batch.rowCount);
}

/** Consumes the nodes and buffers of a body in the order of the fields, depth first. */
class BodyReader {
  readonly #body: EncodedBody;
  readonly #dictionaries: EncodedDictionaries;
  readonly #bytesMax: number;
  readonly #lengths: Float64Array;
  readonly #decompressed = new Map<number, Uint8Array>();
  #nodeIndex = 0;
  #regionIndex = 0;
  #variadicIndex = 0;

  constructor(body: EncodedBody, dictionaries: EncodedDictionaries, bytesMax: number) {
    this.#body = body;
    this.#dictionaries = dictionaries;
    this.#bytesMax = bytesMax;
    this.#lengths = uncompressedLengths(body, bytesMax);
  }

  columns(fields: readonly ArrowField[], rowCount: number): ArrowColumn[] {
    const columns = fields.map((field) => this.#column(field, rowCount, true));
    const { nodes } = this.#body.shape;
    if (this.#nodeIndex !== nodes.length / 2 || this.#regionIndex !== this.#lengths.length) {
      throw invalidArrow(`${nodes.length / 2} columns with ${this.#lengths.length} buffers`, {
        expected: `${this.#nodeIndex} columns with ${this.#regionIndex} buffers`,
      });
    }
    return columns;
  }

  #column(field: ArrowField, lengthMin: number, isExact: boolean): ArrowColumn {
    const { nodes, variadicCounts } = this.#body.shape;
    const node = this.#nodeIndex++;
    const length = nodes[node * 2];
    const nullCount = nodes[node * 2 + 1];
    if (length === undefined || length < lengthMin || (isExact && length !== lengthMin)) {
      const found = length === undefined ? 'no' : length;
      throw invalidArrow(`${found} values in column ${quoted(field.name)}`, {
        expected: lengthMin,
      });
    }
    const { type, dictionary } = field;
    const hasDictionary = dictionary !== null;
    const hasValidity = hasDictionary || !['null', 'union', 'run_end_encoded'].includes(type.kind);
    const validity = hasValidity ? this.#validity(field, length, nullCount!) : null;
    let bufferCount = hasDictionary ? 1 : BUFFER_COUNTS[type.kind];
    if (!hasDictionary && (type.kind === 'utf8_view' || type.kind === 'binary_view')) {
      const more = variadicCounts[this.#variadicIndex++] ?? -1;
      if (!(more >= 0)) throw invalidArrow(`${more} data buffers of column ${quoted(field.name)}`);
      bufferCount += more;
    }
    if (!hasDictionary && type.kind === 'union' && type.isDense) bufferCount++;
    const first = this.#regionIndex;
    if (first + bufferCount > this.#lengths.length) {
      throw invalidArrow(`${this.#lengths.length} buffers`, {
        expected: `more buffers for ${describeType(field)}`,
      });
    }
    this.#regionIndex += bufferCount;
    const children = hasDictionary ? [] : this.#children(field, length);
    return {
      field,
      length,
      validity,
      children,
      dictionary: hasDictionary ? this.#values(field, dictionary.id) : null,
      bufferCount,
      buffer: (index, ArrayType, elements) => this.#view(first + index, ArrayType, elements, field),
      byteLength: (index) => this.#lengths[first + index] ?? 0,
    };
  }

  #children(field: ArrowField, length: number): ArrowColumn[] {
    const { type } = field;
    if (type.kind === 'struct') {
      return field.children.map((child) => this.#column(child, length, false));
    }
    const lengthMin = type.kind === 'fixed_size_list' ? length * type.listSize : 0;
    return field.children.map((child) => this.#column(child, lengthMin, false));
  }

  #values(field: ArrowField, id: number): ArrowColumn[] {
    const bodies = this.#dictionaries.get(id);
    // Without a dictionary every index is out of range, yet a column of nulls is valid.
    if (bodies === undefined) return [];
    return bodies.map((body) => {
      const reader = new BodyReader(body, this.#dictionaries, this.#bytesMax);
      return reader.columns([{ ...field, dictionary: null }], body.shape.rowCount)[0]!;
    });
  }

  #validity(field: ArrowField, length: number, nullCount: number): Uint8Array | null {
    const index = this.#regionIndex++;
    if (index >= this.#lengths.length) {
      throw invalidArrow(`${this.#lengths.length} buffers`, {
        expected: `more buffers for ${describeType(field)}`,
      });
    }
    if (nullCount === 0) return null;
    return this.#view(index, Uint8Array, Math.ceil(length / 8), field);
  }

  #view<View>(index: number, ArrayType: ArrayOf<View>, length: number, field: ArrowField): View {
    const needed = length * ArrayType.BYTES_PER_ELEMENT;
    const found = this.#lengths[index]!;
    if (found < needed) {
      throw invalidArrow(`${found} bytes in a buffer of column ${quoted(field.name)}`, {
        expected: `at least ${needed} bytes`,
      });
    }
    if (length === 0) return new ArrayType(new ArrayBuffer(0), 0, 0);
    const bytes = this.#bytes(index);
    if (bytes.byteOffset % ArrayType.BYTES_PER_ELEMENT === 0) {
      return new ArrayType(bytes.buffer, bytes.byteOffset, length);
    }
    return new ArrayType(new Uint8Array(bytes.subarray(0, needed)).buffer, 0, length);
  }

  #bytes(index: number): Uint8Array {
    const { shape, bytes } = this.#body;
    if (shape.codec === null) {
      const offset = shape.regions[index * 2]!;
      return bytes.subarray(offset, offset + shape.regions[index * 2 + 1]!);
    }
    let buffer = this.#decompressed.get(index);
    if (buffer === undefined) {
      buffer = new Uint8Array(this.#lengths[index]!);
      decompressInto(this.#body, index, buffer);
      this.#decompressed.set(index, buffer);
    }
    return buffer;
  }
}

export function isValid(validity: Uint8Array | null, row: number): boolean {
  return validity === null || (validity[row >> 3]! & (1 << (row & 7))) !== 0;
}
