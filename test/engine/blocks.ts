// Random blocks and queries for the contract of engines, with the seed that tests print.

import assert from 'node:assert/strict';
import type { SearchHits, SearchQuery } from '../../src/engine/core/engine.js';
import type { BlockHits, BlockQuery } from '../../src/engine/core/per-block.js';

export * from '../../src/tools/selftest/blocks.js';
export * from '../../src/tools/selftest/truth.js';

/** The seed: SAGITTA_TEST_SEED, or the clock. */
export const SEED = Number(process.env.SAGITTA_TEST_SEED ?? Date.now() % 1_000_000_007);

/** Converts a query of an engine over one block to a query of that block. */
export function toBlockQuery({ views: parts, ...query }: SearchQuery): BlockQuery {
  assert.equal(parts.length, 1);
  const { rowCount, rows } = parts[0]!;
  return { ...query, rowCount, rows };
}

/** Converts the hits of one block to the hits of an engine. */
export function toSearchHits(hits: BlockHits): SearchHits {
  return { ...hits, viewIndexes: new Uint32Array(hits.rows.length) };
}
