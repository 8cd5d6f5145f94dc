// The reference engine: scores every row in float64, in plain TypeScript, by ranges of rows in the
// worker pool. The other engines are tested against it and fall back to it.

import type { VectorBlock } from '../../common/types.js';
import type { Task, WorkerPool } from '../../platform/pool.js';
import {
  createTopRows,
  fillSquares,
  type RowSquares,
  scanRows,
  unpackQuery,
} from './canonical-scan.js';
import type { Engine, SearchOptions } from './engine.js';
import {
  buffersOf,
  cutBatch,
  type PackedQueries,
  type PackedQuery,
  packQueries,
} from './packed-queries.js';
import { type BlockHits, type SearchBlock, searchPerBlock } from './per-block.js';

/** Values per range by default: half a millisecond per query, ten times the cost of a round trip. */
const RANGE_VALUES = 2 ** 20;

/** Ranges submitted to the pool per thread, so that a thread never waits for the next one. */
const RANGES_PER_THREAD = 2;

/** Values per tile: its rows stay in the L2 cache while all queries of the batch scan them. */
const TILE_VALUES = 2 ** 16;

interface ReferenceRange {
  readonly block: VectorBlock;
  readonly packed: PackedQueries;
  /** The rows from..to of the block. */
  readonly from: number;
  readonly to: number;
}

/** Searches a range. Returns one result per query, in order. */
export const searchReferenceTask: Task<ReferenceRange, BlockHits[]> = {
  name: 'engine.searchReference',
  priority: 'search',
  run: searchRange,
  transfer: buffersOf,
};

interface ReferenceEngineOptions {
  readonly pool: WorkerPool;
  /** Rows per task of the pool. Fewer rows balance the load better; more rows cost less overhead. */
  readonly rangeRowCount?: number;
}

export function createReferenceEngine(options: ReferenceEngineOptions): Engine {
  const searchBlock = createReferenceSearch(options);
  return {
    name: 'reference',
    rowEncoder: null,
    search: (queries, searchOptions = {}) => searchPerBlock(queries, searchBlock, searchOptions),
    unload() {},
    bytesUsed: () => ({ hostBytes: 0, deviceBytes: 0 }),
    async close() {},
  };
}

/** Creates the engine's search of one block, to which the tensor engines fall back. */
export function createReferenceSearch(options: ReferenceEngineOptions): SearchBlock {
  return async (block, queries, searchOptions) => {
    const answers: BlockHits[][] = [];
    for (const slice of cutBatch(queries)) {
      const packed = packQueries(block, slice);
      const ranges = cutRanges(block, packed, options.rangeRowCount);
      const results = await searchRanges(options.pool, ranges, searchOptions);
      answers.push(mergeRanges(block, packed, results));
    }
    return answers.flat();
  };
}

/**
 * Submits only a few ranges at a time, so that an aborted search ends soon: the pool can abort a
 * submitted task only by ending its thread.
 */
async function searchRanges(
  pool: WorkerPool,
  ranges: readonly ReferenceRange[],
  { signal }: SearchOptions,
): Promise<BlockHits[][]> {
  const results = new Array<BlockHits[]>(ranges.length);
  const remaining = ranges.entries();
  const runRemaining = async () => {
    for (const [index, range] of remaining) {
      signal?.throwIfAborted();
      results[index] = await pool.run(searchReferenceTask, range);
    }
  };
  await Promise.all(Array.from({ length: RANGES_PER_THREAD * pool.threadCount }, runRemaining));
  return results;
}

function mergeRanges(
  block: VectorBlock,
  packed: PackedQueries,
  results: readonly BlockHits[][],
): BlockHits[] {
  return packed.queries.map((query, index) =>
    mergeHits(
      block,
      query,
      results.map((result) => result[index]!),
    ),
  );
}

function cutRanges(
  block: VectorBlock,
  packed: PackedQueries,
  rangeRowCount = Math.max(1, Math.floor(RANGE_VALUES / block.dimension)),
): ReferenceRange[] {
  const rowCount = packed.queries.reduce((most, query) => Math.max(most, query.rowCount), 0);
  const ranges: ReferenceRange[] = [];
  for (let from = 0; from < rowCount; from += rangeRowCount) {
    ranges.push({ block, packed, from, to: Math.min(from + rangeRowCount, rowCount) });
  }
  return ranges;
}

function searchRange({ block, packed, from, to }: ReferenceRange): BlockHits[] {
  const { dimension } = block;
  const tileRowCount = Math.max(1, Math.floor(TILE_VALUES / dimension));
  const squareValues = new Float64Array(Math.min(tileRowCount, to - from));
  const needsSquares = packed.queries.some((query) => query.metric !== 'dot');
  const states = packed.queries.map((query, index) => ({
    query,
    canonical: unpackQuery(packed, index, dimension),
    top: createTopRows(block, query, to - from),
    scoredCount: 0,
  }));
  for (let tile = from; tile < to; tile += tileRowCount) {
    const tileEnd = Math.min(tile + tileRowCount, to);
    const squares: RowSquares = { values: squareValues, firstRow: tile };
    if (needsSquares) fillSquares(block, squares, tileEnd - tile);
    const range = { from: tile, to: tileEnd, squares };
    for (const state of states) {
      state.scoredCount += scanRows(block, state.canonical, state.query, range, state.top);
    }
  }
  return states.map(({ top, scoredCount }) => ({
    ...top.take(),
    scannedCount: scoredCount,
    rescoredCount: scoredCount,
  }));
}

/** Returns the best k hits of all ranges. */
function mergeHits(block: VectorBlock, query: PackedQuery, results: BlockHits[]): BlockHits {
  if (results.length === 1) return results[0]!;
  const hitCount = results.reduce((sum, { rows }) => sum + rows.length, 0);
  const top = createTopRows(block, query, hitCount);
  let scoredCount = 0;
  for (const { rows, scores, scannedCount } of results) {
    scoredCount += scannedCount;
    for (let i = 0; i < rows.length; i++) top.offer(scores[i]!, rows[i]!);
  }
  return { ...top.take(), scannedCount: scoredCount, rescoredCount: scoredCount };
}
