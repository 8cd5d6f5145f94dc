// Everything recorded about one request: its debug line in the log, its metrics, its span and its audit log line.
// Records ids of requests, traces, principals and collections, but never the contents of bodies, query strings or
// other headers.

import type { FastifyContextConfig, FastifyRequest } from 'fastify';
import { NOBODY } from '../../common/access.js';
import { SagittaError } from '../../common/errors.js';
import { LogLimiter } from '../../common/log-limiter.js';
import type { Logger } from '../../common/logger.js';
import type { Phase, RequestSpan, Tracer } from '../../common/trace.js';
import { API_KEY_ID_PATTERN } from '../../database/admin/api-keys.js';
import type { AuditLog } from '../../database/admin/audit-log.js';
import type { CommitTimings } from '../../database/api/database-api.js';
import { STATUS_OF_CODE } from '../wire/problem.js';
import type { HttpMetrics, StreamCount, StreamDirection } from './http-metrics.js';
import { readTraceContext } from './trace-context.js';

export interface TelemetryServices {
  readonly logger: Logger;
  readonly metrics: HttpMetrics;
  /** Null if no traces are exported. */
  readonly tracer: Tracer | null;
  /** The events that administrators can list. */
  readonly audit: Pick<AuditLog, 'add'>;
  /** Limits log lines about unauthenticated requests. */
  readonly auditLimiter: LogLimiter;
}

/** The longest target in the audit log; clients may send longer ids. */
const TARGET_CHARACTERS_MAX = 128;

export class RequestTelemetry {
  /** When the headers were received, by `performance.now()`. */
  readonly startedAtMs = performance.now();
  readonly #services: TelemetryServices;
  readonly #request: FastifyRequest;
  /** Cached, since the getter `routeOptions` creates an object at each use. */
  readonly #config: FastifyContextConfig;
  readonly #span: RequestSpan | null;
  readonly #traceId: string | undefined;
  /** Must be read while the connection is open. */
  #client: string | undefined;
  /** The node that received the request from the client, if another node has forwarded it here. */
  #via: string | null = null;
  #target: string | null = null;
  #errorCode: string | undefined;
  #isWorkStarted = false;

  constructor(services: TelemetryServices, request: FastifyRequest) {
    this.#services = services;
    this.#request = request;
    this.#config = request.routeOptions.config;
    const { audit, isOperational } = this.#config;
    const parent = readTraceContext(request.headers);
    // Traces of health checks and scrapes would be noise.
    const isTraced = services.tracer !== null && isOperational !== true;
    this.#span = isTraced
      ? services.tracer.startRequest({
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

  /** The path of the route with its placeholders; `other` for unknown paths. */
  get route(): string {
    return this.#config.route ?? 'other';
  }

  /** The leading members of every log line about this request. */
  get details(): { readonly request_id: string; readonly trace_id: string | undefined } {
    return { request_id: this.#request.id, trace_id: this.#traceId };
  }

  /** The target in the audit log line; null for none. */
  get auditTarget(): string | null {
    return this.#target;
  }

  /** The address of the client, for the audit log and for a node that the request is forwarded to. */
  get client(): string {
    return this.#client ?? this.#request.ip ?? 'local';
  }

  /** Sets the address of the client and the node that it sent the request to, for a forwarded request. */
  setForwardedFrom({ client, via }: { readonly client: string; readonly via: string }): void {
    this.#client = client;
    this.#via = via;
  }

  /** Writes the audit log line of a request that was forwarded to another node. */
  requestForwarded(status: number, target: string | null): void {
    this.#isWorkStarted = true;
    if (target !== null) this.setAuditTarget(target);
    this.#audit(status);
  }

  /** Sets the target in the audit log line, if the path does not contain it. */
  setAuditTarget(id: string): void {
    // A client may send a secret API key, or a part of one, in place of its id.
    const isOfKey = this.#config.audit?.startsWith('key.') === true;
    this.#target =
      isOfKey && !API_KEY_ID_PATTERN.test(id) ? null : id.slice(0, TARGET_CHARACTERS_MAX);
  }

  /** `phases` is called only if the request is traced. */
  addPhases(phases: () => readonly Phase[]): void {
    this.#span?.addPhases(phases());
  }

  /** Adds the phases of a write: waiting for its commit, and the commit. */
  addCommit({ submittedAtMs, waitMs, commitMs }: CommitTimings): void {
    this.addPhases(() => {
      const startMs = submittedAtMs + waitMs;
      return [
        { name: 'wait', startMs: submittedAtMs, endMs: startMs },
        { name: 'commit', startMs, endMs: startMs + commitMs },
      ];
    });
  }

  /** Counts the rows of a streamed body or reply. The caller closes it. */
  openStream(direction: StreamDirection): StreamCount {
    return this.#services.metrics.streamOpened(direction);
  }

  /** Writes the audit log line when the work ends, even if the client has disconnected. */
  workStarted(work: { readonly status: number } | Promise<{ readonly status: number }>): void {
    if (this.#config.audit === undefined) return;
    this.#isWorkStarted = true;
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
    this.#services.metrics.requestFailed(code);
    if (!this.#isWorkStarted) this.#audit(STATUS_OF_CODE[code]);
  }

  requestEnded(status: number | 'closed'): void {
    const { metrics, logger } = this.#services;
    const endMs = performance.now();
    const { method, id: request_id } = this.#request;
    const { route } = this;
    const seconds = Math.round((endMs - this.startedAtMs) * 1000) / 1e6;
    const { isTraffic = false } = this.#config;
    metrics.requestEnded({ method, route, status, seconds, isTraffic });
    this.#span?.end({ status, errorCode: this.#errorCode, endMs });
    // Not by spreading objects, which would be the most expensive part of this method.
    logger.debug(
      { request_id, trace_id: this.#traceId, method, route, status, seconds },
      'request',
    );
  }

  #audit(status: number): void {
    const { audit } = this.#config;
    if (audit === undefined) return;
    const isUnauthenticated = this.#request.principal === NOBODY;
    const unlogged = (isUnauthenticated ? this.#services.auditLimiter.next() : 1) - 1;
    if (unlogged < 0) return;
    const event = {
      principal: this.#request.principal.id,
      client: this.client,
      target: this.#target,
      status,
    };
    this.#services.audit.add({
      operation: audit,
      ...event,
      via: this.#via,
      requestId: this.#request.id,
      traceId: this.#traceId ?? null,
      unloggedCount: unlogged,
    });
    this.#services.logger.info(
      {
        audit,
        ...event,
        ...(this.#via !== null && { via: this.#via }),
        ...(unlogged > 0 ? { unlogged } : {}),
        ...this.details,
      },
      'audit',
    );
  }
}

/** Enough log lines per interval to notice an attack. */
const LINES_MAX = 10;
const INTERVAL_MS = 10_000;

/** Limits log lines about unauthenticated requests, with which anyone could fill the disk or hide other lines. */
export function createAuditLimiter(nowMs?: () => number): LogLimiter {
  return new LogLimiter({ intervalMs: INTERVAL_MS, linesMax: LINES_MAX, ...(nowMs && { nowMs }) });
}
