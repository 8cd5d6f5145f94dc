// The inverted indexes of metadata text. They are not stored, because terms depend on the Unicode data and the
// stemmers of the process, which queries must share.

import type { MetadataView } from '../common/columns.js';
import type { TextSettings } from '../common/text-settings.js';
import type { Utf8Column } from '../common/types.js';
import type { Task, WorkerPool } from '../platform/pool.js';
import { type IndexSource, type RunInput, SegmentIndexes } from './segment-indexes.js';
import { buildTextRun, mergeTextRuns, runBytes, type TextRun } from './text-run.js';

interface TextSource extends IndexSource {
  readonly json: Utf8Column;
  readonly settings: Pick<TextSettings, 'fields' | 'language' | 'stopWords'>;
}

export const buildTextRunTask: Task<RunInput<TextSource>, TextRun> = {
  name: 'text.buildRun',
  run: ({ source: { json, settings }, ...range }) => buildTextRun(json, range, settings),
};

export const mergeTextRunsTask: Task<readonly TextRun[], TextRun> = {
  name: 'text.mergeRuns',
  run: mergeTextRuns,
};

/** The rows to index. */
export interface IndexedView {
  /** The owner of the index. */
  readonly segment: object;
  readonly metadata: MetadataView;
  /** Rows that the index must cover; at most those of `metadata`. */
  readonly rowCount: number;
}

export class TextIndexes {
  readonly #indexes: SegmentIndexes<TextSource, TextRun>;

  constructor(pool: WorkerPool) {
    this.#indexes = new SegmentIndexes(
      {
        buildTask: buildTextRunTask,
        mergeTask: mergeTextRunsTask,
        sourceBytes: ({ json: { offsets } }, { from, to }) => offsets[to]! - offsets[from]!,
        runBytes,
      },
      pool,
    );
  }

  /** Returns runs over the rows of a segment, in order. They cover those of the view and maybe more. */
  runsOf(
    { segment, metadata, rowCount }: IndexedView,
    settings: TextSettings,
    signal?: AbortSignal,
  ): Promise<readonly TextRun[]> {
    const source = { json: metadata.json, rowCount: metadata.rowCount, settings };
    return this.#indexes.runsOf(segment, { source, rowCount }, signal);
  }

  bytesUsed(segment: object): number {
    return this.#indexes.bytesUsed(segment);
  }
}
