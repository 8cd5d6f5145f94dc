// The inverted indexes of the sparse vectors of segments, in memory only: building one takes little longer
// than reading it from a file.

import type { SparseColumn } from '../common/vectors.js';
import type { Task, WorkerPool } from '../platform/pool.js';
import { arrayBytes } from './posting-lists.js';
import { type IndexSource, type PartInput, SegmentIndexes } from './segment-indexes.js';
import { buildPart, mergeParts, type SparsePart } from './sparse-part.js';

interface SparseSource extends IndexSource, SparseColumn {}

export const buildSparsePartTask: Task<PartInput<SparseSource>, SparsePart> = {
  name: 'sparse.buildPart',
  run: ({ source, ...range }) => buildPart(source, range),
};

export const mergeSparsePartsTask: Task<readonly SparsePart[], SparsePart> = {
  name: 'sparse.mergeParts',
  run: mergeParts,
};

/** An index and a value of an element. */
const ELEMENT_BYTES = 8;

export type SparseIndexes = SegmentIndexes<SparseSource, SparsePart>;

export function createSparseIndexes(pool: WorkerPool): SparseIndexes {
  return new SegmentIndexes<SparseSource, SparsePart>(
    {
      buildTask: buildSparsePartTask,
      mergeTask: mergeSparsePartsTask,
      sourceBytes: ({ starts }, { from, to }) => (starts[to]! - starts[from]!) * ELEMENT_BYTES,
      partBytes: arrayBytes,
    },
    pool,
  );
}
