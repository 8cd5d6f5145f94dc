// The contract of engines as a list of named cases, for whoever runs them: the tests, or a user's
// own machine (`sagitta selftest`). A case that an engine does not keep throws.

import assert from 'node:assert/strict';
import type { Engine, SearchHits, SearchQuery } from '../../engine/core/engine.js';
import { BLOCK_CASES, OWN_ANSWERS } from './block-cases.js';
import { PART_CASES } from './part-cases.js';
import { assertTrueHits, bruteForce } from './truth.js';

export interface ContractContext {
  readonly engine: Engine;
  /** What the engine should be called. */
  readonly name: string;
  /** Draws rows and queries: the same seed gives the same ones. */
  readonly seed: number;
  /** How often another engine answered in its place; always 0 for one that has no other. */
  countFallbacks(): number;
  /** Fails unless the engine answers a batch truly. */
  check(queries: readonly SearchQuery[], message?: string): Promise<SearchHits[]>;
}

export interface ContractCase {
  /** A sentence of what the engine does. */
  readonly name: string;
  run(context: ContractContext): Promise<void>;
}

/** The last one sees an engine that has been through all the others. */
export const CONTRACT: readonly ContractCase[] = [...BLOCK_CASES, ...PART_CASES, OWN_ANSWERS];

export function createContext(
  engine: Engine,
  name: string,
  seed: number,
  countFallbacks: () => number = () => 0,
): ContractContext {
  return {
    engine,
    name,
    seed,
    countFallbacks,
    check: (queries, message = '') => checkAnswers(engine, queries, `${message}, seed ${seed}`),
  };
}

/** Fails unless the engine answers a batch truly. */
export async function checkAnswers(
  engine: Engine,
  queries: readonly SearchQuery[],
  message: string,
): Promise<SearchHits[]> {
  const hits = await engine.search(queries);
  assert.equal(hits.length, queries.length);
  for (const [index, query] of queries.entries()) {
    const rowCounts = query.views.map(({ rowCount }) => rowCount);
    const shape = `[${rowCounts}] rows of ${query.vector.length}, query ${index} of ${queries.length}`;
    const what = `${query.metric}, k ${query.k}, ${shape}, ${message}`;
    assertTrueHits(hits[index]!, bruteForce(query), what);
  }
  return hits;
}
