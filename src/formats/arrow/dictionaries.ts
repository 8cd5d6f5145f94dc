// The dictionaries of a stream as they stand between its record batches: replaced, or longer by
// deltas. All together have a bound.

import { invalidArrow } from './arrow-errors.js';
import type { EncodedDictionaries, EncodedPart } from './encoded-batch.js';
import type { ArrowField } from './schema.js';

/** Each delta is a part that every later batch is read with. */
const PARTS_MAX = 4_096;

export class Dictionaries {
  readonly #bytesMax: number;
  readonly #ids = new Set<number>();
  #parts = new Map<number, readonly EncodedPart[]>();
  #partCount = 0;
  byteCount = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Those of these fields are taken. */
  setFields(fields: readonly ArrowField[]): void {
    for (const { dictionary, children } of fields) {
      if (dictionary !== null) this.#ids.add(dictionary.id);
      this.setFields(children);
    }
  }

  expect(id: number): void {
    if (!this.#ids.has(id)) throw invalidArrow(`dictionary ${id}, which is not in the schema`);
  }

  /** `part` is not compressed. */
  add(id: number, part: EncodedPart, isDelta: boolean): void {
    const before = this.#parts.get(id) ?? [];
    const parts = isDelta ? [...before, part] : [part];
    this.#partCount += parts.length - before.length;
    this.byteCount += part.body.length;
    if (!isDelta) for (const { body } of before) this.byteCount -= body.length;
    if (this.byteCount > this.#bytesMax) {
      throw invalidArrow(`dictionaries of ${this.byteCount} bytes, expected ${this.#bytesMax}`);
    }
    if (this.#partCount > PARTS_MAX) throw invalidArrow(`more than ${PARTS_MAX} deltas`);
    // A new map: batches that were yielded keep theirs.
    this.#parts = new Map(this.#parts).set(id, parts);
  }

  snapshot(): EncodedDictionaries {
    return this.#parts;
  }

  clear(): void {
    this.#parts = new Map();
    this.byteCount = 0;
  }
}
