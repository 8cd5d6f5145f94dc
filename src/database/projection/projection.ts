// Projects a sample of a collection onto its principal components, and finds the nearest rows of each
// within the sample: what a picture of a collection is drawn from. One snapshot, rows in order of arrival.

import { field, validationError } from '../../common/errors.js';
import type { JsonObject, Metric, Utf8Column } from '../../common/types.js';
import { whenAborted } from '../../common/when-aborted.js';
import { distanceOf } from '../../engine/core/engine.js';
import { parseFilter } from '../../filter/parse.js';
import { unloadGone } from '../bulk/join.js';
import {
  type Group,
  type JoinRow,
  JoinSearches,
  takeRows,
  walkRows,
} from '../bulk/join-searches.js';
import { type SampleRequest, sampleViews } from '../bulk/sample.js';
import type { Collection } from '../collection/collection.js';
import { countVisible, type SegmentView, viewsOfNamed } from '../collection/snapshot.js';
import type { DatabaseServices } from '../database-services.js';
import { type SearchTarget, searchTarget, toFloat32 } from '../query/search-target.js';
import { findComponentsTask } from './components.js';
import { centerRowsTask, computeCovariance, covarianceBytes } from './covariance.js';
import { type Axes, projectRowsTask } from './project-rows.js';
import { type RowValues, rowValues } from './row-values.js';

export interface ProjectionRequest {
  /** The named vector to project; absent for the unnamed one. */
  readonly using?: string | undefined;
  readonly filter?: JsonObject | undefined;
  /** Of the rows that pass the filter and have the vector. */
  readonly sample: SampleRequest;
  /** Coordinates of each row. */
  readonly dimensions: number;
  /** Nearest rows of each; 0 for none. */
  readonly neighborCount: number;
}

export interface Projection {
  readonly sequence: number;
  readonly rowCount: number;
  /** Of the distances between neighbours. */
  readonly neighborMetric: 'cosine' | 'euclidean';
  /** Memory that the components need at once. */
  readonly workBytes: number;
  /** To be called once. Rejects with `overloaded` and with the signal's reason. */
  project(): Promise<ProjectedRows>;
}

export interface ProjectedRows {
  /** The share of each component in the variance; 0 for those beyond the rank. */
  readonly varianceRatios: readonly number[];
  /** To be read once. */
  chunks(): AsyncGenerator<ProjectionChunk>;
}

/** Some rows, in order of arrival. */
export interface ProjectionChunk {
  readonly count: number;
  readonly ids: Utf8Column;
  /** Row-major [count, dimensions] float32. */
  readonly coordinates: Float32Array;
  readonly neighbors: Neighbors | null;
}

/** Row i has the neighbours `starts[i]..starts[i + 1]`, nearest first. */
interface Neighbors {
  readonly starts: Int32Array;
  /** Places of rows in the order of all chunks. */
  readonly rows: Uint32Array;
  readonly distances: Float32Array;
}

/** Enough for components that do not change visibly with more rows. */
const COVARIANCE_ROWS_MAX = 20_000;
/** With long vectors fewer rows have to do, for the time: products of two elements, three seconds of a core. */
const COVARIANCE_PRODUCTS_MAX = 6e9;
const COVARIANCE_ROWS_MIN = 2_000;

/** Rows that are projected at a time where no neighbours are searched. */
const CHUNK_ROWS = 4_096;

interface Plan {
  readonly collection: Collection;
  readonly services: DatabaseServices;
  readonly signal: AbortSignal | undefined;
  readonly views: readonly SegmentView[];
  readonly using: string | null;
  readonly shape: Omit<RowValues, 'blocks'>;
  readonly neighborMetric: Projection['neighborMetric'];
  readonly neighborCount: number;
  readonly dimensions: number;
}

/** Throws `invalid_request`, `invalid_filter` and `limit_exceeded`; rejects with the signal's reason. */
export async function runProjection(
  collection: Collection,
  request: ProjectionRequest,
  services: DatabaseServices,
  signal: AbortSignal | undefined,
): Promise<Projection> {
  const { filters, limits, pool } = services;
  const { using = null, dimensions, neighborCount } = request;
  const { dimension, metric } = collection.shapeOf(using, field('using'));
  checkDimension(dimension, limits.projectionDimensionMax);
  const filter = request.filter === undefined ? null : parseFilter(request.filter, limits);
  const snapshot = collection.snapshot();
  const passing = await filters.filter(snapshot.views, filter, signal);
  const having = using === null ? passing : viewsOfNamed(passing, using);
  const views = await sampleViews(having, request.sample, pool);
  const rowCount = countVisible(views);
  const neighborMetric = neighborMetricOf(metric);
  const shape = { dimension, isNormalized: metric === 'cosine' };
  const plan: Plan = {
    collection,
    services,
    signal,
    views,
    using,
    shape,
    neighborMetric,
    neighborCount,
    dimensions,
  };
  return {
    sequence: snapshot.sequence,
    rowCount,
    neighborMetric,
    workBytes: covarianceBytes(countCovarianceRows(rowCount, dimension), dimension),
    async project() {
      const { axes, varianceRatios } = await findAxes(plan, rowCount);
      return { varianceRatios, chunks: () => intactChunks(collection, projectRows(plan, axes)) };
    },
  };
}

/** The dot product is no distance; the coordinates keep euclidean ones. */
function neighborMetricOf(metric: Metric): Projection['neighborMetric'] {
  return metric === 'cosine' ? 'cosine' : 'euclidean';
}

async function findAxes(
  plan: Plan,
  rowCount: number,
): Promise<{ readonly axes: Axes; readonly varianceRatios: readonly number[] }> {
  const { collection, services, signal, views, shape, dimensions } = plan;
  const { pool } = services;
  const chosen = chooseEvenly(views, rowCount, countCovarianceRows(rowCount, shape.dimension));
  const rows = rowValues(chosen, shape);
  const centered = await pool.run(centerRowsTask, rows, { mayBeRefused: true });
  const covariance = await computeCovariance(pool, centered, signal);
  const { columnCount, mean } = centered;
  const components = await pool.run(findComponentsTask, {
    covariance,
    columnCount,
    count: dimensions,
  });
  collection.requireIntact(views.map(({ segment }) => segment));
  return { axes: { mean, vectors: components.vectors }, varianceRatios: components.varianceRatios };
}

function countCovarianceRows(rowCount: number, dimension: number): number {
  const affordable = Math.floor((2 * COVARIANCE_PRODUCTS_MAX) / dimension ** 2);
  return Math.min(rowCount, COVARIANCE_ROWS_MAX, Math.max(COVARIANCE_ROWS_MIN, affordable));
}

/** `count` rows at equal distances in the order of arrival. */
function chooseEvenly(views: readonly SegmentView[], rowCount: number, count: number): JoinRow[] {
  const chosen: JoinRow[] = [];
  let place = 0;
  for (const row of walkRows(views)) {
    place++;
    if (Math.floor((place * count) / rowCount) > chosen.length) chosen.push(row);
  }
  return chosen;
}

/** Chunks, which are copies, from before a check for damage. Throws `data_corrupt`. */
async function* intactChunks(
  collection: Collection,
  chunks: AsyncGenerator<ProjectionChunk>,
): AsyncGenerator<ProjectionChunk> {
  for await (const chunk of chunks) {
    collection.requireIntact();
    yield chunk;
  }
}

async function* projectRows(plan: Plan, axes: Axes): AsyncGenerator<ProjectionChunk> {
  const { services, signal, shape, neighborCount } = plan;
  const toChunk = async (
    rows: readonly JoinRow[],
    neighbors: Neighbors | null,
  ): Promise<ProjectionChunk> => {
    const input = { rows: rowValues(rows, shape), ...axes };
    const coordinates = await services.pool.run(projectRowsTask, input);
    return { count: rows.length, ids: idsOf(rows), coordinates, neighbors };
  };
  if (neighborCount > 0) {
    for await (const { rows, neighbors } of findNeighbors(plan)) yield toChunk(rows, neighbors);
    return;
  }
  const remaining = walkRows(plan.views);
  for (;;) {
    const rows = takeRows(remaining, CHUNK_ROWS);
    if (rows.length === 0) return;
    signal?.throwIfAborted();
    yield toChunk(rows, null);
  }
}

/** The rows in groups with their neighbours: one group ahead of the reader, as in a join. */
async function* findNeighbors(
  plan: Plan,
): AsyncGenerator<{ readonly rows: readonly JoinRow[]; readonly neighbors: Neighbors }> {
  const { collection, services, signal, views, using, neighborMetric, neighborCount } = plan;
  const target = searchTarget(views);
  const places = placesOf(target.segmentViews);
  const controller = new AbortController();
  const ignoreAbort = whenAborted(signal, () => controller.abort(signal?.reason));
  const search = {
    views,
    using,
    target,
    metric: neighborMetric,
    topK: neighborCount,
    scoreMin: null,
    excludesSelf: true,
    mayLackDirection: false,
  };
  const searches = new JoinSearches(search, services.scheduler, controller.signal);
  const stats = services.scanStats.startJoin(countVisible(views));
  const remaining = walkRows(views);
  let next: Group | null = null;
  try {
    signal?.throwIfAborted();
    next = searches.begin(remaining);
    while (next !== null) {
      const group: Group = next;
      next = searches.begin(remaining);
      await searches.first(group);
      yield { rows: group.rows, neighbors: toNeighbors(group, search, places) };
      stats.joined(group.rows.length);
    }
  } finally {
    ignoreAbort();
    controller.abort();
    await next?.searching?.catch(() => {});
    stats.ended();
    unloadGone(collection, target.segmentViews, services);
  }
}

/** For each view the place of each row among the visible rows of all views. */
function placesOf(views: readonly SegmentView[]): readonly Uint32Array[] {
  let place = 0;
  return views.map((view) => {
    const places = new Uint32Array(view.rowCount);
    for (const { row } of walkRows([view])) places[row] = place++;
    return places;
  });
}

function toNeighbors(
  { rows, found }: Group,
  { target, topK, metric }: { target: SearchTarget; topK: number; metric: Metric },
  places: readonly Uint32Array[],
): Neighbors {
  const starts = new Int32Array(rows.length + 1);
  const neighbors = new Uint32Array(rows.length * topK);
  const distances = new Float32Array(rows.length * topK);
  let end = 0;
  for (const [i, { view, row }] of rows.entries()) {
    const endMax = starts[i]! + topK;
    for (const { viewIndexes, rows: hitRows, scores } of found[i]!) {
      for (let hit = 0; hit < hitRows.length && end < endMax; hit++) {
        const { segment } = target.segmentViews[viewIndexes[hit]!]!;
        if (segment === view.segment && hitRows[hit] === row) continue;
        neighbors[end] = places[viewIndexes[hit]!]![hitRows[hit]!]!;
        distances[end++] = toFloat32(distanceIn(metric, scores[hit]!));
      }
    }
    starts[i + 1] = end;
  }
  return { starts, rows: neighbors.subarray(0, end), distances: distances.subarray(0, end) };
}

/** @param score as the engine gives it. */
function distanceIn(metric: Metric, score: number): number {
  return metric === 'cosine' ? Math.max(0, 1 - score) : distanceOf(score);
}

function idsOf(rows: readonly JoinRow[]): Utf8Column {
  const offsets = new Int32Array(rows.length + 1);
  const ids = rows.map(({ view, row }, i) => {
    const { offsets: at, bytes } = view.block.ids;
    const id = bytes.subarray(at[row]!, at[row + 1]!);
    offsets[i + 1] = offsets[i]! + id.length;
    return id;
  });
  const bytes = new Uint8Array(offsets[rows.length]!);
  for (const [i, id] of ids.entries()) bytes.set(id, offsets[i]!);
  return { offsets, bytes };
}

function checkDimension(dimension: number, dimensionMax: number): void {
  if (dimension <= dimensionMax) return;
  const detail = `A projection takes vectors of at most ${dimensionMax} elements, since it keeps the product of every two; these have ${dimension}.`;
  const bound = { expected: dimensionMax, actual: dimension };
  throw validationError([{ location: field('using'), code: 'limit_exceeded', detail, ...bound }]);
}
