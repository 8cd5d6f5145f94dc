// The inverted indexes of segments, made from their metadata when a query first needs them, and extended
// by the rows that have come since. They are in memory only: the words of a text depend on the Unicode
// data and the stemmers of the process, which queries must share. Parts are merged as they come, so that
// a segment has a few of them, the large ones first.

import type { MetadataView } from '../common/columns.js';
import type { TextSettings } from '../common/text-settings.js';
import type { Utf8Column } from '../common/types.js';
import { whenAborted } from '../common/when-aborted.js';
import type { Task, WorkerPool } from '../platform/pool.js';
import { buildPart, mergeParts, partBytes, type TextPart } from './text-part.js';

/** Rows of one task: 20 to 50 ms for short texts. */
const TASK_ROWS_MAX = 4_096;
/** JSON that is indexed on the calling thread: a fraction of a millisecond. */
const INLINE_BYTES_MAX = 4_096;
/** Postings that are merged on the calling thread. */
const INLINE_POSTINGS_MAX = 4_096;

interface PartInput {
  readonly json: Utf8Column;
  readonly from: number;
  readonly to: number;
  readonly settings: Pick<TextSettings, 'fields' | 'language' | 'stopWords'>;
}

export const buildPartTask: Task<PartInput, TextPart> = {
  name: 'text.buildPart',
  run: ({ json, settings, ...range }) => buildPart(json, range, settings),
};

export const mergePartsTask: Task<readonly TextPart[], TextPart> = {
  name: 'text.mergeParts',
  run: (parts) => mergeParts(parts),
};

/** The identity of a segment. */
export type IndexedSegment = object;

/** The rows that are to be indexed. */
export interface IndexedView {
  readonly segment: IndexedSegment;
  readonly metadata: MetadataView;
  /** Of at most as many rows as `metadata`. */
  readonly rowCount: number;
}

interface SegmentIndex {
  /** Of neighbouring rows, from row 0. */
  parts: readonly TextPart[];
  /** The extension under way, shared by everyone who waits for it. */
  growing: Promise<void> | null;
}

export class TextIndexes {
  readonly #pool: WorkerPool;
  /** An index lives as long as its segment, which readers may hold after a compaction. */
  readonly #indexes = new WeakMap<IndexedSegment, SegmentIndex>();

  constructor(pool: WorkerPool) {
    this.#pool = pool;
  }

  /** Of a segment, in the order of its rows; they cover those of the view, and maybe more. */
  async partsOf(
    { segment, metadata, rowCount }: IndexedView,
    settings: TextSettings,
    signal?: AbortSignal,
  ): Promise<readonly TextPart[]> {
    let index = this.#indexes.get(segment);
    if (index === undefined) {
      index = { parts: [], growing: null };
      this.#indexes.set(segment, index);
    }
    while (endOf(index) < rowCount) {
      signal?.throwIfAborted();
      index.growing ??= this.#grow(index, metadata, settings);
      await unlessAborted(index.growing, signal);
    }
    return index.parts;
  }

  /** Bytes of the index of a segment. */
  bytesUsed(segment: IndexedSegment): number {
    const parts = this.#indexes.get(segment)?.parts ?? [];
    return parts.reduce((sum, part) => sum + partBytes(part), 0);
  }

  /** Indexes all rows of the view that are not indexed yet. */
  async #grow(index: SegmentIndex, view: MetadataView, settings: TextSettings): Promise<void> {
    try {
      const added: TextPart[] = [];
      for (let from = endOf(index); from < view.rowCount; from += TASK_ROWS_MAX) {
        const to = Math.min(view.rowCount, from + TASK_ROWS_MAX);
        // One after another: the tasks of other requests run in between.
        added.push(await this.#build({ json: view.json, from, to, settings }));
      }
      index.parts = await this.#merge(index.parts, added);
    } finally {
      index.growing = null;
    }
  }

  async #build(input: PartInput): Promise<TextPart> {
    const { json, from, to } = input;
    const byteCount = json.offsets[to]! - json.offsets[from]!;
    if (byteCount <= INLINE_BYTES_MAX) return buildPartTask.run(input);
    return this.#pool.run(buildPartTask, input);
  }

  /** Merges new parts with those before them that are not much larger: each row is merged a few times only. */
  async #merge(
    parts: readonly TextPart[],
    added: readonly TextPart[],
  ): Promise<readonly TextPart[]> {
    let keptCount = parts.length;
    let mergedRows = added.reduce((sum, part) => sum + rowsOf(part), 0);
    while (keptCount > 0 && rowsOf(parts[keptCount - 1]!) <= 2 * mergedRows) {
      keptCount--;
      mergedRows += rowsOf(parts[keptCount]!);
    }
    const merged = [...parts.slice(keptCount), ...added];
    if (merged.length === 1) return [...parts, ...added];
    const postingCount = merged.reduce((sum, { rows }) => sum + rows.length, 0);
    const last =
      postingCount <= INLINE_POSTINGS_MAX
        ? mergeParts(merged)
        : await this.#pool.run(mergePartsTask, merged);
    return [...parts.slice(0, keptCount), last];
  }
}

function endOf({ parts }: SegmentIndex): number {
  return parts.at(-1)?.to ?? 0;
}

function rowsOf({ from, to }: TextPart): number {
  return to - from;
}

function unlessAborted(promise: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const ignoreAbort = whenAborted(signal, () => reject(signal!.reason));
    promise.then(resolve, reject).finally(ignoreAbort);
  });
}
