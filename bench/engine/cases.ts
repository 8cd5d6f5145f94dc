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

export interface Case {
  readonly name: string;
  readonly data: DataName;
  readonly metric: Metric;
  /** Queries per call of the engine. */
  readonly batchCount: number;
  readonly k: number;
  /** Share of rows that match the filter of each query; null without a filter. */
  readonly passShare: number | null;
  /** Page number from 1; a later page starts after the last match of the previous one. */
  readonly page: number;
  /** The case that this one is compared with; null for none. */
  readonly baseline: string | null;
}

export function listCases(parameters: Parameters): Case[] {
  const { rowCount } = parameters.data.wide;
  const cases: Case[] = [];
  const add = (what: string, changes: Partial<Omit<Case, 'name'>>): string => {
    const defaults: Omit<Case, 'name'> = {
      data: 'wide',
      metric: 'cosine',
      batchCount: 1,
      k: 10,
      passShare: null,
      page: 1,
      baseline: null,
    };
    const merged = { ...defaults, ...changes };
    const shape = parameters.data[merged.data];
    const name = `${shape.rowCount} × ${shape.dimension} ${merged.metric}, ${what}`;
    cases.push({ name, ...merged });
    return name;
  };
  add('batch of 1000', { batchCount: 1000 });
  const single = add('one at a time', {});
  add('batch of 16', { batchCount: 16 });
  const middle = add('batch of 128', { batchCount: 128 });
  add('batch of 1000', { batchCount: 1000, metric: 'dot' });
  add('batch of 1000', { batchCount: 1000, metric: 'euclidean' });
  add('batch of 1000, k = 100', { batchCount: 1000, k: 100 });
  add('batch of 1000, k = 1000', { batchCount: 1000, k: 1000 });
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
  add('batch of 1000', { data: 'long', batchCount: 1000 });
  return cases;
}

/**
 * The distinct queries of a case, which its calls use in turn. The rank keys of later pages come from
 * brute force, so there are only as many queries as were checked.
 */
export function createQueries(benchCase: Case, data: DataSet, truth: Truth): SearchQuery[] {
  const { metric, k, passShare, page } = benchCase;
  const count =
    page > 1 ? truth.queryCount : passShare === null ? data.queries.length : FILTER_COUNT;
  const random = createRandom(7);
  return data.queries.slice(0, count).map((vector, index) => {
    const views =
      passShare === null
        ? data.views
        : data.views.map((view) => ({
            ...view,
            rows: createRandomBitmap(random, view.rowCount, passShare),
          }));
    const after = page > 1 ? rankKeyBefore(truth, index, benchCase) : null;
    return { vector, metric, k, views, after, scoreMin: null };
  });
}

function rankKeyBefore(truth: Truth, index: number, { metric, k, page }: Case) {
  const { row, score } = truth.matchAt(index, metric, (page - 1) * k - 1);
  return { score, id: new Uint8Array(Buffer.from(idOf(row))) };
}

export function createRandomBitmap(random: () => number, length: number, share: number): Bitmap {
  const bitmap = createBitmap(length);
  const below = share * 2 ** 32;
  for (let row = 0; row < length; row++) if (random() < below) setBit(bitmap, row);
  return bitmap;
}

/** Random integers below 2^32 (xorshift32). */
export function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state >>> 0;
  };
}
