// The application: Fastify with the routes of the service, for whoever then listens. Every reply
// has a request id, every failure is a problem, and stopping finishes what was accepted.

import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { NOBODY, type Principal } from '../access.js';
import type { DatabaseService } from '../database/api.js';
import { SagittaError } from '../errors.js';
import type { Limits } from '../limits.js';
import type { Logger } from '../logger.js';
import type { Metrics } from '../metrics.js';
import type { WorkerPool } from '../pool.js';
import type { Authenticator } from './authenticator.js';
import { addBodyParsers } from './content.js';
import { addDatabaseGauges } from './database-gauges.js';
import { serveDocs } from './docs.js';
import { logFailure, replyToClientError, toClientError } from './failures.js';
import { Lifecycle } from './lifecycle.js';
import { methodsAt } from './method-table.js';
import { describeApi } from './openapi.js';
import { problemReply } from './problem.js';
import type { Route, RouteServices } from './route.js';
import { collectionRoutes } from './routes/collections.js';
import { queryRoutes } from './routes/query.js';
import { serviceRoutes } from './routes/service.js';
import { vectorReadRoutes } from './routes/vector-reads.js';
import { vectorWriteRoutes } from './routes/vector-writes.js';
import { createSchemas } from './schemas/all.js';
import { bindRoute, pathOf, send } from './serve.js';
import { createHttpServer, cutConnections, stopListening } from './server.js';

export interface AppOptions {
  readonly database: DatabaseService;
  readonly pool: WorkerPool;
  readonly limits: Limits;
  /** The collection of requests that name none. */
  readonly defaultCollection: string | null;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly authenticator: Authenticator;
}

/** A percent-encoded id of 512 bytes takes 1 536 characters. */
const PARAMETER_CHARACTERS_MAX = 4096;

const LIFECYCLE = 'lifecycle';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The path of the route with its placeholders, without a prefix. */
    route?: string;
  }
  interface FastifyRequest {
    /** Known once a route has admitted it. */
    principal: Principal;
  }
}

export async function createApp(options: AppOptions): Promise<FastifyInstance> {
  const { database, limits, logger, metrics } = options;
  const lifecycle = new Lifecycle();
  const schemas = createSchemas(limits);
  const services: RouteServices = { ...options, schemas };
  const routes: Route[] = [
    ...collectionRoutes(services),
    ...vectorWriteRoutes(services),
    ...vectorReadRoutes(services),
    ...queryRoutes(services),
    ...serviceRoutes(services, {
      metrics,
      isStopping: () => lifecycle.isStopping,
      openApi: () => openApi,
    }),
  ];

  const openApi = describeApi(routes, schemas);

  const fail = (error: unknown, request: FastifyRequest, reply: FastifyReply) => {
    const clientError = toClientError(error, request, limits);
    logFailure(logger, clientError, {
      id: request.id,
      method: request.method,
      route: routeOf(request),
    });
    if (clientError.code === 'payload_too_large') letFinishUpload(request, reply);
    const place = { requestId: request.id, path: pathOf(request) };
    return send(reply, problemReply(clientError, place), lifecycle);
  };
  const begin = (request: FastifyRequest, reply: FastifyReply) => {
    const startMs = performance.now();
    const { raw } = reply;
    request.principal = NOBODY;
    reply.header('x-request-id', request.id);
    lifecycle.begin();
    // Also comes when the client goes away before its reply, which `onResponse` does not.
    raw.once('close', () => {
      lifecycle.end();
      const outcome = {
        method: request.method,
        route: routeOf(request),
        status: raw.writableEnded ? raw.statusCode : 'closed',
        seconds: (performance.now() - startMs) / 1000,
      };
      metrics.observeRequest(outcome);
      logger.debug({ request_id: request.id, ...outcome }, 'request');
    });
  };

  const app = Fastify({
    logger: false,
    bodyLimit: limits.bodyBytesMax,
    genReqId: chooseRequestId,
    routerOptions: { maxParamLength: PARAMETER_CHARACTERS_MAX },
    serverFactory: (handler) => createHttpServer(handler, limits),
    // We answer ourselves while stopping.
    return503OnClosing: false,
    frameworkErrors(error, request, reply) {
      begin(request, reply);
      fail(error, request, reply);
    },
    clientErrorHandler(error, socket) {
      replyToClientError(error, socket as Socket, randomUUID());
    },
  });
  app.decorate(LIFECYCLE, lifecycle);
  app.decorateRequest('principal');
  addBodyParsers(app);
  app.setErrorHandler((error, request, reply) => fail(error, request, reply));
  // For files that are missing under /docs; unknown routes are refused before they come so far.
  app.setNotFoundHandler((request, reply) =>
    fail(refuseUnknown(routes, request, reply), request, reply),
  );
  app.addHook('onRequest', (request, reply, done) => {
    begin(request, reply);
    done(refuseEarly(routes, request, reply));
  });
  for (const route of routes) {
    bindRoute(app, route, '', services, lifecycle);
    if (route.isOperational !== true) bindRoute(app, route, '/v1', services, lifecycle);
  }
  await serveDocs(app, openApi);
  addDatabaseGauges(metrics, database);
  await app.ready();
  return app;
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
  lifecycle.isStopping = true;
  stopListening(app.server);
  await lifecycle.drained(options.deadlineMs);
  cutConnections(app.server);
  await app.close();
}

/** The client's, when it is short and plain enough for logs. */
function chooseRequestId(request: IncomingMessage): string {
  const sent = request.headers['x-request-id'];
  return typeof sent === 'string' && /^[\w.:/+=@-]{1,128}$/.test(sent) ? sent : randomUUID();
}

/**
 * Closing at once would reset the connection under a client that is still sending, and it would
 * never read why. What arrives is thrown away; the bound on arrival ends it.
 */
function letFinishUpload(request: FastifyRequest, reply: FastifyReply): void {
  reply.removeHeader('connection');
  request.raw.resume();
}

function routeOf(request: FastifyRequest): string {
  return request.routeOptions.config.route ?? 'other';
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
