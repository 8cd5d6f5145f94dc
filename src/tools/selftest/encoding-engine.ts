// Wraps an engine so that blocks without codes are encoded first, in steps of growing size, as segments do when rows
// arrive. It lets checks of answers do without segments.

import type { RowCodes, RowEncoder, VectorBlock } from '../../common/types.js';
import type { BlockView, Engine } from '../../engine/core/engine.js';

/** Which codes blocks have: all of them, or only tiles, as blocks from other devices do. */
export type CodeChoice = 'all' | 'tiles';

export function withCodes(engine: Engine, choice: CodeChoice = 'all'): Engine {
  const encoder = engine.rowEncoder;
  if (encoder === null) return engine;
  const encoded = new WeakMap<VectorBlock, VectorBlock>();
  const encodeView = (view: BlockView): BlockView => {
    let block = encoded.get(view.block);
    if (block === undefined) {
      const codes = encodeBlock(encoder, view.block);
      const chosen = choice === 'all' ? codes : { ...codes, coarse: null, refinement: null };
      block = { ...view.block, codes: chosen };
      encoded.set(view.block, block);
    }
    return { ...view, block };
  };
  const countBefore = engine.countBefore?.bind(engine);
  return {
    name: engine.name,
    rowEncoder: encoder,
    search: (queries, options) =>
      engine.search(
        queries.map((query) => ({ ...query, views: query.views.map(encodeView) })),
        options,
      ),
    ...(countBefore !== undefined && {
      countBefore: (query, rankKeys, options) =>
        countBefore({ ...query, views: query.views.map(encodeView) }, rankKeys, options),
    }),
    unload: (key) => engine.unload(key),
    bytesUsed: (key) => engine.bytesUsed(key),
    close: () => engine.close(),
  };
}

function encodeBlock(encoder: RowEncoder, block: VectorBlock): RowCodes {
  const { values, dimension, rowCount } = block;
  const codes = encoder.allocate(rowCount, dimension);
  for (let from = 0, step = 1; from < rowCount; from += step, step *= 3) {
    encoder.encode({ values, dimension, from, to: Math.min(from + step, rowCount), codes });
  }
  return codes;
}
