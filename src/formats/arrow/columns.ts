// The columns of an encoded batch: views of its buffers, decompressed where they are asked for. That a
// buffer is as long as its column needs is checked here; what stands in offsets and indexes is
// checked by those who follow them.

import { invalidArrow } from './arrow-errors.js';
import { decompressInto, uncompressedLengths } from './compression.js';
import type { EncodedBatch, EncodedDictionaries, EncodedPart } from './encoded-batch.js';
import { type ArrowField, type ArrowType, describeType, quoted } from './schema.js';

export type ArrayOf<T> = {
  new (buffer: ArrayBufferLike, byteOffset: number, length: number): T;
  readonly BYTES_PER_ELEMENT: number;
};

export interface Column {
  readonly field: ArrowField;
  readonly length: number;
  /** Bits, 1 for a value; null when there are no nulls. */
  readonly validity: Uint8Array | null;
  readonly children: readonly Column[];
  /** The values that indexes point at, part after part; null when there is no dictionary. */
  readonly dictionary: readonly Column[] | null;
  /** Buffers after the validity. */
  readonly bufferCount: number;
  /** The first `length` elements of a buffer after the validity. */
  buffer<View>(index: number, ArrayType: ArrayOf<View>, length: number): View;
  byteLength(index: number): number;
}

/** Buffers after the validity, where there is one; columns of views have as many more as they say. */
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

/** Throws `invalid_arrow`. @param bytesMax of the batch, decompressed. */
export function openColumns(
  batch: Pick<EncodedBatch, 'fields' | 'rowCount' | 'part' | 'dictionaries'>,
  bytesMax: number,
): Column[] {
  const { part, dictionaries } = batch;
  // Columns of nulls have no bytes: without a bound, a hundred bytes could stand for any work.
  if (batch.rowCount > bytesMax) throw invalidArrow(`${batch.rowCount} rows in a batch`);
  return new PartReader(part, dictionaries, bytesMax).columns(batch.fields, batch.rowCount);
}

/** Takes nodes and buffers of a part in the order of the fields, depth first. */
class PartReader {
  readonly #part: EncodedPart;
  readonly #dictionaries: EncodedDictionaries;
  readonly #bytesMax: number;
  readonly #lengths: Float64Array;
  readonly #decompressed = new Map<number, Uint8Array>();
  #nodeIndex = 0;
  #regionIndex = 0;
  #variadicIndex = 0;

  constructor(part: EncodedPart, dictionaries: EncodedDictionaries, bytesMax: number) {
    this.#part = part;
    this.#dictionaries = dictionaries;
    this.#bytesMax = bytesMax;
    this.#lengths = uncompressedLengths(part, bytesMax);
  }

  columns(fields: readonly ArrowField[], rowCount: number): Column[] {
    const columns = fields.map((field) => this.#column(field, rowCount, true));
    const { nodes } = this.#part.shape;
    if (this.#nodeIndex !== nodes.length / 2 || this.#regionIndex !== this.#lengths.length) {
      throw invalidArrow(
        `${nodes.length / 2} columns with ${this.#lengths.length} buffers, ` +
          `expected ${this.#nodeIndex} with ${this.#regionIndex}`,
      );
    }
    return columns;
  }

  #column(field: ArrowField, lengthMin: number, isExact: boolean): Column {
    const { nodes, variadicCounts } = this.#part.shape;
    const node = this.#nodeIndex++;
    const length = nodes[node * 2];
    const nullCount = nodes[node * 2 + 1];
    if (length === undefined || length < lengthMin || (isExact && length !== lengthMin)) {
      const found = length === undefined ? 'no' : length;
      throw invalidArrow(`${found} values in column ${quoted(field.name)}, expected ${lengthMin}`);
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
      throw invalidArrow(`${this.#lengths.length} buffers, expected more (${describeType(field)})`);
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

  #children(field: ArrowField, length: number): Column[] {
    const { type } = field;
    if (type.kind === 'struct') {
      return field.children.map((child) => this.#column(child, length, false));
    }
    const lengthMin = type.kind === 'fixed_size_list' ? length * type.listSize : 0;
    return field.children.map((child) => this.#column(child, lengthMin, false));
  }

  #values(field: ArrowField, id: number): Column[] {
    const parts = this.#dictionaries.get(id);
    // Without one, every index is out of range, and columns of nulls are still read.
    if (parts === undefined) return [];
    return parts.map((part) => {
      const reader = new PartReader(part, this.#dictionaries, this.#bytesMax);
      return reader.columns([{ ...field, dictionary: null }], part.shape.rowCount)[0]!;
    });
  }

  #validity(field: ArrowField, length: number, nullCount: number): Uint8Array | null {
    const index = this.#regionIndex++;
    if (index >= this.#lengths.length) {
      throw invalidArrow(`${this.#lengths.length} buffers, expected more (${describeType(field)})`);
    }
    if (nullCount === 0) return null;
    return this.#view(index, Uint8Array, Math.ceil(length / 8), field);
  }

  #view<View>(index: number, ArrayType: ArrayOf<View>, length: number, field: ArrowField): View {
    const needed = length * ArrayType.BYTES_PER_ELEMENT;
    const found = this.#lengths[index]!;
    if (found < needed) {
      throw invalidArrow(
        `${found} bytes in a buffer of column ${quoted(field.name)}, expected at least ${needed}`,
      );
    }
    if (length === 0) return new ArrayType(new ArrayBuffer(0), 0, 0);
    const bytes = this.#bytes(index);
    if (bytes.byteOffset % ArrayType.BYTES_PER_ELEMENT === 0) {
      return new ArrayType(bytes.buffer, bytes.byteOffset, length);
    }
    return new ArrayType(new Uint8Array(bytes.subarray(0, needed)).buffer, 0, length);
  }

  #bytes(index: number): Uint8Array {
    const { shape, body } = this.#part;
    if (shape.codec === null) {
      const offset = shape.regions[index * 2]!;
      return body.subarray(offset, offset + shape.regions[index * 2 + 1]!);
    }
    let bytes = this.#decompressed.get(index);
    if (bytes === undefined) {
      bytes = new Uint8Array(this.#lengths[index]!);
      decompressInto(this.#part, index, bytes);
      this.#decompressed.set(index, bytes);
    }
    return bytes;
  }
}

export function isValid(validity: Uint8Array | null, row: number): boolean {
  return validity === null || (validity[row >> 3]! & (1 << (row & 7))) !== 0;
}
