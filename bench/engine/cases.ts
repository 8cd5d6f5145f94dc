// The cases of the engine bench, in order.

import { type Bitmap, createBitmap, setBit } from '../../src/common/bitmap.js';
import type { Metric } from '../../src/common/types.js';
import type { SearchQuery } from '../../src/engine/core/engine.js';
import type { Truth } from './check.js';
import { type DataSet, idOf } from './data.js';
import type { DataName, Parameters } from './options.js';

/** Page size of the paging cases, which compare the first and the last page. */
const PAGE_ROWS = 100;
/** Number of distinct filters; each query of a batch has its own, which is the harder case. */
const FILTER_COUNT = 128;
/** Joins ask for this many matches of a row at first, and their engine scans for all rows of a group at once. */
const JOIN_K = 256;
/** Pairs with this score are near duplicates. */
const JOIN_SCORE = 0.9;

export interface Case {
  readonly name: string;
  readonly data: DataName;
  readonly metric: Metric;
  /** Queries per call of the engine. */
  readonly batchCount: number;
  readonly k: number;
  /** Share of rows that match the filter of each query; null without a filter. */
  readonly passShare: number | null;
  /** The least score of a match in a join of the rows with themselves; null if queries are no rows. */
  readonly joinScore: number | null;
  /** Page number from 1; a later page starts after the last match of the previous one. */
  readonly page: number;
  /** The case that this one is compared with; null for none. */
  readonly baseline: string | null;
}

type Add = (what: string, changes: Partial<Omit<Case, 'name' | 'data'>>) => string;

/** The metrics of the data sets that have only the cases of `addUsual`. */
const USUAL: readonly (readonly [DataName, readonly Metric[]])[] = [
  ['sentences', ['cosine']],
  ['mixed sentences', ['cosine']],
  ['words', ['cosine', 'dot', 'euclidean']],
  ['passages', ['cosine']],
  ['WordNet', ['cosine']],
  ['noise', ['cosine']],
];

export function listCases({ data }: Pick<Parameters, 'data'>): Case[] {
  const cases: Case[] = [];
  const addTo =
    (name: DataName): Add =>
    (what, changes) => {
      const defaults = {
        metric: 'cosine',
        batchCount: 1,
        k: 10,
        passShare: null,
        joinScore: null,
        page: 1,
        baseline: null,
      } as const;
      const merged = { ...defaults, ...changes };
      const { rowCount, dimension } = data[name].shape;
      const full = `${name} ${rowCount} × ${dimension} ${merged.metric}, ${what}`;
      cases.push({ ...merged, name: full, data: name });
      return full;
    };
  for (const [name, metrics] of USUAL) {
    for (const metric of metrics) addUsual(addTo(name), metric);
  }
  for (const name of ['sentences', 'mixed sentences'] as const) {
    const what = `self-join at ${JOIN_SCORE}, batch of 1000 rows`;
    addTo(name)(what, { batchCount: 1_000, k: JOIN_K, joinScore: JOIN_SCORE });
  }
  addClustered(addTo('clusters'), data.clusters.shape.rowCount);
  addTo('long clusters')('batch of 1000', { batchCount: 1_000 });
  addTo('large clusters')('one at a time', {});
  return cases;
}

function addUsual(add: Add, metric: Metric): void {
  for (const k of [1, 10, 100]) add(`one at a time${suffixOf(k)}`, { metric, k });
  for (const k of [10, 100]) add(`batch of 1000${suffixOf(k)}`, { metric, k, batchCount: 1_000 });
}

function suffixOf(k: number): string {
  return k === 10 ? '' : `, k = ${k}`;
}

/** Batches of every size, filters and pages, on rows that are easy to rank. */
function addClustered(add: Add, rowCount: number): void {
  add('batch of 1000', { batchCount: 1_000 });
  const single = add('one at a time', {});
  add('batch of 16', { batchCount: 16 });
  const middle = add('batch of 128', { batchCount: 128 });
  add('batch of 1000', { batchCount: 1_000, metric: 'dot' });
  add('batch of 1000', { batchCount: 1_000, metric: 'euclidean' });
  add('batch of 1000, k = 100', { batchCount: 1_000, k: 100 });
  add('batch of 1000, k = 1000', { batchCount: 1_000, k: 1_000 });
  for (const passShare of [0.01, 0.1, 0.5]) {
    const filter = `filter matching ${passShare * 100} %`;
    add(`one at a time, ${filter}`, { passShare, baseline: single });
    add(`batch of 128, ${filter}`, { batchCount: 128, passShare, baseline: middle });
  }
  const firstPage = add(`one at a time, page 1, ${PAGE_ROWS} a page`, { k: PAGE_ROWS });
  const lastPage = rowCount / PAGE_ROWS;
  add(`one at a time, page ${lastPage}, ${PAGE_ROWS} a page`, {
    k: PAGE_ROWS,
    page: lastPage,
    baseline: firstPage,
  });
}

/**
 * The distinct queries of a case, which its calls use in turn. The rank keys of later pages come from
 * brute force, so there are only as many queries as were checked, and none without a truth.
 */
export function createQueries(benchCase: Case, data: DataSet, truth: Truth | null): SearchQuery[] {
  const { metric, k, passShare, joinScore, page } = benchCase;
  const vectors = joinScore === null ? data.queries : someRows(data);
  const countMax = passShare === null ? vectors.length : FILTER_COUNT;
  const count = page > 1 ? (truth?.queryCount ?? 0) : countMax;
  const random = createRandom(7);
  return vectors.slice(0, count).map((vector) => {
    const views =
      passShare === null
        ? data.views
        : data.views.map((view) => ({
            ...view,
            rows: createRandomBitmap(random, view.rowCount, passShare),
          }));
    const after = truth !== null && page > 1 ? rankKeyBefore(truth, vector, benchCase) : null;
    return { vector, metric, k, views, after, scoreMin: joinScore };
  });
}

/** As many rows as there are queries, spread over all blocks. */
function someRows({ blocks, queries, dimension }: DataSet): Float32Array[] {
  const countOf = (block: number) =>
    Math.floor(((block + 1) * queries.length) / blocks.length) -
    Math.floor((block * queries.length) / blocks.length);
  return blocks.flatMap(({ values, rowCount }, index) =>
    Array.from({ length: countOf(index) }, (_, i) => {
      const row = Math.floor((i * rowCount) / countOf(index));
      return values.slice(row * dimension, (row + 1) * dimension);
    }),
  );
}

function rankKeyBefore(truth: Truth, vector: Float32Array, { metric, k, page }: Case) {
  const { row, score } = truth.matchAt(vector, metric, (page - 1) * k - 1);
  return { score, id: new Uint8Array(Buffer.from(idOf(row))) };
}

function createRandomBitmap(random: () => number, length: number, share: number): Bitmap {
  const bitmap = createBitmap(length);
  const below = share * 2 ** 32;
  for (let row = 0; row < length; row++) if (random() < below) setBit(bitmap, row);
  return bitmap;
}

/** Random integers below 2^32 (xorshift32). */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state >>> 0;
  };
}
