// Where the records of a log are, by sequence, ascending. Five numbers of an array for each record, instead of an
// object: logs may have millions.

import { firstWhere } from './ordered-map.js';
import { isSamePlace, type Place } from './place.js';

const FIELDS = 5;
/** Removed records stay in the array until they are more than the others, and more than this. */
const REMOVED_MAX = 1024;

export class RecordList {
  /** Sequence, file, offset, byte length and checksum of each record. A copy has the same array. */
  #fields: number[];
  /** Records at the start that were removed. */
  #removed: number;
  /** Records up to here, those that were removed included; a copy does not see what is added later. */
  #end: number;
  #byteLength: number;
  #hasCopies = false;

  /** A copy, which is not to be changed. */
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

  /** The bytes of all records together. */
  get byteLength(): number {
    return this.#byteLength;
  }

  /** The sequence is greater than that of every record before. */
  add(sequence: number, { file, offset, byteLength, checksum }: Place): void {
    this.#fields.push(sequence, file, offset, byteLength, checksum);
    this.#end++;
    this.#byteLength += byteLength;
  }

  #sequenceAt(index: number): number {
    return this.#fields[(this.#removed + index) * FIELDS]!;
  }

  /** The records after this sequence, as they are now. */
  *after(sequence: number): Iterable<{ readonly sequence: number; readonly place: Place }> {
    const first = this.#indexAfter(sequence);
    const fields = this.#fields.slice((this.#removed + first) * FIELDS, this.#end * FIELDS);
    for (let at = 0; at < fields.length; at += FIELDS) {
      yield { sequence: fields[at]!, place: placeIn(fields, at) };
    }
  }

  /** The index of the first record after this sequence. */
  #indexAfter(sequence: number): number {
    return firstWhere(this.count, (index) => this.#sequenceAt(index) > sequence);
  }

  #placeAt(index: number): Place {
    return placeIn(this.#fields, (this.#removed + index) * FIELDS);
  }

  /** Returns the places of the records that were removed. */
  removeThrough(sequence: number): Place[] {
    const count = this.#indexAfter(sequence);
    const places = Array.from({ length: count }, (_, i) => this.#placeAt(i));
    for (const { byteLength } of places) this.#byteLength -= byteLength;
    this.#removed += count;
    if (this.#removed > Math.max(REMOVED_MAX, this.count)) {
      this.#fields = this.#fields.slice(this.#removed * FIELDS);
      this.#end -= this.#removed;
      this.#removed = 0;
      this.#hasCopies = false;
    }
    return places;
  }

  /** Returns whether the record was at `from`, and so was moved. */
  move(sequence: number, from: Place, to: Place): boolean {
    const index = this.#indexAfter(sequence) - 1;
    if (index < 0 || this.#sequenceAt(index) !== sequence) return false;
    if (!isSamePlace(this.#placeAt(index), from)) return false;
    if (this.#hasCopies) this.#fields = [...this.#fields];
    this.#hasCopies = false;
    const at = (this.#removed + index) * FIELDS;
    this.#fields[at + 1] = to.file;
    this.#fields[at + 2] = to.offset;
    return true;
  }
}

function placeIn(fields: readonly number[], at: number): Place {
  return {
    file: fields[at + 1]!,
    offset: fields[at + 2]!,
    byteLength: fields[at + 3]!,
    checksum: fields[at + 4]!,
  };
}
