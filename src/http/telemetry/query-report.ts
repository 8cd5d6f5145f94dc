// What a query tells of itself: the header Server-Timing, the spans of its phases, and a line in the
// log when it was slow. Numbers only: no vector, value, filter or cursor.

import type { QueryReply, QueryRequest, QueryTimings } from '../../database/api.js';
import { SagittaError } from '../../errors.js';
import type { Logger } from '../../logger.js';
import type { Phase } from '../../trace.js';
import type { RouteRequest } from '../route.js';

/** Milliseconds with as many digits as are true. */
const shorten = (milliseconds: number) => Number(Math.max(0, milliseconds).toFixed(3));

/** `total` is counted from the head of the request, so that the upload and the parsing are in it. */
export function serverTiming(timings: QueryTimings, totalMs: number): string {
  const { filterMs, waitMs, searchMs, assembleMs } = timings;
  return `filter;dur=${shorten(filterMs)}, wait;dur=${shorten(waitMs)}, search;dur=${shorten(searchMs)}, assemble;dur=${shorten(assembleMs)}, total;dur=${shorten(totalMs)}`;
}

/** One after another, as they were; the searches of a page at an offset are drawn as one. */
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

export class SlowQueries {
  readonly #logger: Logger;
  readonly #slowQueryMs: number;

  constructor(options: { logger: Logger; slowQueryMs: number }) {
    this.#logger = options.logger;
    this.#slowQueryMs = options.slowQueryMs;
  }

  /** Runs the query, and logs it when it took long, also when it failed or nobody waited for it. */
  async watch(
    request: RouteRequest<unknown>,
    collectionId: string,
    query: QueryRequest,
    run: () => Promise<QueryReply>,
  ): Promise<QueryReply> {
    const startedAtMs = performance.now();
    const note = (outcome: object) => {
      const milliseconds = performance.now() - startedAtMs;
      if (milliseconds < this.#slowQueryMs) return;
      this.#logger.warn(
        {
          ...request.watch.details,
          principal: request.principal.id,
          collection: collectionId,
          milliseconds: shorten(milliseconds),
          top_k: query.topK,
          limit: query.limit,
          is_continued: query.cursor !== undefined,
          ...outcome,
        },
        'slow query',
      );
    };
    try {
      const reply = await run();
      const { timings, work } = reply;
      note({
        filter_ms: shorten(timings.filterMs),
        wait_ms: shorten(timings.waitMs),
        search_ms: shorten(timings.searchMs),
        assemble_ms: shorten(timings.assembleMs),
        filter_conditions: work.conditionCount,
        segments: work.segmentCount,
        rows_scanned: work.rowsScanned,
        rows_passed: work.rowsPassedFilter,
        rows_rescored: work.candidatesRescored,
      });
      return reply;
    } catch (error) {
      note({
        is_filtered: query.filter !== undefined,
        code: error instanceof SagittaError ? error.code : 'internal',
      });
      throw error;
    }
  }
}
