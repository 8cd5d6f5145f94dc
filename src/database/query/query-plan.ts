// What a query asks for, completely: made from the request of a first page, or from the cursor that
// a later page continues. Whatever the client may get wrong about a query is found here.

import {
  field,
  type IssueLocation,
  type SagittaError,
  validationError,
} from '../../common/errors.js';
import type { Limits } from '../../common/limits.js';
import type { JsonObject, Metric } from '../../common/types.js';
import type { FilterNode } from '../../filter/filter-node.js';
import { parseFilter } from '../../filter/parse.js';
import { type Collection, vectorNotFound } from '../collection/collection.js';
import type { SnapshotView } from '../collection/snapshot-view.js';
import type { CursorSealer, QueryCursor } from './cursor.js';
import { checkPaging, mismatch, openCursor, sameJson } from './paging.js';
import type { QueryRequest, SortKey } from './query-api.js';
import type { Hit } from './search-target.js';

/** Everything that decides the answer; a cursor restores all of it. */
export interface QueryPlan {
  readonly sequence: number;
  readonly openedAtMs: number;
  readonly vector: Float32Array;
  readonly excludedId: string | null;
  readonly metric: Metric;
  readonly filter: JsonObject | null;
  readonly filterNode: FilterNode | null;
  readonly sort: readonly SortKey[] | null;
  readonly scoreThreshold: number | null;
  /** The nearest that the walk goes through; null for the whole filtered view. */
  readonly topK: number | null;
  readonly limit: number;
  readonly includeMetadata: boolean;
  readonly includeValues: boolean | 'base64';
  /** Where this page starts. */
  readonly givenCount: number;
  readonly offset: number;
  readonly after: { readonly score: number; readonly id: string } | null;
  /** Whether the reply counts the filtered view: first and offset pages do. */
  readonly isCounted: boolean;
  readonly isExplained: boolean;
}

export interface PlanContext {
  readonly sealer: CursorSealer;
  readonly limits: Limits;
  readonly now: number;
  readonly parseFilter: FilterParser;
}

/** Throws `invalid_filter` about the field `filter`. */
export type FilterParser = (filter: JsonObject) => FilterNode;

/** Gives equal filters the same node. */
export function createFilterParser(limits: Limits): FilterParser {
  const byText = new Map<string, FilterNode>();
  return (filter) => {
    const text = JSON.stringify(filter);
    let node = byText.get(text);
    if (node === undefined) {
      node = parseFilter(filter, limits);
      byText.set(text, node);
    }
    return node;
  };
}

/** Throws what is wrong with the request or its cursor, and `vector_not_found` for an id without a vector. */
export function planQuery(
  view: SnapshotView,
  request: QueryRequest,
  context: PlanContext,
): QueryPlan {
  checkPaging(request, context.limits);
  return request.cursor === undefined
    ? planFirstPage(view, request, context)
    : planNextPage(view.collection, request, request.cursor, context);
}

function planFirstPage(
  view: SnapshotView,
  request: QueryRequest,
  { limits, now, parseFilter }: PlanContext,
): QueryPlan {
  const { collection } = view;
  if ((request.vector === undefined) === (request.id === undefined)) {
    const found = request.vector === undefined ? 'neither' : 'both';
    throw invalid(field(), `A query has exactly one of vector and id; found ${found}.`);
  }
  const sort = request.sort === undefined || request.sort.length === 0 ? null : request.sort;
  // Without a bound on the walk there is no "top" to sort.
  const hasDefaultTop =
    sort !== null || (request.limit === undefined && request.scoreThreshold === undefined);
  const topK = request.topK ?? (hasDefaultTop ? limits.topKDefault : null);
  if (topK !== null && topK > limits.topKMax && (request.limit === undefined || sort !== null)) {
    throw invalid(
      field('top_k'),
      sort === null
        ? `top_k beyond ${limits.topKMax} needs a limit, to be read in pages.`
        : `A sorted query takes a top_k of at most ${limits.topKMax}.`,
      { expected: limits.topKMax, actual: topK },
    );
  }
  const metric = request.metric ?? collection.definition.metric;
  const vector = request.vector ?? storedVector(view, request.id!);
  collection.checkQueryVector(vector, metric, field(request.id === undefined ? 'vector' : 'id'));
  const filterNode = request.filter === undefined ? null : parseFilter(request.filter);
  return {
    sequence: view.sequence,
    openedAtMs: now,
    vector,
    excludedId: request.id ?? null,
    metric,
    filter: request.filter ?? null,
    filterNode,
    sort,
    scoreThreshold: request.scoreThreshold ?? null,
    topK,
    limit: request.limit ?? topK ?? limits.pageLimitDefault,
    includeMetadata: request.includeMetadata ?? false,
    includeValues: request.includeValues ?? false,
    givenCount: 0,
    offset: request.offset ?? 0,
    after: null,
    isCounted: true,
    isExplained: request.explain === true,
  };
}

function storedVector(view: SnapshotView, id: string): Float32Array {
  const address = view.find(id);
  if (address === undefined) throw vectorNotFound(view.collection.definition.id, id);
  return address.segment.values(address.row);
}

function planNextPage(
  collection: Collection,
  request: QueryRequest,
  token: string,
  { sealer, limits, now, parseFilter }: PlanContext,
): QueryPlan {
  const cursor = openCursor(token, 'query', collection, { sealer, limits, now });
  const repeated: [keyof QueryRequest, string, boolean][] = [
    ['vector', 'vector', sameVector(request.vector, cursor.vector)],
    ['id', 'id', request.id === cursor.id],
    ['topK', 'top_k', request.topK === cursor.topK],
    ['filter', 'filter', sameJson(request.filter, cursor.filter)],
    ['metric', 'metric', request.metric === cursor.metric],
    ['sort', 'sort', sameJson(request.sort, cursor.sort ?? [])],
    ['scoreThreshold', 'score_threshold', request.scoreThreshold === cursor.scoreThreshold],
    ['minSequence', 'min_sequence', (request.minSequence ?? 0) <= cursor.sequence],
  ];
  for (const [field, name, isSame] of repeated) {
    if (request[field] !== undefined && !isSame) throw mismatch(name);
  }
  return {
    sequence: cursor.sequence,
    openedAtMs: cursor.openedAtMs,
    vector: cursor.vector,
    excludedId: cursor.id,
    metric: cursor.metric,
    filter: cursor.filter,
    filterNode: cursor.filter === null ? null : parseFilter(cursor.filter),
    sort: cursor.sort,
    scoreThreshold: cursor.scoreThreshold,
    topK: cursor.topK,
    limit: request.limit ?? cursor.limit,
    includeMetadata: request.includeMetadata ?? cursor.includeMetadata,
    includeValues: request.includeValues ?? cursor.includeValues,
    givenCount: cursor.givenCount,
    offset: 0,
    after: cursor.after,
    isCounted: false,
    isExplained: request.explain === true,
  };
}

/** The cursor of the page after `hits`. */
export function nextCursor(
  collection: Collection,
  plan: QueryPlan,
  hits: readonly Hit[],
): QueryCursor {
  const last = hits[hits.length - 1]!;
  return {
    kind: 'query',
    incarnation: collection.incarnation,
    sequence: plan.sequence,
    openedAtMs: plan.openedAtMs,
    filter: plan.filter,
    limit: plan.limit,
    includeMetadata: plan.includeMetadata,
    includeValues: plan.includeValues,
    metric: plan.metric,
    vector: plan.vector,
    id: plan.excludedId,
    topK: plan.topK,
    sort: plan.sort,
    scoreThreshold: plan.scoreThreshold,
    givenCount: plan.givenCount + plan.offset + hits.length,
    after: plan.sort === null ? { score: last.score, id: last.view.segment.id(last.row) } : null,
  };
}

function sameVector(sent: Float32Array | undefined, sealed: Float32Array): boolean {
  return (
    sent !== undefined && sent.length === sealed.length && sent.every((x, i) => x === sealed[i])
  );
}

function invalid(
  location: IssueLocation,
  detail: string,
  bound: { expected?: number; actual?: number } = {},
): SagittaError {
  return validationError([{ location, code: 'invalid_request', detail, ...bound }]);
}
