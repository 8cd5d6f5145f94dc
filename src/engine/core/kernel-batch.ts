// A batch of queries as the columns that the native kernels read, and the hits that they return. The
// simd and cuda engines use it; kernels/kernels.h defines the meaning of the columns.

import { cutByWeight } from '../../common/cut-by-weight.js';
import { assert } from '../../common/errors.js';
import type { Metric, VectorBlock } from '../../common/types.js';
import type { BlockView, SearchHits, SearchQuery } from './engine.js';
import { scoreFloor } from './order.js';

export interface KernelBlock {
  readonly rowCount: number;
  /** Row-major, at least [rowCount, dimension]. */
  readonly values: Float32Array;
  /** The tiles that `encode` made; null to score every row canonically. */
  readonly codes: Uint8Array | null;
  /** Both are null if the search is to do without them. */
  readonly coarse: Uint8Array | null;
  readonly refinement: Uint8Array | null;
  /** Both are null for a block without a head. The kernels compare bases by address first. */
  readonly basis: Uint8Array | null;
  readonly head: Uint8Array | null;
  readonly idOffsets: Int32Array;
  readonly idBytes: Uint8Array;
}

/** A batch in columns: one value per query unless said otherwise. */
export interface KernelBatch {
  readonly dimension: number;
  /** The number of threads that may work on it at once. */
  readonly workerCount: number;
  /** For tests: 0, the default, chooses by cost; 1 uses only tiles; 2 coarse codes, 3 head tiles, where there are any. */
  readonly method?: 0 | 1 | 2 | 3;
  readonly blocks: readonly KernelBlock[];
  readonly bitmaps: readonly Uint32Array[];
  /** Row-major [views, 3]: block, row count, and 1 + the index of the bitmap, or 0 for all rows. */
  readonly views: Uint32Array;
  /** Row-major [queries, dimension]. */
  readonly vectors: Float32Array;
  /** See METRIC_NUMBERS. */
  readonly metrics: Uint8Array;
  readonly ks: Uint32Array;
  /** The least score; −Infinity for no limit. */
  readonly floors: Float64Array;
  /** Rank keys: scores, and ids with [queries + 1] offsets. An empty id means no rank key. */
  readonly afterScores: Float64Array;
  readonly afterOffsets: Uint32Array;
  readonly afterIds: Uint8Array;
  /** Row-major [queries, 2]: the first view and the number of views, which queries may share. */
  readonly viewRanges: Uint32Array;
}

/** Hits in columns; the hits of query i are at offsets[i] .. offsets[i + 1]. */
export interface KernelHits {
  readonly offsets: Uint32Array;
  readonly views: Uint32Array;
  readonly rows: Uint32Array;
  readonly scores: Float64Array;
  readonly scannedCounts: Float64Array;
  readonly rescoredCounts: Float64Array;
}

/** A batch without its blocks, which may be resident on a device. */
export type KernelColumns = Omit<KernelBatch, 'blocks' | 'workerCount'>;

export interface PackedBatch {
  readonly columns: KernelColumns;
  /** The blocks that the first column of `columns.views` indexes. */
  readonly blocks: readonly VectorBlock[];
}

/** Limits of one native search. A query uses up a fraction of each, and all its fractions add up to at most 1. */
interface SearchBounds {
  readonly hitsMax: number;
  readonly valuesMax: number;
  readonly viewsMax: number;
  /** Whether views that consecutive queries share are planned once for all of them rather than once per query. */
  readonly plansSharedViewsOnce: boolean;
}

/** Queries of one dimension for one native search. */
interface Slice {
  readonly dimension: number;
  /** Indexes into the batch. */
  readonly indexes: number[];
}

/** Cuts a batch into slices within the bounds. Queries of a dimension stay in order. */
export function cutForKernels(queries: readonly SearchQuery[], bounds: SearchBounds): Slice[] {
  const searchedOf = memoizeByViews((views) => ({ rowCount: rowCountOf(views) }));
  let last: object | null = null;
  const weightOf = (index: number) => {
    const { k, views, vector } = queries[index]!;
    const searched = searchedOf(views);
    const isPlanned = bounds.plansSharedViewsOnce && searched === last;
    last = searched;
    return (
      Math.min(k, searched.rowCount) / bounds.hitsMax +
      vector.length / bounds.valuesMax +
      (isPlanned ? 0 : views.length) / bounds.viewsMax
    );
  };
  return [...groupByDimension(queries)].flatMap(([dimension, group]) =>
    cutByWeight(group, { weightMax: 1, weightOf }).map((indexes) => ({ dimension, indexes })),
  );
}

function rowCountOf(views: readonly BlockView[]): number {
  return views.reduce((sum, view) => sum + view.rowCount, 0);
}

/**
 * Caches what `make` returns for the views of a query: `make` is called once for queries with the same array
 * and for consecutive queries with equal views, as in requests that search the same rows.
 */
export function memoizeByViews<Made>(
  make: (views: readonly BlockView[]) => Made,
): (views: readonly BlockView[]) => Made {
  const known = new Map<readonly BlockView[], Made>();
  let last: readonly BlockView[] = [];
  return (views) => {
    if (!known.has(views)) {
      const isRepeated = known.size > 0 && haveSameRows(views, last);
      known.set(views, isRepeated ? known.get(last)! : make(views));
    }
    last = views;
    return known.get(views)!;
  };
}

function haveSameRows(left: readonly BlockView[], right: readonly BlockView[]): boolean {
  return (
    left.length === right.length &&
    left.every(({ block, rowCount, rows }, index) => {
      const other = right[index]!;
      return block === other.block && rowCount === other.rowCount && rows === other.rows;
    })
  );
}

function groupByDimension(queries: readonly SearchQuery[]): Map<number, number[]> {
  const groups = new Map<number, number[]>();
  for (const [index, { vector }] of queries.entries()) {
    const group = groups.get(vector.length);
    if (group === undefined) groups.set(vector.length, [index]);
    else group.push(index);
  }
  return groups;
}

/** Packs queries into new columns. Blocks, bitmaps and equal views that queries share occur only once. */
export function packColumns(queries: readonly SearchQuery[], dimension: number): PackedBatch {
  const count = queries.length;
  const afterByteCount = queries.reduce((sum, { after }) => sum + (after?.id.length ?? 0), 0);
  const blocks: VectorBlock[] = [];
  const columns = {
    dimension,
    bitmaps: [] as Uint32Array[],
    vectors: new Float32Array(count * dimension),
    metrics: new Uint8Array(count),
    ks: new Uint32Array(count),
    floors: new Float64Array(count),
    afterScores: new Float64Array(count),
    afterOffsets: new Uint32Array(count + 1),
    afterIds: new Uint8Array(afterByteCount),
    viewRanges: new Uint32Array(2 * count),
  };
  const blockIndexes = new Map<string, number>();
  const bitmapIndexes = new Map<Uint32Array, number>();
  // Sized for queries that share no views; the unused end is cut off below.
  const table = new Uint32Array(3 * queries.reduce((sum, { views }) => sum + views.length, 0));
  let tableAt = 0;
  const rangeOf = memoizeByViews((views) => {
    const first = tableAt / 3;
    for (const { block, rowCount, rows } of views) {
      assert(block.dimension === dimension, 'a query has the dimension of its blocks');
      const blockIndex = indexOf(blockIndexes, block.key, () => blocks.push(block));
      // If queries have two versions of a block, the one with more rows serves all of them.
      if (block.rowCount > blocks[blockIndex]!.rowCount) blocks[blockIndex] = block;
      const addBitmap = () => columns.bitmaps.push(rows!.words);
      const bitmap = rows === null ? 0 : 1 + indexOf(bitmapIndexes, rows.words, addBitmap);
      table[tableAt++] = blockIndex;
      table[tableAt++] = rowCount;
      table[tableAt++] = bitmap;
    }
    return [first, views.length];
  });
  let afterAt = 0;
  for (const [index, { vector, metric, k, views, after, scoreMin }] of queries.entries()) {
    columns.vectors.set(vector, index * dimension);
    columns.metrics[index] = METRIC_NUMBERS[metric];
    columns.ks[index] = k;
    columns.floors[index] = scoreFloor(metric, scoreMin);
    if (after !== null) {
      columns.afterScores[index] = after.score;
      columns.afterIds.set(after.id, afterAt);
      afterAt += after.id.length;
    }
    columns.afterOffsets[index + 1] = afterAt;
    columns.viewRanges.set(rangeOf(views), 2 * index);
  }
  return { columns: { ...columns, views: table.slice(0, tableAt) }, blocks };
}

/**
 * The numbers that kernels.h gives the metrics. The Hamming distance of bits is the square of their L2
 * distance, so both have the same number.
 */
export const METRIC_NUMBERS: Readonly<Record<Metric, number>> = {
  cosine: 0,
  dot: 1,
  euclidean: 2,
  jaccard: 3,
  hamming: 2,
};

/** Returns the index of the key. A new key gets the next index, and `add` is called. */
function indexOf<Key>(indexes: Map<Key, number>, key: Key, add: () => void): number {
  let index = indexes.get(key);
  if (index === undefined) {
    index = indexes.size;
    indexes.set(key, index);
    add();
  }
  return index;
}

export function toKernelBlock({ rowCount, values, codes, ids }: VectorBlock): KernelBlock {
  return {
    rowCount,
    values,
    codes: codes?.tiles ?? null,
    coarse: codes?.coarse ?? null,
    refinement: codes?.refinement ?? null,
    basis: codes?.basis ?? null,
    head: codes?.head ?? null,
    idOffsets: ids.offsets,
    idBytes: ids.bytes,
  };
}

/** The hits of one query: subarrays of the columns of the batch. */
export function sliceHits(hits: KernelHits, index: number): SearchHits {
  const from = hits.offsets[index]!;
  const to = hits.offsets[index + 1]!;
  return {
    viewIndexes: hits.views.subarray(from, to),
    rows: hits.rows.subarray(from, to),
    scores: hits.scores.subarray(from, to),
    scannedCount: hits.scannedCounts[index]!,
    rescoredCount: hits.rescoredCounts[index]!,
  };
}
