// Gives blocks the codes that the chosen engine wants, as the database does when it seals a segment.
// An engine without codes searches the blocks as they are.

import type { Engine } from '../../src/engine/engine.js';
import type { VectorBlock } from '../../src/types.js';
import { type DataSet, withBlocks } from './data.js';

/** What an engine that keeps a low-precision copy of the rows offers. */
interface RowEncoder {
  /** Bytes of the codes of a block. */
  byteLength(rowCount: number, dimension: number): number;
  /** Writes the codes of the rows from..to. */
  encode(input: {
    values: Float32Array;
    codes: Uint8Array;
    dimension: number;
    from: number;
    to: number;
  }): void;
}

type MaybeEncodingEngine = Engine & { readonly rowEncoder?: RowEncoder | null };

export interface EncodedData {
  readonly data: DataSet;
  /** Null when the engine keeps no codes. */
  readonly encoding: { readonly bytes: number; readonly seconds: number } | null;
}

export function encodeData(engine: Engine, data: DataSet): EncodedData {
  const startedAt = performance.now();
  const blocks = data.blocks.map((block) => encodeBlock(engine, block));
  const seconds = (performance.now() - startedAt) / 1000;
  const bytes = blocks.reduce((sum, { codes }) => sum + (codes?.byteLength ?? 0), 0);
  return {
    data: withBlocks(data, blocks),
    encoding: bytes === 0 ? null : { bytes, seconds },
  };
}

function encodeBlock(engine: MaybeEncodingEngine, block: VectorBlock): VectorBlock {
  const encoder = engine.rowEncoder ?? null;
  if (encoder === null) return block;
  const { values, dimension, rowCount } = block;
  const codes = new Uint8Array(new SharedArrayBuffer(encoder.byteLength(rowCount, dimension)));
  encoder.encode({ values, codes, dimension, from: 0, to: rowCount });
  return { ...block, codes };
}
