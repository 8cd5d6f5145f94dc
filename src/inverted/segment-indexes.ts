// The inverted indexes of segments, in memory only. A query that needs an index builds it or extends it by the rows
// that were added since. New runs are merged with small ones, so that a segment has few runs, the largest first.

import { unlessAborted } from '../common/when-aborted.js';
import type { Task, WorkerPool } from '../platform/pool.js';
import type { PostingLists, RunRange } from './posting-lists.js';

/** Rows per task: 20 to 50 ms for short texts. */
const TASK_ROWS_MAX = 4_096;
/** Sources up to this size are indexed on the calling thread, in a fraction of a millisecond. */
const INLINE_BYTES_MAX = 4_096;
/** Up to this many postings are merged on the calling thread. */
const INLINE_POSTINGS_MAX = 4_096;

/** How indexes of one kind are built and merged. */
export interface IndexKind<Source extends IndexSource, Run extends PostingLists> {
  readonly buildTask: Task<RunInput<Source>, Run>;
  /** Merges neighbouring runs, in order, into the run that building all of their rows would give. */
  readonly mergeTask: Task<readonly Run[], Run>;
  /** Bytes to read to build a run. */
  sourceBytes(source: Source, range: RunRange): number;
  runBytes(run: Run): number;
}

/** The rows 0..rowCount of a segment. */
export interface IndexSource {
  readonly rowCount: number;
}

export interface RunInput<Source> extends RunRange {
  readonly source: Source;
}

interface SegmentIndex<Run> {
  /** Runs of consecutive rows, starting at row 0. */
  runs: readonly Run[];
  /** The extension in progress, shared by all that wait for it. */
  growing: Promise<void> | null;
}

export class SegmentIndexes<Source extends IndexSource, Run extends PostingLists> {
  readonly #kind: IndexKind<Source, Run>;
  readonly #pool: WorkerPool;
  /** An index lives as long as its owner, which readers may still hold after a compaction. */
  readonly #indexes = new WeakMap<object, SegmentIndex<Run>>();

  constructor(kind: IndexKind<Source, Run>, pool: WorkerPool) {
    this.#kind = kind;
    this.#pool = pool;
  }

  /**
   * Returns runs over the rows of the owner, in order. They cover the first `rowCount` rows and maybe more.
   * The source must hold at least that many.
   */
  async runsOf(
    owner: object,
    { source, rowCount }: { readonly source: Source; readonly rowCount: number },
    signal?: AbortSignal,
  ): Promise<readonly Run[]> {
    let index = this.#indexes.get(owner);
    if (index === undefined) {
      index = { runs: [], growing: null };
      this.#indexes.set(owner, index);
    }
    while (endOf(index) < rowCount) {
      signal?.throwIfAborted();
      index.growing ??= this.#grow(index, source);
      await unlessAborted(index.growing, signal);
    }
    return index.runs;
  }

  bytesUsed(owner: object): number {
    const runs = this.#indexes.get(owner)?.runs ?? [];
    return runs.reduce((sum, run) => sum + this.#kind.runBytes(run), 0);
  }

  /** Indexes the rows of the source that are not indexed yet. */
  async #grow(index: SegmentIndex<Run>, source: Source): Promise<void> {
    try {
      const added: Run[] = [];
      for (let from = endOf(index); from < source.rowCount; from += TASK_ROWS_MAX) {
        const to = Math.min(source.rowCount, from + TASK_ROWS_MAX);
        // One at a time, so that tasks of other requests run in between.
        added.push(await this.#build({ source, from, to }));
      }
      index.runs = await this.#merge(index.runs, added);
    } finally {
      index.growing = null;
    }
  }

  async #build(input: RunInput<Source>): Promise<Run> {
    const { buildTask, sourceBytes } = this.#kind;
    if (sourceBytes(input.source, input) <= INLINE_BYTES_MAX) return buildTask.run(input);
    return this.#pool.run(buildTask, input);
  }

  /** Merges new runs with preceding runs that are not much larger, so that each row is merged only a few times. */
  async #merge(runs: readonly Run[], added: readonly Run[]): Promise<readonly Run[]> {
    let keptCount = runs.length;
    let mergedRows = added.reduce((sum, run) => sum + rowsOf(run), 0);
    while (keptCount > 0 && rowsOf(runs[keptCount - 1]!) <= 2 * mergedRows) {
      keptCount--;
      mergedRows += rowsOf(runs[keptCount]!);
    }
    const merged = [...runs.slice(keptCount), ...added];
    if (merged.length === 1) return [...runs, ...added];
    const { mergeTask } = this.#kind;
    const postingCount = merged.reduce((sum, { rows }) => sum + rows.length, 0);
    const last =
      postingCount <= INLINE_POSTINGS_MAX
        ? await mergeTask.run(merged)
        : await this.#pool.run(mergeTask, merged);
    return [...runs.slice(0, keptCount), last];
  }
}

function endOf({ runs }: SegmentIndex<PostingLists>): number {
  return runs.at(-1)?.to ?? 0;
}

function rowsOf({ from, to }: RunRange): number {
  return to - from;
}
