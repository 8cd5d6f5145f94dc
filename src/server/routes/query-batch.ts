// Many queries in one request: as JSON, or as the rows of an Arrow stream. One snapshot answers all of them, and
// replies are sent while later queries are still running.

import type { z } from 'zod';
import {
  type IssueLocation,
  parameter,
  rowField,
  type ValidationIssue,
  validationError,
} from '../../common/errors.js';
import type { Limits } from '../../common/limits.js';
import { isDistance, type Metric } from '../../common/types.js';
import { wireName } from '../../common/wire-names.js';
import type {
  PreparedQueries,
  QueryReply,
  QueryRequest,
  QuerySession,
} from '../../database/api/query-api.js';
import { checkedQuery, findQueryIssues } from '../../database/query/query-issues.js';
import { isScoredByFormula } from '../../database/rankings/examples.js';
import { chooseQueryColumns } from '../../formats/arrow/query-rows.js';
import { ArrowStreamReader } from '../../formats/arrow/stream-reader.js';
import { embedQueries } from '../embedding/embed-rows.js';
import { parseJsonBody } from '../ingest/parse-request.js';
import { costOf, toQueryRequest } from '../ingest/query-request.js';
import { readQueries } from '../ingest/read-queries.js';
import { PREFETCHED_COUNT, prefetch } from '../replies/prefetch.js';
import {
  jsonChunks,
  matchTable,
  ndjsonChunks,
  type ReplyGroup,
  type WriteReply,
} from '../replies/query-chunks.js';
import { createReplyWriter } from '../replies/record-writer.js';
import { COLUMN_TYPES, columnFormat, requireVectorSupport } from '../replies/table-formats.js';
import { bodyOf } from '../requests/idempotency.js';
import type { RequestContext } from '../requests/request-context.js';
import { defineRoute, type Route, type RouteServices } from '../requests/route.js';
import type { Schemas } from '../schemas/all.js';
import { refuseParameters, validateLongBody } from '../schemas/validate.js';
import { SlowQueryLog, serverTiming } from '../telemetry/query-telemetry.js';
import type { BodyStream } from '../transport/body-stream.js';
import { ARROW_STREAM, JSON_TYPE, NDJSON } from '../wire/media-types.js';
import { BODY_LAYOUT, STREAM_LAYOUT } from '../wire/problem.js';
import type { Properties } from '../wire/property-names.js';
import type { ReplyChunks, RouteReply } from '../wire/reply.js';
import { NO_STORE, warningsHeader } from '../wire/reply.js';
import { QUERY_ERRORS } from './query.js';

type RowOptions = Properties<z.output<Schemas['query']['queryRows']>>;

const DESCRIPTION = [
  'JSON: queries as for `POST /collections/{id}/query`, each with its own filter and page. If one is invalid, none is run. The reply, by `Accept`: JSON `{"results": […]}` (default), NDJSON with one line per query, or Arrow, Parquet or CSV.',
  'Arrow (IPC stream): each row is a query, with a column `vector` (or `values`, `embedding`, `?vector_column=`), `embed` (a text that becomes a vector) or `id`. Columns `top_k`, `filter` (JSON text), `score_threshold` and `metric` apply to their row; where they are absent or null, the query string applies. A column `query_id`, or `id` beside a vector or a text, names the queries: replies repeat it. Other columns are an error, unless `ignore_columns` leaves them out. Any number of rows. The reply: Arrow (default), Parquet, CSV or NDJSON.',
  'NDJSON: one reply per line, with `query_index`, and `query_id` if the queries have names. Arrow, Parquet and CSV: one row per match: `query_index`, `query_id` (utf8, if the queries have names), `rank` (from 1), `id`, `score`, `distance` (if all queries are euclidean), `group` (its value as JSON text, with `group_by`), `metadata`, and `values` with a column `vectors.<name>` for each named vector, null in matches without it, and lists `sparse_vectors.<name>.indices` and `sparse_vectors.<name>.values` for each sparse one (if requested); the sequence is in the metadata of the schema of Arrow and Parquet. A query without matches has no row. With `score_threshold` and neither `top_k` nor `limit`, all matches are returned.',
  'One snapshot answers all queries; a `cursor` continues in its own. An error before the first result is a problem reply. A later error closes the connection before the end of the reply (in NDJSON after a line `{"error": …}`), so that an incomplete reply is recognizable.',
].join('\n\n');

interface BatchContext extends RouteServices {
  readonly slowQueries: SlowQueryLog;
  readonly writePage: (
    reply: QueryReply,
    onGrown: (characterCount: number) => void,
    encoding: QueryReply['valuesEncoding'],
  ) => Promise<string>;
}

export function queryBatchRoutes(services: RouteServices): Route[] {
  const schemas = services.schemas.query;
  const context: BatchContext = {
    ...services,
    slowQueries: new SlowQueryLog(services),
    writePage: createReplyWriter(schemas.reply),
  };
  const route = defineRoute({
    method: 'POST',
    path: '/collections/{id}/query/batch',
    operationId: 'queryCollectionBatch',
    tag: 'Query',
    summary: 'Find the nearest vectors of many queries',
    description: DESCRIPTION,
    access: { scope: 'vectors:read', on: 'path' },
    query: schemas.queryRows,
    body: schemas.batch,
    streamTypes: [ARROW_STREAM],
    reply: schemas.batchReply,
    replyTypes: [JSON_TYPE, NDJSON, ...COLUMN_TYPES],
    sendsServerTiming: true,
    sendsWarnings: true,
    errors: QUERY_ERRORS,
    handle(request) {
      const { bodyStream } = request;
      return bodyStream === null
        ? answerJson(request, context)
        : answerArrow(request, bodyStream, context);
    },
  });
  return [route];
}

/** A range is read to its end, for which large pages need fewer searches. */
function withLargePages(query: QueryRequest, { pageLimitMax, topKMax }: Limits): QueryRequest {
  const { scoreThreshold, topK, limit, groupSize = 1 } = query;
  const isRange = scoreThreshold !== undefined && topK === undefined && limit === undefined;
  if (!isRange) return query;
  return { ...query, limit: Math.max(1, Math.min(pageLimitMax, Math.floor(topKMax / groupSize))) };
}

async function answerJson(
  request: RequestContext<RowOptions>,
  context: BatchContext,
): Promise<RouteReply> {
  const { database, limits } = context;
  refuseParameters(
    Object.keys(request.rawQuery),
    'Parameters are for Arrow bodies; set them in each query of a JSON body.',
  );
  request.issueLayout = { ...BODY_LAYOUT, rows: 'queries' };
  const type = request.chooseReplyType([JSON_TYPE, NDJSON, ...COLUMN_TYPES]);
  const json = bodyOf(await parseJsonBody(context, request, 'queries'));
  const body = await validateLongBody(context.schemas.query.batch, json, {
    name: 'queries',
    countMax: limits.batchQueriesMax,
  });
  let queries: readonly QueryRequest[] = body.queries.map(toQueryRequest);
  const issues = queries.flatMap((query, i) =>
    findQueryIssues(query, limits, (...path) => rowField(i, ...path)),
  );
  const isTable = columnFormat(type) !== null;
  if (isTable) issues.push(...findTableIssues(queries));
  if (issues.length > 0) throw validationError(issues);
  queries = queries.map(checkedQuery);
  if (isTable) queries = queries.map((query) => withLargePages(query, limits));
  request.charge(queries.reduce((sum, query) => sum + costOf(query, limits), 0));
  const collection = database.collection(request.params.id!);
  const { signal } = request;
  queries = await embedQueries(
    queries,
    { embedder: context.embedder, collection, signal },
    (index, path) => rowField(index, ...path),
  );
  const session = await collection.openQuerySession({
    minSequence: leastSequence(queries),
    cursors: queries.flatMap(({ cursor }) => cursor ?? []),
    signal,
  });
  return answer(() => session.prepare(queries), {
    request,
    session,
    context,
    type,
    sample: queries[0]!,
    valuesAt: rowField(0, 'include_values'),
    queryIds: null,
    isPaged: (index) => body.queries[index]!.limit !== undefined,
    hasDistance: () =>
      queries.every(
        (query) =>
          !isScoredByFormula(query) &&
          query.text === undefined &&
          query.sparse === undefined &&
          query.fusion === undefined &&
          isDistance(metricIn(session, query)),
      ),
  });
}

async function answerArrow(
  request: RequestContext<RowOptions>,
  bodyStream: BodyStream,
  context: BatchContext,
): Promise<RouteReply> {
  const { database, embedder, limits, pool } = context;
  request.issueLayout = STREAM_LAYOUT;
  const type = request.chooseReplyType([...COLUMN_TYPES, NDJSON]);
  const { query, signal, params } = request;
  const reader = new ArrowStreamReader(bodyStream, {
    batchBytesMax: limits.bodyBytesMax,
    onBuffered: (byteCount) => bodyStream.reserve(byteCount),
  });
  const { fields } = await reader.readSchema();
  const { vectorColumn, ignoreColumns, minSequence, ...row } = query;
  const rules = { vectorColumn, ignoreColumns };
  const columns = chooseQueryColumns(fields, rules);
  // Connects rows and their replies, since groups contain only the index of a query.
  const queryIds = columns.queryId === null ? null : new Map<number, string>();
  const collection = database.collection(params.id!);
  const session = await collection.openQuerySession({ minSequence, signal });
  async function* prepare() {
    const { dimension } = session.shapeOf(query.using);
    const { groupQueriesMax } = session;
    const source = { reader, pool, limits, groupQueriesMax, dimension, ...rules, defaults: row };
    for await (const group of readQueries(source)) {
      const requests =
        columnFormat(type) !== null
          ? group.requests.map((each) => withLargePages(each, limits))
          : group.requests;
      await request.chargeOrWait(requests.reduce((sum, next) => sum + costOf(next, limits), 0));
      const queries = await embedQueries(requests, { embedder, collection, signal }, (i, path) =>
        rowField(group.firstIndex + i, ...path),
      );
      for (const [i, id] of group.queryIds?.entries() ?? []) {
        queryIds?.set(group.firstIndex + i, id);
      }
      yield* session.prepare(queries, group.firstIndex);
    }
  }
  return answer(prepare, {
    request,
    session,
    context,
    type,
    sample: row,
    valuesAt: parameter('include_values'),
    queryIds,
    isPaged: () => false,
    hasDistance: () => !columns.options.has('metric') && isDistance(metricIn(session, query)),
  });
}

function metricIn(session: QuerySession, { metric, using }: QueryRequest): Metric {
  return metric ?? session.shapeOf(using).metric;
}

/** A batch in progress. */
interface RunningBatch {
  readonly request: RequestContext<unknown>;
  readonly session: QuerySession;
  readonly context: BatchContext;
  /** The content type of the reply. */
  readonly type: string;
  /** One of the queries, which all request the same columns. */
  readonly sample: QueryRequest;
  /** The location of `include_values` in the request. */
  readonly valuesAt: IssueLocation;
  /** The names of queries by index, from which those of finished queries are removed; null for none. */
  readonly queryIds: Map<number, string> | null;
  /** Whether the query requests one page only. */
  readonly isPaged: (index: number) => boolean;
  /** Whether all matches have a distance. */
  readonly hasDistance: () => boolean;
}

type Prepared = Iterable<PreparedQueries> | AsyncIterable<PreparedQueries>;

/** Closes the session if there is no reply; otherwise the end of the reply closes it. */
async function answer(prepare: () => Prepared, batch: RunningBatch): Promise<RouteReply> {
  const { request, session, type, sample, valuesAt } = batch;
  try {
    requireVectorSupport(vectorsOf(session, sample) ?? {}, columnFormat(type), valuesAt);
    const prepared = prepare();
    const { first, all } = await beginGroups(runGroups(prepared, batch));
    const timings = first?.replies[0]?.timings;
    const headers: Record<string, string> = {};
    if (Array.isArray(prepared) && prepared.length === 1 && timings !== undefined) {
      const totalMs = performance.now() - request.telemetry.startedAtMs;
      headers['server-timing'] = serverTiming(timings, totalMs);
    }
    const body = chunksOf(all, batch);
    return { status: 200, headers: headersOf(type, first, headers), body };
  } catch (error) {
    session.close();
    throw error;
  }
}

/** The replies of the groups in order, reported to the slow query log and the metrics. */
async function* runGroups(
  prepared: Prepared,
  { request, session, context, type, sample }: RunningBatch,
): AsyncGenerator<ReplyGroup> {
  const batch = context.slowQueries.batch(request, request.params.id!, sample);
  const stream = type === JSON_TYPE ? null : request.telemetry.openStream('out');
  let rowCount = 0;
  let failure: unknown;
  const groupCountMax = Array.isArray(prepared) ? prepared.length : PREFETCHED_COUNT;
  const heldCount = Math.min(PREFETCHED_COUNT, groupCountMax);
  let isReserved = false;
  const work = async (group: PreparedQueries, signal: AbortSignal) => {
    // Reserved once for all groups in memory, which are of similar size, since afterwards the reply has begun.
    const { gatheredBytes = 0 } = columnFormat(type) ?? {};
    const workBytes = group.matchBytes * heldCount + gatheredBytes;
    if (!isReserved) request.reserveWork(workBytes, { isStreamed: true });
    isReserved = true;
    return { firstIndex: group.firstIndex, replies: await group.answer({ signal }) };
  };
  try {
    for await (const group of prefetch(prepared, work, request.signal)) {
      batch.add(group.replies);
      rowCount +=
        type === NDJSON
          ? group.replies.length
          : group.replies.reduce((sum, { matches }) => sum + matches.length, 0);
      stream?.advance(rowCount);
      yield group;
    }
  } catch (error) {
    failure = error;
    throw error;
  } finally {
    session.close();
    stream?.close();
    batch.end(failure);
  }
}

function chunksOf(groups: AsyncIterable<ReplyGroup>, batch: RunningBatch): ReplyChunks {
  const { request, session, context, type, sample, queryIds } = batch;
  const writeReply: WriteReply = (reply) =>
    context.writePage(reply, (count) => request.reserveReply(count), reply.valuesEncoding);
  if (type === JSON_TYPE) return jsonChunks(groups, writeReply);
  if (type === NDJSON) return ndjsonChunks(groups, writeReply, queryIds);
  const format = columnFormat(type)!;
  const table = matchTable(groups, {
    sequence: session.sequence,
    queryIds,
    schema: context.schemas.query.match,
    fields: {
      distance: batch.hasDistance(),
      group: sample.groupBy !== undefined,
      sequence: sample.includeSequence ?? false,
      metadata: (sample.includeMetadata ?? false) !== false,
    },
    vectors: vectorsOf(session, sample),
    next: async (cursor, index) => {
      if (batch.isPaged(index)) return null;
      const [group] = session.prepare([{ cursor }], index);
      const [reply] = await group!.answer({ signal: request.signal });
      return reply!;
    },
  });
  // Written on this thread: the pool would delay batches that a client may wait for before it sends more queries.
  return format.write(table, null);
}

/** The vectors of matches; null if they are not requested. */
function vectorsOf(session: QuerySession, { includeValues = false }: QueryRequest) {
  return includeValues === false ? null : session.vectors;
}

/** Waits for the first group, within the deadline of the request. Throws its error. */
async function beginGroups(
  groups: AsyncGenerator<ReplyGroup>,
): Promise<{ first: ReplyGroup | undefined; all: AsyncIterable<ReplyGroup> }> {
  const next = await groups.next();
  const first = next.done === true ? undefined : next.value;
  async function* all() {
    if (first !== undefined) yield first;
    yield* groups;
  }
  return { first, all: all() };
}

/** `first` is the group whose warnings are known before the reply begins. */
function headersOf(
  type: string,
  first: ReplyGroup | undefined,
  headers: Readonly<Record<string, string>>,
) {
  const general = { 'cache-control': NO_STORE, ...headers };
  if (type === JSON_TYPE) return { 'content-type': `${type}; charset=utf-8`, ...general };
  const warnings = first?.replies.flatMap((reply) => reply.warnings ?? []);
  return { 'content-type': type, ...general, ...warningsHeader(warnings) };
}

function leastSequence(queries: readonly QueryRequest[]): number {
  return queries.reduce(
    (most, { cursor, minSequence = 0 }) =>
      cursor === undefined ? Math.max(most, minSequence) : most,
    0,
  );
}

const TABLE_REPLY = 'a reply in Arrow, Parquet or CSV';
/** Members whose results a table cannot contain. */
const NOT_IN_TABLES = ['explain', 'facets', 'stats', 'scoreStats'] as const;
/** Members that determine the columns of a table. */
const COLUMN_CHOICES = {
  groupBy: ({ groupBy }: QueryRequest) => groupBy !== undefined,
  includeMetadata: ({ includeMetadata = false }: QueryRequest) => includeMetadata !== false,
  includeValues: ({ includeValues = false }: QueryRequest) => includeValues !== false,
  includeSequence: ({ includeSequence = false }: QueryRequest) => includeSequence,
} as const;

/** Issues of queries whose replies a table cannot represent. */
function findTableIssues(queries: readonly QueryRequest[]): ValidationIssue[] {
  const first = queries[0]!;
  return queries.flatMap((query, i) => {
    const report = (member: string, detail: string): ValidationIssue => ({
      location: rowField(i, wireName(member)),
      code: 'invalid_request',
      detail,
    });
    return [
      ...NOT_IN_TABLES.filter((member) => (query[member] ?? false) !== false).map((member) =>
        report(member, `Not available in ${TABLE_REPLY}. Use JSON or NDJSON.`),
      ),
      ...Object.entries(COLUMN_CHOICES)
        .filter(([, isIncluded]) => isIncluded(query) !== isIncluded(first))
        .map(([member]) =>
          report(
            member,
            `Expected the same columns for all queries, since this is ${TABLE_REPLY}.`,
          ),
        ),
    ];
  });
}
