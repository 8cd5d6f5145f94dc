// Where the records of a log are, in ascending order of their sequences. A log may have millions of records, so each
// takes five numbers in one array instead of an object.

import { type Extent, isSameExtent } from './extent.js';
import { firstWhere } from './ordered-map.js';

const FIELDS = 5;
/** Removed records stay in the array until there are more of them than of the others, and more than this. */
const REMOVED_MAX = 1024;

export class RecordList {
  /** Sequence, file, offset, byte length and checksum of each record. Copies share the array. */
  #fields: number[];
  /** Number of removed records at the start of the array. */
  #removed: number;
  /** Number of records in the array, including removed ones. A copy does not see records added later. */
  #end: number;
  #byteLength: number;
  #hasCopies = false;

  /** Makes a read-only copy. */
  constructor(source?: RecordList) {
    this.#fields = source ? source.#fields : [];
    this.#removed = source ? source.#removed : 0;
    this.#end = source ? source.#end : 0;
    this.#byteLength = source?.byteLength ?? 0;
    if (source !== undefined) source.#hasCopies = true;
  }

  get count(): number {
    return this.#end - this.#removed;
  }

  /** Total size of all records. */
  get byteLength(): number {
    return this.#byteLength;
  }

  /** `sequence` must be greater than that of all earlier records. */
  add(sequence: number, { file, offset, byteLength, checksum }: Extent): void {
    this.#fields.push(sequence, file, offset, byteLength, checksum);
    this.#end++;
    this.#byteLength += byteLength;
  }

  #sequenceAt(index: number): number {
    return this.#fields[(this.#removed + index) * FIELDS]!;
  }

  /** The records after this sequence at the time of the call. */
  *after(sequence: number): Iterable<{ readonly sequence: number; readonly extent: Extent }> {
    const first = this.#indexAfter(sequence);
    const fields = this.#fields.slice((this.#removed + first) * FIELDS, this.#end * FIELDS);
    for (let at = 0; at < fields.length; at += FIELDS) {
      yield { sequence: fields[at]!, extent: extentIn(fields, at) };
    }
  }

  /** Index of the first record after this sequence. */
  #indexAfter(sequence: number): number {
    return firstWhere(this.count, (index) => this.#sequenceAt(index) > sequence);
  }

  #extentAt(index: number): Extent {
    return extentIn(this.#fields, (this.#removed + index) * FIELDS);
  }

  /** Returns the extents of the removed records. */
  removeThrough(sequence: number): Extent[] {
    const count = this.#indexAfter(sequence);
    const extents = Array.from({ length: count }, (_, i) => this.#extentAt(i));
    for (const { byteLength } of extents) this.#byteLength -= byteLength;
    this.#removed += count;
    if (this.#removed > Math.max(REMOVED_MAX, this.count)) {
      this.#fields = this.#fields.slice(this.#removed * FIELDS);
      this.#end -= this.#removed;
      this.#removed = 0;
      this.#hasCopies = false;
    }
    return extents;
  }

  /** Moves the record if it is still at `from`; returns whether it was. */
  move(sequence: number, from: Extent, to: Extent): boolean {
    const index = this.#indexAfter(sequence) - 1;
    if (index < 0 || this.#sequenceAt(index) !== sequence) return false;
    if (!isSameExtent(this.#extentAt(index), from)) return false;
    if (this.#hasCopies) this.#fields = [...this.#fields];
    this.#hasCopies = false;
    const at = (this.#removed + index) * FIELDS;
    this.#fields[at + 1] = to.file;
    this.#fields[at + 2] = to.offset;
    return true;
  }
}

function extentIn(fields: readonly number[], at: number): Extent {
  return {
    file: fields[at + 1]!,
    offset: fields[at + 2]!,
    byteLength: fields[at + 3]!,
    checksum: fields[at + 4]!,
  };
}
