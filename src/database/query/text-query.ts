// Queries by words: which rows of a snapshot match, and the search for the best of them by BM25 in the
// place of the engine. Statistics are those of all visible rows, so that a filter changes no score.

import { createFullBitmap } from '../../common/bitmap.js';
import { type FieldPath, field, validationError } from '../../common/errors.js';
import type { Limits } from '../../common/limits.js';
import type { TextSettings } from '../../common/text-settings.js';
import type { SearchHits, SearchQuery } from '../../engine/core/engine.js';
import type { WorkerPool } from '../../platform/pool.js';
import { termWeight } from '../../text/bm25.js';
import type { TextIndexes } from '../../text/text-index.js';
import type { TextTerms } from '../../text/text-match.js';
import type { TextPart } from '../../text/text-part.js';
import { matchText, rankText, type TextMatches, termsOf } from '../../text/text-search.js';
import type { Collection } from '../collection/collection.js';
import type { SegmentView } from '../collection/snapshot.js';
import type { TextRequest } from './query-api.js';
import { countByRanking, type SearchSource } from './search-source.js';

/** A text query whose words have been analysed. */
export interface TextQuery {
  readonly request: TextRequest;
  readonly terms: TextTerms;
  readonly settings: TextSettings;
}

/**
 * @param path of the text within the body.
 * Throws `invalid_request` for a collection without an index, and `limit_exceeded` for too many words.
 */
export function analyzeText(
  { definition }: Collection,
  request: TextRequest,
  { textTermsMax }: Limits,
  path: FieldPath,
): TextQuery {
  const { text: settings } = definition;
  if (settings === undefined) {
    const detail = `Collection "${definition.id}" has no text index. Name the fields to search in "text" when a collection is created.`;
    throw validationError([{ location: field(...path), code: 'invalid_request', detail }]);
  }
  const terms = termsOf(request.query, request.match === 'all', settings);
  const actual = terms.terms.length;
  if (actual > textTermsMax) {
    const detail = `Expected at most ${textTermsMax} different words; found ${actual}.`;
    const bound = { expected: textTermsMax, actual };
    throw validationError([{ location: field(...path), code: 'limit_exceeded', detail, ...bound }]);
  }
  return { request, terms, settings };
}

export interface TextServices {
  readonly pool: WorkerPool;
  readonly textIndexes: TextIndexes;
}

/** The search of one text query. */
export interface TextSearch {
  /** The views with only the rows that match. */
  readonly views: readonly SegmentView[];
  /** The vector and the metric of its queries are not used. */
  readonly source: SearchSource;
}

/**
 * @param visible the views of the snapshot.
 * @param passing the same views with only the rows that pass the filter.
 * Rejects with `overloaded` and with the signal's reason.
 */
export async function openTextSearch(
  { terms, settings }: TextQuery,
  visible: readonly SegmentView[],
  passing: readonly SegmentView[],
  { pool, textIndexes }: TextServices,
  signal: AbortSignal | undefined,
): Promise<TextSearch> {
  const parts = await Promise.all(
    visible.map((view) => textIndexes.partsOf(view, settings, signal)),
  );
  const searched = visible.map(({ rowCount, rows }, i) => ({
    parts: parts[i]!,
    rowCount,
    visible: rows,
    passing: passing[i]!.rows,
  }));
  const matches = await matchText(pool, searched, terms);
  signal?.throwIfAborted();
  const partsOf = new Map(visible.map(({ segment }, i) => [segment.key, parts[i]!]));
  const ranking = { terms, settings, matches, partsOf };
  const search: SearchSource['search'] = (query) => searchText(pool, query, ranking);
  return {
    views: passing.map((view, i) => ({ ...view, ...matches.views[i]! })),
    source: {
      search,
      countBefore: (query, positions) => countByRanking(search, query, positions),
    },
  };
}

/** What the searches of one query share. */
interface Ranking {
  readonly terms: TextTerms;
  readonly settings: TextSettings;
  readonly matches: TextMatches;
  /** By the keys of segments, which are those of their blocks. */
  readonly partsOf: ReadonlyMap<string, readonly TextPart[]>;
}

async function searchText(
  pool: WorkerPool,
  { views, k, after, scoreMin }: SearchQuery,
  { terms, settings, matches, partsOf }: Ranking,
): Promise<SearchHits> {
  const { documentCount, totalLength, containingCounts } = matches.statistics;
  const weights = terms.terms.map((_, i) => {
    const containingCount = containingCounts[i]!;
    return termWeight({ documentCount, containingCount }, terms.counts[i]!, settings);
  });
  const ranked = views.map(({ block, rowCount, rows }) => ({
    parts: partsOf.get(block.key)!,
    rows: rows ?? createFullBitmap(rowCount),
    ids: block.ids,
  }));
  const { viewIndexes, rows, scores, scoredCount } = await rankText(pool, ranked, {
    terms: terms.terms,
    weights,
    averageLength: totalLength / documentCount,
    k1: settings.k1,
    b: settings.b,
    k,
    after,
    scoreMin,
  });
  const scannedCount = views.reduce((sum, view) => sum + view.rowCount, 0);
  return { viewIndexes, rows, scores, scannedCount, rescoredCount: scoredCount };
}
