// Searches block by block, for engines that can search only single blocks. Each block is searched once, for all
// queries that have a view of it, concurrently with the other blocks; the hits of a query's blocks are merged
// in the order of answers.

import { cutByWeight } from '../../common/cut-by-weight.js';
import { assert } from '../../common/errors.js';
import type { VectorBlock } from '../../common/types.js';
import type { BlockView, SearchHits, SearchOptions, SearchQuery } from './engine.js';
import { compareIdWith } from './order.js';

/** A query with its view of one block. */
export type BlockQuery = Omit<SearchQuery, 'views'> & Omit<BlockView, 'block'>;

/** The best rows of one query in one block, best first: at most k. The caller owns the arrays. */
export type BlockHits = Omit<SearchHits, 'viewIndexes'>;

/** Returns one result per query, in order. All queries have the block's dimension. */
export type SearchBlock = (
  block: VectorBlock,
  queries: readonly BlockQuery[],
  options: SearchOptions,
) => Promise<BlockHits[]>;

/**
 * The most hits (12 bytes each) that the blocks of concurrently searched queries may hold, unless a
 * single query needs more. A lower limit would split batches of ordinary queries.
 */
const HITS_MAX = 2 ** 22;

const NO_HITS: BlockHits = {
  rows: new Uint32Array(0),
  scores: new Float64Array(0),
  scannedCount: 0,
  rescoredCount: 0,
};

/** Implements `Engine.search`. The signal is checked before each slice of the batch and passed on. */
export async function searchPerBlock(
  queries: readonly SearchQuery[],
  searchBlock: SearchBlock,
  options: SearchOptions,
): Promise<SearchHits[]> {
  options.signal?.throwIfAborted();
  const answers: SearchHits[][] = [];
  for (const slice of cutByWeight(queries, { weightMax: HITS_MAX, weightOf: countHitsMax })) {
    options.signal?.throwIfAborted();
    answers.push(await searchSlice(slice, searchBlock, options));
  }
  return answers.flat();
}

function countHitsMax({ k, views }: SearchQuery): number {
  return views.reduce((sum, { rowCount }) => sum + Math.min(k, rowCount), 0);
}

async function searchSlice(
  queries: readonly SearchQuery[],
  searchBlock: SearchBlock,
  options: SearchOptions,
): Promise<SearchHits[]> {
  const answers = queries.map(({ views }) => views.map(() => NO_HITS));
  await Promise.all(
    groupByBlock(queries).map(async ({ block, blockQueries, origins }) => {
      const hits = await searchBlock(block, blockQueries, options);
      assert(hits.length === blockQueries.length, 'a block search returns one result per query');
      for (const [i, { query, view }] of origins.entries()) answers[query]![view] = hits[i]!;
    }),
  );
  return queries.map((query, index) =>
    mergeHits(
      query,
      answers[index]!.map((hits, viewIndex) => ({ ...hits, viewIndexes: viewIndex })),
    ),
  );
}

/** The queries of one block, and the query and view of the batch that each of them comes from. */
interface BlockGroup {
  block: VectorBlock;
  readonly blockQueries: BlockQuery[];
  readonly origins: { readonly query: number; readonly view: number }[];
}

function groupByBlock(queries: readonly SearchQuery[]): BlockGroup[] {
  const groups = new Map<string, BlockGroup>();
  for (const [index, { views, ...query }] of queries.entries()) {
    for (const [view, { block, rowCount, rows }] of views.entries()) {
      if (rowCount === 0) continue;
      let group = groups.get(block.key);
      if (group === undefined) {
        group = { block, blockQueries: [], origins: [] };
        groups.set(block.key, group);
      }
      // Of two versions of a block, the one with more rows serves the queries of both.
      if (block.rowCount > group.block.rowCount) group.block = block;
      group.blockQueries.push({ ...query, rowCount, rows });
      group.origins.push({ query: index, view });
    }
  }
  return [...groups.values()];
}

/** The best rows of one query in some of its views, best first: at most k. */
export type PartialHits = BlockHits & {
  /** The view of each hit, or one number if they all have the same view. */
  readonly viewIndexes: Uint32Array | number;
};

/** Merges sorted answers of a query from different views. There are few, so a linear search suffices. */
export function mergeHits({ k, views }: SearchQuery, answers: readonly PartialHits[]): SearchHits {
  let hitCount = 0;
  let scannedCount = 0;
  let rescoredCount = 0;
  for (const answer of answers) {
    hitCount += answer.rows.length;
    scannedCount += answer.scannedCount;
    rescoredCount += answer.rescoredCount;
  }
  const count = Math.min(k, hitCount);
  const merged = {
    viewIndexes: new Uint32Array(count),
    rows: new Uint32Array(count),
    scores: new Float64Array(count),
    scannedCount,
    rescoredCount,
  };
  const heads = new Uint32Array(answers.length);
  for (let rank = 0; rank < count; rank++) {
    let best = -1;
    for (let i = 0; i < answers.length; i++) {
      if (heads[i]! >= answers[i]!.rows.length) continue;
      if (best < 0 || isBefore(i, best)) best = i;
    }
    merged.viewIndexes[rank] = viewOf(best);
    const head = heads[best]!++;
    merged.rows[rank] = answers[best]!.rows[head]!;
    merged.scores[rank] = answers[best]!.scores[head]!;
  }
  return merged;

  function viewOf(i: number): number {
    const { viewIndexes } = answers[i]!;
    return typeof viewIndexes === 'number' ? viewIndexes : viewIndexes[heads[i]!]!;
  }

  /** Whether the head of answer `a` comes before that of `b`; equal ids go by the order of views. */
  function isBefore(a: number, b: number): boolean {
    const scoreA = answers[a]!.scores[heads[a]!]!;
    const scoreB = answers[b]!.scores[heads[b]!]!;
    if (scoreA !== scoreB) return scoreA > scoreB;
    const idsB = views[viewOf(b)]!.block.ids;
    const rowB = answers[b]!.rows[heads[b]!]!;
    const idB = idsB.bytes.subarray(idsB.offsets[rowB]!, idsB.offsets[rowB + 1]!);
    const idsA = views[viewOf(a)]!.block.ids;
    const order = compareIdWith(idsA, answers[a]!.rows[heads[a]!]!, idB);
    return order < 0 || (order === 0 && viewOf(a) < viewOf(b));
  }
}
