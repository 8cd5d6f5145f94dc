// Matches and ranks the rows of many segments, in the worker pool where there is much to do.

import type { Bitmap } from '../common/bitmap.js';
import type { RankKey, SortedRankKeys } from '../common/rank-key.js';
import type { TextSettings } from '../common/text-settings.js';
import type { Task, WorkerPool } from '../platform/pool.js';
import { analyzerOf } from './analyzer.js';
import { type MatchedRows, narrowTo } from './containing-rows.js';
import { countPostings } from './posting-lists.js';
import {
  countContaining,
  countDocuments,
  matchTerms,
  type TextStatistics,
  type TextTerms,
  type TextView,
} from './text-match.js';
import { findTerm, type TextPart } from './text-part.js';
import {
  countRows,
  type RankedText,
  rankRows,
  type TextRanking,
  type TextScoring,
} from './text-rank.js';
import { countInGroups, rankInGroups, runInGroups, type ViewsInput } from './view-groups.js';
import type { RankedHits } from './window-search.js';

/** A segment at a sequence, its index, and the rows of it that pass the filter of a query. */
export interface SearchedView extends TextView {
  /** Visible ones; null for all of the segment's rows. */
  readonly passing: Bitmap | null;
}

interface MatchedView extends TextStatistics, MatchedRows {}

export interface TextMatches {
  /** Of each view, in order, the rows that match and pass. */
  readonly views: readonly MatchedRows[];
  /** Of all views together. */
  readonly statistics: TextStatistics;
}

export const matchTextTask: Task<ViewsInput<SearchedView, TextTerms>, MatchedView[]> = {
  name: 'text.match',
  run: ({ views, work }) =>
    views.map((view) => ({
      ...countDocuments(view),
      containingCounts: countContaining(view, work.terms),
      ...narrowTo(matchTerms(view, work), view.passing),
    })),
};

export const rankTextTask: Task<ViewsInput<RankedText, TextRanking>, RankedHits> = {
  name: 'text.rank',
  run: ({ views, work }) => rankRows(views, work),
};

type CountWork = TextScoring & { readonly rankKeys: SortedRankKeys };

export const countTextTask: Task<ViewsInput<RankedText, CountWork>, Float64Array> = {
  name: 'text.count',
  run: ({ views, work }) => countRows(views, work),
};

/** The distinct terms of a query; none if it has only stop words or no words. */
export function termsOf(
  query: string,
  needsAll: boolean,
  settings: Pick<TextSettings, 'language' | 'stopWords'>,
): TextTerms {
  const counts = new Map<string, number>();
  analyzerOf(settings).visitTerms(query, (term) => counts.set(term, (counts.get(term) ?? 0) + 1));
  const terms = [...counts.keys()].sort();
  return { terms, counts: terms.map((term) => counts.get(term)!), needsAll };
}

/** Rejects with `overloaded`. */
export async function matchText(
  pool: WorkerPool,
  views: readonly SearchedView[],
  terms: TextTerms,
): Promise<TextMatches> {
  const itemsOf = (view: SearchedView) =>
    countAll(view.parts, terms.terms) + (view.visible === null ? 0 : view.rowCount);
  const matched = (await runInGroups(pool, matchTextTask, { views, work: terms }, itemsOf)).flat();
  return { views: matched, statistics: addStatistics(matched, terms.terms.length) };
}

/** The best rows of all views. Rejects with `overloaded`. */
export async function rankText(
  pool: WorkerPool,
  views: readonly RankedText[],
  ranking: TextRanking,
): Promise<RankedHits> {
  return rankInGroups(pool, rankTextTask, { views, work: ranking }, ({ parts }) =>
    countAll(parts, ranking.terms),
  );
}

/** The number of rows of all views before each rank key. Rejects with `overloaded`. */
export async function countTextBefore(
  pool: WorkerPool,
  views: readonly RankedText[],
  scoring: TextScoring,
  rankKeys: readonly RankKey[],
): Promise<Float64Array> {
  return countInGroups(pool, countTextTask, { views, work: scoring, rankKeys }, ({ parts }) =>
    countAll(parts, scoring.terms),
  );
}

function countAll(parts: readonly TextPart[], terms: readonly string[]): number {
  let count = 0;
  for (const part of parts) {
    for (const term of terms) count += countPostings(part, findTerm(part, term));
  }
  return count;
}

function addStatistics(views: readonly TextStatistics[], termCount: number): TextStatistics {
  const containingCounts = new Float64Array(termCount);
  let documentCount = 0;
  let totalLength = 0;
  for (const view of views) {
    documentCount += view.documentCount;
    totalLength += view.totalLength;
    for (const [i, count] of view.containingCounts.entries()) containingCounts[i]! += count;
  }
  return { documentCount, totalLength, containingCounts };
}
