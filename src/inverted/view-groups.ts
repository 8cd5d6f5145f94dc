// Spreads the views of a search over the worker pool if there is much to do. The results do not depend on how
// the views are grouped.

import { cutByWeight } from '../common/cut-by-weight.js';
import {
  countsBefore,
  type RankKey,
  type SortedRankKeys,
  sortRankKeys,
} from '../common/rank-key.js';
import type { Utf8Column } from '../common/types.js';
import type { Task, WorkerPool } from '../platform/pool.js';
import { RankedHeap } from './ranked-heap.js';
import type { RankedHits } from './window-search.js';

/**
 * Work on the calling thread is limited to this many items: postings, or rows to test for visibility, at 2 to 10 ns
 * each. A message to a worker takes 50 µs.
 */
const INLINE_ITEMS_MAX = 65_536;
/** About 20 ms, since longer tasks would delay others in the pool. A single view may exceed it. */
const TASK_ITEMS_MAX = 4_194_304;

/** The input of a task: neighbouring views and the work to do on each. */
export interface ViewsInput<View, Work> {
  readonly views: readonly View[];
  readonly work: Work;
}

/** Runs a task on groups of neighbouring views and returns the results in order. Rejects with `overloaded`. */
export async function runInGroups<View, Work, Result>(
  pool: WorkerPool,
  task: Task<ViewsInput<View, Work>, Result>,
  { views, work }: ViewsInput<View, Work>,
  itemsOf: (view: View) => number,
): Promise<readonly Result[]> {
  const itemCount = views.reduce((sum, view) => sum + itemsOf(view), 0);
  if (itemCount <= INLINE_ITEMS_MAX) {
    // Lets other requests run between the queries of a batch.
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

/** Returns the best rows of all views. Rejects with `overloaded`. */
export async function rankInGroups<
  View extends { readonly ids: Utf8Column },
  Work extends { readonly k: number },
>(
  pool: WorkerPool,
  task: Task<ViewsInput<View, Work>, RankedHits>,
  input: ViewsInput<View, Work>,
  itemsOf: (view: View) => number,
): Promise<RankedHits> {
  const groups = await runInGroups(pool, task, input, itemsOf);
  if (groups.length === 1) return groups[0]!;
  const top = new RankedHeap(
    input.work.k,
    input.views.map(({ ids }) => ids),
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
  return { ...top.ranked(), viewCount: input.views.length, scoredCount };
}

type WithRankKeys<Work> = Work & { readonly rankKeys: SortedRankKeys };

/** Counts the rows of all views before each rank key. Rejects with `overloaded`. */
export async function countInGroups<View, Work extends object>(
  pool: WorkerPool,
  task: Task<ViewsInput<View, WithRankKeys<Work>>, Float64Array>,
  { views, work, rankKeys }: ViewsInput<View, Work> & { readonly rankKeys: readonly RankKey[] },
  itemsOf: (view: View) => number,
): Promise<Float64Array> {
  const { sorted, origins } = sortRankKeys(rankKeys);
  const input = { views, work: { ...work, rankKeys: sorted } };
  const groups = await runInGroups(pool, task, input, itemsOf);
  const counts = new Float64Array(rankKeys.length + 1);
  for (const group of groups) for (const [i, count] of group.entries()) counts[i]! += count;
  return countsBefore(counts, origins);
}
