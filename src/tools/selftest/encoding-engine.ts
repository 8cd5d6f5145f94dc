// An engine whose blocks come without codes: encodes them on the way, as segments do when rows
// arrive, in goes of different sizes. For checks that are about answers and not about segments.

import type { RowEncoder, VectorBlock } from '../../common/types.js';
import type { BlockView, Engine } from '../../engine/core/engine.js';

export function withCodes(engine: Engine): Engine {
  const encoder = engine.rowEncoder;
  if (encoder === null) return engine;
  const encoded = new WeakMap<VectorBlock, VectorBlock>();
  const encodePart = (part: BlockView): BlockView => {
    let block = encoded.get(part.block);
    if (block === undefined) {
      block = { ...part.block, codes: encodeBlock(encoder, part.block) };
      encoded.set(part.block, block);
    }
    return { ...part, block };
  };
  return {
    name: engine.name,
    rowEncoder: encoder,
    search: (queries, options) =>
      engine.search(
        queries.map((query) => ({ ...query, parts: query.views.map(encodePart) })),
        options,
      ),
    unload: (key) => engine.unload(key),
    bytesUsed: (key) => engine.bytesUsed(key),
    close: () => engine.close(),
  };
}

function encodeBlock(encoder: RowEncoder, block: VectorBlock): Uint8Array {
  const { values, dimension, rowCount } = block;
  const codes = encoder.allocate(encoder.byteLength(rowCount, dimension));
  for (let from = 0, step = 1; from < rowCount; from += step, step *= 3) {
    encoder.encode({ values, dimension, from, to: Math.min(from + step, rowCount), codes });
  }
  return codes;
}
