// Matches and ranks the rows of many segments by BM25, in the worker pool if there is much to do.

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
import { type RankedText, type TextScoring, textScorers } from './text-rank.js';
import { findTerm, type TextRun } from './text-run.js';
import { countInGroups, rankInGroups, runInGroups, type ViewsInput } from './view-groups.js';
import {
  countInBuckets,
  type RankedHits,
  type RankedRange,
  searchWindows,
} from './window-search.js';

/** A segment at a sequence: its index and the rows that pass the filter of a query. */
export interface SearchedText extends TextView {
  /** The visible rows that pass; null for all rows of the segment. */
  readonly passing: Bitmap | null;
}

interface MatchedView extends TextStatistics, MatchedRows {}

interface TextRanking extends RankedRange, TextScoring {}

export interface TextMatches {
  /** The rows of each view that match and pass. */
  readonly views: readonly MatchedRows[];
  /** Over all views together. */
  readonly statistics: TextStatistics;
}

export const matchTextTask: Task<ViewsInput<SearchedText, TextTerms>, MatchedView[]> = {
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
  run: ({ views, work }) => searchWindows(views, work, textScorers(views, work)),
};

type CountWork = TextScoring & { readonly rankKeys: SortedRankKeys };

export const countTextTask: Task<ViewsInput<RankedText, CountWork>, Float64Array> = {
  name: 'text.count',
  run: ({ views, work }) => countInBuckets(views, work.rankKeys, textScorers(views, work)),
};

/** Returns the distinct terms of a query; none if it consists of stop words or has no words. */
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
  views: readonly SearchedText[],
  terms: TextTerms,
): Promise<TextMatches> {
  const itemsOf = (view: SearchedText) =>
    countAll(view.runs, terms.terms) + (view.visible === null ? 0 : view.rowCount);
  const matched = (await runInGroups(pool, matchTextTask, { views, work: terms }, itemsOf)).flat();
  return { views: matched, statistics: addStatistics(matched, terms.terms.length) };
}

/** Returns the best rows of all views. Rejects with `overloaded`. */
export async function rankText(
  pool: WorkerPool,
  views: readonly RankedText[],
  ranking: TextRanking,
): Promise<RankedHits> {
  return rankInGroups(pool, rankTextTask, { views, work: ranking }, ({ runs }) =>
    countAll(runs, ranking.terms),
  );
}

/** Counts the rows of all views before each rank key. Rejects with `overloaded`. */
export async function countTextBefore(
  pool: WorkerPool,
  views: readonly RankedText[],
  scoring: TextScoring,
  rankKeys: readonly RankKey[],
): Promise<Float64Array> {
  return countInGroups(pool, countTextTask, { views, work: scoring, rankKeys }, ({ runs }) =>
    countAll(runs, scoring.terms),
  );
}

function countAll(runs: readonly TextRun[], terms: readonly string[]): number {
  let count = 0;
  for (const run of runs) {
    for (const term of terms) count += countPostings(run, findTerm(run, term));
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
