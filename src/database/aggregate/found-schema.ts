// The metadata paths of the rows of a snapshot, in pages, with the types and the range of their values. Work and
// memory are bounded by the page, not by the number of paths.

import { hasBit, type RowSet, rowsIn } from '../../common/bitmap.js';
import { KIND, type MetadataColumn } from '../../common/columns.js';
import { flattenMetadata } from '../../common/metadata-path.js';
import type { JsonNumber, JsonObject, Utf8Column } from '../../common/types.js';
import { stringAt } from '../../common/utf8-column.js';
import { EMPTY_COLUMN } from '../../filter/column-plans.js';
import type { WorkerPool } from '../../platform/pool.js';
import type { FoundPath, FoundSchema, SchemaRequest, TypeCounts } from '../api/aggregate-api.js';
import type { Collection } from '../collection/collection.js';
import { countVisible, type SegmentView } from '../collection/snapshot.js';
import { SnapshotView } from '../collection/snapshot-view.js';
import { findUnknownPaths } from '../collection/unknown-paths.js';
import type { ReadServices } from '../search/read-services.js';
import { mergeInPool } from './aggregate-task.js';
import { leastDistinctCount } from './merge-values.js';
import { EMPTY_SUMMARY, greater, lesser } from './number-summary.js';
import { countPathCells, type PathsInput, readColumns, selectPaths } from './path-columns.js';
import { visitNumbers } from './row-set.js';
import { defineSegmentsTask, runOverSegments } from './segment-tasks.js';
import { countValues, type ValueCounts } from './value-counts.js';

/** Paths with more values than this in a segment are not compared across segments. */
const COMPARED_VALUES_MAX = 10_000;
/** Results of segments in memory at once; with the maximum number of values they take about 80 MB. */
const RESULTS_MAX = 1_024;

/** Rejects with `invalid_filter`, `overloaded` and the signal's reason. */
export async function runSchema(
  collection: Collection,
  request: SchemaRequest,
  { collections, filters, limits, pool }: ReadServices,
  signal: AbortSignal | undefined,
): Promise<FoundSchema> {
  const { limit = limits.pageLimitDefault, after = null } = request;
  const view = new SnapshotView(collection, collections);
  try {
    const node =
      request.filter === undefined ? null : collection.parseFilter(request.filter, limits);
    const filtered = await filters.filter(view.snapshot().views, node, signal);
    const views = filtered.filter(({ visibleCount }) => visibleCount > 0);
    const candidates = await findPaths(pool, views, { after, countMax: limit + 1 }, signal);
    const page = candidates.slice(0, limit);
    const hasMore = candidates.length > limit;
    const step = Math.max(1, Math.floor(RESULTS_MAX / Math.max(1, views.length)));
    const paths: FoundPath[] = [];
    for (let from = 0; from < page.length; from += step) {
      paths.push(...(await describePaths(pool, views, page.slice(from, from + step), signal)));
    }
    return {
      // A segment may have a column in which no visible row has a value.
      paths: paths.filter(({ count }) => count > 0),
      hasMore,
      nextAfter: hasMore ? page.at(-1) : undefined,
      count: countVisible(views),
      sequence: view.sequence,
      warnings:
        after === null
          ? findUnknownPaths(collection, view.snapshot().views, { filter: node })
          : undefined,
    };
  } finally {
    view.close();
  }
}

/** A range of paths in their order. */
interface PathRange {
  /** Only paths after this one; null for all. */
  readonly after: string | null;
  /** The maximum number of paths. */
  readonly countMax: number;
}

/** The first paths of the range. */
export async function findPaths(
  pool: WorkerPool,
  views: readonly SegmentView[],
  range: PathRange,
  signal: AbortSignal | undefined,
): Promise<readonly string[]> {
  const found = new FirstPaths(range);
  const incomplete = views.filter(({ metadata }) => !metadata.isComplete);
  const segments = incomplete.map(({ rowCount, rows, metadata }) => ({
    rowCount,
    rows,
    columns: [],
    jsonPaths: [],
    json: metadata.json,
  }));
  for (const paths of await runOverSegments(pool, findPathsTask, segments, range, signal)) {
    for (const path of paths) found.add(path);
  }
  for (const { metadata } of views) {
    for (const path of metadata.columns.keys()) found.add(path);
  }
  return found.take();
}

/** Finds the paths of segments without a column for each path, from their JSON. */
export const findPathsTask = defineSegmentsTask({
  name: 'aggregate.findPaths',
  countCells: countPathCells,
  run(segment: PathsInput, range: PathRange): readonly string[] {
    const found = new FirstPaths(range);
    visitDocuments(segment.json!, segment, (document) =>
      flattenMetadata(document, (path) => found.add(path)),
    );
    return found.take();
  },
});

function visitDocuments(
  json: Utf8Column,
  rows: RowSet,
  visit: (document: JsonObject) => void,
): void {
  for (const row of rowsIn(rows)) {
    const text = stringAt(json, row);
    visit(JSON.parse(text) as JsonObject);
  }
}

/** Keeps the first paths of a range. */
class FirstPaths {
  readonly #range: PathRange;
  #paths = new Set<string>();
  /** The last path to keep, once enough paths were found. */
  #last: string | null = null;

  constructor(range: PathRange) {
    this.#range = range;
  }

  add(path: string): void {
    const { after, countMax } = this.#range;
    if (after !== null && path <= after) return;
    if (this.#last !== null && path > this.#last) return;
    this.#paths.add(path);
    if (this.#paths.size < 4 * countMax) return;
    const first = this.take();
    this.#paths = new Set(first);
    this.#last = first.at(-1)!;
  }

  take(): readonly string[] {
    return [...this.#paths].sort().slice(0, this.#range.countMax);
  }
}

/** The number of values of each kind. */
export interface KindCounts {
  /** [8] by KIND. */
  readonly kinds: Uint32Array;
  /** [8] by KIND, for the elements of arrays. */
  readonly elementKinds: Uint32Array;
}

/** The values at a path in one segment. */
interface SegmentPath extends KindCounts {
  readonly min: JsonNumber;
  readonly max: JsonNumber;
  readonly leastDistinctCount: number;
  /** Null if there are too many to compare. */
  readonly values: ValueCounts | null;
}

export const describePathsTask = defineSegmentsTask({
  name: 'aggregate.describePaths',
  countCells: countPathCells,
  run(segment: PathsInput, paths: readonly string[]): readonly SegmentPath[] {
    const columns = readColumns(segment);
    return paths.map((path) => describeColumn(columns.get(path) ?? EMPTY_COLUMN, segment));
  },
});

async function describePaths(
  pool: WorkerPool,
  views: readonly SegmentView[],
  paths: readonly string[],
  signal: AbortSignal | undefined,
): Promise<readonly FoundPath[]> {
  const segments = views.map((view) => selectPaths(view, view.metadata, paths));
  const described = await runOverSegments(pool, describePathsTask, segments, paths, signal);
  return Promise.all(
    paths.map((path, i) =>
      describePath(
        pool,
        path,
        described.map((segment) => segment[i]!),
      ),
    ),
  );
}

async function describePath(
  pool: WorkerPool,
  path: string,
  parts: readonly SegmentPath[],
): Promise<FoundPath> {
  const kinds = sumKinds(parts.map((part) => part.kinds));
  const min = parts.map((part) => part.min).reduce(lesser, EMPTY_SUMMARY.min);
  const max = parts.map((part) => part.max).reduce(greater, EMPTY_SUMMARY.max);
  const values = parts.flatMap((part) => part.values ?? []);
  const isDistinctExact = values.length === parts.length;
  const distinctCount = isDistinctExact
    ? (await mergeInPool(pool, values, 0)).distinctCount
    : Math.max(...parts.map((part) => part.leastDistinctCount));
  return {
    path,
    count: kinds.reduce((sum, count) => sum + count, 0) - kinds[KIND.missing]!,
    types: typesOf(kinds),
    elementTypes:
      kinds[KIND.array] === 0
        ? undefined
        : typesOf(sumKinds(parts.map((part) => part.elementKinds))),
    distinctCount,
    isDistinctExact,
    ...(min <= max ? { min, max } : {}),
  };
}

function describeColumn(column: MetadataColumn, rows: RowSet): SegmentPath {
  const { items } = column;
  let { min, max } = EMPTY_SUMMARY;
  visitNumbers(column, rows, (value) => {
    if (value < min) min = value;
    if (value > max) max = value;
  });
  const values = countValues(column, rows);
  const isCompared =
    column.dictionaryCount + (items?.elements.dictionaryCount ?? 0) <= COMPARED_VALUES_MAX &&
    values.numbers.length + values.integerCounts.length <= COMPARED_VALUES_MAX;
  return {
    ...countKinds(column, rows),
    min,
    max,
    leastDistinctCount: leastDistinctCount(values),
    values: isCompared ? values : null,
  };
}

export function countKinds(column: MetadataColumn, { rowCount, rows }: RowSet): KindCounts {
  const kinds = new Uint32Array(8);
  const elementKinds = new Uint32Array(8);
  const { items } = column;
  const end = Math.min(rowCount, column.kinds.length);
  for (let row = 0; row < end; row++) {
    if (rows !== null && !hasBit(rows, row)) continue;
    const kind = column.kinds[row]!;
    kinds[kind]!++;
    if (kind !== KIND.array || items === null) continue;
    const elementsEnd = items.offsets[row + 1] ?? 0;
    for (let at = items.offsets[row] ?? elementsEnd; at < elementsEnd; at++) {
      elementKinds[items.elements.kinds[at]!]!++;
    }
  }
  return { kinds, elementKinds };
}

export function sumKinds(parts: readonly Uint32Array[]): Float64Array {
  const sum = new Float64Array(8);
  for (const part of parts) {
    for (const [kind, count] of part.entries()) sum[kind]! += count;
  }
  return sum;
}

export function typesOf(kinds: Float64Array): TypeCounts {
  return {
    null: kinds[KIND.null]!,
    boolean: kinds[KIND.false]! + kinds[KIND.true]!,
    number: kinds[KIND.number]!,
    string: kinds[KIND.string]!,
    array: kinds[KIND.array]!,
    object: kinds[KIND.object]!,
  };
}
