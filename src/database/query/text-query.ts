// Queries by words: which rows of a snapshot match, and the search for the best of them by BM25 in the
// place of the engine. Statistics are those of all visible rows, so that a filter changes no score.

import { type FieldPath, field, validationError } from '../../common/errors.js';
import type { Limits } from '../../common/limits.js';
import type { TextSettings } from '../../common/text-settings.js';
import { termWeight } from '../../inverted/bm25.js';
import type { TextIndexes } from '../../inverted/text-index.js';
import type { TextStatistics, TextTerms } from '../../inverted/text-match.js';
import type { TextScoring } from '../../inverted/text-rank.js';
import { countTextBefore, matchText, rankText, termsOf } from '../../inverted/text-search.js';
import type { WorkerPool } from '../../platform/pool.js';
import type { Collection } from '../collection/collection.js';
import type { SegmentView } from '../collection/snapshot.js';
import { createInvertedSearch, type InvertedSearch } from './inverted-search.js';
import type { TextRequest } from './query-api.js';

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
): Promise<InvertedSearch> {
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
  const scoring = scoringOf(terms, settings, matches.statistics);
  return createInvertedSearch(passing, parts, matches.views, {
    rank: (views, range) => rankText(pool, views, { ...scoring, ...range }),
    countBefore: (views, positions) => countTextBefore(pool, views, scoring, positions),
  });
}

function scoringOf(
  { terms, counts }: TextTerms,
  { k1, b }: TextSettings,
  { documentCount, totalLength, containingCounts }: TextStatistics,
): TextScoring {
  const weights = counts.map((count, i) => {
    const containingCount = containingCounts[i]!;
    return termWeight({ documentCount, containingCount }, count, { k1, b });
  });
  return { terms, weights, averageLength: totalLength / documentCount, k1, b };
}
