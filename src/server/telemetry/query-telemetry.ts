// Telemetry of queries: the header Server-Timing, the spans of the phases, the slow query log, and the queries in the
// history of traffic. Records numbers and the shapes of filters, but no vectors, values, metadata paths or cursors.

import type { Principal } from '../../common/access.js';
import { SagittaError } from '../../common/errors.js';
import type { Logger } from '../../common/logger.js';
import type { Phase } from '../../common/trace.js';
import type { QueryReply, QueryRequest, QueryTimings } from '../../database/api/query-api.js';
import type { TrafficHistory } from '../../platform/traffic-history.js';
import { filterShape } from './filter-shape.js';
import type { RequestTelemetry } from './request-telemetry.js';
import type { SlowestQueries } from './slowest-queries.js';

/** The request that a query belongs to. */
interface QueryingRequest {
  readonly telemetry: RequestTelemetry;
  readonly principal: Principal;
  /** When the body had been received, by `performance.now()`. */
  readonly receivedAtMs: number;
}

/** Rounds milliseconds to microseconds. */
const shorten = (milliseconds: number) => Math.round(Math.max(0, milliseconds) * 1000) / 1000;

/**
 * `totalMs` counts from the headers of the request and includes upload and parsing; `embedMs` is undefined for queries
 * without texts.
 */
export function serverTiming(timings: QueryTimings, totalMs: number, embedMs?: number): string {
  const { filterMs, waitMs, searchMs, assembleMs } = timings;
  const embed = embedMs === undefined ? '' : `embed;dur=${shorten(embedMs)}, `;
  return `${embed}filter;dur=${shorten(filterMs)}, wait;dur=${shorten(waitMs)}, search;dur=${shorten(searchMs)}, assemble;dur=${shorten(assembleMs)}, total;dur=${shorten(totalMs)}`;
}

/** The phases in sequence; the searches for a page at an offset appear as one. */
export function phasesOf({ timings, work }: QueryReply): Phase[] {
  let startMs = timings.startedAtMs;
  const next = (name: string, milliseconds: number, attributes?: Phase['attributes']): Phase => {
    const phase = { name, startMs, endMs: startMs + milliseconds };
    startMs = phase.endMs;
    return attributes === undefined ? phase : { ...phase, attributes };
  };
  return [
    next('filter', timings.filterMs, {
      'sagitta.filter.conditions': work.conditionCount,
      'sagitta.rows.passed': work.rowsPassedFilter,
    }),
    next('wait', timings.waitMs),
    next('search', timings.searchMs, {
      'sagitta.segments': work.segmentCount,
      'sagitta.rows.scanned': work.rowsScanned,
      'sagitta.rows.rescored': work.candidatesRescored,
    }),
    next('assemble', timings.assembleMs),
  ];
}

/** Sums over the groups of a batch so far. */
interface BatchWork {
  queryCount: number;
  filterMs: number;
  waitMs: number;
  searchMs: number;
  assembleMs: number;
  rowsScanned: number;
  rowsRescored: number;
}

/** Groups of a batch that are traced, which are enough to show where time is spent. */
const TRACED_GROUPS_MAX = 16;

export class SlowQueryLog {
  readonly #logger: Logger;
  readonly #slowQueryMs: number;
  readonly #topKDefault: number;
  readonly #slowest: SlowestQueries;
  readonly #traffic: TrafficHistory;

  constructor(options: {
    readonly logger: Logger;
    readonly slowQueryMs: number;
    readonly limits: { readonly topKDefault: number };
    readonly slowestQueries: SlowestQueries;
    readonly traffic: TrafficHistory;
  }) {
    this.#logger = options.logger;
    this.#slowQueryMs = options.slowQueryMs;
    this.#topKDefault = options.limits.topKDefault;
    this.#slowest = options.slowestQueries;
    this.#traffic = options.traffic;
  }

  /** For a batch with `sample` as one of its queries: `add` the replies of each group, then call `end`. */
  batch(
    request: QueryingRequest,
    collectionId: string,
    sample: Pick<QueryRequest, 'topK' | 'filter'>,
  ) {
    const work: BatchWork = {
      queryCount: 0,
      filterMs: 0,
      waitMs: 0,
      searchMs: 0,
      assembleMs: 0,
      rowsScanned: 0,
      rowsRescored: 0,
    };
    let groupCount = 0;
    return {
      add: (replies: readonly QueryReply[]) => {
        const [first] = replies;
        if (first === undefined) return;
        if (groupCount++ < TRACED_GROUPS_MAX) request.telemetry.addPhases(() => phasesOf(first));
        const { filterMs, waitMs, searchMs, assembleMs } = first.timings;
        work.queryCount += replies.length;
        work.filterMs += filterMs;
        work.waitMs += waitMs;
        work.searchMs += searchMs;
        work.assembleMs += assembleMs;
        const milliseconds = filterMs + waitMs + searchMs + assembleMs;
        this.#traffic.queried(collectionId, milliseconds, replies.length);
        for (const reply of replies) {
          work.rowsScanned += reply.work.rowsScanned;
          work.rowsRescored += reply.work.candidatesRescored;
        }
      },
      /** Reports the batch if it was slow. `error` is the reason of a failure. */
      end: (error?: unknown) => {
        const { filterMs, waitMs, searchMs, assembleMs } = work;
        // The time that the client took to send and to read does not count.
        const milliseconds = filterMs + waitMs + searchMs + assembleMs;
        this.#report(request, collectionId, milliseconds, () => ({
          kind: 'batch',
          query_count: work.queryCount,
          top_k: sample.topK ?? this.#topKDefault,
          filter: sample.filter && filterShape(sample.filter),
          ...phaseMembers(work),
          rows_scanned: work.rowsScanned,
          rows_rescored: work.rowsRescored,
          ...(error !== undefined && { code: codeOf(error) }),
        }));
      },
    };
  }

  /**
   * Runs the query, writes the reply, and reports the query if it was slow, even if it failed or the client disconnected.
   * The logged times add up to `milliseconds`, which counts from the end of the upload.
   */
  async run(
    request: QueryingRequest,
    collectionId: string,
    query: QueryRequest,
    { embedMs, search, write }: QueryRun,
  ): Promise<{ readonly reply: QueryReply; readonly text: string }> {
    const { receivedAtMs } = request;
    const startedAtMs = performance.now();
    const report = (describe: () => object, knownMs = 0) => {
      const milliseconds = performance.now() - receivedAtMs;
      const prepareMs = startedAtMs - receivedAtMs;
      this.#report(request, collectionId, milliseconds, () => ({
        kind: kindOf(query),
        receive_ms: shorten(receivedAtMs - request.telemetry.startedAtMs),
        parse_ms: shorten(prepareMs - (embedMs ?? 0)),
        embed_ms: embedMs === undefined ? undefined : shorten(embedMs),
        other_ms: shorten(milliseconds - prepareMs - knownMs),
        top_k: query.topK ?? (query.limit === undefined ? this.#topKDefault : undefined),
        limit: query.limit,
        filter: query.filter && filterShape(query.filter),
        is_continued: query.cursor !== undefined,
        ...describe(),
      }));
      return milliseconds;
    };
    try {
      const reply = await search();
      const foundAtMs = performance.now();
      const text = await write(reply);
      const replyMs = performance.now() - foundAtMs;
      const { timings, work } = reply;
      const { filterMs, waitMs, searchMs, assembleMs } = timings;
      const planMs = timings.startedAtMs - startedAtMs;
      const milliseconds = report(
        () => ({
          plan_ms: shorten(planMs),
          ...phaseMembers(timings),
          reply_ms: shorten(replyMs),
          filter_conditions: work.conditionCount,
          segments: work.segmentCount,
          rows_scanned: work.rowsScanned,
          rows_passed: work.rowsPassedFilter,
          rows_rescored: work.candidatesRescored,
        }),
        planMs + filterMs + waitMs + searchMs + assembleMs + replyMs,
      );
      this.#traffic.queried(collectionId, milliseconds, 1);
      return { reply, text };
    } catch (error) {
      report(() => ({ code: codeOf(error) }));
      throw error;
    }
  }

  /** Keeps the query if it is among the slowest, and logs it if it was slow. */
  #report(
    { telemetry, principal }: QueryingRequest,
    collection: string,
    milliseconds: number,
    describe: () => object,
  ): void {
    const { details } = telemetry;
    const slow = { milliseconds: shorten(milliseconds), requestId: details.request_id, collection };
    this.#slowest.add(slow, describe);
    if (milliseconds < this.#slowQueryMs) return;
    const who = { ...details, principal: principal.id, collection };
    this.#logger.warn({ ...who, milliseconds: slow.milliseconds, ...describe() }, 'slow query');
  }
}

type PhaseTimes = Pick<QueryTimings, 'filterMs' | 'waitMs' | 'searchMs' | 'assembleMs'>;

function phaseMembers({ filterMs, waitMs, searchMs, assembleMs }: PhaseTimes) {
  return {
    filter_ms: shorten(filterMs),
    wait_ms: shorten(waitMs),
    search_ms: shorten(searchMs),
    assemble_ms: shorten(assembleMs),
  };
}

/** What a query ranks by; a cursor continues any kind. */
export const QUERY_KINDS = [
  'vector',
  'id',
  'multi_vector',
  'text',
  'sparse',
  'embed',
  'recommend',
  'discover',
  'fusion',
  'continued',
  'batch',
] as const;

function kindOf(query: QueryRequest): (typeof QUERY_KINDS)[number] {
  if (query.vector !== undefined) return 'vector';
  if (query.multiVector !== undefined) return 'multi_vector';
  const kinds = ['id', 'text', 'sparse', 'embed', 'recommend', 'discover', 'fusion'] as const;
  return kinds.find((kind) => query[kind] !== undefined) ?? 'continued';
}

function codeOf(error: unknown): string {
  return error instanceof SagittaError ? error.code : 'internal';
}

interface QueryRun {
  /** Milliseconds for turning texts into vectors, before `run`; undefined for queries without texts. */
  readonly embedMs: number | undefined;
  readonly search: () => Promise<QueryReply>;
  /** Returns the text of the reply. */
  readonly write: (reply: QueryReply) => Promise<string>;
}
