// The inverted indexes of segments, made when a query first needs them, and extended by the rows that have
// come since. They are in memory only. Parts are merged as they come, so that a segment has a few of them,
// the large ones first.

import { unlessAborted } from '../common/when-aborted.js';
import type { Task, WorkerPool } from '../platform/pool.js';
import type { PostingLists, RowRange } from './posting-lists.js';

/** Rows of one task: 20 to 50 ms for short texts. */
const TASK_ROWS_MAX = 4_096;
/** What is indexed on the calling thread: a fraction of a millisecond. */
const INLINE_BYTES_MAX = 4_096;
/** Postings that are merged on the calling thread. */
const INLINE_POSTINGS_MAX = 4_096;

/** What indexes are made of, and how. */
export interface IndexKind<Source extends IndexSource, Part extends PostingLists> {
  readonly buildTask: Task<PartInput<Source>, Part>;
  /** Of neighbouring parts, in their order; gives the part that is built from all of their rows. */
  readonly mergeTask: Task<readonly Part[], Part>;
  /** Bytes that building a part reads. */
  sourceBytes(source: Source, range: RowRange): number;
  partBytes(part: Part): number;
}

/** The rows 0..rowCount of a segment. */
export interface IndexSource {
  readonly rowCount: number;
}

export interface PartInput<Source> extends RowRange {
  readonly source: Source;
}

interface SegmentIndex<Part> {
  /** Of neighbouring rows, from row 0. */
  parts: readonly Part[];
  /** The extension under way, shared by everyone who waits for it. */
  growing: Promise<void> | null;
}

export class SegmentIndexes<Source extends IndexSource, Part extends PostingLists> {
  readonly #kind: IndexKind<Source, Part>;
  readonly #pool: WorkerPool;
  /** An index lives as long as its owner, which readers may hold after a compaction. */
  readonly #indexes = new WeakMap<object, SegmentIndex<Part>>();

  constructor(kind: IndexKind<Source, Part>, pool: WorkerPool) {
    this.#kind = kind;
    this.#pool = pool;
  }

  /**
   * Of what the owner has, in the order of its rows; they cover the first `rowCount` rows, and maybe more.
   * The source has at least as many.
   */
  async partsOf(
    owner: object,
    { source, rowCount }: { readonly source: Source; readonly rowCount: number },
    signal?: AbortSignal,
  ): Promise<readonly Part[]> {
    let index = this.#indexes.get(owner);
    if (index === undefined) {
      index = { parts: [], growing: null };
      this.#indexes.set(owner, index);
    }
    while (endOf(index) < rowCount) {
      signal?.throwIfAborted();
      index.growing ??= this.#grow(index, source);
      await unlessAborted(index.growing, signal);
    }
    return index.parts;
  }

  /** Bytes of the index of an owner. */
  bytesUsed(owner: object): number {
    const parts = this.#indexes.get(owner)?.parts ?? [];
    return parts.reduce((sum, part) => sum + this.#kind.partBytes(part), 0);
  }

  /** Indexes all rows of the source that are not indexed yet. */
  async #grow(index: SegmentIndex<Part>, source: Source): Promise<void> {
    try {
      const added: Part[] = [];
      for (let from = endOf(index); from < source.rowCount; from += TASK_ROWS_MAX) {
        const to = Math.min(source.rowCount, from + TASK_ROWS_MAX);
        // One after another: the tasks of other requests run in between.
        added.push(await this.#build({ source, from, to }));
      }
      index.parts = await this.#merge(index.parts, added);
    } finally {
      index.growing = null;
    }
  }

  async #build(input: PartInput<Source>): Promise<Part> {
    const { buildTask, sourceBytes } = this.#kind;
    if (sourceBytes(input.source, input) <= INLINE_BYTES_MAX) return buildTask.run(input);
    return this.#pool.run(buildTask, input);
  }

  /** Merges new parts with those before them that are not much larger: each row is merged a few times only. */
  async #merge(parts: readonly Part[], added: readonly Part[]): Promise<readonly Part[]> {
    let keptCount = parts.length;
    let mergedRows = added.reduce((sum, part) => sum + rowsOf(part), 0);
    while (keptCount > 0 && rowsOf(parts[keptCount - 1]!) <= 2 * mergedRows) {
      keptCount--;
      mergedRows += rowsOf(parts[keptCount]!);
    }
    const merged = [...parts.slice(keptCount), ...added];
    if (merged.length === 1) return [...parts, ...added];
    const { mergeTask } = this.#kind;
    const postingCount = merged.reduce((sum, { rows }) => sum + rows.length, 0);
    const last =
      postingCount <= INLINE_POSTINGS_MAX
        ? await mergeTask.run(merged)
        : await this.#pool.run(mergeTask, merged);
    return [...parts.slice(0, keptCount), last];
  }
}

function endOf({ parts }: SegmentIndex<PostingLists>): number {
  return parts.at(-1)?.to ?? 0;
}

function rowsOf({ from, to }: RowRange): number {
  return to - from;
}
