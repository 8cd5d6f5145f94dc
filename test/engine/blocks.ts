// For the tests of engines: what the contract draws, with a seed that is printed by whoever takes it.

import assert from 'node:assert/strict';
import type { Engine, SearchHits, SearchQuery } from '../../src/engine/core/engine.js';
import type { BlockHits, BlockQuery } from '../../src/engine/core/per-block.js';
import { checkAnswers as checkWith } from '../../src/tools/selftest/contract-case.js';

export * from '../../src/tools/selftest/blocks.js';
export * from '../../src/tools/selftest/truth.js';

/** From SAGITTA_TEST_SEED, or the clock. */
export const SEED = Number(process.env.SAGITTA_TEST_SEED ?? Date.now() % 1_000_000_007);

/** A query over one block as what lies behind an engine is asked it … */
export function toBlockQuery({ views: parts, ...query }: SearchQuery): BlockQuery {
  assert.equal(parts.length, 1);
  const { rowCount, rows } = parts[0]!;
  return { ...query, rowCount, rows };
}

/** … and the answer as an engine gives it. */
export function toSearchHits(hits: BlockHits): SearchHits {
  return { ...hits, viewIndexes: new Uint32Array(hits.rows.length) };
}

/** Fails unless the engine answers a batch truly. */
export function checkAnswers(
  engine: Engine,
  queries: readonly SearchQuery[],
  message = '',
): Promise<SearchHits[]> {
  return checkWith(engine, queries, `${message}, seed ${SEED}`);
}
