// For engines that search block by block: what one block is asked and answers, and queries over
// many blocks answered through that. Every block is searched once, with all queries that want it,
// and beside the others; what a query gets from its blocks is merged in the order of answers.

import { assert } from '../../common/errors.js';
import type { VectorBlock } from '../../common/types.js';
import type { BlockView, SearchHits, SearchQuery } from './engine.js';
import { compareIdWith } from './order.js';

/** A query's share of the work in one block. */
export type BlockQuery = Omit<SearchQuery, 'views'> & Omit<BlockView, 'block'>;

/** The best rows of one query in one block, best first: at most k. The caller owns the arrays. */
export type BlockHits = Omit<SearchHits, 'viewIndexes'>;

export interface SearchOptions {
  readonly signal?: AbortSignal;
}

/** One result a query, in order. All queries have the block's dimension; they differ in the rest. */
export type SearchBlock = (
  block: VectorBlock,
  queries: readonly BlockQuery[],
  options: SearchOptions,
) => Promise<BlockHits[]>;

/**
 * Hits that all blocks together may hold for the queries that are searched at once, unless one
 * query asks for more: 12 bytes each. Fewer would cut batches of ordinary queries.
 */
const HITS_MAX = 2 ** 22;

const NO_HITS: BlockHits = {
  rows: new Uint32Array(0),
  scores: new Float64Array(0),
  scannedCount: 0,
  rescoredCount: 0,
};

/** As `Engine.search`; the signal is looked at before each part of the batch and handed on. */
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

/** Slices of a batch, in order, that neither have more queries nor weigh more; one query at least. */
export function cutByWeight<Query>(
  queries: readonly Query[],
  bounds: {
    readonly queriesMax?: number;
    readonly weightMax: number;
    readonly weightOf: (query: Query) => number;
  },
): Query[][] {
  const { queriesMax = Number.POSITIVE_INFINITY, weightMax, weightOf } = bounds;
  const slices: Query[][] = [];
  let slice: Query[] = [];
  let sliceWeight = 0;
  for (const query of queries) {
    const weight = weightOf(query);
    const isFull = slice.length === queriesMax || sliceWeight + weight > weightMax;
    if (isFull && slice.length > 0) {
      slices.push(slice);
      slice = [];
      sliceWeight = 0;
    }
    slice.push(query);
    sliceWeight += weight;
  }
  if (slice.length > 0) slices.push(slice);
  return slices;
}

function countHitsMax({ k, views: parts }: SearchQuery): number {
  return parts.reduce((sum, { rowCount }) => sum + Math.min(k, rowCount), 0);
}

async function searchSlice(
  queries: readonly SearchQuery[],
  searchBlock: SearchBlock,
  options: SearchOptions,
): Promise<SearchHits[]> {
  const answers = queries.map(({ views: parts }) => parts.map(() => NO_HITS));
  await Promise.all(
    groupByBlock(queries).map(async ({ block, queries: asked, places }) => {
      const hits = await searchBlock(block, asked, options);
      assert(hits.length === asked.length, 'a block gives one result a query');
      for (const [i, { query, part }] of places.entries()) answers[query]![part] = hits[i]!;
    }),
  );
  return queries.map((query, index) =>
    mergeHits(
      query,
      answers[index]!.map((hits, viewIndexes) => ({ ...hits, viewIndexes })),
    ),
  );
}

/** All that is asked of one block, and which query and part each answer belongs to. */
interface BlockGroup {
  block: VectorBlock;
  readonly queries: BlockQuery[];
  readonly places: { readonly query: number; readonly part: number }[];
}

function groupByBlock(queries: readonly SearchQuery[]): BlockGroup[] {
  const groups = new Map<string, BlockGroup>();
  for (const [index, { views: parts, ...query }] of queries.entries()) {
    for (const [part, { block, rowCount, rows }] of parts.entries()) {
      if (rowCount === 0) continue;
      let group = groups.get(block.key);
      if (group === undefined) {
        group = { block, queries: [], places: [] };
        groups.set(block.key, group);
      }
      // Of two views of a block, the one with more rows serves the queries of both.
      if (block.rowCount > group.block.rowCount) group.block = block;
      group.queries.push({ ...query, rowCount, rows });
      group.places.push({ query: index, part });
    }
  }
  return [...groups.values()];
}

/** The best rows of one query in some of its parts, best first: at most k. */
export type PartialHits = BlockHits & {
  /** The part of each hit, or the one that all are of. */
  readonly viewIndexes: Uint32Array | number;
};

/** Merges sorted answers of a query that share no part; few, so the best head is looked for one by one. */
export function mergeHits(
  { k, views: parts }: SearchQuery,
  answers: readonly PartialHits[],
): SearchHits {
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
  for (let place = 0; place < count; place++) {
    let best = -1;
    for (let i = 0; i < answers.length; i++) {
      if (heads[i]! >= answers[i]!.rows.length) continue;
      if (best < 0 || isBefore(i, best)) best = i;
    }
    merged.viewIndexes[place] = viewOf(best);
    const head = heads[best]!++;
    merged.rows[place] = answers[best]!.rows[head]!;
    merged.scores[place] = answers[best]!.scores[head]!;
  }
  return merged;

  function viewOf(i: number): number {
    const { viewIndexes: from } = answers[i]!;
    return typeof from === 'number' ? from : from[heads[i]!]!;
  }

  /** Whether the head of answer `a` comes before that of `b`; equal ids stay in the order of parts. */
  function isBefore(a: number, b: number): boolean {
    const scoreA = answers[a]!.scores[heads[a]!]!;
    const scoreB = answers[b]!.scores[heads[b]!]!;
    if (scoreA !== scoreB) return scoreA > scoreB;
    const idsB = parts[viewOf(b)]!.block.ids;
    const rowB = answers[b]!.rows[heads[b]!]!;
    const idB = idsB.bytes.subarray(idsB.offsets[rowB]!, idsB.offsets[rowB + 1]!);
    const idsA = parts[viewOf(a)]!.block.ids;
    const order = compareIdWith(idsA, answers[a]!.rows[heads[a]!]!, idB);
    return order < 0 || (order === 0 && viewOf(a) < viewOf(b));
  }
}
