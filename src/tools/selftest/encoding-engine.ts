// Wraps an engine so that blocks without codes are encoded first, as segments do: in steps of growing size when rows
// arrive, and with a head once they are sealed. It lets checks of answers do without segments.

import type { RowCodes, RowEncoder, VectorBlock } from '../../common/types.js';
import type { BlockView, CountedQuery, Engine } from '../../engine/core/engine.js';

/** Which codes blocks have: all of them, or only tiles, as blocks from other devices do. */
export type CodeChoice = 'all' | 'tiles';

export function withCodes(engine: Engine, choice: CodeChoice = 'all'): Engine {
  const encoder = engine.rowEncoder;
  if (encoder === null) return engine;
  const encoded = new WeakMap<VectorBlock, Promise<VectorBlock>>();
  const encodeView = async (view: BlockView): Promise<BlockView> => {
    const block = encoded.get(view.block) ?? encodeBlock(encoder, view.block, choice);
    encoded.set(view.block, block);
    return { ...view, block: await block };
  };
  const encodeViews = async <Query extends CountedQuery>(query: Query): Promise<Query> => ({
    ...query,
    views: await Promise.all(query.views.map(encodeView)),
  });
  const countBefore = engine.countBefore?.bind(engine);
  return {
    name: engine.name,
    rowEncoder: encoder,
    search: async (queries, options) =>
      engine.search(await Promise.all(queries.map(encodeViews)), options),
    ...(countBefore !== undefined && {
      countBefore: async (query, rankKeys, options) =>
        countBefore(await encodeViews(query), rankKeys, options),
    }),
    unload: (key) => engine.unload(key),
    bytesUsed: (key) => engine.bytesUsed(key),
    close: () => engine.close(),
  };
}

async function encodeBlock(
  encoder: RowEncoder,
  block: VectorBlock,
  choice: CodeChoice,
): Promise<VectorBlock> {
  const { values, dimension, rowCount } = block;
  const codes: RowCodes = encoder.allocate(rowCount, dimension);
  for (let from = 0, step = 1; from < rowCount; from += step, step *= 3) {
    encoder.encode({ values, dimension, from, to: Math.min(from + step, rowCount), codes });
  }
  if (choice === 'tiles') return { ...block, codes: { ...codes, coarse: null, refinement: null } };
  return { ...block, codes: { ...codes, ...(await encoder.makeHead(block, null)) } };
}
