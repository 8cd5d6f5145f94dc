// What the rows of a query are ranked by: planned from the request of a first page, or from the cursor
// that a later page continues. A ranking has everything that decides the order of rows.

import { createHash } from 'node:crypto';
import { type FieldPath, field, type SagittaError, validationError } from '../../common/errors.js';
import { stringifyExactJson } from '../../common/exact-json.js';
import type { Limits } from '../../common/limits.js';
import type { JsonObject, Metric, VectorShape } from '../../common/types.js';
import type { SparseVector } from '../../common/vectors.js';
import { publicScore, type SearchQuery } from '../../engine/core/engine.js';
import type { Formula } from '../../engine/core/example-search.js';
import type { FilterNode } from '../../filter/filter-node.js';
import { type Collection, type SearchedVector, vectorNotFound } from '../collection/collection.js';
import type { SnapshotView } from '../collection/snapshot-view.js';
import { concatenate, planDiscover, planRecommend } from './examples.js';
import type { FusionMethod } from './fusion/fusion.js';
import type { QueryRequest, RankingRequest, TargetRequest, TextRequest } from './query-api.js';
import { tooManyVectors } from './ranking-issues.js';
import type { SparseQuery } from './sparse-query.js';
import { analyzeText, type TextQuery } from './text-query.js';

/** By the score with one vector. */
export interface VectorRanking {
  readonly kind: 'vector';
  readonly vector: Float32Array;
  /** The named vector that is searched; null for the unnamed one. */
  readonly using: string | null;
  readonly metric: Metric;
  /** Stored vectors that the request names, which are left out of the result. */
  readonly excludedIds: readonly string[];
}

/** By a formula of the scores with several vectors. */
export interface ExampleRanking extends Omit<VectorRanking, 'kind'> {
  readonly kind: 'examples';
  /** Row-major [exampleCount, dimension]. */
  readonly vector: Float32Array;
  readonly formula: Formula;
}

/** By MaxSim with a multi-vector. */
export interface MultiRanking extends Omit<VectorRanking, 'kind'> {
  readonly kind: 'multi';
  /** Row-major [vectorCount, dimension]. */
  readonly vector: Float32Array;
  /** The multi-vector that is searched. */
  readonly using: string;
}

/** By BM25. */
interface TextRanking {
  readonly kind: 'text';
  readonly text: TextQuery;
  readonly excludedIds: readonly string[];
}

/** By the dot product of sparse vectors. */
interface SparseRanking extends SparseQuery {
  readonly kind: 'sparse';
  readonly excludedIds: readonly string[];
}

export type SingleRanking =
  | VectorRanking
  | ExampleRanking
  | MultiRanking
  | TextRanking
  | SparseRanking;

/** By several rankings together. */
export interface FusedRanking {
  readonly kind: 'fusion';
  readonly method: FusionMethod;
  readonly parts: readonly FusedPart[];
  readonly excludedIds: readonly string[];
}

interface FusedPart {
  readonly ranking: SingleRanking;
  readonly filter: JsonObject | null;
  readonly filterNode: FilterNode | null;
  /** It ranks only so many rows, its best; null for all. */
  readonly limit: number | null;
  readonly weight: number;
}

export type Ranking = SingleRanking | FusedRanking;

/** What a cursor keeps of a ranking: without what is made again of the rest. */
export type SealedRanking = SealedSingle | SealedFusion;

type SealedSingle = (
  | VectorRanking
  | ExampleRanking
  | MultiRanking
  | { readonly kind: 'text'; readonly request: TextRequest }
  | SealedSparse
) & {
  /** Where the segments have the vector `using`, if not under its name. */
  readonly column?: string;
};

interface SealedSparse {
  readonly kind: 'sparse';
  readonly using: string;
  readonly indices: readonly number[];
  readonly values: Float32Array;
}

interface SealedFusion extends Omit<FusedRanking, 'parts'> {
  readonly parts: readonly {
    readonly ranking: SealedSingle;
    readonly filter: JsonObject | null;
    readonly limit: number | null;
    readonly weight: number;
  }[];
}

export interface RankingContext {
  readonly limits: Limits;
  readonly parseFilter: FilterParser;
}

/** Throws `invalid_filter` at the path of the filter. */
type FilterParser = (filter: JsonObject, path: FieldPath) => FilterNode;

/** Replaces the requests of all rankings: of the query or the parts of its fusion, and of its prefetch. */
export function mapRankings(
  request: QueryRequest,
  map: <Request extends RankingRequest>(ranking: Request, path: FieldPath) => Request,
): QueryRequest {
  const mapTarget = <Request extends TargetRequest>(target: Request, path: FieldPath): Request => {
    const { fusion } = target;
    if (fusion === undefined) return map(target, path);
    const parts = fusion.parts.map((part, i) => map(part, [...path, 'fusion', 'parts', i]));
    return { ...target, fusion: { ...fusion, parts } };
  };
  const mapped = mapTarget(request, []);
  const { prefetch } = request;
  return prefetch === undefined
    ? mapped
    : { ...mapped, prefetch: mapTarget(prefetch, ['prefetch']) };
}

/** The requests of all rankings of a query. */
export function rankingsOf(request: QueryRequest): readonly RankingRequest[] {
  const rankings: RankingRequest[] = [];
  mapRankings(request, (ranking) => {
    rankings.push(ranking);
    return ranking;
  });
  return rankings;
}

/**
 * @param path of the request within the body.
 * Throws `invalid_request`, `dimension_mismatch`, `invalid_vector`, `limit_exceeded` and `invalid_filter`;
 * `vector_not_found` where the query itself is by id, and else an issue of it at the id.
 */
export function planRanking(
  view: SnapshotView,
  request: TargetRequest,
  context: RankingContext,
  path: FieldPath = [],
): Ranking {
  const { fusion } = request;
  if (fusion === undefined) return planSingle(view, request, context, path);
  const parts = fusion.parts.map((part, i): FusedPart => {
    const at = [...path, 'fusion', 'parts', i];
    const { filter = null, limit = null, weight } = part;
    const filterNode = filter && context.parseFilter(filter, [...at, 'filter']);
    return { ranking: planSingle(view, part, context, at), filter, filterNode, limit, weight };
  });
  const { kind, rankConstant, normalize } = fusion;
  return {
    kind: 'fusion',
    method: kind === 'rrf' ? { kind, rankConstant } : { kind, normalize },
    parts,
    excludedIds: [...new Set(parts.flatMap(({ ranking }) => ranking.excludedIds))],
  };
}

function planSingle(
  view: SnapshotView,
  request: RankingRequest,
  { limits }: RankingContext,
  path: FieldPath,
): SingleRanking {
  const { collection } = view;
  if (request.text !== undefined) {
    const text = analyzeText(collection, request.text, limits, [...path, 'text']);
    return { kind: 'text', text, excludedIds: [] };
  }
  if (request.sparse !== undefined) {
    const using = collection.requireSparse(request.using, field(...path, 'using'));
    return { kind: 'sparse', using, sparse: request.sparse, excludedIds: [] };
  }
  const using = request.using ?? null;
  const multiShape = collection.multiShapeOf(using);
  const { multiVector } = request;
  if (multiVector !== undefined || (multiShape !== undefined && request.id !== undefined)) {
    return planMulti(view, request, multiShape, limits, path);
  }
  const shape = collection.shapeOf(using, field(...path, 'using'));
  const metric = request.metric ?? shape.metric;
  const searched = { dimension: shape.dimension, metric, using };
  const { recommend, discover } = request;
  if (recommend !== undefined || discover !== undefined) {
    const { formula, ...examples } =
      recommend === undefined
        ? planDiscover(view, discover!, searched, path)
        : planRecommend(view, recommend, searched, path);
    const ranked = { ...examples, using, metric };
    return formula === null
      ? { kind: 'vector', ...ranked }
      : { kind: 'examples', ...ranked, formula };
  }
  const { id } = request;
  const vector = request.vector ?? storedVector(view, id!, searched, path);
  const location = field(...path, id === undefined ? 'vector' : 'id');
  collection.checkQueryVector(vector, searched, location);
  return { kind: 'vector', vector, using, metric, excludedIds: id === undefined ? [] : [id] };
}

function planMulti(
  view: SnapshotView,
  { id, multiVector, using, metric: requested }: RankingRequest,
  shape: VectorShape | undefined,
  limits: Limits,
  path: FieldPath,
): MultiRanking {
  const { collection } = view;
  if (using === undefined || shape === undefined) {
    const detail = 'Expected the name of a multi-vector with multi_vector.';
    const location = field(...path, 'using');
    throw validationError([{ location, code: 'invalid_request', detail }]);
  }
  const metric = requested ?? shape.metric;
  if (metric === 'euclidean') {
    const detail = 'Multi-vectors are compared by cosine or dot; found euclidean.';
    const location = field(...path, 'metric');
    throw validationError([{ location, code: 'invalid_request', detail }]);
  }
  const vectors = multiVector ?? storedMulti(view, id!, using, path);
  const member = field(...path, id === undefined ? 'multi_vector' : 'id');
  if (vectors.length > limits.queryVectorsMax) {
    throw validationError([{ location: member, ...tooManyVectors(vectors.length, limits) }]);
  }
  const searched = { dimension: shape.dimension, metric, using };
  for (const [i, vector] of vectors.entries()) {
    const location = id === undefined ? field(...path, 'multi_vector', i) : member;
    collection.checkQueryVector(vector, searched, location);
  }
  const excludedIds = id === undefined ? [] : [id];
  return { kind: 'multi', vector: concatenate(vectors), using, metric, excludedIds };
}

function storedMulti(
  view: SnapshotView,
  id: string,
  using: string,
  path: FieldPath,
): readonly Float32Array[] {
  const address = view.find(id);
  const vector = address?.segment.vectorAt(address.row, using);
  const found = vector !== undefined && 'dimension' in vector ? vector : undefined;
  if (found === undefined) throw missingVector(view, { id, using: address ? using : null }, path);
  const { dimension, values } = found;
  return Array.from({ length: values.length / dimension }, (_, i) =>
    values.subarray(i * dimension, (i + 1) * dimension),
  );
}

function storedVector(
  view: SnapshotView,
  id: string,
  { using }: SearchedVector,
  path: FieldPath,
): Float32Array {
  const { collection } = view;
  const address = view.find(id);
  const values = address && collection.storedValues(address, using);
  if (values !== undefined) return values;
  throw missingVector(view, { id, using: address ? using : null }, path);
}

/** An issue at the id. `using`: what the vector lacks; null for all of it. */
function missingVector(
  { collection }: SnapshotView,
  { id, using }: { readonly id: string; readonly using: string | null },
  path: FieldPath,
): SagittaError {
  const { code, message: detail } = vectorNotFound(collection.definition.id, id, using);
  return validationError([{ location: field(...path, 'id'), code, detail }]);
}

export function sealRanking(ranking: Ranking, collection: Collection): SealedRanking {
  if (ranking.kind !== 'fusion') return sealSingle(ranking, collection);
  const parts = ranking.parts.map(({ ranking: part, filter, limit, weight }) => {
    return { ranking: sealSingle(part, collection), filter, limit, weight };
  });
  return { ...ranking, parts };
}

function sealSingle(ranking: SingleRanking, { rows }: Collection): SealedSingle {
  if (ranking.kind === 'text') return { kind: 'text', request: ranking.text.request };
  const { using } = ranking;
  const column = using === null ? undefined : rows.columnOf(using);
  const place = column === undefined || column === using ? {} : { column };
  if (ranking.kind !== 'sparse') return { ...ranking, ...place };
  const { indices, values } = ranking.sparse;
  return { kind: 'sparse', using: ranking.using, indices: [...indices], values, ...place };
}

/** Throws `cursor_expired` where its vector was dropped, and what `planRanking` throws where limits have changed. */
export function unsealRanking(
  sealed: SealedRanking,
  collection: Collection,
  context: RankingContext,
  path: FieldPath = [],
): Ranking {
  if (sealed.kind !== 'fusion') return unsealSingle(sealed, collection, context, path);
  const parts = sealed.parts.map(({ ranking, ...rest }, i): FusedPart => {
    const at = [...path, 'fusion', 'parts', i];
    const { filter } = rest;
    const filterNode = filter && context.parseFilter(filter, [...at, 'filter']);
    return { ranking: unsealSingle(ranking, collection, context, at), ...rest, filterNode };
  });
  return { ...sealed, parts };
}

function unsealSingle(
  sealed: SealedSingle,
  collection: Collection,
  { limits }: RankingContext,
  path: FieldPath,
): SingleRanking {
  if (sealed.kind === 'text') {
    const text = analyzeText(collection, sealed.request, limits, [...path, 'text']);
    return { kind: 'text', text, excludedIds: [] };
  }
  const { column, ...ranking } = sealed;
  requireColumn(collection, ranking.using, column);
  if (ranking.kind !== 'sparse') return ranking;
  return { kind: 'sparse', using: ranking.using, sparse: unsealSparse(ranking), excludedIds: [] };
}

function requireColumn(
  { rows, definition }: Collection,
  using: string | null,
  column: string | undefined,
): void {
  if (using === null || rows.columnOf(using) === (column ?? using)) return;
  const detail = `The vector "${using}" of collection "${definition.id}" was dropped since the first page. Start again without a cursor.`;
  throw validationError([{ location: field('cursor'), code: 'cursor_expired', detail }]);
}

/** A digest of a request or a part of one. */
export function digestRequest(request: object): string {
  const text = stringifyExactJson(request, (value) =>
    value instanceof Float32Array || value instanceof Uint32Array ? [...value] : value,
  );
  return createHash('sha256').update(text).digest('base64url');
}

export function unsealSparse({ indices, values }: SealedSparse): SparseVector {
  return { indices: Uint32Array.from(indices), values };
}

/** The metric whose scores a ranking has; null where they are made in another way. */
export function scoringMetric(ranking: Ranking): Metric | null {
  return ranking.kind === 'vector' ? ranking.metric : null;
}

/** What an engine is asked for; sources of other rankings do not use it. */
export function searchedVector(ranking: Ranking): Pick<SearchQuery, 'vector' | 'metric'> {
  return 'vector' in ranking
    ? { vector: ranking.vector, metric: ranking.metric }
    : { vector: NO_VECTOR, metric: 'dot' };
}

const NO_VECTOR = new Float32Array(0);

/** The score as users see it, before it is rounded. */
export function shownScore(ranking: Ranking, score: number): number {
  return ranking.kind === 'vector' ? publicScore(ranking.metric, score) : score;
}
