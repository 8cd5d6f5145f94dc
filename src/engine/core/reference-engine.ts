// The reference engine: every row scored in float64, in plain TypeScript, in pieces on the worker
// pool. It is the truth that the other engines are held to, and what they fall back to.

import type { VectorBlock } from '../../common/types.js';
import type { Task, WorkerPool } from '../../platform/pool.js';
import {
  createTopRows,
  fillSquares,
  type RowSquares,
  scanRows,
  unpackQuery,
} from './canonical-scan.js';
import type { Engine } from './engine.js';
import {
  buffersOf,
  cutBatch,
  type PackedQueries,
  type PackedQuery,
  packQueries,
} from './packed-queries.js';
import {
  type BlockHits,
  type SearchBlock,
  type SearchOptions,
  searchPerBlock,
} from './per-block.js';

/** Values in one piece unless told otherwise: half a millisecond a query, ten times what a round trip costs. */
const PIECE_VALUES = 2 ** 20;

/** Pieces that the pool has at once: a thread that is done finds the next one waiting. */
const PIECES_PER_THREAD = 2;

/** Values in one tile: its rows stay in the L2 cache while all queries of the batch pass over it. */
const TILE_VALUES = 2 ** 16;

export interface ReferencePiece {
  readonly block: VectorBlock;
  readonly packed: PackedQueries;
  /** The rows from..to of the block are searched. */
  readonly from: number;
  readonly to: number;
}

/** Searches one piece; one result a query, in order. */
export const searchReferenceTask: Task<ReferencePiece, BlockHits[]> = {
  name: 'engine.searchReference',
  run: searchPiece,
  transfer: buffersOf,
};

export interface ReferenceEngineOptions {
  readonly pool: WorkerPool;
  /** Rows that one task searches: fewer balance better, more cost less. */
  readonly pieceRowCount?: number;
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

/** What the engine does with one block, for those that ask it in place of another engine. */
export function createReferenceSearch(options: ReferenceEngineOptions): SearchBlock {
  return async (block, queries, searchOptions) => {
    const answers: BlockHits[][] = [];
    for (const slice of cutBatch(queries)) {
      const packed = packQueries(block, slice);
      const pieces = cutPieces(block, packed, options.pieceRowCount);
      const results = await searchPieces(options.pool, pieces, searchOptions);
      answers.push(mergePieces(block, packed, results));
    }
    return answers.flat();
  };
}

/**
 * Not all pieces are handed to the pool at once, so that a search that nobody waits for ends soon:
 * the pool would end a thread with a task that is under way.
 */
async function searchPieces(
  pool: WorkerPool,
  pieces: readonly ReferencePiece[],
  { signal }: SearchOptions,
): Promise<BlockHits[][]> {
  const results = new Array<BlockHits[]>(pieces.length);
  const rest = pieces.entries();
  const runRest = async () => {
    for (const [index, piece] of rest) {
      signal?.throwIfAborted();
      results[index] = await pool.run(searchReferenceTask, piece);
    }
  };
  await Promise.all(Array.from({ length: PIECES_PER_THREAD * pool.threadCount }, runRest));
  return results;
}

function mergePieces(
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

function cutPieces(
  block: VectorBlock,
  packed: PackedQueries,
  pieceRowCount = Math.max(1, Math.floor(PIECE_VALUES / block.dimension)),
): ReferencePiece[] {
  const rowCount = packed.queries.reduce((most, query) => Math.max(most, query.rowCount), 0);
  const pieces: ReferencePiece[] = [];
  for (let from = 0; from < rowCount; from += pieceRowCount) {
    pieces.push({ block, packed, from, to: Math.min(from + pieceRowCount, rowCount) });
  }
  return pieces;
}

function searchPiece({ block, packed, from, to }: ReferencePiece): BlockHits[] {
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

/** The best k of the hits of all pieces. */
function mergeHits(block: VectorBlock, query: PackedQuery, pieces: BlockHits[]): BlockHits {
  if (pieces.length === 1) return pieces[0]!;
  const hitCount = pieces.reduce((sum, piece) => sum + piece.rows.length, 0);
  const top = createTopRows(block, query, hitCount);
  let scoredCount = 0;
  for (const { rows, scores, scannedCount } of pieces) {
    scoredCount += scannedCount;
    for (let i = 0; i < rows.length; i++) top.offer(scores[i]!, rows[i]!);
  }
  return { ...top.take(), scannedCount: scoredCount, rescoredCount: scoredCount };
}
