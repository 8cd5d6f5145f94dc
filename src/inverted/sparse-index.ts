// The inverted indexes of sparse vectors. They are not stored, because building one takes little longer than
// reading it from a file.

import type { SparseColumn } from '../common/vectors.js';
import type { Task, WorkerPool } from '../platform/pool.js';
import { arrayBytes } from './posting-lists.js';
import { type IndexSource, type RunInput, SegmentIndexes } from './segment-indexes.js';
import { buildSparseRun, mergeSparseRuns, type SparseRun } from './sparse-run.js';

interface SparseSource extends IndexSource, SparseColumn {}

export const buildSparseRunTask: Task<RunInput<SparseSource>, SparseRun> = {
  name: 'sparse.buildRun',
  run: ({ source, ...range }) => buildSparseRun(source, range),
};

export const mergeSparseRunsTask: Task<readonly SparseRun[], SparseRun> = {
  name: 'sparse.mergeRuns',
  run: mergeSparseRuns,
};

/** A 4-byte index and a 4-byte value. */
const ELEMENT_BYTES = 8;

export type SparseIndexes = SegmentIndexes<SparseSource, SparseRun>;

export function createSparseIndexes(pool: WorkerPool): SparseIndexes {
  return new SegmentIndexes<SparseSource, SparseRun>(
    {
      buildTask: buildSparseRunTask,
      mergeTask: mergeSparseRunsTask,
      sourceBytes: ({ starts }, { from, to }) => (starts[to]! - starts[from]!) * ELEMENT_BYTES,
      runBytes: arrayBytes,
    },
    pool,
  );
}
