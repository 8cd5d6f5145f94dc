// The body of an Arrow record batch, buffer by buffer: what makeData and the writers of apache-arrow
// do, but with aligned buffers beyond 2 GiB, without copies, and with every bound checked on the way
// in. The metadata around it (schema, messages, footer) is apache-arrow's.

import { BufferRegion, FieldNode, type RecordBatch } from 'apache-arrow/ipc/metadata/message';
import { SagittaError } from '../../common/errors.js';
import type { Utf8Column } from '../../common/types.js';

/** Below this a copy costs less than a chunk of its own does on its way out. */
const CHUNK_BYTES_MIN = 16_384;

/** Bytes to come, each at its place; what lies between is zero. */
export class Layout {
  length = 0;
  readonly #pieces: { readonly at: number; readonly bytes: Uint8Array }[] = [];

  add(view: ArrayBufferView): void {
    const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
    this.#pieces.push({ at: this.length, bytes });
    this.length += bytes.byteLength;
  }

  skip(byteCount: number): void {
    this.length += byteCount;
  }

  align(alignment: number): void {
    this.length = Math.ceil(this.length / alignment) * alignment;
  }

  append(other: Layout): void {
    for (const { at, bytes } of other.#pieces) this.#pieces.push({ at: this.length + at, bytes });
    this.length += other.length;
  }

  /** All bytes in order: large pieces as they are, small ones and the zeros between put together. */
  toChunks(): Uint8Array[] {
    const chunks: Uint8Array[] = [];
    let start = 0;
    let joined: { readonly at: number; readonly bytes: Uint8Array }[] = [];
    const join = (end: number) => {
      if (end === start) return;
      const chunk = new Uint8Array(end - start);
      for (const { at, bytes } of joined) chunk.set(bytes, at - start);
      chunks.push(chunk);
    };
    for (const piece of this.#pieces) {
      if (piece.bytes.byteLength < CHUNK_BYTES_MIN) {
        joined.push(piece);
        continue;
      }
      join(piece.at);
      chunks.push(piece.bytes);
      start = piece.at + piece.bytes.byteLength;
      joined = [];
    }
    join(this.length);
    return chunks;
  }

  /** Fills the first `length` bytes of the target, whatever was there. */
  copyInto(target: Uint8Array): Uint8Array {
    let end = 0;
    for (const { at, bytes } of this.#pieces) {
      target.fill(0, end, at);
      target.set(bytes, at);
      end = at + bytes.byteLength;
    }
    target.fill(0, end, this.length);
    return target;
  }
}

/** Collects nodes and buffers in the order of the schema's fields, depth first. */
export class BodyWriter {
  readonly layout = new Layout();
  readonly nodes: FieldNode[] = [];
  readonly regions: BufferRegion[] = [];
  readonly #alignment: number;

  constructor(alignment: number) {
    this.#alignment = alignment;
  }

  node(length: number, nullCount = 0): void {
    this.nodes.push(new FieldNode(length, nullCount));
  }

  /** `byteLength` beyond the view's is filled with zeros. The view is read when the whole is written. */
  buffer(view: ArrayBufferView, byteLength = view.byteLength): void {
    this.regions.push(new BufferRegion(this.layout.length, byteLength));
    this.layout.add(view);
    this.layout.skip(byteLength - view.byteLength);
    this.layout.align(this.#alignment);
  }

  /** The validity of a column without nulls. */
  noNulls(): void {
    this.regions.push(new BufferRegion(this.layout.length, 0));
  }

  /** Non-null strings `from..from + count`. */
  utf8(column: Utf8Column, from: number, count: number): void {
    const start = column.offsets[from]!;
    let offsets = column.offsets.subarray(from, from + count + 1);
    if (start !== 0) offsets = offsets.map((offset) => offset - start);
    this.node(count);
    this.noNulls();
    this.buffer(offsets);
    this.buffer(column.bytes.subarray(start, column.offsets[from + count]!));
  }
}

export type ArrayOf<T> = {
  new (buffer: ArrayBufferLike, byteOffset: number, length: number): T;
  readonly BYTES_PER_ELEMENT: number;
};

/** Gives views of the body's buffers in the order of the schema's fields; throws `data_corrupt`. */
export class BodyReader {
  readonly rowCount: number;
  readonly #body: Uint8Array;
  readonly #batch: RecordBatch;
  #nodeIndex = 0;
  #bufferIndex = 0;

  /** `body` starts at a multiple of 8 in its buffer. */
  constructor(body: Uint8Array, batch: RecordBatch) {
    if (batch.compression !== null) throw corrupt('a compressed body, expected a plain one');
    this.rowCount = checkedLength(batch.length, 'rows');
    this.#body = body;
    this.#batch = batch;
  }

  /** The next column's length, which has to be `expected`. */
  node(expected: number): void {
    const found = this.#batch.nodes[this.#nodeIndex]?.length;
    if (found !== expected) {
      throw corrupt(`${found ?? 'no'} values in column ${this.#nodeIndex}, expected ${expected}`);
    }
    this.#nodeIndex++;
  }

  /** The first `length` elements of the next buffer, without a copy. */
  buffer<T>(ArrayType: ArrayOf<T>, length: number): T {
    const { offset, byteLength } = this.#nextRegion();
    const needed = length * ArrayType.BYTES_PER_ELEMENT;
    if (byteLength < needed) {
      throw corrupt(`${byteLength} bytes in buffer ${this.#bufferIndex - 1}, expected ${needed}`);
    }
    // An empty buffer may lie anywhere.
    return new ArrayType(this.#body.buffer, length === 0 ? 0 : offset, length);
  }

  /** What can be had from elsewhere: validity, which the kinds repeat. */
  skipBuffer(): void {
    this.#nextRegion();
  }

  utf8(count: number): Utf8Column {
    this.node(count);
    this.skipBuffer();
    const offsets = this.buffer(Int32Array, count + 1);
    const { offset, byteLength } = this.#nextRegion();
    checkOffsets(offsets, byteLength);
    return { offsets, bytes: new Uint8Array(this.#body.buffer, offset, byteLength) };
  }

  #nextRegion(): { offset: number; byteLength: number } {
    const region = this.#batch.buffers[this.#bufferIndex];
    if (region === undefined) throw corrupt(`${this.#bufferIndex} buffers, expected more`);
    const { offset, length } = region;
    if (!(offset >= 0 && length >= 0 && offset + length <= this.#body.byteLength)) {
      throw corrupt(
        `buffer ${this.#bufferIndex} at bytes ${offset} to ${offset + length} of a body of ${this.#body.byteLength}`,
      );
    }
    if (offset % 8 !== 0) throw corrupt(`buffer ${this.#bufferIndex} at byte ${offset}, unaligned`);
    this.#bufferIndex++;
    return { offset: this.#body.byteOffset + offset, byteLength: length };
  }
}

/** Offsets never decrease and stay inside of what they point into. */
export function checkOffsets(offsets: Int32Array, end: number): void {
  let previous = 0;
  for (let i = 0; i < offsets.length; i++) {
    const offset = offsets[i]!;
    if (offset < previous) throw corrupt(`offset ${offset} after ${previous}`);
    previous = offset;
  }
  if (previous > end) throw corrupt(`offset ${previous} into ${end} bytes or elements`);
}

/** Typed arrays are indexed by what this lets through. */
export function checkedLength(value: number, what: string): number {
  if (!Number.isSafeInteger(value) || value < 0) throw corrupt(`${value} ${what}`);
  return value;
}

/** Names and formats that stand in a damaged file can be anything of any length. */
const FOUND_CHARACTERS_MAX = 200;

/** `found` says what was found and, where it helps, what was expected. */
export function corrupt(found: string, cause?: unknown): SagittaError {
  const printable = found.replace(/[^\x20-\x7e]/g, '?').slice(0, FOUND_CHARACTERS_MAX);
  return new SagittaError('data_corrupt', `Found ${printable}.`, { cause });
}

/** Runs a reader of apache-arrow, which meets damage with errors of every kind. */
export function guarded<T>(what: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof SagittaError) throw error;
    throw corrupt(`${what} that cannot be read`, error);
  }
}
