// Exact top-k over the parts of a snapshot: one search for the engine, through the batcher, and its
// answer told in the terms of the snapshot.

import type { SearchHits, SearchQuery } from '../engine/engine.js';
import type { SnapshotPart } from './snapshot.js';

/** The batcher's side: a query for one of the next batches of the engine. */
export type SubmitSearch = (
  query: SearchQuery,
  options: { signal?: AbortSignal },
) => Promise<SearchHits>;

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
}

export async function searchParts(
  submit: SubmitSearch,
  parts: readonly SnapshotPart[],
  request: SearchRequest,
  signal: AbortSignal | undefined,
): Promise<SearchResult> {
  const searched = parts.filter((part) => part.visibleCount > 0);
  if (searched.length === 0) return { hits: [], scannedCount: 0, rescoredCount: 0 };
  const query = {
    ...request,
    parts: searched.map(({ block, rowCount, rows }) => ({ block, rowCount, rows })),
  };
  const answer = await submit(query, signal === undefined ? {} : { signal });
  const { scannedCount, rescoredCount } = answer;
  const hits = Array.from(answer.parts, (part, place) => ({
    part: searched[part]!,
    row: answer.rows[place]!,
    score: answer.scores[place]!,
  }));
  return { hits, scannedCount, rescoredCount };
}
