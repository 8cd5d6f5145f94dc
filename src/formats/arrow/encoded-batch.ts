// A record batch as received: its bytes and the layout of its buffers, with nothing decoded. It is plain data for a
// worker thread. The body of the batch has its own ArrayBuffer, which can be transferred; dictionaries, which later
// batches need too, are in shared memory.

import { invalidArrow } from './arrow-errors.js';
import type { BodyShape } from './message.js';
import type { ArrowField } from './schema.js';
import type { ZstdModule } from './zstd.js';

export interface EncodedBody {
  readonly shape: BodyShape;
  /** Starts at byte 0 of its buffer, except for batches in stored files. */
  readonly bytes: Uint8Array;
  /** The decoder if the codec is zstd. Structured clone shares it. */
  readonly zstd?: ZstdModule;
}

/** Each dictionary and its deltas, in the order of their indexes, by dictionary id. */
export type EncodedDictionaries = ReadonlyMap<number, readonly EncodedBody[]>;

export interface EncodedBatch {
  /** The number of record batches before it, empty ones included. */
  readonly index: number;
  /** The number of rows before it. */
  readonly firstRow: number;
  readonly rowCount: number;
  readonly fields: readonly ArrowField[];
  readonly body: EncodedBody;
  readonly dictionaries: EncodedDictionaries;
}

/** Returns the buffers to transfer with the batch to another thread, which detaches them here. */
export function transferables(batch: EncodedBatch): ArrayBuffer[] {
  const { buffer } = batch.body.bytes;
  return buffer instanceof ArrayBuffer ? [buffer] : [];
}

/** Limit for dictionaries and deltas together, because every later batch is read with all of them. */
const BODIES_MAX = 4_096;

/** The dictionaries of a stream or file at a point between its record batches, with a limit for their bytes. */
export class Dictionaries {
  readonly #bytesMax: number;
  readonly #ids = new Set<number>();
  #bodies = new Map<number, readonly EncodedBody[]>();
  #bodyCount = 0;
  byteCount = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Accepts the dictionaries of these fields and their children. */
  setFields(fields: readonly ArrowField[]): void {
    for (const { dictionary, children } of fields) {
      if (dictionary !== null) this.#ids.add(dictionary.id);
      this.setFields(children);
    }
  }

  /** Throws `invalid_arrow` unless a field uses this dictionary. */
  expect(id: number): void {
    if (!this.#ids.has(id)) throw invalidArrow(`dictionary ${id}, which is not in the schema`);
  }

  /**
   * Replaces the dictionary or extends it by a delta.
   * @param body must not be compressed.
   */
  add(id: number, body: EncodedBody, isDelta: boolean): void {
    const before = this.#bodies.get(id) ?? [];
    const bodies = isDelta ? [...before, body] : [body];
    this.#bodyCount += bodies.length - before.length;
    this.byteCount += body.bytes.length;
    if (!isDelta) for (const { bytes } of before) this.byteCount -= bytes.length;
    if (this.byteCount > this.#bytesMax) {
      throw invalidArrow(`dictionaries of ${this.byteCount} bytes`, {
        expected: `at most ${this.#bytesMax} bytes`,
      });
    }
    if (this.#bodyCount > BODIES_MAX)
      throw invalidArrow(`more than ${BODIES_MAX} dictionaries and deltas`);
    // The map is replaced, so that batches that were already returned keep theirs.
    this.#bodies = new Map(this.#bodies).set(id, bodies);
  }

  snapshot(): EncodedDictionaries {
    return this.#bodies;
  }

  clear(): void {
    this.#bodies = new Map();
    this.byteCount = 0;
  }
}
