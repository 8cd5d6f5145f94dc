// Queries packed for another thread: plain data, and one array for all vectors, so that no larger buffer behind
// a vector is copied along.

import type { Bitmap } from '../../common/bitmap.js';
import { cutByWeight } from '../../common/cut-by-weight.js';
import { assert } from '../../common/errors.js';
import type { RankKey } from '../../common/rank-key.js';
import type { Metric, VectorBlock } from '../../common/types.js';
import type { BlockHits, BlockQuery } from './per-block.js';

/** Queries per slice: their product with a chunk of rows is 16 MiB. */
const SLICE_QUERIES_MAX = 256;
/** Hits per slice, unless one query needs more: 12 bytes each, in several copies. */
const SLICE_HITS_MAX = 2 ** 19;

export interface PackedQuery {
  readonly metric: Metric;
  readonly k: number;
  readonly rowCount: number;
  readonly rows: Bitmap | null;
  readonly after: RankKey | null;
  readonly scoreMin: number | null;
}

export interface PackedQueries {
  /** Row-major [queries.length, dimension] float32, over a SharedArrayBuffer. */
  readonly vectors: Float32Array;
  readonly queries: readonly PackedQuery[];
}

/** Copies the queries except for their bitmaps, which are shared. */
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
    queries: queries.map(packQuery),
  };
}

/** Copies the query without its vector; the bitmap is shared. */
export function packQuery(query: BlockQuery): PackedQuery {
  const { metric, k, rowCount, rows, after, scoreMin } = query;
  const rankKey = after && { score: after.score, id: Uint8Array.from(after.id) };
  return { metric, k, rowCount, rows, after: rankKey, scoreMin };
}

/** Cuts a batch, in order, into slices of bounded memory. */
export function cutBatch(queries: readonly BlockQuery[]): BlockQuery[][] {
  return cutByWeight(queries, {
    countMax: SLICE_QUERIES_MAX,
    weightMax: SLICE_HITS_MAX,
    weightOf: ({ k, rowCount }) => Math.min(k, rowCount),
  });
}

/** Returns the buffers of the hits, for a transfer list. */
export function buffersOf(hits: readonly BlockHits[]): ArrayBuffer[] {
  return hits.flatMap(({ rows, scores }) => [
    rows.buffer as ArrayBuffer,
    scores.buffer as ArrayBuffer,
  ]);
}
