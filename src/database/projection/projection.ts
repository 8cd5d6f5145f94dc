// Projects a sample of a collection onto its principal components and finds the nearest neighbours of each row within
// the sample, for pictures of the collection. Reads one snapshot, in order of arrival.

import { rowsIn } from '../../common/bitmap.js';
import { field, validationError } from '../../common/errors.js';
import { isDistance, type JsonObject, type Metric, type Utf8Column } from '../../common/types.js';
import { UNNAMED } from '../../common/vectors.js';
import { distanceOf, type SearchHits } from '../../engine/core/engine.js';
import type { Warning } from '../api/warning.js';
import type { BulkServices } from '../bulk/bulk-services.js';
import { intactChunks } from '../bulk/join.js';
import { TextColumn } from '../bulk/join-chunks.js';
import { type JoinRow, searchGroups, takeRows } from '../bulk/join-searches.js';
import { type SampleRequest, sampleViews } from '../bulk/sample.js';
import type { Collection } from '../collection/collection.js';
import { selectPassing } from '../collection/select-passing.js';
import {
  countVisible,
  type FieldView,
  rowsOf,
  viewsOfField,
  withRows,
} from '../collection/snapshot.js';
import { toFloat32 } from '../search/hits.js';
import { findComponentsTask } from './components.js';
import { centerRowsTask, computeCovariance, covarianceBytes } from './covariance.js';
import { type Axes, projectRowsTask } from './project-rows.js';
import { type RowValues, rowValues } from './row-values.js';

export interface ProjectionRequest {
  /** The name of the vector to project; absent for the unnamed one. */
  readonly using?: string | undefined;
  readonly filter?: JsonObject | undefined;
  /** A sample of the rows that pass the filter and have the vector. */
  readonly sample: SampleRequest;
  /** The number of coordinates per row. */
  readonly dimensions: number;
  /** The number of neighbours per row. */
  readonly neighborCount: number;
}

export interface Projection {
  readonly sequence: number;
  readonly rowCount: number;
  readonly warnings: readonly Warning[] | undefined;
  /** The metric of the distances between neighbours. */
  readonly neighborMetric: 'cosine' | 'euclidean';
  /** The memory needed to compute the components. */
  readonly workBytes: number;
  /** Can be called once. Rejects with `overloaded` and with the signal's reason. */
  project(): Promise<ProjectedRows>;
}

export interface ProjectedRows {
  /** The share of the variance that each component explains; 0 beyond the rank. */
  readonly varianceRatios: readonly number[];
  /** Can be read once. */
  chunks(): AsyncGenerator<ProjectionChunk>;
}

/** Rows in order of arrival. */
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
  /** Indexes of rows in the order of all chunks. */
  readonly rows: Uint32Array;
  readonly distances: Float32Array;
}

/** With more rows, components do not change visibly. */
const COVARIANCE_ROWS_MAX = 20_000;
/** Bounds the products of two elements to three seconds of a core, so that long vectors use fewer rows. */
const COVARIANCE_PRODUCTS_MAX = 6e9;
const COVARIANCE_ROWS_MIN = 2_000;

/** Numbers per chunk, which take about a millisecond to write as text. */
const CHUNK_NUMBERS = 16_384;

interface Plan {
  readonly collection: Collection;
  readonly services: BulkServices;
  readonly signal: AbortSignal | undefined;
  readonly views: readonly FieldView[];
  readonly shape: Omit<RowValues, 'blocks'>;
  readonly neighborMetric: Projection['neighborMetric'];
  readonly neighborCount: number;
  readonly dimensions: number;
}

/** Rejects with `invalid_request`, `invalid_filter`, `limit_exceeded` and the signal's reason. */
export async function runProjection(
  collection: Collection,
  request: ProjectionRequest,
  services: BulkServices,
  signal: AbortSignal | undefined,
): Promise<Projection> {
  const { limits, pool } = services;
  const { using = UNNAMED, dimensions, neighborCount } = request;
  const { dimension, metric } = collection.shapeOf(using, field('using'));
  checkDimension(dimension, limits.projectionDimensionMax);
  const passing = await selectPassing(collection, request.filter, services, { signal });
  const views = await sampleViews(viewsOfField(passing.views, using), request.sample, pool);
  const rowCount = countVisible(views);
  const neighborMetric = neighborMetricOf(metric);
  const shape = { dimension, isNormalized: metric === 'cosine' };
  const plan: Plan = {
    collection,
    services,
    signal,
    views,
    shape,
    neighborMetric,
    neighborCount,
    dimensions,
  };
  return {
    sequence: passing.snapshot.sequence,
    rowCount,
    warnings: passing.warnings,
    neighborMetric,
    workBytes: covarianceBytes(countCovarianceRows(rowCount, dimension), dimension),
    async project() {
      const { axes, varianceRatios } = await findAxes(plan, rowCount);
      return { varianceRatios, chunks: () => intactChunks(projectRows(plan, axes), [collection]) };
    },
  };
}

/** The dot product is not a distance; coordinates preserve euclidean distances. */
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

/** `count` rows, evenly spaced in the order of arrival. */
function chooseEvenly(views: readonly FieldView[], rowCount: number, count: number): JoinRow[] {
  const chosen: JoinRow[] = [];
  let seenCount = 0;
  for (const row of rowsOf(views)) {
    seenCount++;
    if (Math.floor((seenCount * count) / rowCount) > chosen.length) chosen.push(row);
  }
  return chosen;
}

async function* projectRows(plan: Plan, axes: Axes): AsyncGenerator<ProjectionChunk> {
  const { services, signal, shape, dimensions, neighborCount } = plan;
  // A fixed size, so that streams have the same bytes regardless of the duration of searches.
  const rowsMax = Math.ceil(CHUNK_NUMBERS / (dimensions + 2 * neighborCount));
  const chunks = neighborCount > 0 ? findNeighbors(plan, rowsMax) : takeChunks(plan, rowsMax);
  for await (const { rows, neighbors } of chunks) {
    signal?.throwIfAborted();
    const input = { rows: rowValues(rows, shape), ...axes };
    const coordinates = await services.pool.run(projectRowsTask, input);
    yield { count: rows.length, ids: idsOf(rows), coordinates, neighbors };
  }
}

interface RowsOfChunk {
  readonly rows: readonly JoinRow[];
  readonly neighbors: Neighbors | null;
}

function* takeChunks({ views }: Plan, rowsMax: number): Generator<RowsOfChunk> {
  const remaining = rowsOf(views);
  for (;;) {
    const rows = takeRows(remaining, rowsMax);
    if (rows.length === 0) return;
    yield { rows, neighbors: null };
  }
}

/** The neighbours of a row are its matches in a join of the rows with themselves. */
async function* findNeighbors(plan: Plan, rowsMax: number): AsyncGenerator<RowsOfChunk> {
  const { collection, services, signal, views, neighborMetric, neighborCount } = plan;
  const search = {
    views,
    searched: withRows(views),
    metric: neighborMetric,
    topK: neighborCount,
    scoreMin: null,
    shared: null,
    excludesSelf: true,
    mayLackDirection: false,
  };
  const builder = new NeighborsBuilder(search, rowsMax);
  for await (const group of searchGroups(search, collection, services, signal)) {
    for (const [i, row] of group.rows.entries()) {
      builder.add(row, group.found[i]!);
      if (builder.rowCount === rowsMax) yield builder.take();
    }
  }
  if (builder.rowCount > 0) yield builder.take();
}

/** For each view, the index of each row among the visible rows of all views. */
function indexRows(views: readonly FieldView[]): readonly Uint32Array[] {
  let next = 0;
  return views.map((view) => {
    const indexes = new Uint32Array(view.rowCount);
    for (const row of rowsIn(view)) indexes[row] = next++;
    return indexes;
  });
}

interface NeighborSearch {
  readonly searched: readonly FieldView[];
  readonly topK: number;
  readonly metric: Metric;
}

/** Collects rows and their neighbours until a chunk is full. */
class NeighborsBuilder {
  readonly #search: NeighborSearch;
  readonly #indexes: readonly Uint32Array[];
  readonly #rowsMax: number;
  #rows: JoinRow[] = [];
  #starts = new Int32Array(0);
  #neighbors = new Uint32Array(0);
  #distances = new Float32Array(0);

  constructor(search: NeighborSearch, rowsMax: number) {
    this.#search = search;
    this.#indexes = indexRows(search.searched);
    this.#rowsMax = rowsMax;
    this.#clear();
  }

  get rowCount(): number {
    return this.#rows.length;
  }

  /** @param found hits, best first, which may include the row itself. */
  add(row: JoinRow, found: readonly SearchHits[]): void {
    const { searched, topK, metric } = this.#search;
    const start = this.#starts[this.#rows.length]!;
    let end = start;
    for (const { viewIndexes, rows, scores } of found) {
      for (let hit = 0; hit < rows.length && end < start + topK; hit++) {
        const { segment } = searched[viewIndexes[hit]!]!;
        if (segment === row.view.segment && rows[hit] === row.row) continue;
        this.#neighbors[end] = this.#indexes[viewIndexes[hit]!]![rows[hit]!]!;
        this.#distances[end++] = toFloat32(distanceIn(metric, scores[hit]!));
      }
    }
    this.#rows.push(row);
    this.#starts[this.#rows.length] = end;
  }

  take(): RowsOfChunk {
    const rows = this.#rows;
    const end = this.#starts[rows.length]!;
    const neighbors = {
      starts: this.#starts.subarray(0, rows.length + 1),
      rows: this.#neighbors.subarray(0, end),
      distances: this.#distances.subarray(0, end),
    };
    this.#clear();
    return { rows, neighbors };
  }

  #clear(): void {
    const countMax = this.#rowsMax * this.#search.topK;
    this.#rows = [];
    this.#starts = new Int32Array(this.#rowsMax + 1);
    this.#neighbors = new Uint32Array(countMax);
    this.#distances = new Float32Array(countMax);
  }
}

/** @param score the score of the engine. */
function distanceIn(metric: Metric, score: number): number {
  return isDistance(metric) ? distanceOf(metric, score) : Math.max(0, 1 - score);
}

function idsOf(rows: readonly JoinRow[]): Utf8Column {
  const ids = new TextColumn();
  for (const { view, row } of rows) ids.add(view.metadata.ids, row);
  return ids.take();
}

function checkDimension(dimension: number, dimensionMax: number): void {
  if (dimension <= dimensionMax) return;
  const detail = `Expected vectors of at most ${dimensionMax} elements, since a projection keeps the product of every two; found ${dimension}.`;
  const bound = { expected: dimensionMax, actual: dimension };
  throw validationError([{ location: field('using'), code: 'limit_exceeded', detail, ...bound }]);
}
