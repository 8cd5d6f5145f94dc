// A record batch as it came: its bytes and where in them what lies, nothing decoded. Plain data, to
// be handed to a thread of the pool: the batch's body has an ArrayBuffer of its own, which can be
// transferred; dictionaries, which later batches need too, are in shared memory.

import { invalidArrow } from './arrow-errors.js';
import type { BodyShape } from './message.js';
import type { ArrowField } from './schema.js';
import type { ZstdModule } from './zstd.js';

export interface EncodedPart {
  readonly shape: BodyShape;
  /** Starts at byte 0 of its buffer. */
  readonly body: Uint8Array;
  /** There when the codec is zstd; structured clone shares it. */
  readonly zstd?: ZstdModule;
}

/** Parts of each dictionary, in the order of their indexes. */
export type EncodedDictionaries = ReadonlyMap<number, readonly EncodedPart[]>;

export interface EncodedBatch {
  /** Record batches before it, empty ones too. */
  readonly index: number;
  /** Rows before it. */
  readonly firstRow: number;
  readonly rowCount: number;
  readonly fields: readonly ArrowField[];
  readonly part: EncodedPart;
  readonly dictionaries: EncodedDictionaries;
}

/** What can be transferred when the batch goes to another thread; it is then gone from here. */
export function transferables(batch: EncodedBatch): ArrayBuffer[] {
  const { buffer } = batch.part.body;
  return buffer instanceof ArrayBuffer ? [buffer] : [];
}

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
