// A cache of filter results, one per filter and segment. Rows never change, so that a result is valid for every
// sequence, and only the new rows of a grown segment are evaluated. Bitmaps are shared by all readers, and engines
// recognise them, so they are never written to.

import { createHash } from 'node:crypto';
import { type Bitmap, countBits, createBitmap } from '../../common/bitmap.js';
import type { MetadataView } from '../../common/columns.js';
import { assert } from '../../common/errors.js';
import { unlessAborted } from '../../common/when-aborted.js';
import { type FilterEvaluation, selectRows } from '../../filter/evaluate-task.js';
import {
  type FilterNode,
  filterPaths,
  filterText,
  hasWordsTest,
} from '../../filter/filter-node.js';
import { sliceView } from '../../filter/slice-view.js';
import type { WorkerPool } from '../../platform/pool.js';
import { type VisibleRows, visibleAmong } from '../../segment/visibility.js';

/** The rows of one segment at one sequence. */
export interface FilterTarget extends VisibleRows {
  readonly segment: { readonly key: string };
  /** The metadata of at least `rowCount` rows. */
  readonly metadata: MetadataView;
}

/** The visible matching rows. The same filter and rows give the same bitmap object. */
type MatchingRows = Pick<VisibleRows, 'rows' | 'visibleCount'>;

/**
 * The matching rows of one state of a segment. Rows are added and end in order, so that two sequences with equal
 * counts of rows and of visible rows show the same rows.
 */
interface View {
  readonly rowCount: number;
  readonly visibleCount: number;
  readonly matching: MatchingRows;
}

/** The result of one filter on one segment. */
interface Result {
  readonly segmentKey: string;
  readonly filterKey: string;
  /** All matching rows, visible or not; null until the first evaluation has ended. */
  matches: Bitmap | null;
  matchCount: number;
  /** The most recently used view is last. */
  views: readonly View[];
  evaluation: Evaluation | null;
  bytesUsed: number;
  /** False once removed from the cache; readers may still hold the result. */
  isCached: boolean;
}

/** A result that does not cover all rows of the view. */
interface StaleResult {
  readonly result: Result;
  readonly segment: FilterTarget['segment'];
  readonly view: MetadataView;
}

/** An evaluation in progress, shared by all that wait for it. */
interface Evaluation {
  readonly result: Result;
  readonly done: Promise<void>;
  readonly stop: () => void;
  waitingCount: number;
}

/** Answers conditions on words from a text index. */
export interface WordsColumns {
  /**
   * The view of a segment with a column for each `$match` of the filter. The collection must have a text index.
   * Rejects with `collection_not_found` when the collection was deleted.
   */
  addColumns(
    node: FilterNode,
    segment: FilterTarget['segment'],
    view: MetadataView,
  ): Promise<MetadataView>;
}

/** Estimated size of a result without its bitmaps: objects, keys and map entries. */
const RESULT_BYTES = 1_024;

/** Views per result: the newest sequence and a few older ones that cursors read. */
const VIEWS_MAX = 4;

export class FilterCache {
  readonly #pool: WorkerPool;
  readonly #bytesMax: number;
  readonly #words: WordsColumns | null;
  /** By segment, then by filter. */
  readonly #results = new Map<string, Map<string, Result>>();
  /** The least recently used first. */
  readonly #order = new Set<Result>();
  /** One node filters many segments, and every page of a cursor. */
  readonly #filterKeys = new WeakMap<FilterNode, string>();
  #bytesUsed = 0;
  #hitCount = 0;
  #missCount = 0;

  /** @param options.words creates the columns of conditions on words; absent when filters have none. */
  constructor(options: { pool: WorkerPool; bytesMax: number; words?: WordsColumns }) {
    this.#words = options.words ?? null;
    this.#pool = options.pool;
    this.#bytesMax = options.bytesMax;
  }

  /** At most `bytesMax`. */
  get bytesUsed(): number {
    return this.#bytesUsed;
  }

  /** Segments answered from the cache or by an evaluation in progress. */
  get hitCount(): number {
    return this.#hitCount;
  }

  /** Evaluations started, of whole segments or of new rows. */
  get missCount(): number {
    return this.#missCount;
  }

  /**
   * The targets with only the matching rows; all rows without a filter. Rejects with the signal's reason as soon as it
   * aborts; an evaluation continues while others wait for it.
   */
  async filter<Target extends FilterTarget>(
    targets: readonly Target[],
    node: FilterNode | null,
    signal?: AbortSignal,
  ): Promise<readonly (Target & MatchingRows)[]> {
    if (node === null) return targets;
    const filterKey = this.#keyOf(node);
    const results = targets.map(({ segment }) => this.#use(segment.key, filterKey));
    const missCountBefore = this.#missCount;
    for (;;) {
      signal?.throwIfAborted();
      const incomplete = targets.flatMap(({ rowCount, metadata, segment }, i) =>
        covers(results[i]!, rowCount) ? [] : [{ result: results[i]!, segment, view: metadata }],
      );
      if (incomplete.length === 0) break;
      const idle = incomplete.filter(({ result }) => result.evaluation === null);
      if (idle.length > 0) this.#start(node, idle);
      // Rows that were added during an evaluation are left to the next iteration.
      await waitFor(
        incomplete.map(({ result }) => result.evaluation!),
        signal,
      );
    }
    this.#hitCount += Math.max(0, targets.length - (this.#missCount - missCountBefore));
    return targets.map((target, i) => ({ ...target, ...this.#show(results[i]!, target) }));
  }

  /** Removes the results of a segment that no longer exists. A result that a reader adds again is evicted by disuse. */
  forget(segmentKey: string): void {
    for (const result of this.#results.get(segmentKey)?.values() ?? []) this.#remove(result);
  }

  #keyOf(node: FilterNode): string {
    let key = this.#filterKeys.get(node);
    if (key === undefined) {
      // A digest, since a filter may list thousands of values.
      key = createHash('sha256').update(filterText(node)).digest('base64');
      this.#filterKeys.set(node, key);
    }
    return key;
  }

  #use(segmentKey: string, filterKey: string): Result {
    let ofSegment = this.#results.get(segmentKey);
    if (ofSegment === undefined) {
      ofSegment = new Map();
      this.#results.set(segmentKey, ofSegment);
    }
    let result = ofSegment.get(filterKey);
    if (result === undefined) {
      result = {
        segmentKey,
        filterKey,
        matches: null,
        matchCount: 0,
        views: [],
        evaluation: null,
        bytesUsed: 0,
        isCached: true,
      };
      ofSegment.set(filterKey, result);
      this.#order.add(result);
      this.#account(result);
    } else {
      this.#order.delete(result);
      this.#order.add(result);
    }
    return result;
  }

  #start(node: FilterNode, work: readonly StaleResult[]): void {
    const paths = filterPaths(node);
    const fromRows = work.map(({ result }) => wholeWordRows(result.matches));
    const select = (views: readonly MetadataView[]) => {
      const slices = views.map((view, i) =>
        fromRows[i] === 0 ? view : sliceView(view, fromRows[i]!, paths),
      );
      return selectRows(this.#pool, node, slices);
    };
    const selections = hasWordsTest(node)
      ? selectLater(work.length, this.#addWords(node, work), select)
      : select(work.map(({ view }) => view));
    work.forEach(({ result }, i) => {
      this.#missCount++;
      result.evaluation = this.#track(result, selections[i]!, fromRows[i]!);
    });
  }

  #addWords(node: FilterNode, work: readonly StaleResult[]): Promise<readonly MetadataView[]> {
    const words = this.#words;
    assert(words !== null, 'conditions on words have an index');
    return Promise.all(work.map(({ segment, view }) => words.addColumns(node, segment, view)));
  }

  #track(result: Result, selection: FilterEvaluation, fromRow: number): Evaluation {
    const end = () => {
      if (result.evaluation === evaluation) result.evaluation = null;
    };
    const evaluation: Evaluation = {
      result,
      done: selection.rows
        .then((rows) => {
          if (rows !== null) this.#store(result, rows, fromRow);
        })
        .finally(end),
      stop: () => {
        selection.stop();
        end();
      },
      waitingCount: 0,
    };
    // `waitFor` reports a failure; without a waiter it must not become an unhandled rejection.
    evaluation.done.catch(() => {});
    return evaluation;
  }

  /** Stores the matching rows found from `fromRow` on. */
  #store(result: Result, found: Bitmap, fromRow: number): void {
    const rowCount = fromRow + found.length;
    // A stopped evaluation may still end after one that began later.
    if (covers(result, rowCount)) return;
    let matches = found;
    if (fromRow > 0) {
      matches = createBitmap(rowCount);
      matches.words.set(result.matches!.words.subarray(0, fromRow >>> 5));
      matches.words.set(found.words, fromRow >>> 5);
    }
    result.matches = matches;
    result.matchCount = countBits(matches);
    this.#account(result);
  }

  /** The result must cover the target. */
  #show(result: Result, target: FilterTarget): MatchingRows {
    const { rowCount, visibleCount } = target;
    const isCurrent = (view: View) =>
      view.rowCount === rowCount && view.visibleCount === visibleCount;
    const known = result.views.find(isCurrent);
    const view = known ?? { rowCount, visibleCount, matching: matchingRows(result, target) };
    if (result.views.at(-1) === view) return view.matching;
    result.views = [...result.views.filter((other) => other !== view), view].slice(-VIEWS_MAX);
    if (known === undefined) this.#account(result);
    return view.matching;
  }

  /** Updates the bytes of the result and evicts the least recently used results. */
  #account(result: Result): void {
    if (!result.isCached) return;
    const bitmaps = new Set([result.matches, ...result.views.map(({ matching }) => matching.rows)]);
    let bytesUsed = RESULT_BYTES;
    for (const bitmap of bitmaps) bytesUsed += bitmap?.words.byteLength ?? 0;
    this.#bytesUsed += bytesUsed - result.bytesUsed;
    result.bytesUsed = bytesUsed;
    for (const oldest of this.#order) {
      if (this.#bytesUsed <= this.#bytesMax) return;
      this.#remove(oldest);
    }
  }

  #remove(result: Result): void {
    const { segmentKey, filterKey } = result;
    const ofSegment = this.#results.get(segmentKey);
    ofSegment?.delete(filterKey);
    if (ofSegment?.size === 0) this.#results.delete(segmentKey);
    this.#order.delete(result);
    this.#bytesUsed -= result.bytesUsed;
    result.isCached = false;
  }
}

/** Selections of views that are not ready yet. */
function selectLater(
  count: number,
  views: Promise<readonly MetadataView[]>,
  select: (views: readonly MetadataView[]) => readonly FilterEvaluation[],
): FilterEvaluation[] {
  const selections = views.then(select);
  return Array.from({ length: count }, (_, i) => {
    let isStopped = false;
    return {
      rows: selections.then((selected) => (isStopped ? null : selected[i]!.rows)),
      stop() {
        isStopped = true;
        selections.then(
          (selected) => selected[i]!.stop(),
          () => {},
        );
      },
    };
  });
}

function covers({ matches }: Result, rowCount: number): boolean {
  return matches !== null && matches.length >= rowCount;
}

/** The number of rows that a later evaluation skips; it starts at a whole word of the bitmap. */
function wholeWordRows(matches: Bitmap | null): number {
  return matches === null ? 0 : matches.length & ~31;
}

function matchingRows({ matches, matchCount }: Result, target: FilterTarget): MatchingRows {
  const { rowCount, rows, visibleCount } = target;
  if (matches!.length === rowCount) {
    if (matchCount === rowCount) return { rows, visibleCount };
    if (rows === null || matchCount === 0) return { rows: matches, visibleCount: matchCount };
  }
  return visibleAmong(target, matches!);
}

/** Resolves when all evaluations have ended. Stops those that nobody else waits for. */
async function waitFor(evaluations: readonly Evaluation[], signal?: AbortSignal): Promise<void> {
  for (const evaluation of evaluations) evaluation.waitingCount++;
  try {
    await unlessAborted(Promise.all(evaluations.map(({ done }) => done)), signal);
  } finally {
    for (const evaluation of evaluations) {
      evaluation.waitingCount--;
      const isUnderWay = evaluation.result.evaluation === evaluation;
      if (evaluation.waitingCount === 0 && isUnderWay) evaluation.stop();
    }
  }
}
