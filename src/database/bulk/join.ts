// Joins every row of a collection with its nearest rows in another or the same collection, from one
// snapshot of each. Rows are searched in groups, at most one group ahead of the reader.

import { hasRow } from '../../common/bitmap.js';
import { field, type SagittaError, validationError } from '../../common/errors.js';
import type { Limits } from '../../common/limits.js';
import type { JsonObject, Metric, VectorShape } from '../../common/types.js';
import { UNNAMED } from '../../common/vectors.js';
import type { SearchHits } from '../../engine/core/engine.js';
import type { Segment } from '../../segment/segment.js';
import type { Warning } from '../api/warning.js';
import { type Collection, requireComparable } from '../collection/collection.js';
import { selectPassing } from '../collection/select-passing.js';
import { countVisible, type SegmentView, viewsOfField, withRows } from '../collection/snapshot.js';
import { sharedRows } from '../rankings/scored.js';
import type { BulkServices } from './bulk-services.js';
import { JOIN_CHUNK_BYTES, type JoinChunk, JoinChunkBuilder } from './join-chunks.js';
import { heldBytesMax, type JoinRow, type SearchPlan, searchGroups } from './join-searches.js';
import { type SampleRequest, sampleViews } from './sample.js';

/** Chunks held at once: one being filled, one being written, and its text. */
const CHUNKS_HELD = 3;

export interface JoinRequest {
  /** The collection to search for matches; by default the collection itself. */
  readonly with?: string | undefined;
  /** The name of the vector of the joined rows; absent for the unnamed one. */
  readonly using?: string | undefined;
  /** The name of the vector to search; absent for the unnamed one. */
  readonly withUsing?: string | undefined;
  /** Required without `scoreThreshold`. */
  readonly topK?: number | undefined;
  /** Compared with the score rounded to float32. */
  readonly scoreThreshold?: number | undefined;
  /** Selects the rows to join. */
  readonly filter?: JsonObject | undefined;
  /** Selects the rows to search. */
  readonly withFilter?: JsonObject | undefined;
  /** A sample of the rows that pass `filter`. */
  readonly sample?: SampleRequest | undefined;
  /** A sample of the rows that pass `withFilter`. In a join with itself, equal samples choose the same rows. */
  readonly withSample?: SampleRequest | undefined;
  /** Whether to exclude the match with the id of its row; by default only when a collection is joined with itself. */
  readonly excludeSelf?: boolean | undefined;
  /** Whether to return each pair once, as a match of the earlier row. Only in a join with itself and without `topK`. */
  readonly unorderedPairs?: boolean | undefined;
  /** By default the metric of the searched collection. */
  readonly metric?: Metric | undefined;
  readonly includeMetadata?: boolean | undefined;
}

/** Assigns each pair to its earlier row. */
class UnorderedPairs {
  readonly #joined: ReadonlyMap<Segment, SegmentView>;
  readonly #searched: ReadonlyMap<Segment, SegmentView>;
  /** The order of arrival of the segments. */
  readonly #orders: ReadonlyMap<Segment, number>;

  constructor(joined: readonly SegmentView[], searched: readonly SegmentView[]) {
    const bySegment = (views: readonly SegmentView[]) =>
      new Map(views.map((view) => [view.segment, view]));
    this.#joined = bySegment(joined);
    this.#searched = bySegment(searched);
    this.#orders = new Map(joined.map(({ segment }, order) => [segment, order]));
  }

  /** Whether the pair belongs to its match, because that row is earlier and also finds the pair. */
  belongsToMatch(
    { segment, row }: JoinRow,
    { segment: matchSegment }: SegmentView,
    matchRow: number,
  ) {
    const orderOf = (one: Segment) => this.#orders.get(one) ?? Number.POSITIVE_INFINITY;
    const isEarlier =
      matchSegment === segment ? matchRow < row : orderOf(matchSegment) < orderOf(segment);
    return (
      isEarlier &&
      shows(this.#joined.get(matchSegment), matchRow) &&
      shows(this.#searched.get(segment), row)
    );
  }
}

function shows(view: SegmentView | undefined, row: number): boolean {
  return view !== undefined && hasRow(view, row);
}

interface JoinPlan extends SearchPlan {
  readonly pairs: UnorderedPairs | null;
  readonly includeMetadata: boolean;
}

export interface Join {
  readonly sequence: number;
  /** The snapshot of the searched collection. */
  readonly withSequence: number;
  readonly metric: Metric;
  /** The number of joined rows. */
  readonly rowCount: number;
  readonly warnings: readonly Warning[];
  /** The maximum memory of hits and chunks while the join is read. */
  readonly workBytes: number;
  /** Can be read once. A row of zeros has no match under cosine. */
  chunks(): AsyncGenerator<JoinChunk>;
}

/**
 * Rejects with `invalid_request`, `limit_exceeded`, `dimension_mismatch` and `invalid_filter`, and for the collection
 * `with` like `Collections.requireLoaded`.
 */
export async function runJoin(
  collection: Collection,
  request: JoinRequest,
  services: BulkServices,
  signal: AbortSignal | undefined,
): Promise<Join> {
  const { collections, limits, pool } = services;
  const searched =
    request.with === undefined ? collection : await collections.requireLoaded(request.with);
  await searched.whenVerified();
  const { using = UNNAMED, withUsing = UNNAMED } = request;
  const shape = collection.shapeOf(using, field('using'));
  const withShape = searched.shapeOf(withUsing, field('with_using'));
  checkRequest(request, limits);
  if (request.unorderedPairs) checkUnordered(request, searched === collection);
  checkDimensions(shape, withShape, searched.definition.id);
  const metric = request.metric ?? withShape.metric;
  for (const one of [shape, withShape]) requireComparable(one, metric, field('metric'));
  const { filter, withFilter, sample, withSample } = request;
  const [passing, withPassing] = await Promise.all([
    selectPassing(collection, filter, services, { signal }),
    selectPassing(searched, withFilter, services, { signal, path: ['with_filter'] }),
  ]);
  const views = await sampleViews(viewsOfField(passing.views, using), sample, pool);
  const withViews = await sampleViews(viewsOfField(withPassing.views, withUsing), withSample, pool);
  const searchedViews = withRows(withViews);
  const shared = {
    collection: searched,
    snapshot: withPassing.snapshot,
    filters: withFilter === undefined ? [] : [withFilter],
    views: searchedViews,
  };
  const plan: JoinPlan = {
    views,
    searched: searchedViews,
    shared:
      withSample === undefined ? sharedRows(shared, { kind: 'vector', using: withUsing }) : null,
    pairs: request.unorderedPairs ? new UnorderedPairs(views, searchedViews) : null,
    metric,
    topK: request.topK ?? null,
    scoreMin: request.scoreThreshold ?? null,
    excludesSelf: request.excludeSelf ?? searched === collection,
    includeMetadata: request.includeMetadata ?? false,
    mayLackDirection: metric === 'cosine' && shape.metric !== 'cosine',
  };
  const rowCount = countVisible(views);
  return {
    sequence: passing.snapshot.sequence,
    withSequence: withPassing.snapshot.sequence,
    metric,
    rowCount,
    warnings: [
      ...(passing.warnings ?? []),
      ...(withPassing.warnings ?? []).map((warning) => ({ ...warning, in: 'with_filter' })),
    ],
    workBytes: heldBytesMax(plan, rowCount) + CHUNKS_HELD * JOIN_CHUNK_BYTES,
    chunks: () =>
      intactChunks(joinChunks(plan, searched, services, signal), [collection, searched]),
  };
}

/** Yields chunks, which must be copies, after checking the collections for damage. Throws `data_corrupt`. */
export async function* intactChunks<Chunk>(
  chunks: AsyncGenerator<Chunk>,
  collections: readonly Collection[],
): AsyncGenerator<Chunk> {
  for await (const chunk of chunks) {
    for (const collection of collections) collection.requireIntact();
    yield chunk;
  }
}

async function* joinChunks(
  plan: JoinPlan,
  searched: Collection,
  services: BulkServices,
  signal: AbortSignal | undefined,
): AsyncGenerator<JoinChunk> {
  const builder = new JoinChunkBuilder(plan);
  for await (const group of searchGroups(plan, searched, services, signal)) {
    for (const [i, row] of group.rows.entries()) {
      builder.beginRow(row.view, row.row);
      for (;;) {
        for (const hits of group.found[i]!.splice(0)) {
          for (const chunk of addMatches(builder, row, hits, plan)) yield chunk;
        }
        if (group.after[i] === null) break;
        await group.searchMore(i);
      }
      if (builder.isFull) yield builder.take(false)!;
    }
    const rest = builder.take(false);
    if (rest !== null) yield rest;
  }
}

/** Adds hits to the current row; yields chunks that become full before its end. */
function* addMatches(
  builder: JoinChunkBuilder,
  joined: JoinRow,
  hits: SearchHits,
  { searched, topK, excludesSelf, pairs }: JoinPlan,
): Generator<JoinChunk> {
  const excludedId = excludesSelf ? joined.segment.idBytes(joined.row) : null;
  for (let i = 0; i < hits.rows.length; i++) {
    if (builder.rank === topK) return;
    const matchView = searched[hits.viewIndexes[i]!]!;
    const matchRow = hits.rows[i]!;
    if (excludedId !== null && matchView.segment.idEquals(matchRow, excludedId)) continue;
    if (pairs?.belongsToMatch(joined, matchView, matchRow)) continue;
    if (builder.isFull) yield builder.take(true)!;
    builder.addMatch(matchView, matchRow, hits.scores[i]!);
  }
}

function checkRequest({ topK, scoreThreshold }: JoinRequest, { topKMax }: Limits): void {
  if (topK === undefined && scoreThreshold === undefined) {
    const detail = 'Expected top_k, score_threshold or both; found neither.';
    throw joinError('invalid_request', 'top_k', detail);
  }
  if (topK !== undefined && topK > topKMax) {
    const detail = `Expected at most ${topKMax}; found ${topK}.`;
    throw joinError('limit_exceeded', 'top_k', detail, { expected: topKMax, actual: topK });
  }
}

/** Each pair can be returned once only if both of its rows find it with the same score. */
function checkUnordered({ topK, using, withUsing }: JoinRequest, isWithItself: boolean): void {
  const report = (detail: string) => joinError('invalid_request', 'unordered_pairs', detail);
  if (!isWithItself) {
    throw report('Expected a join of a collection with itself; found another collection.');
  }
  if (using !== withUsing)
    throw report('Expected equal using and with_using; found different ones.');
  if (topK === undefined) return;
  throw report(
    'Expected score_threshold alone; found top_k. A vector may be among the nearest of another one, but not the other way round.',
  );
}

function checkDimensions(
  { dimension }: VectorShape,
  { dimension: withDimension }: VectorShape,
  id: string,
): void {
  if (dimension !== withDimension) {
    const detail = `The vectors have ${dimension} elements; those of the collection "${id}" have ${withDimension}.`;
    throw joinError('dimension_mismatch', 'with', detail, {
      expected: dimension,
      actual: withDimension,
    });
  }
}

function joinError(
  code: 'invalid_request' | 'limit_exceeded' | 'dimension_mismatch',
  name: string,
  detail: string,
  bound: { readonly expected?: number; readonly actual?: number } = {},
): SagittaError {
  return validationError([{ location: field(name), code, detail, ...bound }]);
}
