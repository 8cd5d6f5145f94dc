// Exact top-k over the parts of a snapshot: one search for the engine, through the batcher, and its
// answer told in the terms of the snapshot.

import type { Engine, SearchHits, SearchQuery } from '../../engine/core/engine.js';
import type { SegmentView } from '../collection/snapshot.js';
import type { DatabaseObserver } from '../observer.js';
import { createBatcher } from './batcher.js';

/** The batcher's side: queries that go together, with one result each, in order, and how long they waited. */
export type SubmitSearches = (
  queries: readonly SearchQuery[],
  options: { signal?: AbortSignal },
) => Promise<{ readonly hits: readonly SearchHits[]; readonly waitMs: number }>;

export interface SearchQueue {
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
  return {
    async submitAll(queries, options) {
      const submittedAt = performance.now();
      let waitMs = 0;
      const onBegin = () => {
        waitMs = performance.now() - submittedAt;
      };
      const hits = await batcher.submit(queries, { ...options, onBegin });
      return { hits, waitMs };
    },
    get waitingCount() {
      return batcher.waitingCount;
    },
  };
}

export type SearchRequest = Omit<SearchQuery, 'views'>;

/** Where to search: the parts that show anything, in both forms, shared by all queries of a batch. */
export interface SearchTarget {
  readonly shown: readonly SegmentView[];
  readonly searched: SearchQuery['views'];
}

export function searchTarget(parts: readonly SegmentView[]): SearchTarget {
  const shown = parts.filter((part) => part.visibleCount > 0);
  const searched = shown.map(({ block, rowCount, rows }) => ({ block, rowCount, rows }));
  return { shown, searched };
}

export interface Hit {
  readonly view: SegmentView;
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

/** A search for the next submission. */
export type Ask = (query: SearchQuery) => Promise<SearchHits>;

export async function searchTargetFor(
  ask: Ask,
  { shown, searched }: SearchTarget,
  request: SearchRequest,
): Promise<SearchResult> {
  if (shown.length === 0) return { hits: [], scannedCount: 0, rescoredCount: 0 };
  const answer = await ask({ ...request, views: searched });
  const { scannedCount, rescoredCount } = answer;
  return { hits: hitsAmong(shown, answer), scannedCount, rescoredCount };
}

/** An answer of the engine in the terms of the parts that it searched. */
export function hitsAmong(searched: readonly SegmentView[], answer: SearchHits): readonly Hit[] {
  return Array.from(answer.viewIndexes, (viewIndex, place) => ({
    view: searched[viewIndex]!,
    row: answer.rows[place]!,
    score: answer.scores[place]!,
  }));
}

/**
 * Makes one submission of whatever is asked in the same turn: what many queries ask for side by side
 * goes to the engine together, and each goes on when all have their answer.
 */
export class SearchRound {
  readonly #submitAll: SubmitSearches;
  readonly #signal: AbortSignal | undefined;
  #queries: SearchQuery[] = [];
  #found: Promise<readonly SearchHits[]> | null = null;
  /** Of all rounds until now. */
  waitMs = 0;

  constructor(submitAll: SubmitSearches, signal: AbortSignal | undefined) {
    this.#submitAll = submitAll;
    this.#signal = signal;
  }

  readonly ask: Ask = async (query) => {
    const place = this.#queries.push(query) - 1;
    // A microtask, so that everybody who goes on in this turn has asked by then.
    this.#found ??= Promise.resolve().then(() => this.#submit());
    const found = await this.#found;
    return found[place]!;
  };

  async #submit(): Promise<readonly SearchHits[]> {
    const queries = this.#queries;
    this.#queries = [];
    this.#found = null;
    const options = this.#signal === undefined ? {} : { signal: this.#signal };
    const { hits, waitMs } = await this.#submitAll(queries, options);
    this.waitMs += waitMs;
    return hits;
  }
}
