// Joins every row of one collection with its nearest in another, or in the same one, from one
// snapshot of each. Rows are searched in groups: one group ahead of the reader, and no further.

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

/** Chunks of a join at once: one that is filled, one that is written, and its text. */
const CHUNKS_HELD = 3;

export interface JoinRequest {
  /** The collection in which matches are searched; absent: the collection itself. */
  readonly with?: string | undefined;
  /** The named vector of the rows of the collection; absent for the unnamed one. */
  readonly using?: string | undefined;
  /** The named vector that is searched; absent for the unnamed one. */
  readonly withUsing?: string | undefined;
  /** At least one of the two. */
  readonly topK?: number | undefined;
  /** Compared with the score rounded to float32. */
  readonly scoreThreshold?: number | undefined;
  /** For the rows of the collection. */
  readonly filter?: JsonObject | undefined;
  /** For the rows that are searched. */
  readonly withFilter?: JsonObject | undefined;
  /** Chosen from the rows of the collection that pass. */
  readonly sample?: SampleRequest | undefined;
  /** Chosen from the rows that are searched and pass; in a join with itself the same ones, if the sample is the same. */
  readonly withSample?: SampleRequest | undefined;
  /** Leaves out the match that has the id of its row. Absent: true where a collection is joined with itself. */
  readonly excludeSelf?: boolean | undefined;
  /** Each pair once, as a match of the row that came first; in a join with itself, without `topK`. */
  readonly unorderedPairs?: boolean | undefined;
  /** Absent: the metric of the searched collection. */
  readonly metric?: Metric | undefined;
  readonly includeMetadata?: boolean | undefined;
}

/** Decides which of the two rows of a pair has the other one as its match: the one that came first. */
class UnorderedPairs {
  readonly #joined: ReadonlyMap<Segment, SegmentView>;
  readonly #searched: ReadonlyMap<Segment, SegmentView>;
  /** The order of arrival of the segments of the rows. */
  readonly #orders: ReadonlyMap<Segment, number>;

  constructor(joined: readonly SegmentView[], searched: readonly SegmentView[]) {
    const bySegment = (views: readonly SegmentView[]) =>
      new Map(views.map((view) => [view.segment, view]));
    this.#joined = bySegment(joined);
    this.#searched = bySegment(searched);
    this.#orders = new Map(joined.map(({ segment }, order) => [segment, order]));
  }

  /** Whether the pair is also found from its match, to which it belongs. */
  isOfMatch({ segment, row }: JoinRow, { segment: matchSegment }: SegmentView, matchRow: number) {
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
  /** Rows that are joined. */
  readonly rowCount: number;
  readonly warnings: readonly Warning[];
  /** The most memory that the hits and chunks take while the join is read. */
  readonly workBytes: number;
  /** To be read once. A row of zeros has no match under cosine. */
  chunks(): AsyncGenerator<JoinChunk>;
}

/**
 * Throws `invalid_request`, `limit_exceeded`, `dimension_mismatch` and `invalid_filter`, and for the
 * collection `with` what `Collections.requireLoaded` throws.
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

/** Chunks, which are copies, from before a check for damage. Throws `data_corrupt`. */
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
        await group.searchFurther(i);
      }
      if (builder.isFull) yield builder.take(false)!;
    }
    const rest = builder.take(false);
    if (rest !== null) yield rest;
  }
}

/** Adds hits to the row that was begun last; yields the chunks that are full before its end. */
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
    if (pairs?.isOfMatch(joined, matchView, matchRow)) continue;
    if (builder.isFull) yield builder.take(true)!;
    builder.addMatch(matchView, matchRow, hits.scores[i]!);
  }
}

function checkRequest({ topK, scoreThreshold }: JoinRequest, { topKMax }: Limits): void {
  if (topK === undefined && scoreThreshold === undefined) {
    const detail = 'A join takes top_k, score_threshold or both; found neither.';
    throw joinError('invalid_request', 'top_k', detail);
  }
  if (topK !== undefined && topK > topKMax) {
    const detail = `A row has at most ${topKMax} matches by top_k; found ${topK}.`;
    throw joinError('limit_exceeded', 'top_k', detail, { expected: topKMax, actual: topK });
  }
}

/** A pair that would be found from both sides, with the same score, is given once. */
function checkUnordered({ topK, using, withUsing }: JoinRequest, isWithItself: boolean): void {
  const report = (detail: string) => joinError('invalid_request', 'unordered_pairs', detail);
  if (!isWithItself) throw report('It is for a join of a collection with itself.');
  if (using !== withUsing) throw report('It requires using and with_using to be the same.');
  if (topK === undefined) return;
  throw report(
    'It is for joins by score_threshold alone: a vector may be among the nearest of another one, but not the other way round. Leave top_k out.',
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
