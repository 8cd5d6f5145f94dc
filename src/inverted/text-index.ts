// The inverted indexes of segments over their metadata. They are in memory only: the words of a text
// depend on the Unicode data and the stemmers of the process, which queries must share.

import type { MetadataView } from '../common/columns.js';
import type { TextSettings } from '../common/text-settings.js';
import type { Utf8Column } from '../common/types.js';
import type { Task, WorkerPool } from '../platform/pool.js';
import { type IndexSource, type PartInput, SegmentIndexes } from './segment-indexes.js';
import { buildPart, mergeParts, partBytes, type TextPart } from './text-part.js';

interface TextSource extends IndexSource {
  readonly json: Utf8Column;
  readonly settings: Pick<TextSettings, 'fields' | 'language' | 'stopWords'>;
}

export const buildPartTask: Task<PartInput<TextSource>, TextPart> = {
  name: 'text.buildPart',
  run: ({ source: { json, settings }, ...range }) => buildPart(json, range, settings),
};

export const mergePartsTask: Task<readonly TextPart[], TextPart> = {
  name: 'text.mergeParts',
  run: mergeParts,
};

/** The rows that are to be indexed. */
export interface IndexedView {
  /** Whose index it is. */
  readonly segment: object;
  readonly metadata: MetadataView;
  /** Of at most as many rows as `metadata`. */
  readonly rowCount: number;
}

export class TextIndexes {
  readonly #indexes: SegmentIndexes<TextSource, TextPart>;

  constructor(pool: WorkerPool) {
    this.#indexes = new SegmentIndexes(
      {
        buildTask: buildPartTask,
        mergeTask: mergePartsTask,
        sourceBytes: ({ json: { offsets } }, { from, to }) => offsets[to]! - offsets[from]!,
        partBytes,
      },
      pool,
    );
  }

  /** Of a segment, in the order of its rows; they cover those of the view, and maybe more. */
  partsOf(
    { segment, metadata, rowCount }: IndexedView,
    settings: TextSettings,
    signal?: AbortSignal,
  ): Promise<readonly TextPart[]> {
    const source = { json: metadata.json, rowCount: metadata.rowCount, settings };
    return this.#indexes.partsOf(segment, { source, rowCount }, signal);
  }

  /** Bytes of the index of a segment. */
  bytesUsed(segment: object): number {
    return this.#indexes.bytesUsed(segment);
  }
}
