// Queries on their way to another thread: one array for all vectors, so that a view into a larger
// buffer does not drag that buffer along, and only plain data beside it.

import type { Bitmap } from '../../common/bitmap.js';
import { assert } from '../../common/errors.js';
import type { Metric, VectorBlock } from '../../common/types.js';
import type { Position } from './engine.js';
import { type BlockHits, type BlockQuery, cutByWeight } from './per-block.js';

/** Queries that go together at most: their product with a chunk is 16 MiB … */
const SLICE_QUERIES_MAX = 256;
/** … and hits that they ask for together, unless one asks for more: 12 bytes each, a few times over. */
const SLICE_HITS_MAX = 2 ** 19;

export interface PackedQuery {
  readonly metric: Metric;
  readonly k: number;
  readonly rowCount: number;
  readonly rows: Bitmap | null;
  readonly after: Position | null;
  readonly scoreMin: number | null;
}

export interface PackedQueries {
  /** Row-major [queries.length, dimension] float32, over a SharedArrayBuffer. */
  readonly vectors: Float32Array;
  readonly queries: readonly PackedQuery[];
}

/** Copies what the queries hold, but for bitmaps, which are shared. */
export function packQueries(block: VectorBlock, queries: readonly BlockQuery[]): PackedQueries {
  const { dimension, rowCount } = block;
  const buffer = new SharedArrayBuffer(queries.length * dimension * 4);
  const vectors = new Float32Array(buffer);
  for (const [index, query] of queries.entries()) {
    assert(query.vector.length === dimension, 'a query has the dimension of its block');
    assert(query.rowCount <= rowCount, 'a query searches no more rows than its block has');
    assert(
      query.rows === null || query.rows.length >= query.rowCount,
      'a bitmap covers the rows of its query',
    );
    vectors.set(query.vector, index * dimension);
  }
  return {
    vectors,
    queries: queries.map(({ metric, k, rowCount, rows, after, scoreMin }) => ({
      metric,
      k,
      rowCount,
      rows,
      after: after === null ? null : { score: after.score, id: after.id.slice() },
      scoreMin,
    })),
  };
}

/** Slices of a batch that need no more memory than is good, in order. */
export function cutBatch(queries: readonly BlockQuery[]): BlockQuery[][] {
  return cutByWeight(queries, {
    queriesMax: SLICE_QUERIES_MAX,
    weightMax: SLICE_HITS_MAX,
    weightOf: ({ k, rowCount }) => Math.min(k, rowCount),
  });
}

/** The buffers of the hits, to be moved rather than copied to another thread. */
export function buffersOf(hits: readonly BlockHits[]): ArrayBuffer[] {
  return hits.flatMap(({ rows, scores }) => [
    rows.buffer as ArrayBuffer,
    scores.buffer as ArrayBuffer,
  ]);
}
