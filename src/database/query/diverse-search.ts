// Finds one page of a diversified result: searches the nearest candidates, from which `diversify.ts` chooses. Both
// steps are repeated for every page, so that a cursor needs only the number of matches so far.

import type { Hit } from '../search/hits.js';
import { chooseDiverse } from './diversify.js';
import { PageSearch } from './page-search.js';
import type { DiversePlan } from './query-plan.js';

export class DiverseSearch extends PageSearch<DiversePlan> {
  /** Null before the search. */
  #candidates: readonly Hit[] | null = null;
  hits: readonly Hit[] = [];
  hasMore = false;

  protected async nextCount(): Promise<number> {
    if (this.#candidates === null) return this.plan.diversity.candidateCount;
    await this.#choose(this.#candidates);
    return 0;
  }

  protected take(hits: readonly Hit[]): void {
    this.#candidates = hits;
  }

  async #choose(candidates: readonly Hit[]): Promise<void> {
    const { topK, diversity, ranking } = this.plan;
    const total = Math.min(topK, candidates.length);
    const { start, end } = this.rangeIn(total);
    const chosen = await chooseDiverse(
      this.services.pool,
      {
        metric: ranking.scoring.metric,
        values: valuesOf(candidates),
        relevances: Float64Array.from(candidates, ({ score }) => ranking.shownScore(score)),
      },
      { lambda: diversity.lambda, chosenCount: end },
      this.signal,
    );
    this.hits = Array.from(chosen.subarray(start, end), (index) => candidates[index]!);
    this.hasMore = end < total;
  }
}

/** The vectors of the hits, row-major, in shared memory. */
function valuesOf(hits: readonly Hit[]): Float32Array {
  const dimension = hits[0]?.view.block?.dimension ?? 0;
  const values = new Float32Array(new SharedArrayBuffer(4 * hits.length * dimension));
  for (const [i, { view, row }] of hits.entries()) {
    const start = row * dimension;
    values.set(view.block!.values.subarray(start, start + dimension), i * dimension);
  }
  return values;
}
