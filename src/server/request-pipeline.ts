// Binds routes to Fastify: what every route has in common happens here, in the order in which a
// request meets it.

import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { NOBODY } from '../common/access.js';
import { assert, parameter, SagittaError, validationError } from '../common/errors.js';
import type { Limits } from '../common/limits.js';
import { authorizeRoute } from './auth/authorization.js';
import { validateQuery } from './ingest/validate.js';
import type { Lifecycle } from './lifecycle.js';
import { openBodyReservation, releaseBodyAfter } from './limits/guards.js';
import { type RateKind, rateKindOf } from './limits/rate-limit.js';
import { OPERATIONAL_HEADROOM_BYTES, unsharedLength } from './limits/reply-admission.js';
import { chooseType, JSON_TYPE, notAcceptableError } from './media-types.js';
import { begin, isStream, type ReplyPieces, toReadable } from './replies/reply-stream.js';
import { NO_QUERY, problemContextOf, RequestContext } from './request-context.js';
import type { Route, RouteReply, RouteServices } from './route.js';
import { BodyStream } from './transport/body-stream.js';
import { startSlowReaderTimeout } from './transport/connections.js';
import { connectionOf } from './transport/listener.js';

/** What all replies of one application are sent with. */
export interface Sending {
  readonly lifecycle: Lifecycle;
  readonly limits: Limits;
  /** Tells the log and the metrics of a failure, and gives what the client may see of it. */
  readonly onFailed: (error: unknown, request: FastifyRequest) => SagittaError;
}

export function bindRoute(
  app: FastifyInstance,
  route: Route,
  prefix: string,
  services: RouteServices,
  sending: Sending,
): void {
  const { lifecycle } = sending;
  const rateKind = rateKindOf(route.access);
  const spareBytes = route.isAlwaysServed === true ? OPERATIONAL_HEADROOM_BYTES : 0;
  // What a write has done cannot be refused any more.
  const admitReply = (request: FastifyRequest, found: RouteReply): RouteReply => {
    if (rateKind !== 'write' && !isStream(found.body)) {
      request.replyReservation.reserve(
        request.principal.id,
        unsharedLength(found.body),
        spareBytes,
      );
    }
    return found;
  };
  app.route({
    method: route.method,
    url: prefix + route.path.replace(/\{(\w+)\}/g, ':$1'),
    config: {
      route: route.path,
      audit: route.audit,
      streamTypes: route.streamTypes,
      isOperational: route.isOperational,
    },
    // Before the body is read: a refusal here costs no upload.
    onRequest(request, _reply, done) {
      const refused = refuseHead(route, request, services, lifecycle);
      if (refused !== undefined) done(refused);
      else admit(route, rateKind, request, services).then(() => done(), done);
    },
    async handler(request, reply) {
      const readmit = () => admitAgain(route, request, services);
      if (route.body !== null) await readmit();
      const exchange = new RequestContext(route, request, reply, readmit);
      const isSentWhole = !(request.body instanceof BodyStream);
      const handle = () => {
        if (route.body === null && exchange.body.length > 0) {
          throw new SagittaError('invalid_request', `${exchange.operation} takes no body.`);
        }
        exchange.query = readQuery(route, exchange.rawQuery);
        const handling = route.handle(exchange);
        request.telemetry.workStarted(handling);
        return handling;
      };
      // A stream is let go of when the request is over: its reply may begin before its end.
      const replying = isSentWhole ? releaseBodyAfter(request, handle) : handle();
      if (!(replying instanceof Promise)) {
        return send(reply, admitReply(request, replying), sending);
      }
      const found = await (route.mayTakeLong === true || !isSentWhole
        ? replying
        : withDeadline(replying, exchange, services.limits.requestMsMax));
      if (isStream(found.body)) {
        const pieces = await begin(found.body);
        return sendStream(reply, { ...found, body: pieces }, sending);
      }
      return send(reply, admitReply(request, found), sending);
    },
  });
}

/** Sends what a route or an error gave; a stream goes by `sendStream`. */
export function send(reply: FastifyReply, found: RouteReply, { lifecycle, limits }: Sending) {
  const { body } = found;
  assert(!isStream(body), 'a stream is sent as one');
  const { request } = reply;
  setHead(reply, found, lifecycle);
  const byteCount = Buffer.byteLength(body);
  request.replyReservation.reserveUnchecked(
    request.principal.id,
    typeof body === 'string' ? byteCount : 0,
  );
  reply.send(body);
  startSlowReaderTimeout(reply.raw, byteCount, limits.stalledMsMax);
  return reply;
}

function sendStream(
  reply: FastifyReply,
  found: RouteReply & { readonly body: ReplyPieces },
  { lifecycle, limits, onFailed }: Sending,
) {
  setHead(reply, found, lifecycle);
  const { stalledMsMax } = limits;
  const type = found.headers['content-type'] ?? '';
  return reply.send(
    toReadable(reply, found.body, {
      type,
      place: problemContextOf(reply.request),
      stalledMsMax,
      onFailed: (error) => onFailed(error, reply.request),
    }),
  );
}

function setHead(reply: FastifyReply, { status, headers }: RouteReply, lifecycle: Lifecycle): void {
  reply.code(status).headers(headers);
  const { request } = reply;
  const { allowance } = request;
  if (allowance !== null) {
    reply.header('ratelimit-policy', allowance.policy).header('ratelimit', allowance.state);
  }
  // HTTP/2 has no such header: its connections are told to go by a frame.
  if (request.raw.httpVersionMajor === 2) reply.removeHeader('connection');
  else if (lifecycle.isStopping) reply.header('connection', 'close');
}

/** What the head of a request tells: whether to go on. */
function refuseHead(
  route: Route,
  request: FastifyRequest,
  { database }: RouteServices,
  lifecycle: Lifecycle,
): SagittaError | undefined {
  const { headers, params } = request;
  if (Object.values(params as Record<string, string>).includes('')) {
    return new SagittaError('route_not_found', 'An id in the path is empty.');
  }
  if (route.isAlwaysServed !== true) {
    if (lifecycle.isStopping || database.state === 'stopping') {
      return new SagittaError('stopping', 'The service is stopping; another instance may answer.');
    }
    if (database.state === 'starting') {
      return new SagittaError('starting', 'The service is reading its data; /readyz tells when.');
    }
  }
  const { replyTypes = JSON_ALONE } = route;
  if (route.isOperational !== true && chooseType(headers.accept, replyTypes) === null) {
    return notAcceptableError(replyTypes, headers.accept);
  }
  if (route.method !== 'GET') return refusePrecondition(route, headers);
  return undefined;
}

const JSON_ALONE = [JSON_TYPE];

/**
 * Finds out who asks, and throws unless they have not asked too much, the route is open to them, and
 * there is room for what they send.
 */
async function admit(
  route: Route,
  rateKind: RateKind | null,
  request: FastifyRequest,
  services: RouteServices,
): Promise<void> {
  const { guards } = services;
  if (route.isAlwaysServed !== true) guards.eventLoop.check();
  await identify(route, request, services);
  // What is refused for want of a scope was work as well. Strangers are told to come with a name.
  if (rateKind !== null && request.principal !== NOBODY) {
    request.allowance = guards.rates.allowanceOf(rateKind, request.principal.id);
    request.allowance?.charge(1);
  }
  authorizeRoute(route.access, request.principal, request.params as Record<string, string>);
  // Before it has done anything: what waits may be its own earlier replies.
  if (rateKind === 'write') guards.replies.check(request.principal.id, 1, 0);
  request.bodyReservation = openBodyReservation(route, request, guards.bodies);
}

async function identify(
  route: Route,
  request: FastifyRequest,
  { authenticator }: RouteServices,
): Promise<void> {
  const { authorization } = request.headers;
  try {
    const socket = connectionOf(request.raw);
    if (socket === null) throw new SagittaError('deadline_exceeded', 'The client went away.');
    request.principal = await authenticator.identify({ authorization, socket });
  } catch (error) {
    if (route.access !== 'public') throw error;
    request.principal = NOBODY;
  }
}

/** A body may take minutes to arrive, a stream hours; what its sender may do is what it may do now. */
async function admitAgain(
  route: Route,
  request: FastifyRequest,
  services: RouteServices,
): Promise<void> {
  await identify(route, request, services);
  authorizeRoute(route.access, request.principal, request.params as Record<string, string>);
}

/** A precondition that is not looked at would be a lost update. */
function refusePrecondition(route: Route, headers: IncomingHttpHeaders): SagittaError | undefined {
  const isRefused =
    headers['if-none-match'] !== undefined ||
    (headers['if-match'] !== undefined && route.takesIfMatch !== true);
  if (!isRefused) return undefined;
  return new SagittaError(
    'invalid_request',
    'Of the writes only PATCH of a vector takes a precondition, and only If-Match.',
  );
}

function readQuery(
  route: Route,
  rawQuery: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  if (route.query !== undefined) return validateQuery(route.query, rawQuery);
  const names = Object.keys(rawQuery);
  if (names.length === 0) return NO_QUERY;
  throw validationError(
    names.map((name) => ({
      location: parameter(name),
      code: 'unknown_parameter',
      detail: 'This route takes no parameters.',
    })),
  );
}

/** Rejects with `deadline_exceeded` when the work takes too long, and then tells the work. */
function withDeadline<Value>(
  work: Promise<Value>,
  exchange: RequestContext,
  msMax: number,
): Promise<Value> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      const error = new SagittaError('deadline_exceeded', `It took longer than ${msMax} ms.`);
      exchange.abort(error);
      reject(error);
    }, msMax);
    work.then(
      (value) => {
        clearTimeout(timer);
        resolve(value);
      },
      (error: unknown) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}
