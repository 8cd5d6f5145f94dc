// Builds the application: Fastify, the routes, the request pipeline and their metrics. The caller listens with it
// and stops it with `stopApp`.

import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import Fastify, { type FastifyInstance, type FastifyReply } from 'fastify';
import type { Tracer } from '../common/trace.js';
import { memoryInUse } from '../platform/memory-limit.js';
import type { Metrics } from '../platform/metrics.js';
import { Cors, type CorsSettings } from './auth/cors.js';
import type { RequestForwarder } from './cluster/request-forwarder.js';
import { Embedder, type EmbeddingOptions } from './embedding/embedder.js';
import { addBodyParsers } from './ingest/body-parsers.js';
import { type EventLoopDelay, EventLoopMonitor } from './limits/event-loop-monitor.js';
import { NO_PRESSURE, type Pressure } from './limits/memory-budget.js';
import { MemoryPressure } from './limits/memory-pressure.js';
import { RequestTurns } from './limits/request-turns.js';
import { describeApi } from './openapi.js';
import { findConsole, serveConsole } from './pages/console.js';
import { serveDocs } from './pages/docs.js';
import { RequestPipeline, withoutVersion } from './request-pipeline.js';
import type { Route, RouteServices } from './requests/route.js';
import { aggregateRoutes } from './routes/aggregate.js';
import { aliasRoutes } from './routes/aliases.js';
import { auditRoutes } from './routes/audit.js';
import { backupRoutes } from './routes/backups.js';
import { clusterRoutes } from './routes/cluster.js';
import { collectionRoutes } from './routes/collections.js';
import { digestRoutes } from './routes/digests.js';
import { exportRoutes } from './routes/exports.js';
import { infoRoutes } from './routes/info.js';
import { joinRoutes } from './routes/joins.js';
import { keyRoutes } from './routes/keys.js';
import { principalRoutes } from './routes/principal.js';
import { projectionRoutes } from './routes/projections.js';
import { queryRoutes } from './routes/query.js';
import { queryBatchRoutes } from './routes/query-batch.js';
import { recallRoutes } from './routes/recall.js';
import { serviceRoutes } from './routes/service.js';
import { trafficRoutes } from './routes/traffic.js';
import { vectorReadRoutes } from './routes/vector-reads.js';
import { vectorWriteRoutes } from './routes/vector-writes.js';
import { schemasOf } from './schemas/all.js';
import { addDatabaseGauges } from './telemetry/database-gauges.js';
import { createHttpMetrics } from './telemetry/http-metrics.js';
import { createAuditLimiter } from './telemetry/request-telemetry.js';
import { addProblemGauges, problemsOf } from './telemetry/service-problems.js';
import { SlowestQueries } from './telemetry/slowest-queries.js';
import { logRefusedConnections } from './transport/connections.js';
import { HostNames } from './transport/host-names.js';
import { Listener } from './transport/listener.js';
import type { Tls } from './transport/tls.js';
import { respondToParseError } from './wire/failures.js';
import type { RouteReply } from './wire/reply.js';

/** The services of routes that the caller provides, and what the application is built from. */
export interface AppOptions
  extends Omit<
    RouteServices,
    'schemas' | 'embedder' | 'forwarder' | 'isStopping' | 'problems' | 'slowestQueries' | 'traffic'
  > {
  readonly metrics: Metrics;
  /** Null (the default) if no traces are exported. */
  readonly tracer?: Tracer | null;
  /** What other parts of the process find wrong; by default nothing. */
  readonly problems?: RouteServices['problems'];
  /** Null (the default) outside a cluster. */
  readonly forwarder?: RequestForwarder | null;
  /** By default there are no endpoints. */
  readonly embedding?: EmbeddingOptions;
  /** Null (the default) for clear text. */
  readonly tls?: Tls | null;
  /** Null (the default) if pages of other origins must not use the service. */
  readonly cors?: CorsSettings | null;
  /** Addresses and CIDR blocks of proxies whose X-Forwarded-For is trusted; by default none. */
  readonly trustedProxies?: readonly string[];
  /**
   * Names of the service besides those of this machine; other Host headers are refused while no credential is
   * required.
   */
  readonly hostNames?: readonly string[];
  /** The folder with the built files of the console; null (the default) if it is not served. */
  readonly consoleFolder?: string | null;
  /** Milliseconds of a monotonic clock; by default `performance.now`. */
  readonly nowMs?: () => number;
  /** By default measured. */
  readonly eventLoop?: EventLoopDelay;
  /** By default at most `queuedRequestsMax` requests wait. */
  readonly turns?: RequestTurns;
  /** The memory that the process may use, in bytes; null (the default) for no limit. */
  readonly memoryBytes?: number | null;
}

const NO_EMBEDDING: EmbeddingOptions = {
  embedding: [],
  embeddingTimeoutMs: 10_000,
  embeddingAttempts: 3,
  embeddingBatchTexts: 64,
};

/** More than a percent-encoded id of 512 bytes, which has 1 536 characters. */
const PARAMETER_CHARACTERS_MAX = 4096;

const PIPELINE = 'pipeline';
const LISTENER = 'listener';
const ROUTES = 'routes';

function refuseSchema(): never {
  throw new Error('assertion failed: no route has a schema of Fastify');
}

/** Routes have zod schemas, so Fastify need not load its compilers of JSON Schema. */
const NO_COMPILERS = {
  compilersFactory: {
    buildValidator: refuseSchema,
    buildSerializer: refuseSchema,
  },
};

export async function createApp(options: AppOptions): Promise<FastifyInstance> {
  const { database, limits, logger, metrics, tls = null, trustedProxies = [] } = options;
  const { consoleFolder = null, cors = null } = options;
  const nowMs = options.nowMs ?? (() => performance.now());
  const eventLoop = options.eventLoop ?? new EventLoopMonitor({ nowMs });
  const listener = new Listener({ limits, tls, logger, trustedProxies, nowMs });
  const httpMetrics = createHttpMetrics(metrics, {
    requestsInFlight: () => pipeline.inFlightCount,
    requestsWaiting: () => pipeline.waitingCount,
    connections: () => listener.countConnections(),
    bodyBytesInFlight: () => pipeline.bodyBytesInFlight,
    replyBytesInFlight: () => pipeline.replyBytesInFlight,
    eventLoopDelayMs: () => eventLoop.delayMs,
    certificateExpiresAtMs: tls === null ? null : () => tls.material.expiresAtMs,
  });
  const schemas = schemasOf(limits);
  const embedder = new Embedder(options.embedding ?? NO_EMBEDDING, metrics);
  const services = {
    ...options,
    schemas,
    embedder,
    forwarder: options.forwarder ?? null,
    problems: problemsOf(options, () => pipeline.isStopping || database.isStopping),
    slowestQueries: new SlowestQueries(nowMs),
    traffic: metrics.traffic,
    isStopping: () => pipeline.isStopping,
  };
  const consolePages = consoleFolder === null ? null : await findConsole(consoleFolder);
  const routes = createRoutes(services, {
    metrics,
    describe: () =>
      describeApi(
        routes.filter(({ isInternal }) => isInternal !== true),
        schemas,
      ),
    hasConsole: consolePages !== null,
  });
  const pipeline = new RequestPipeline({
    services,
    routes,
    telemetry: {
      logger,
      tracer: options.tracer ?? null,
      metrics: httpMetrics,
      audit: database.audit,
      auditLimiter: createAuditLimiter(nowMs),
    },
    cors: cors === null ? null : new Cors(cors),
    eventLoop,
    turns: options.turns ?? new RequestTurns({ waitingMax: limits.queuedRequestsMax }),
    memoryPressure: createMemoryPressure(options, nowMs),
    nowMs,
    hostNames: new HostNames(options.hostNames ?? []),
  });
  const app = Fastify({
    logger: false,
    bodyLimit: limits.bodyBytesMax,
    genReqId: chooseRequestId,
    rewriteUrl: ({ url }) => withoutVersion(url!),
    routerOptions: { maxParamLength: PARAMETER_CHARACTERS_MAX },
    trustProxy: trustedProxies.length > 0 && [...trustedProxies],
    serverFactory: (handler) => listener.create(handler),
    schemaController: NO_COMPILERS,
    // The pipeline itself refuses requests while the service is stopping.
    return503OnClosing: false,
    frameworkErrors(error, request, reply) {
      pipeline.begin(request, reply);
      pipeline.fail(error, request, reply);
    },
    clientErrorHandler(error, socket) {
      const code = respondToParseError(error, socket as Socket, randomUUID());
      if (code !== null) httpMetrics.requestFailed(code);
    },
  });
  app.decorate(PIPELINE, pipeline);
  app.decorate(LISTENER, listener);
  app.decorate(ROUTES, routes);
  addBodyParsers(app, limits);
  pipeline.install(app);
  const send = (reply: FastifyReply, found: RouteReply) => pipeline.send(reply, found);
  await serveDocs(app, send);
  if (consoleFolder !== null) serveConsole(app, consolePages, send);
  addDatabaseGauges(metrics, database);
  addProblemGauges(metrics, services.problems);
  app.addHook('onClose', () => embedder.close());
  await app.ready();
  logRefusedConnections(app.server, logger, { limits, nowMs });
  return app;
}

function createMemoryPressure(
  { database, memoryBytes = null }: AppOptions,
  nowMs: () => number,
): Pressure {
  if (memoryBytes === null) return NO_PRESSURE;
  const release = () => database.memory.now();
  return new MemoryPressure({ memoryBytes, measure: memoryInUse, release, nowMs });
}

function createRoutes(
  services: RouteServices,
  options: {
    readonly metrics: Metrics;
    readonly describe: () => object;
    readonly hasConsole: boolean;
  },
): Route[] {
  return [
    ...collectionRoutes(services),
    ...vectorWriteRoutes(services),
    ...vectorReadRoutes(services),
    ...queryRoutes(services),
    ...queryBatchRoutes(services),
    ...recallRoutes(services),
    ...aggregateRoutes(services),
    ...exportRoutes(services),
    ...joinRoutes(services),
    ...projectionRoutes(services),
    ...aliasRoutes(services),
    ...keyRoutes(services),
    ...principalRoutes(services),
    ...auditRoutes(services),
    ...backupRoutes(services),
    ...digestRoutes(services),
    ...clusterRoutes(services),
    ...infoRoutes(options.hasConsole),
    ...serviceRoutes(services, options),
    ...trafficRoutes(services),
  ];
}

/** Every route of the application, for documentation and tests. */
export function routesOf(app: FastifyInstance): readonly Route[] {
  return app.getDecorator<readonly Route[]>(ROUTES);
}

/**
 * Stops accepting requests, finishes those in progress and closes all connections. Requests that are not finished after
 * `deadlineMs` are aborted. The caller closes the database afterwards.
 */
export async function stopApp(
  app: FastifyInstance,
  options: { deadlineMs: number },
): Promise<void> {
  const pipeline = app.getDecorator<RequestPipeline>(PIPELINE);
  const listener = app.getDecorator<Listener>(LISTENER);
  const deadline = performance.now() + options.deadlineMs;
  pipeline.stop();
  listener.stopListening();
  await pipeline.drained(options.deadlineMs);
  await listener.flush(Math.max(0, deadline - performance.now()));
  listener.cutConnections();
  await app.close();
}

/** The client's request id if it is short and safe to log, else a generated one. */
function chooseRequestId(request: IncomingMessage): string {
  const sent = request.headers['x-request-id'];
  return typeof sent === 'string' && /^[\w.:/+=@-]{1,128}$/.test(sent) ? sent : randomUUID();
}
