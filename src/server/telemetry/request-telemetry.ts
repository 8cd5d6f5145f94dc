// Everything that is seen of one request from outside its handler: its line in the log, its metrics,
// its span, and the audit log. Ids of requests, traces, principals and collections may stand there;
// nothing of a body, a query string or a header else.

import type { FastifyRequest } from 'fastify';
import { NOBODY } from '../../common/access.js';
import { SagittaError } from '../../common/errors.js';
import type { Logger } from '../../common/logger.js';
import type { Phase, RequestSpan, Tracer } from '../../common/trace.js';
import type { CommitTimings } from '../../database/api.js';
import { API_KEY_ID_PATTERN } from '../../database/api-keys.js';
import { STATUS_OF_CODE } from '../problem.js';
import type { RouteReply } from '../route.js';
import type { AuditLogLimiter } from './audit-log-limiter.js';
import type { HttpMetrics, StreamCount, StreamDirection } from './http-metrics.js';
import { readTraceContext } from './trace-context.js';

export interface TelemetryServices {
  readonly logger: Logger;
  readonly metrics: HttpMetrics;
  /** Null when no traces are sent. */
  readonly tracer: Tracer | null;
  /** Of the audit log. */
  readonly auditLogLimiter: AuditLogLimiter;
}

/** A target is an id that somebody sent: no longer than one can be. */
const TARGET_CHARACTERS_MAX = 128;

export class RequestTelemetry {
  /** The head of the request, by `performance.now()`. */
  readonly startedAtMs = performance.now();
  readonly #watching: TelemetryServices;
  readonly #request: FastifyRequest;
  readonly #span: RequestSpan | null;
  readonly #traceId: string | undefined;
  /** Asked while there is a connection to ask. */
  readonly #client: string | undefined;
  #target: string | null = null;
  #errorCode: string | undefined;
  #isHandled = false;

  constructor(watching: TelemetryServices, request: FastifyRequest) {
    this.#watching = watching;
    this.#request = request;
    const { audit, isOperational } = request.routeOptions.config;
    const parent = readTraceContext(request.headers);
    // Probes and scrapes come all day, and nobody traces them.
    const isTraced = watching.tracer !== null && isOperational !== true;
    this.#span = isTraced
      ? watching.tracer.startRequest({
          method: request.method,
          route: this.route,
          scheme: request.protocol,
          startMs: this.startedAtMs,
          parent,
        })
      : null;
    this.#traceId = this.#span?.traceId ?? parent?.traceId;
    if (audit !== undefined) {
      this.#client = request.ip;
      const [id] = Object.values((request.params ?? {}) as Record<string, string>);
      if (id !== undefined) this.setAuditTarget(id);
    }
  }

  /** The path of the route with its placeholders. */
  get route(): string {
    return this.#request.routeOptions.config.route ?? 'other';
  }

  /** What every line of the log about this request begins with. */
  get details(): { readonly request_id: string; readonly trace_id: string | undefined } {
    return { request_id: this.#request.id, trace_id: this.#traceId };
  }

  /** What the audit log says that the request is about, where the path does not tell. */
  setAuditTarget(id: string): void {
    // Somebody may put a whole key, or a part of it, where its id is asked for.
    const isOfKey = this.#request.routeOptions.config.audit?.startsWith('key.') === true;
    this.#target =
      isOfKey && !API_KEY_ID_PATTERN.test(id) ? null : id.slice(0, TARGET_CHARACTERS_MAX);
  }

  addPhases(phases: readonly Phase[]): void {
    this.#span?.addPhases(phases);
  }

  /** Of a write: until its turn came, and until it was on disk. */
  addCommit({ submittedAtMs, waitMs, commitMs }: CommitTimings): void {
    if (this.#span === null) return;
    const startMs = submittedAtMs + waitMs;
    this.#span.addPhases([
      { name: 'wait', startMs: submittedAtMs, endMs: startMs },
      { name: 'commit', startMs, endMs: startMs + commitMs },
    ]);
  }

  /** For rows that come or go while the request is under way. Whoever opens it closes it. */
  openStream(direction: StreamDirection): StreamCount {
    return this.#watching.metrics.streamOpened(direction);
  }

  /** The audit log tells of work how it ended, also when nobody has waited for its reply. */
  workStarted(work: RouteReply | Promise<RouteReply>): void {
    if (this.#request.routeOptions.config.audit === undefined) return;
    this.#isHandled = true;
    if (!(work instanceof Promise)) {
      this.#audit(work.status);
      return;
    }
    work.then(
      ({ status }) => this.#audit(status),
      (error: unknown) => {
        this.#audit(error instanceof SagittaError ? STATUS_OF_CODE[error.code] : 500);
      },
    );
  }

  requestFailed({ code }: SagittaError): void {
    this.#errorCode = code;
    this.#watching.metrics.requestFailed(code);
    if (!this.#isHandled) this.#audit(STATUS_OF_CODE[code]);
  }

  requestEnded(status: number | 'closed'): void {
    const { metrics, logger } = this.#watching;
    const endMs = performance.now();
    const { method, id: request_id } = this.#request;
    const { route } = this;
    const seconds = Math.round((endMs - this.startedAtMs) * 1000) / 1e6;
    metrics.requestEnded({ method, route, status, seconds });
    this.#span?.end({ status, errorCode: this.#errorCode, endMs });
    // Spelled out: to spread objects into it costs more than all else here, for every request.
    logger.debug(
      { request_id, trace_id: this.#traceId, method, route, status, seconds },
      'request',
    );
  }

  #audit(status: number): void {
    const { audit } = this.#request.routeOptions.config;
    if (audit === undefined) return;
    const isStranger = this.#request.principal === NOBODY;
    const unlogged = isStranger ? this.#watching.auditLogLimiter.next() : 0;
    if (unlogged === null) return;
    this.#watching.logger.info(
      {
        audit,
        principal: this.#request.principal.id,
        client: this.#client ?? 'local',
        target: this.#target,
        status,
        ...(unlogged > 0 ? { unlogged } : {}),
        ...this.details,
      },
      'audit',
    );
  }
}
