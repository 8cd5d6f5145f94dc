// Gives blocks the codes that the chosen engine wants, as segments do when they are loaded. An
// engine without codes searches the blocks as they are.

import type { RowEncoder, VectorBlock } from '../../src/common/types.js';
import type { Engine } from '../../src/engine/core/engine.js';
import { type DataSet, withBlocks } from './data.js';

export interface EncodedData {
  readonly data: DataSet;
  /** Null when the engine keeps no codes. */
  readonly encoding: { readonly bytes: number; readonly seconds: number } | null;
}

export async function encodeData(engine: Engine, data: DataSet): Promise<EncodedData> {
  const encoder = engine.rowEncoder;
  if (encoder === null) return { data, encoding: null };
  const startedAt = performance.now();
  const blocks: VectorBlock[] = [];
  for (const block of data.blocks) blocks.push(await encodeBlock(encoder, block));
  const seconds = (performance.now() - startedAt) / 1000;
  const bytes = blocks.reduce((sum, { codes }) => sum + (codes?.byteLength ?? 0), 0);
  return { data: withBlocks(data, blocks), encoding: { bytes, seconds } };
}

async function encodeBlock(encoder: RowEncoder, block: VectorBlock): Promise<VectorBlock> {
  const { values, dimension, rowCount } = block;
  const codes = encoder.allocate(encoder.byteLength(rowCount, dimension));
  await encoder.encodeAll({ values, codes, dimension, from: 0, to: rowCount });
  return { ...block, codes };
}
