// A record batch as it came: its bytes and where in them what lies, nothing decoded. Plain data, to
// be handed to a thread of the pool: the batch's body has an ArrayBuffer of its own, which can be
// transferred; dictionaries, which later batches need too, are in shared memory.

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
