// Searches by vectors that score every row: which rows they have, and the search of this node for the best of them.

import type { SearchHits, SearchQuery } from '../../engine/core/engine.js';
import { searchByExamples } from '../../engine/core/example-search.js';
import { searchByMaxSim } from '../../engine/core/max-sim.js';
import { type SegmentView, viewsOfDense, viewsOfMulti } from '../collection/snapshot.js';
import type { DatabaseServices } from '../database-services.js';
import type { Scoring } from './peers.js';
import type { SearchTarget } from './search-target.js';

type Views = readonly SegmentView[];

/** Of rows that pass filters, those that have the vector. */
export function viewsScoredBy(scoring: Scoring, passing: Views): Views {
  if (scoring.kind === 'multi') return viewsOfMulti(passing, scoring.using);
  return scoring.using === null ? passing : viewsOfDense(passing, scoring.using);
}

/** One result a query, in views of the target. */
export type SearchHere = (queries: readonly SearchQuery[]) => Promise<readonly SearchHits[]>;

/** Rejects with `overloaded` and with the signal's reason. */
export function searchHere(
  scoring: Scoring,
  { segmentViews }: Pick<SearchTarget, 'segmentViews'>,
  { pool, scheduler }: Pick<DatabaseServices, 'pool' | 'scheduler'>,
  signal: AbortSignal | undefined,
): SearchHere {
  const options = signal === undefined ? {} : { signal };
  switch (scoring.kind) {
    case 'vector':
      return async (queries) => (await scheduler.search(queries, signal)).hits;
    case 'examples': {
      const { formula } = scoring;
      return (queries) =>
        Promise.all(queries.map((query) => searchByExamples(pool, { ...query, formula }, options)));
    }
    case 'multi': {
      const columns = new Map(segmentViews.map(({ block, multi }) => [block.key, multi!]));
      return (queries) =>
        Promise.all(queries.map((query) => searchByMaxSim(pool, { ...query, columns }, options)));
    }
  }
}
