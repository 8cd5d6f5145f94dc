// Opens the rankings of a request in their snapshots, and searches many of them together.

import type { SearchHits } from '../../engine/core/engine.js';
import type { SnapshotView } from '../collection/snapshot-view.js';
import type { ReadServices } from '../search/read-services.js';
import { type EngineSearch, searchByEngine } from '../search/scattered-search.js';
import type { ScheduledHits } from '../search/search-scheduler.js';
import { type Filter, PassingRows, SearchedSnapshot } from './passing-rows.js';
import type { OpenRanking, Ranking, RowQuery } from './ranking.js';

/** A ranking of the rows of a snapshot that pass all filters. */
interface RankedSnapshot {
  readonly sequence: number;
  readonly ranking: Ranking;
  readonly filters: readonly Filter[];
}

/** Opens rankings; results are in order. Rejects with `overloaded` and with the signal's reason. */
export async function openRankings(
  view: SnapshotView,
  ranked: readonly RankedSnapshot[],
  services: ReadServices,
  signal: AbortSignal | undefined,
): Promise<readonly OpenRanking[]> {
  const snapshots = new Map<number, SearchedSnapshot>();
  const rows = ranked.map(({ sequence, filters }) => {
    let searched = snapshots.get(sequence);
    if (searched === undefined) {
      searched = new SearchedSnapshot(view, sequence, services, signal);
      snapshots.set(sequence, searched);
    }
    return new PassingRows(searched, filters);
  });
  // All at once, so that different filters are evaluated in parallel; equal filters are evaluated once.
  if (ranked.length > 1) {
    await Promise.all(ranked.map(({ filters }, i) => rows[i]!.searched.filter(filters)));
  }
  const opened: OpenRanking[] = [];
  // One by one, so that a batch does not occupy the main thread.
  for (const [i, { ranking }] of ranked.entries()) opened.push(await ranking.open(rows[i]!));
  return opened;
}

interface RankingSearch {
  readonly ranking: OpenRanking;
  readonly query: RowQuery;
}

/** The hits of each search, in order. Searches by the engine form one batch; others run in parallel to it. */
export async function searchRankings(
  searches: readonly RankingSearch[],
  services: ReadServices,
  signal: AbortSignal | undefined,
): Promise<ScheduledHits> {
  const byEngine: EngineSearch[] = [];
  for (const { ranking, query } of searches) {
    const search = ranking.engineSearch?.(query);
    if (search !== undefined) byEngine.push(search);
  }
  const searching = searchByEngine(byEngine, services, signal);
  if (byEngine.length === searches.length) return searching;
  const [scheduled, others] = await Promise.all([
    searching,
    searchOthers(searches.filter(({ ranking }) => ranking.engineSearch === undefined)),
  ]);
  const [engineHits, otherHits] = [scheduled.hits.values(), others.values()];
  return {
    hits: searches.map(({ ranking }) => {
      const hits = ranking.engineSearch === undefined ? otherHits : engineHits;
      return hits.next().value!;
    }),
    waitMs: scheduled.waitMs,
  };
}

/** Concurrent searches without the engine; more would occupy the pool and delay other requests. */
const OTHER_SEARCHES = 4;

async function searchOthers(searches: readonly RankingSearch[]): Promise<readonly SearchHits[]> {
  const hits: SearchHits[] = [];
  for (let from = 0; from < searches.length; from += OTHER_SEARCHES) {
    const some = searches.slice(from, from + OTHER_SEARCHES);
    hits.push(...(await Promise.all(some.map(({ query, ranking }) => ranking.search(query)))));
  }
  return hits;
}
