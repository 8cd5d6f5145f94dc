// Matches and ranks the rows of many segments, in the worker pool where there is much to do. The results
// do not depend on how segments are shared out.

import type { Bitmap } from '../common/bitmap.js';
import { cutByWeight } from '../common/cut-by-weight.js';
import type { TextSettings } from '../common/text-settings.js';
import type { Task, WorkerPool } from '../platform/pool.js';
import { analyzerOf } from './analyzer.js';
import {
  countContaining,
  countDocuments,
  matchTerms,
  narrowTo,
  type TextStatistics,
  type TextTerms,
  type TextView,
} from './text-match.js';
import { findTerm, type TextPart } from './text-part.js';
import { type RankedView, rankRows, type TextHits, type TextRanking } from './text-rank.js';
import { TopRows } from './top-rows.js';

/** Postings, or rows whose visibility is tested: 2 to 10 ns each; a message to a worker takes 50 µs. */
const INLINE_ITEMS_MAX = 65_536;
/** About 20 ms: more would delay other tasks of the pool. A single segment may have more. */
const TASK_ITEMS_MAX = 4_194_304;

/** A segment at a sequence, its index, and the rows of it that pass the filter of a query. */
export interface SearchedView extends TextView {
  /** Visible ones; null for all of the segment's rows. */
  readonly passing: Bitmap | null;
}

interface MatchedView extends TextStatistics {
  /** The rows that match and pass. */
  readonly rows: Bitmap;
  readonly visibleCount: number;
}

export interface TextMatches {
  /** Of each view, in order, the rows that match and pass. */
  readonly views: readonly { readonly rows: Bitmap; readonly visibleCount: number }[];
  /** Of all views together. */
  readonly statistics: TextStatistics;
}

/** The input of a task: neighbouring views, and what to do with all of them. */
interface ViewsInput<View, Work> {
  readonly views: readonly View[];
  readonly work: Work;
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

export const rankTextTask: Task<ViewsInput<RankedView, TextRanking>, TextHits> = {
  name: 'text.rank',
  run: ({ views, work }) => rankRows(views, work),
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
    countPostings(view.parts, terms.terms) + (view.visible === null ? 0 : view.rowCount);
  const matched = (await runInGroups(pool, matchTextTask, { views, work: terms }, itemsOf)).flat();
  return { views: matched, statistics: addStatistics(matched, terms.terms.length) };
}

/** The best rows of all views. Rejects with `overloaded`. */
export async function rankText(
  pool: WorkerPool,
  views: readonly RankedView[],
  ranking: TextRanking,
): Promise<TextHits> {
  const itemsOf = ({ parts }: RankedView) => countPostings(parts, ranking.terms);
  const ranked = await runInGroups(pool, rankTextTask, { views, work: ranking }, itemsOf);
  return ranked.length === 1 ? ranked[0]! : mergeHits(views, ranked, ranking.k);
}

function countPostings(parts: readonly TextPart[], terms: readonly string[]): number {
  let count = 0;
  for (const part of parts) {
    for (const term of terms) {
      const index = findTerm(part, term);
      if (index >= 0) count += part.postingStarts[index + 1]! - part.postingStarts[index]!;
    }
  }
  return count;
}

/** The results of groups of neighbouring views, in order; one if there is little to do. */
async function runInGroups<View, Work, Result>(
  pool: WorkerPool,
  task: Task<ViewsInput<View, Work>, Result>,
  { views, work }: ViewsInput<View, Work>,
  itemsOf: (view: View) => number,
): Promise<readonly Result[]> {
  const itemCount = views.reduce((sum, view) => sum + itemsOf(view), 0);
  if (itemCount <= INLINE_ITEMS_MAX) {
    // Queries of a batch follow each other: other requests come in between.
    await new Promise((resolve) => setImmediate(resolve));
    return [task.run({ views, work })];
  }
  const groups = cutByWeight(views, {
    weightMax: Math.min(TASK_ITEMS_MAX, Math.ceil(itemCount / pool.threadCount)),
    weightOf: itemsOf,
  });
  return Promise.all(
    groups.map((group) => pool.run(task, { views: group, work }, { mayBeRefused: true })),
  );
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

/** The best of the hits of neighbouring groups of views. */
function mergeHits(views: readonly RankedView[], groups: readonly TextHits[], k: number): TextHits {
  const top = new TopRows(
    k,
    views.map(({ ids }) => ids),
  );
  let firstView = 0;
  let scoredCount = 0;
  for (const hits of groups) {
    for (const [i, score] of hits.scores.entries()) {
      top.offer(score, firstView + hits.viewIndexes[i]!, hits.rows[i]!);
    }
    firstView += hits.viewCount;
    scoredCount += hits.scoredCount;
  }
  return { ...top.ranked(), viewCount: views.length, scoredCount };
}
