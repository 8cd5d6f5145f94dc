// The search for one page of a diversified result: finds the nearest candidates, of which `diversify.ts`
// chooses. Both are done anew for every page, so that a cursor needs only the number of matches so far.

import type { SearchHits, SearchQuery } from '../../engine/core/engine.js';
import type { WorkerPool } from '../../platform/pool.js';
import { chooseDiverse } from './diversify.js';
import type { PageSteps } from './page-search.js';
import { planSearch, readHits } from './planned-search.js';
import type { DiversePlan } from './query-plan.js';
import { shownScore } from './ranking.js';
import type { Hit, SearchTarget } from './search-target.js';

export class DiverseSearch implements PageSteps {
  readonly #plan: DiversePlan;
  readonly #target: SearchTarget;
  readonly #pool: WorkerPool;
  readonly #signal: AbortSignal | undefined;
  /** Null before the search. */
  #candidates: readonly Hit[] | null = null;
  hits: readonly Hit[] = [];
  hasMore = false;
  scannedCount = 0;
  rescoredCount = 0;

  constructor(
    plan: DiversePlan,
    target: SearchTarget,
    options: { readonly pool: WorkerPool; readonly signal: AbortSignal | undefined },
  ) {
    this.#plan = plan;
    this.#target = target;
    this.#pool = options.pool;
    this.#signal = options.signal;
  }

  async next(): Promise<SearchQuery | null> {
    if (this.#candidates !== null) {
      await this.#choose(this.#candidates);
      return null;
    }
    if (this.#target.segmentViews.length === 0) return null;
    return planSearch(this.#plan, this.#target, {
      count: this.#plan.diversity.candidateCount,
      after: null,
    });
  }

  accept(found: SearchHits): void {
    this.scannedCount = found.scannedCount;
    this.rescoredCount = found.rescoredCount;
    const count = this.#plan.diversity.candidateCount;
    this.#candidates = readHits(this.#plan, this.#target, { found, count });
  }

  get count(): number {
    return this.hits.length;
  }

  async #choose(candidates: readonly Hit[]): Promise<void> {
    const { givenCount, offset, limit, topK, diversity, ranking } = this.#plan;
    const total = Math.min(topK, candidates.length);
    const start = Math.min(total, givenCount + offset);
    const end = Math.min(total, start + limit);
    const chosen = await chooseDiverse(
      this.#pool,
      {
        metric: ranking.metric,
        values: valuesOf(candidates),
        relevances: Float64Array.from(candidates, ({ score }) => shownScore(ranking, score)),
      },
      { lambda: diversity.lambda, chosenCount: end },
      this.#signal,
    );
    this.hits = Array.from(chosen.subarray(start, end), (index) => candidates[index]!);
    this.hasMore = end < total;
  }
}

/** Row-major, in shared memory. */
function valuesOf(hits: readonly Hit[]): Float32Array {
  const dimension = hits[0]?.view.block.dimension ?? 0;
  const values = new Float32Array(new SharedArrayBuffer(4 * hits.length * dimension));
  for (const [i, { view, row }] of hits.entries()) {
    const start = row * dimension;
    values.set(view.block.values.subarray(start, start + dimension), i * dimension);
  }
  return values;
}
