// Exact top-k over the parts of a snapshot: one search for the engine, through the batcher, and its
// answer told in the terms of the snapshot.

import type { Engine, SearchHits, SearchQuery } from '../engine/engine.js';
import { createBatcher } from '../scheduler/batcher.js';
import type { DatabaseObserver } from './observer.js';
import type { SnapshotPart } from './snapshot.js';

/** The batcher's side: a query for one of the next batches of the engine, and how long it waited. */
export type SubmitSearch = (
  query: SearchQuery,
  options: { signal?: AbortSignal },
) => Promise<{ readonly hits: SearchHits; readonly waitMs: number }>;

/** Many queries that go together, with one result each, in order. */
export type SubmitSearches = (
  queries: readonly SearchQuery[],
  options: { signal?: AbortSignal },
) => Promise<{ readonly hits: readonly SearchHits[]; readonly waitMs: number }>;

export interface SearchQueue {
  readonly submit: SubmitSearch;
  readonly submitAll: SubmitSearches;
  /** Queries that wait for the engine. */
  readonly waitingCount: number;
}

export function createSearchQueue(
  engine: Engine,
  { waitingMax, observer }: { readonly waitingMax: number; readonly observer: DatabaseObserver },
): SearchQueue {
  const batcher = createBatcher<SearchQuery, SearchHits>({
    async run(queries, signal) {
      const startedAt = performance.now();
      const found = await engine.search(queries, { signal });
      observer.batchSearched(queries.length, performance.now() - startedAt);
      return found;
    },
    waitingMax,
  });
  const submitAll: SubmitSearches = async (queries, options) => {
    const submittedAt = performance.now();
    let waitMs = 0;
    const onBegin = () => {
      waitMs = performance.now() - submittedAt;
    };
    const hits = await batcher.submit(queries, { ...options, onBegin });
    return { hits, waitMs };
  };
  return {
    submitAll,
    async submit(query, options) {
      const { hits, waitMs } = await submitAll([query], options);
      return { hits: hits[0]!, waitMs };
    },
    get waitingCount() {
      return batcher.waitingCount;
    },
  };
}

export type SearchRequest = Omit<SearchQuery, 'parts'>;

export interface Hit {
  readonly part: SnapshotPart;
  readonly row: number;
  /** As the engine gives it: unrounded, for the order. */
  readonly score: number;
}

export interface SearchResult {
  /** Best first, at most k. */
  readonly hits: readonly Hit[];
  readonly scannedCount: number;
  readonly rescoredCount: number;
  /** Until the engine began. */
  readonly waitMs: number;
}

export async function searchParts(
  submit: SubmitSearch,
  parts: readonly SnapshotPart[],
  request: SearchRequest,
  signal: AbortSignal | undefined,
): Promise<SearchResult> {
  const searched = parts.filter((part) => part.visibleCount > 0);
  if (searched.length === 0) return { hits: [], scannedCount: 0, rescoredCount: 0, waitMs: 0 };
  const query = {
    ...request,
    parts: searched.map(({ block, rowCount, rows }) => ({ block, rowCount, rows })),
  };
  const { hits: answer, waitMs } = await submit(query, signal === undefined ? {} : { signal });
  const { scannedCount, rescoredCount } = answer;
  return { hits: hitsAmong(searched, answer), scannedCount, rescoredCount, waitMs };
}

/** An answer of the engine in the terms of the parts that it searched. */
export function hitsAmong(searched: readonly SnapshotPart[], answer: SearchHits): readonly Hit[] {
  return Array.from(answer.parts, (part, place) => ({
    part: searched[part]!,
    row: answer.rows[place]!,
    score: answer.scores[place]!,
  }));
}
