// Reads FlatBuffers tables from untrusted bytes. Every offset and count is checked before it is used. A budget for
// tables and text prevents a few bytes that refer to each other from expanding into unbounded work.

import { invalidArrow } from './arrow-errors.js';

interface Budget {
  tablesLeft: number;
  textBytesLeft: number;
}

/** A vector of structs: element i starts at `at + i * byteCount`. */
export interface Structs {
  readonly count: number;
  readonly at: number;
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export class FlatTable {
  readonly #view: DataView;
  readonly #at: number;
  readonly #layout: number;
  readonly #layoutBytes: number;
  readonly #budget: Budget;

  private constructor(view: DataView, at: number, budget: Budget) {
    if (--budget.tablesLeft < 0) throw invalidArrow('more tables in metadata than fit into it');
    this.#view = view;
    this.#at = at;
    this.#budget = budget;
    this.#expect(at, 4);
    this.#layout = at - view.getInt32(at, true);
    this.#expect(this.#layout, 4);
    this.#layoutBytes = view.getUint16(this.#layout, true);
    this.#expect(this.#layout, this.#layoutBytes);
  }

  static root(bytes: Uint8Array): FlatTable {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    if (bytes.byteLength < 8) throw invalidArrow(`${bytes.byteLength} bytes of metadata`);
    // A table takes at least four bytes, and no Arrow writer shares text between fields.
    const budget = { tablesLeft: bytes.byteLength / 4, textBytesLeft: bytes.byteLength };
    return new FlatTable(view, view.getUint32(0, true), budget);
  }

  bool(index: number): boolean {
    return this.uint8(index) !== 0;
  }

  uint8(index: number): number {
    const at = this.#scalarAt(index, 1);
    return at === 0 ? 0 : this.#view.getUint8(at);
  }

  int16(index: number, absent = 0): number {
    const at = this.#scalarAt(index, 2);
    return at === 0 ? absent : this.#view.getInt16(at, true);
  }

  int32(index: number, absent = 0): number {
    const at = this.#scalarAt(index, 4);
    return at === 0 ? absent : this.#view.getInt32(at, true);
  }

  int64(index: number): number {
    const at = this.#scalarAt(index, 8);
    return at === 0 ? 0 : this.int64At(at);
  }

  /** Reads from a struct. Numbers beyond 2^53 are rounded; the limits of callers are far below. */
  int64At(at: number): number {
    return this.#view.getInt32(at + 4, true) * 2 ** 32 + this.#view.getUint32(at, true);
  }

  int32At(at: number): number {
    return this.#view.getInt32(at, true);
  }

  /** Returns '' if the text is absent. */
  text(index: number): string {
    const at = this.#referenceAt(index);
    if (at === 0) return '';
    const length = this.#vectorLength(at, 1);
    this.#budget.textBytesLeft -= length;
    if (this.#budget.textBytesLeft < 0)
      throw invalidArrow('more text in metadata than fits into it');
    const { buffer, byteOffset } = this.#view;
    try {
      // The bytes are copied because TextDecoder does not accept shared memory.
      return decoder.decode(new Uint8Array(buffer, byteOffset + at + 4, length).slice());
    } catch (error) {
      throw invalidArrow('a name that is not UTF-8', { cause: error });
    }
  }

  table(index: number): FlatTable | null {
    const at = this.#referenceAt(index);
    return at === 0 ? null : new FlatTable(this.#view, at, this.#budget);
  }

  *tables(index: number): Generator<FlatTable> {
    const at = this.#referenceAt(index);
    if (at === 0) return;
    const count = this.#vectorLength(at, 4);
    for (let i = 0; i < count; i++) {
      const elementAt = at + 4 + i * 4;
      const target = elementAt + this.#view.getUint32(elementAt, true);
      yield new FlatTable(this.#view, target, this.#budget);
    }
  }

  structs(index: number, byteCount: number): Structs {
    const at = this.#referenceAt(index);
    return at === 0 ? { count: 0, at } : { count: this.#vectorLength(at, byteCount), at: at + 4 };
  }

  #scalarAt(index: number, byteCount: number): number {
    const entry = 4 + index * 2;
    if (entry + 2 > this.#layoutBytes) return 0;
    const offset = this.#view.getUint16(this.#layout + entry, true);
    if (offset === 0) return 0;
    this.#expect(this.#at + offset, byteCount);
    return this.#at + offset;
  }

  #referenceAt(index: number): number {
    const at = this.#scalarAt(index, 4);
    return at === 0 ? 0 : at + this.#view.getUint32(at, true);
  }

  #vectorLength(at: number, elementBytes: number): number {
    this.#expect(at, 4);
    const length = this.#view.getUint32(at, true);
    this.#expect(at + 4, length * elementBytes);
    return length;
  }

  #expect(at: number, byteCount: number): void {
    if (at >= 0 && at + byteCount <= this.#view.byteLength) return;
    throw invalidArrow(
      `a reference to bytes ${at} to ${at + byteCount} of ${this.#view.byteLength} bytes of metadata`,
    );
  }
}
