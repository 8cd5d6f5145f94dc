// A batch of queries in the columns that the kernels read, and the hits that come back. Shared by the
// engines behind which there are kernels.

import { assert } from '../../common/errors.js';
import { METRICS, type VectorBlock } from '../../common/types.js';
import type { SearchHits, SearchQuery } from '../core/engine.js';
import { scoreFloor } from '../core/order.js';
import { cutByWeight } from '../core/per-block.js';
import type { KernelBatch, KernelBlock, KernelHits } from './simd-kernels.js';

/** A batch but for the blocks, which are elsewhere already, perhaps. */
export type KernelColumns = Omit<KernelBatch, 'blocks' | 'workerCount'>;

export interface PackedBatch {
  readonly columns: KernelColumns;
  /** What the views' first numbers mean. */
  readonly blocks: readonly VectorBlock[];
}

/** What one native search may be asked for, each alone: queries take a share of all three. */
export interface SearchBounds {
  readonly hitsMax: number;
  readonly valuesMax: number;
  readonly viewsMax: number;
}

/** Queries of one dimension, by their places, that one native search may take. */
export interface Slice {
  readonly dimension: number;
  readonly places: number[];
}

/** Every query is in one slice; those of a dimension stay in their order. */
export function cutForKernels(queries: readonly SearchQuery[], bounds: SearchBounds): Slice[] {
  const weightOf = (place: number) => weigh(queries[place]!, bounds);
  return [...groupByDimension(queries)].flatMap(([dimension, group]) =>
    cutByWeight(group, { weightMax: 1, weightOf }).map((places) => ({ dimension, places })),
  );
}

function weigh({ k, views, vector }: SearchQuery, bounds: SearchBounds): number {
  const rowCount = views.reduce((sum, part) => sum + part.rowCount, 0);
  return (
    Math.min(k, rowCount) / bounds.hitsMax +
    vector.length / bounds.valuesMax +
    views.length / bounds.viewsMax
  );
}

function groupByDimension(queries: readonly SearchQuery[]): Map<number, number[]> {
  const places = new Map<number, number[]>();
  for (const [place, { vector }] of queries.entries()) {
    const group = places.get(vector.length);
    if (group === undefined) places.set(vector.length, [place]);
    else group.push(place);
  }
  return places;
}

/** Columns over all queries, in arrays of their own. Blocks and bitmaps that queries share are named once. */
export function packColumns(queries: readonly SearchQuery[], dimension: number): PackedBatch {
  const count = queries.length;
  const viewCount = queries.reduce((sum, { views }) => sum + views.length, 0);
  const afterByteCount = queries.reduce((sum, { after }) => sum + (after?.id.length ?? 0), 0);
  const blocks: VectorBlock[] = [];
  const columns = {
    dimension,
    bitmaps: [] as Uint32Array[],
    views: new Uint32Array(3 * viewCount),
    vectors: new Float32Array(count * dimension),
    metrics: new Uint8Array(count),
    ks: new Uint32Array(count),
    floors: new Float64Array(count),
    afterScores: new Float64Array(count),
    afterOffsets: new Uint32Array(count + 1),
    afterIds: new Uint8Array(afterByteCount),
    viewOffsets: new Uint32Array(count + 1),
  };
  const blockPlaces = new Map<string, number>();
  const bitmapPlaces = new Map<Uint32Array, number>();
  let viewAt = 0;
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
    for (const { block, rowCount, rows } of views) {
      assert(block.dimension === dimension, 'a query has the dimension of its blocks');
      const place = placeOf(blockPlaces, block.key, () => blocks.push(block));
      // Of two views of a block, the one with more rows serves the queries of both.
      if (block.rowCount > blocks[place]!.rowCount) blocks[place] = block;
      columns.views[viewAt++] = place;
      columns.views[viewAt++] = rowCount;
      columns.views[viewAt++] =
        rows === null
          ? 0
          : 1 + placeOf(bitmapPlaces, rows.words, () => columns.bitmaps.push(rows.words));
    }
    columns.viewOffsets[index + 1] = viewAt / 3;
  }
  return { columns, blocks };
}

const METRIC_NUMBERS = Object.fromEntries(
  METRICS.map((metric, index) => [metric, index]),
) as Record<(typeof METRICS)[number], number>;

function placeOf<Key>(places: Map<Key, number>, key: Key, add: () => void): number {
  let place = places.get(key);
  if (place === undefined) {
    place = places.size;
    places.set(key, place);
    add();
  }
  return place;
}

export function toKernel({ rowCount, values, codes, ids }: VectorBlock): KernelBlock {
  return { rowCount, values, codes, idOffsets: ids.offsets, idBytes: ids.bytes };
}

/** The answer of one query of a batch: views into the columns of all. */
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
