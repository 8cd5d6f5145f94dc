// Ranks: counts the rows that come before given positions in the order (score descending, id bytes
// ascending) of all rows of a query, exactly. An engine may have a faster way; else every row is scored
// canonically in the worker pool.

import type { Bitmap } from '../../common/bitmap.js';
import type { Metric, Utf8Column, VectorBlock } from '../../common/types.js';
import type { Task, WorkerPool } from '../../platform/pool.js';
import type { CountedQuery, Engine, Position, SearchOptions } from './engine.js';
import { compareIdWith } from './order.js';
import { scoreSelected } from './row-scores.js';

/** Positions in their order, best first. */
interface SortedPositions {
  readonly scores: Float64Array;
  readonly ids: Utf8Column;
  /** The index that each of them was given at. */
  readonly origins: readonly number[];
}

interface CountRange {
  readonly block: Pick<VectorBlock, 'dimension' | 'values' | 'ids'>;
  readonly metric: Metric;
  /** [dimension] float32, over a SharedArrayBuffer. */
  readonly vector: Float32Array;
  readonly positions: Omit<SortedPositions, 'origins'>;
  readonly bitmap: Bitmap | null;
  /** The rows from..to of the block. */
  readonly from: number;
  readonly to: number;
}

/**
 * Gives, for each place 0..n among n positions, the number of rows that come before the position at this
 * place and after the one at the place before it, or have that one's id.
 */
export const countBeforeTask: Task<CountRange, Float64Array> = {
  name: 'engine.countBefore',
  run: countRange,
};

/** Values per task of the pool: about ten milliseconds, so that other tasks need not wait for long. */
const RANGE_VALUES = 2 ** 24;

/** Ranges submitted to the pool per thread, so that a thread never waits for the next one. */
const RANGES_PER_THREAD = 2;

/**
 * The number of rows of the query's views that come strictly before each position. A position need not be
 * that of a row. Rejects with `overloaded`, and with the signal's reason.
 */
export async function countBefore(
  { engine, pool }: { readonly engine: Engine; readonly pool: WorkerPool },
  query: CountedQuery,
  positions: readonly Position[],
  options: SearchOptions = {},
): Promise<Float64Array> {
  if (engine.countBefore !== undefined) return engine.countBefore(query, positions, options);
  return countInPool(pool, query, positions, options);
}

async function countInPool(
  pool: WorkerPool,
  { vector, metric, views }: CountedQuery,
  positions: readonly Position[],
  { signal }: SearchOptions,
): Promise<Float64Array> {
  signal?.throwIfAborted();
  const { origins, ...sorted } = sortPositions(positions);
  // A copy: messages to workers would carry all of the buffer that the vector lies in.
  const shared = new Float32Array(new SharedArrayBuffer(vector.byteLength));
  shared.set(vector);
  const rangeRowCount = Math.max(1, Math.floor(RANGE_VALUES / vector.length));
  const ranges: CountRange[] = views.flatMap(({ block, rowCount, rows }) => {
    const { dimension, values, ids } = block;
    const searched = { dimension, values, ids };
    const query = { block: searched, metric, vector: shared, positions: sorted, bitmap: rows };
    return Array.from({ length: Math.ceil(rowCount / rangeRowCount) }, (_, i) => {
      const from = i * rangeRowCount;
      return { ...query, from, to: Math.min(from + rangeRowCount, rowCount) };
    });
  });
  const countsByPlace = new Float64Array(positions.length + 1);
  const remaining = ranges.values();
  const runRemaining = async () => {
    for (const range of remaining) {
      signal?.throwIfAborted();
      const counts = await pool.run(countBeforeTask, range, { mayBeRefused: true });
      for (const [place, count] of counts.entries()) countsByPlace[place]! += count;
    }
  };
  await Promise.all(Array.from({ length: RANGES_PER_THREAD * pool.threadCount }, runRemaining));
  return addPlaces(countsByPlace, origins);
}

function sortPositions(positions: readonly Position[]): SortedPositions {
  const origins = [...positions.keys()].sort((a, b) => {
    const left = positions[a]!;
    const right = positions[b]!;
    return right.score - left.score || Buffer.compare(left.id, right.id);
  });
  const sorted = origins.map((origin) => positions[origin]!);
  const offsets = new Int32Array(sorted.length + 1);
  for (const [i, { id }] of sorted.entries()) offsets[i + 1] = offsets[i]! + id.length;
  const bytes = new Uint8Array(offsets[sorted.length]!);
  for (const [i, { id }] of sorted.entries()) bytes.set(id, offsets[i]!);
  return {
    scores: Float64Array.from(sorted, ({ score }) => score),
    ids: { offsets, bytes },
    origins,
  };
}

/** A row at a place comes before the positions at this place and at all later ones. */
function addPlaces(countsByPlace: Float64Array, origins: readonly number[]): Float64Array {
  const counts = new Float64Array(origins.length);
  let sum = 0;
  for (const [place, origin] of origins.entries()) {
    sum += countsByPlace[place]!;
    counts[origin] = sum;
  }
  return counts;
}

function countRange({ block, metric, vector, positions, bitmap, from, to }: CountRange) {
  const { dimension, values, ids } = block;
  const counts = new Float64Array(positions.scores.length + 1);
  scoreSelected({ metric, dimension, values, vectors: vector }, { bitmap, from, to }, take);
  return counts;

  function take(rows: Uint32Array, scores: Float64Array): void {
    for (let i = 0; i < rows.length; i++) counts[placeOf(positions, scores[i]!, ids, rows[i]!)]!++;
  }
}

/** The place of the first position that the row comes before. */
function placeOf(
  { scores, ids: positionIds }: CountRange['positions'],
  score: number,
  ids: Utf8Column,
  row: number,
): number {
  let from = 0;
  let to = scores.length;
  while (from < to) {
    const middle = (from + to) >>> 1;
    const isBefore =
      score === scores[middle]!
        ? compareIdWith(ids, row, idAt(positionIds, middle)) < 0
        : score > scores[middle]!;
    if (isBefore) to = middle;
    else from = middle + 1;
  }
  return from;
}

function idAt({ offsets, bytes }: Utf8Column, index: number): Uint8Array {
  return bytes.subarray(offsets[index]!, offsets[index + 1]!);
}
