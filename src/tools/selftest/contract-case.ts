// A case of the engine contract, and the context in which it checks one engine. A case throws if the engine does not
// pass it.

import assert from 'node:assert/strict';
import type { Engine, SearchHits, SearchQuery } from '../../engine/core/engine.js';
import { assertTrueHits, bruteForce } from './truth.js';

export interface ContractContext {
  readonly engine: Engine;
  /** The name that the engine must report. */
  readonly name: string;
  /** The seed of random rows and queries. */
  readonly seed: number;
  /** Number of answers by the engine's fallback; always 0 for engines without one. */
  countFallbacks(): number;
  /** Fails unless the engine answers the batch correctly. */
  check(queries: readonly SearchQuery[], message?: string): Promise<SearchHits[]>;
}

export interface ContractCase {
  /** A sentence about what the engine does. */
  readonly name: string;
  /**
   * Marks cases that take well under a second. Together they run every kernel and every code path, and form the quick
   * test of an engine.
   */
  readonly isQuick?: boolean;
  run(context: ContractContext): Promise<void>;
}

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

/** Fails unless the engine answers the batch correctly. */
async function checkAnswers(
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
