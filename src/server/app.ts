// The application: Fastify with the routes of the service, for whoever then listens. Every reply
// has a request id, every failure is a problem, and stopping finishes what was accepted.

import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { NOBODY, type Principal } from '../common/access.js';
import { SagittaError } from '../common/errors.js';
import type { Limits } from '../common/limits.js';
import type { Logger } from '../common/logger.js';
import type { Tracer } from '../common/trace.js';
import type { BackupService } from '../database/api.js';
import type { Database } from '../database/database.js';
import type { Metrics } from '../platform/metrics.js';
import type { WorkerPool } from '../platform/pool.js';
import type { Authenticator } from './auth/authenticator.js';
import { serveDocs } from './docs.js';
import { logFailure, respondToParseError, toClientError } from './failures.js';
import { addBodyParsers } from './ingest/body-parsers.js';
import { Lifecycle } from './lifecycle.js';
import { createGuards } from './limits/guards.js';
import { methodsAt } from './method-table.js';
import { describeApi } from './openapi.js';
import { BODY_LAYOUT, type IssueLayout, problemReply } from './problem.js';
import { pathOf, problemContextOf } from './request-context.js';
import { bindRoute, type Sending, send } from './request-pipeline.js';
import type { Route, RouteServices } from './route.js';
import { backupRoutes } from './routes/backups.js';
import { collectionRoutes } from './routes/collections.js';
import { exportRoutes } from './routes/exports.js';
import { joinRoutes } from './routes/joins.js';
import { keyRoutes } from './routes/keys.js';
import { queryRoutes } from './routes/query.js';
import { queryBatchRoutes } from './routes/query-batch.js';
import { recallRoutes } from './routes/recall.js';
import { serviceRoutes } from './routes/service.js';
import { vectorReadRoutes } from './routes/vector-reads.js';
import { vectorWriteRoutes } from './routes/vector-writes.js';
import { createSchemas } from './schemas/all.js';
import { AuditLogLimiter } from './telemetry/audit-log-limiter.js';
import { addDatabaseGauges } from './telemetry/database-gauges.js';
import { createHttpMetrics } from './telemetry/http-metrics.js';
import { RequestTelemetry, type TelemetryServices } from './telemetry/request-telemetry.js';
import { BodyStream } from './transport/body-stream.js';
import {
  abortReply,
  bodyReadable,
  isAwaitingContinue,
  logRefusedConnections,
  onReplyClosed,
  startBodyTimeout,
} from './transport/connections.js';
import { Listener } from './transport/listener.js';
import type { Tls } from './transport/tls.js';

export interface AppOptions {
  readonly database: Database;
  readonly backups: BackupService;
  readonly pool: WorkerPool;
  readonly limits: Limits;
  /** The collection of requests that name none. */
  readonly defaultCollection: string | null;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Absent when no traces are sent. */
  readonly tracer?: Tracer | null;
  /** Queries that take at least so long are logged. */
  readonly slowQueryMs: number;
  readonly authenticator: Authenticator;
  /** Null, and by default, for clear text. */
  readonly tls?: Tls | null;
  /** Addresses and CIDR blocks of gateways that say who the client is; none by default. */
  readonly trustedProxies?: readonly string[];
  /**
   * Whether only this machine reaches the service: as long as it asks nobody who they are, it answers
   * by names of this machine only.
   */
  readonly isLocal?: boolean;
  /** Milliseconds of a clock that never goes back; the machine's when absent. */
  readonly nowMs?: () => number;
}

/** A percent-encoded id of 512 bytes takes 1 536 characters. */
const PARAMETER_CHARACTERS_MAX = 4096;

const LIFECYCLE = 'lifecycle';
const LISTENER = 'listener';
const ROUTES = 'routes';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The path of the route with its placeholders, without a prefix. */
    route?: string;
    /** Of the route. */
    audit?: string | undefined;
    streamTypes?: readonly string[] | undefined;
    isOperational?: boolean | undefined;
  }
  interface FastifyRequest {
    telemetry: RequestTelemetry;
    issueLayout: IssueLayout;
    /** Known once a route has admitted it. */
    principal: Principal;
  }
}

export async function createApp(options: AppOptions): Promise<FastifyInstance> {
  const { database, limits, logger, metrics, tls = null, trustedProxies = [] } = options;
  const listener = new Listener({ limits, tls, logger, trustedProxies });
  const lifecycle = new Lifecycle();
  const nowMs = options.nowMs ?? (() => performance.now());
  const watching: TelemetryServices = {
    logger,
    tracer: options.tracer ?? null,
    auditLogLimiter: new AuditLogLimiter(nowMs),
    metrics: createHttpMetrics(metrics, {
      requestsInFlight: () => lifecycle.inFlightCount,
      connections: () => listener.countConnections(),
      bodyBytesInFlight: () => guards.bodies.bytesInFlight,
      replyBytesInFlight: () => guards.replies.bytesInFlight,
      eventLoopDelayMs: () => guards.eventLoop.delayMs,
      certificateExpiresAtMs: tls === null ? null : () => tls.material.expiresAtMs,
    }),
  };
  const schemas = createSchemas(limits);
  const guards = createGuards(limits, nowMs);
  const isStopping = () => lifecycle.isStopping;
  const services: RouteServices = { ...options, schemas, guards, isStopping };
  const routes: Route[] = [
    ...collectionRoutes(services),
    ...vectorWriteRoutes(services),
    ...vectorReadRoutes(services),
    ...queryRoutes(services),
    ...queryBatchRoutes(services),
    ...recallRoutes(services),
    ...exportRoutes(services),
    ...joinRoutes(services),
    ...keyRoutes(services),
    ...backupRoutes(services),
    ...serviceRoutes(services, {
      metrics,
      isStopping,
      openApi: () => openApi,
    }),
  ];

  const openApi = describeApi(routes, schemas);

  const onFailed = (error: unknown, request: FastifyRequest) => {
    const clientError = toClientError(error, request);
    request.telemetry.requestFailed(clientError);
    logFailure(logger, clientError, request);
    return clientError;
  };
  const sending: Sending = { lifecycle, limits, onFailed };
  const fail = (error: unknown, request: FastifyRequest, reply: FastifyReply) => {
    // A method that no router knows fails before any hook.
    if (request.telemetry == null) begin(request, reply);
    const clientError = onFailed(error, request);
    letFinishUpload(request, reply);
    return send(reply, problemReply(clientError, problemContextOf(request)), sending);
  };
  const begin = (request: FastifyRequest, reply: FastifyReply) => {
    const { raw } = reply;
    request.telemetry = new RequestTelemetry(watching, request);
    request.principal = NOBODY;
    request.issueLayout = BODY_LAYOUT;
    request.allowance = null;
    request.bodyReservation = null;
    request.replyReservation = guards.replies.open();
    reply.header('x-request-id', request.id);
    lifecycle.begin();
    guards.eventLoop.begin();
    // Also comes when the client goes away before its reply, which `onResponse` does not.
    onReplyClosed(request.raw, raw, () => {
      lifecycle.end();
      guards.eventLoop.end();
      if (request.bodyReservation?.isWorkedOn === false) request.bodyReservation.release();
      request.replyReservation.release();
      request.telemetry.requestEnded(raw.writableEnded ? raw.statusCode : 'closed');
    });
  };

  const app = Fastify({
    logger: false,
    bodyLimit: limits.bodyBytesMax,
    genReqId: chooseRequestId,
    routerOptions: { maxParamLength: PARAMETER_CHARACTERS_MAX },
    trustProxy: trustedProxies.length > 0 && [...trustedProxies],
    serverFactory: (handler) => listener.create(handler),
    // We answer ourselves while stopping.
    return503OnClosing: false,
    frameworkErrors(error, request, reply) {
      begin(request, reply);
      fail(error, request, reply);
    },
    clientErrorHandler(error, socket) {
      const code = respondToParseError(error, socket as Socket, randomUUID());
      if (code !== null) watching.metrics.requestFailed(code);
    },
  });
  app.decorate(LIFECYCLE, lifecycle);
  app.decorate(LISTENER, listener);
  app.decorate(ROUTES, routes);
  app.decorateRequest('principal');
  app.decorateRequest('telemetry');
  app.decorateRequest('issueLayout');
  app.decorateRequest('allowance');
  app.decorateRequest('bodyReservation');
  app.decorateRequest('replyReservation');
  addBodyParsers(app, limits);
  app.setErrorHandler((error, request, reply) => fail(error, request, reply));
  // Unknown routes are refused before they come so far.
  app.setNotFoundHandler((request, reply) =>
    fail(refuseUnknown(routes, request, reply), request, reply),
  );
  app.addHook('onRequest', (request, reply, done) => {
    begin(request, reply);
    done(refuseEarly(routes, request, reply) ?? refuseForeignHost(request, options));
  });
  for (const route of routes) {
    bindRoute(app, route, '', services, sending);
    if (route.isOperational !== true) bindRoute(app, route, '/v1', services, sending);
  }
  serveDocs(app, openApi, sending);
  addDatabaseGauges(metrics, database);
  await app.ready();
  logRefusedConnections(app.server, logger, { limits, nowMs });
  return app;
}

/** Every route that the application serves, for documents and tests. */
export function routesOf(app: FastifyInstance): readonly Route[] {
  return app.getDecorator<readonly Route[]>(ROUTES);
}

/**
 * Stops accepting, finishes the requests that were accepted, and closes; what is not finished after
 * `deadlineMs` is cut. The database is the caller's to close afterwards.
 */
export async function stopApp(
  app: FastifyInstance,
  options: { deadlineMs: number },
): Promise<void> {
  const lifecycle = app.getDecorator<Lifecycle>(LIFECYCLE);
  const listener = app.getDecorator<Listener>(LISTENER);
  const deadline = performance.now() + options.deadlineMs;
  lifecycle.isStopping = true;
  listener.stopListening();
  await lifecycle.drained(options.deadlineMs);
  await listener.flush(Math.max(0, deadline - performance.now()));
  listener.cutConnections();
  await app.close();
}

/** The client's, when it is short and plain enough for logs. */
function chooseRequestId(request: IncomingMessage): string {
  const sent = request.headers['x-request-id'];
  return typeof sent === 'string' && /^[\w.:/+=@-]{1,128}$/.test(sent) ? sent : randomUUID();
}

/** For who sends a stream to read why it is refused. */
const STREAM_REST_MS_MAX = 5_000;

/**
 * Closing at once would reset the connection under a client that is still sending, and it would
 * never read why. What arrives is thrown away; the bound on arrival ends it.
 */
function letFinishUpload(request: FastifyRequest, reply: FastifyReply): void {
  if (isAwaitingContinue(request.raw)) reply.header('connection', 'close');
  else reply.removeHeader('connection');
  const { body } = request;
  if (body instanceof BodyStream) body.discard();
  else request.raw.resume();
  // Of a stream there may be any amount to come, which the bound on other bodies does not end.
  if (body instanceof BodyStream && !body.isComplete) {
    startBodyTimeout(bodyReadable(request.raw), STREAM_REST_MS_MAX, () => abortReply(reply.raw));
  }
}

/** What no route needs to be asked about. */
function refuseEarly(
  routes: readonly Route[],
  request: FastifyRequest,
  reply: FastifyReply,
): SagittaError | undefined {
  // Node reads a request line without a version as HTTP/0.9, in which gateways see other requests.
  if (request.raw.httpVersionMajor === 0) {
    return new SagittaError('invalid_request', 'The request line has no version of HTTP.');
  }
  return request.is404 ? refuseUnknown(routes, request, reply) : undefined;
}

const LOCAL_HOST = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/i;

/**
 * A page of any site may point its own name at the loopback address and then speak to us through the
 * browser (DNS rebinding). The browser says that name, which gives it away.
 */
function refuseForeignHost(
  request: FastifyRequest,
  { authenticator, isLocal }: AppOptions,
): SagittaError | undefined {
  if (isLocal !== true || authenticator.isRequired) return undefined;
  const host = request.headers.host ?? request.headers[':authority'];
  if (host === undefined || LOCAL_HOST.test(String(host))) return undefined;
  return new SagittaError(
    'invalid_request',
    'The request was sent to a name that is not of this machine: expected localhost, 127.0.0.1 or [::1] in Host. Other names are answered once a credential is configured.',
  );
}

function refuseUnknown(
  routes: readonly Route[],
  request: FastifyRequest,
  reply: FastifyReply,
): SagittaError {
  const path = pathOf(request);
  const methods = methodsAt(routes, path);
  if (methods.length === 0) {
    return new SagittaError(
      'route_not_found',
      `There is no route ${path}; /openapi.json describes all.`,
    );
  }
  reply.header('allow', methods.join(', '));
  return new SagittaError(
    'method_not_allowed',
    `${path} takes ${methods.join(', ')}; found ${request.method}.`,
  );
}
