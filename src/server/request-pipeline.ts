// The path of a request through the server, step by step:
//
//   1. begin         telemetry, the counts of requests in flight, the reply's memory reservation
//   2. checkTarget   HTTP version, path and method, Host; preflights of browsers are answered before
//   3. checkHeaders  state of the server, Accept, preconditions
//   4. admit         authentication, the queue of requests, in a cluster forwarding of writes to the owner
//                    (requests/request-router.ts), rate limit, authorization, in a cluster forwarding of
//                    streams to a replica, memory for the reply of a write, memory for the body
//   5. (Fastify receives the body with the parsers of ingest/body-parsers.ts)
//   6. handle        the turn of the request among those that wait; for routes with a body,
//                    authentication and authorization again; query parameters; the collections that
//                    the body names; in a cluster forwarding to the node that has them; the route's
//                    handler; the deadline
//   7. send          memory for the reply, its headers, the timeout for slow readers
//   8. end           undoes step 1 when the reply has been sent, or the client has disconnected
//
// An error of any step becomes a problem document in `fail`. Steps 2 to 4 need only the headers, so
// a request that they reject costs no upload.

import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { NOBODY } from '../common/access.js';
import { endsWithin } from '../common/ends-within.js';
import { assert, collectionNotFound, SagittaError } from '../common/errors.js';
import { PREPARATION_HEADER } from '../common/preparation.js';
import { isLoopback } from '../platform/config.js';
import { authorizeRoute, type RouteAccess } from './auth/authorization.js';
import type { Cors } from './auth/cors.js';
import type { OtherNode } from './cluster/request-forwarder.js';
import { declaredBytesOf } from './ingest/body-parsers.js';
import { BodyAdmission } from './limits/body-admission.js';
import type { EventLoopDelay } from './limits/event-loop-monitor.js';
import { type Pressure, shareHolder } from './limits/memory-budget.js';
import { type RateKind, RateLimiter, rateKindOf } from './limits/rate-limit.js';
import { OPERATIONAL_HEADROOM_BYTES, ReplyAdmission } from './limits/reply-admission.js';
import type { RequestTurns } from './limits/request-turns.js';
import { begin, isStream, toReadable } from './replies/reply-stream.js';
import {
  collectionOf,
  contentTypeOf,
  NO_QUERY,
  type PipelineSteps,
  RequestContext,
} from './requests/request-context.js';
import { RequestRouter } from './requests/request-router.js';
import {
  type Owner,
  ownerOf,
  type Route,
  type RouteServices,
  touchesPath,
} from './requests/route.js';
import { refuseParameters, validateQuery } from './schemas/validate.js';
import { RequestTelemetry, type TelemetryServices } from './telemetry/request-telemetry.js';
import { BodyStream } from './transport/body-stream.js';
import {
  abortReply,
  discardBody,
  isAwaitingContinue,
  limitRestOfBody,
  onReplyClosed,
  startSlowReaderTimeout,
} from './transport/connections.js';
import type { HostNames } from './transport/host-names.js';
import { connectionOf } from './transport/listener.js';
import { consistencyOf } from './wire/consistency.js';
import {
  COMPRESSED_BYTES_MIN,
  compress,
  ENCODINGS,
  type Encoding,
  isCompressible,
  isEncodingRefused,
  tagOfEncoded,
} from './wire/content-encodings.js';
import { logFailure, toClientError } from './wire/failures.js';
import {
  chooseEncoding,
  chooseType,
  JSON_TYPE,
  notAcceptableError,
  refusesIdentity,
} from './wire/media-types.js';
import { BODY_LAYOUT, pathOf, problemContextOf, problemReply } from './wire/problem.js';
import type { ReplyChunks, RouteReply } from './wire/reply.js';

interface RequestPipelineOptions {
  readonly services: RouteServices;
  readonly routes: readonly Route[];
  readonly telemetry: TelemetryServices;
  /** Null if pages of other origins must not use the service. */
  readonly cors: Cors | null;
  readonly eventLoop: EventLoopDelay;
  readonly turns: RequestTurns;
  readonly memoryPressure: Pressure;
  /** Milliseconds of a monotonic clock. */
  readonly nowMs: () => number;
  /** The accepted values of Host while no credential is required. */
  readonly hostNames: HostNames;
}

/** A route with values that are computed once for all its requests. */
interface BoundRoute {
  readonly route: Route;
  readonly rateKind: RateKind | null;
  /** Memory that replies may take beyond the limit. */
  readonly headroomBytes: number;
  readonly owner: Owner;
  readonly touchesPath: boolean;
}

/**
 * The console makes this origin worth attacking: browsers must not run or display a reply as anything but its
 * content type, and pages of other origins must not load replies into their process.
 */
const BROWSER_HEADERS = {
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
} as const;

const JSON_ONLY = [JSON_TYPE];

/** `/v1` at the beginning of a path, in a URL with or without the origin. */
const VERSION_PREFIX = /^(?:https?:\/\/[^/?]*)?\/v1(?=\/)/;

/** The URL for the router, in which every path is registered once, without its version. */
export function withoutVersion(url: string): string {
  return url.replace(VERSION_PREFIX, '');
}

export class RequestPipeline {
  readonly #services: RouteServices;
  /** Null outside a cluster. */
  readonly #routing: RequestRouter | null;
  readonly #routes: readonly Route[];
  readonly #telemetry: TelemetryServices;
  readonly #cors: Cors | null;
  readonly #hostNames: HostNames;
  readonly #rates: RateLimiter;
  readonly #bodies: BodyAdmission;
  readonly #replies: ReplyAdmission;
  readonly #eventLoop: EventLoopDelay;
  readonly #turns: RequestTurns;
  /** Passed to every request context, so that none of these functions is created per request. */
  readonly #steps: PipelineSteps;
  #isStopping = false;
  #inFlightCount = 0;
  #onDrained: (() => void) | undefined;

  constructor(options: RequestPipelineOptions) {
    const { services, routes, telemetry, cors, eventLoop, nowMs, hostNames } = options;
    const { memoryPressure: pressure, turns } = options;
    const { limits } = services;
    this.#services = services;
    this.#routing = services.forwarder && new RequestRouter(services, services.forwarder);
    this.#routes = routes;
    this.#telemetry = telemetry;
    this.#cors = cors;
    this.#hostNames = hostNames;
    this.#rates = new RateLimiter({ limits, nowMs });
    this.#bodies = new BodyAdmission({ bytesMax: limits.bodyBytesInFlightMax, pressure });
    services.database.memory.onRelease(() => this.#bodies.dropPool());
    this.#replies = new ReplyAdmission({ bytesMax: limits.replyBytesInFlightMax, pressure });
    this.#eventLoop = eventLoop;
    this.#turns = turns;
    this.#steps = {
      reauthorize: (access, request) => this.#reauthorize(access, request),
      nowMs,
    };
  }

  /** Registers every step with Fastify: those of all requests, then those of each route. */
  install(app: FastifyInstance): void {
    app.decorateRequest('telemetry');
    app.decorateRequest('principal');
    app.decorateRequest('allowance');
    app.decorateRequest('bodyReservation');
    app.decorateRequest('replyReservation');
    app.decorateRequest('issueLayout');
    app.decorateRequest('collectionName');
    app.decorateRequest('forwarded');
    app.decorateRequest('incarnations');
    app.decorateRequest('destination');
    app.addHook('onRequest', (request, reply, done) => {
      this.begin(request, reply);
      if (this.#cors?.isPreflight(request.method, request.headers)) {
        discardUpload(request, reply);
        this.send(reply, this.#cors.answerPreflight(request.headers));
        return;
      }
      this.#checkTarget(request, reply);
      done();
    });
    for (const route of this.#routes) this.#bind(app, route);
    app.setErrorHandler((error, request, reply) => this.fail(error, request, reply));
    app.setNotFoundHandler((request, reply) =>
      this.fail(this.#unknownRouteError(request, reply), request, reply),
    );
  }

  #bind(app: FastifyInstance, route: Route): void {
    const bound: BoundRoute = {
      route,
      rateKind: rateKindOf(route.access),
      headroomBytes: route.isAlwaysServed === true ? OPERATIONAL_HEADROOM_BYTES : 0,
      owner: ownerOf(route),
      touchesPath: touchesPath(route),
    };
    app.route({
      method: route.method,
      url: route.path.replace(/\{(\w+)\}/g, ':$1'),
      config: {
        route: route.path,
        audit: route.audit,
        streamTypes: route.streamTypes,
        isOperational: route.isOperational,
        isVersioned: route.isOperational !== true,
        isInternal: route.isInternal,
        isTraffic: route.isAlwaysServed !== true && route.isInternal !== true,
      },
      onRequest: async (request, reply) => {
        this.#checkHeaders(route, request);
        const other = await this.#admit(bound, request, reply);
        if (other === null) return;
        // Resolves when the reply has ended, so that Fastify does nothing else with the request.
        const options = { body: null, deadline: null };
        await this.#services.forwarder?.forward(request, reply, other, options);
      },
      handler: (request, reply) => this.#handle(bound, request, reply),
    });
  }

  /** Step 1. */
  begin(request: FastifyRequest, reply: FastifyReply): void {
    request.telemetry = new RequestTelemetry(this.#telemetry, request);
    request.principal = NOBODY;
    request.allowance = null;
    request.bodyReservation = null;
    request.replyReservation = this.#replies.open();
    request.issueLayout = BODY_LAYOUT;
    request.collectionName = '';
    request.forwarded = null;
    request.incarnations = null;
    request.destination = null;
    reply.header('x-request-id', request.id).headers(BROWSER_HEADERS);
    this.#inFlightCount++;
    this.#eventLoop.begin();
    onReplyClosed(request.raw, reply.raw, () => this.#end(request, reply));
  }

  /** Step 8; unlike Fastify's `onResponse` also when the client disconnects before the reply. */
  #end(request: FastifyRequest, { raw }: FastifyReply): void {
    this.#inFlightCount--;
    if (this.#inFlightCount === 0) this.#onDrained?.();
    this.#eventLoop.end();
    // A handler may still be working on the body of a client that has disconnected.
    if (request.bodyReservation?.isInUse === false) request.bodyReservation.release();
    request.replyReservation.release();
    request.telemetry.requestEnded(raw.writableEnded ? raw.statusCode : 'closed');
  }

  /** Step 2. Throws `invalid_request`, `route_not_found` and `method_not_allowed`. */
  #checkTarget(request: FastifyRequest, reply: FastifyReply): void {
    // Node accepts a request line without a version as HTTP/0.9, which proxies parse differently.
    if (request.raw.httpVersionMajor === 0) {
      throw new SagittaError('invalid_request', 'The request line has no HTTP version.');
    }
    checkTargetForm(request.raw);
    const isVersioned = request.url !== request.originalUrl;
    if (request.is404 || (isVersioned && request.routeOptions.config.isVersioned !== true)) {
      throw this.#unknownRouteError(request, reply);
    }
    request.forwarded = this.#services.forwarder?.read(request) ?? null;
    if (request.forwarded !== null) request.telemetry.setForwardedFrom(request.forwarded);
    const isInternal = request.routeOptions.config.isInternal === true;
    if (isInternal && request.forwarded === null) throw this.#unknownRouteError(request, reply);
    if (request.forwarded !== null || this.#services.authenticator.isRequired) return;
    const { host, ':authority': authority } = request.headers;
    this.#hostNames.check(host ?? (authority as string | undefined));
  }

  #unknownRouteError(request: FastifyRequest, reply: FastifyReply): SagittaError {
    const path = pathOf(request);
    const methods = methodsAt(
      this.#routes.filter(({ isInternal }) => isInternal !== true),
      path,
    );
    if (methods.length === 0) {
      return new SagittaError(
        'route_not_found',
        `The path ${path} does not exist; /openapi.json describes all routes.`,
      );
    }
    reply.header('allow', methods.join(', '));
    return new SagittaError(
      'method_not_allowed',
      `${path} supports ${methods.join(', ')}; found ${request.method}.`,
    );
  }

  /** Step 3. Throws `route_not_found`, `starting`, `stopping`, `not_acceptable`, `invalid_request`. */
  #checkHeaders(route: Route, { headers, params }: FastifyRequest): void {
    for (const name in params as Record<string, string>) {
      if ((params as Record<string, string>)[name] !== '') continue;
      throw new SagittaError('route_not_found', 'An id in the path is empty.');
    }
    if (route.isAlwaysServed !== true) this.#checkState(headers);
    const { replyTypes = JSON_ONLY } = route;
    if (route.isOperational !== true && chooseType(headers.accept, replyTypes) === null) {
      throw notAcceptableError(replyTypes, headers.accept);
    }
    if (route.method !== 'GET') checkPreconditions(route, headers);
    consistencyOf(headers);
  }

  #checkState(headers: IncomingHttpHeaders): void {
    const { preparation = null } = this.#services;
    if (this.#isStopping || this.#services.database.isStopping) {
      throw new SagittaError('stopping', 'The service is stopping; retry with another instance.');
    }
    if (preparation === null || preparation.isDone) return;
    if (headers[PREPARATION_HEADER] !== preparation.token) {
      throw new SagittaError(
        'starting',
        'The service is loading its sample data; /readyz reports when it is ready.',
      );
    }
  }

  /**
   * Step 4. Returns the node to which the request is to be forwarded before its body is read, which does the rest; null
   * for none. Throws `overloaded`, `rate_limited`, `no_leader`, `no_holder`, and the errors of credentials and scopes.
   */
  async #admit(
    bound: BoundRoute,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<OtherNode | null> {
    const { route, rateKind } = bound;
    await this.#authenticate(route.access, request);
    if (route.isAlwaysServed !== true) this.#turns.check(() => clientOf(request));
    if (this.#routing !== null) {
      await this.#routing.whenCaughtUp(rateKind, request);
      const destination = await this.#routing.destinationOfWrite(bound, request, reply);
      if (destination !== 'here') return destination;
    }
    // Charged before authorization, since refusing a request is work too. `authorizeRoute` refuses
    // unauthenticated requests.
    if (rateKind !== null && request.principal !== NOBODY) {
      request.allowance = this.#rates.allowanceOf(rateKind, request.principal);
      request.allowance?.charge(1);
    }
    const wanted = rateKind === 'read' ? consistencyOf(request.headers) : null;
    // The catalogue comes first, since the collection is looked up in it.
    if (wanted !== null) await this.#routing?.whenCurrent(null, wanted, request);
    this.#resolveCollection(route, request);
    if (wanted !== null) await this.#routing?.whenReadable(route, wanted, request);
    authorizeRoute(route.access, request.principal, collectionOf(request));
    this.#routing?.attachIncarnation(request);
    if (wanted !== null && this.#routing !== null) {
      const destination = this.#routing.destinationOfRead(bound, request, reply, wanted);
      if (destination !== 'here' && destination !== null) {
        // Other bodies are received here first, so that the next replica can be asked if one does not answer.
        const isUnread = destination.kind === 'owner' || isStreamedTo(route, request);
        if (isUnread) return destination;
      }
      request.destination = destination;
    }
    if (isAwaitingContinue(request.raw)) this.#requireCollection(route, request);
    // A write must be refused before it has an effect: afterwards its reply must be sent.
    if (rateKind === 'write') this.#replies.check(request.principal.id, 1, 0);
    this.#openBodyReservation(route, request);
    return null;
  }

  async #authenticate(access: RouteAccess, request: FastifyRequest): Promise<void> {
    if (request.forwarded !== null) {
      request.principal = request.forwarded.principal;
      return;
    }
    const { authorization, origin } = request.headers;
    try {
      const socket = connectionOf(request.raw);
      if (socket === null) throw new SagittaError('deadline_exceeded', 'The client disconnected.');
      const { authenticator } = this.#services;
      const found = authenticator.identify({ authorization, origin, socket });
      request.principal = found instanceof Promise ? await found : found;
    } catch (error) {
      if (access !== 'public') throw error;
      request.principal = NOBODY;
    }
  }

  /** Opens an empty reservation, which grows as the body arrives. Throws `overloaded`. */
  #openBodyReservation(route: Route, request: FastifyRequest): void {
    // The body of a GET is never read.
    if (route.method === 'GET') return;
    const principalId = shareHolder(request.principal.id);
    if ((declaredBytesOf(request) ?? 0) > 0) this.#bodies.check(principalId);
    request.bodyReservation = this.#bodies.open(principalId);
  }

  /** Step 6. */
  async #handle(
    bound: BoundRoute,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<FastifyReply> {
    const { route } = bound;
    const mustWait = route.isAlwaysServed !== true && !this.#turns.mayBegin(this.#inFlightCount);
    if (mustWait) await this.#turns.wait(clientOf(request));
    if (mustWait || route.body !== null) await this.#steps.reauthorize(route.access, request);
    const context = new RequestContext(route, request, reply, this.#steps);
    const { body } = context;
    const start = () => this.#run(bound, context, request, reply);
    // The reservation of a stream lasts until the request ends: its reply may begin before its end.
    const isStreamed = request.body instanceof BodyStream;
    const work = isStreamed ? start() : releaseBodyAfter(request, start);
    const msMax =
      route.mayTakeLong === true || isStreamed ? null : this.#services.limits.requestMsMax;
    const found = await withDeadline(work, context, msMax);
    if ('kind' in found) {
      const options = { body, deadline: context.signal };
      const sent = this.#services.forwarder!.forward(request, reply, found, options);
      // A write that may have taken effect is not given up.
      return found.kind === 'owner' ? sent : withDeadline(sent, context, msMax);
    }
    if (!isStream(found.body)) return this.#sendChecked(bound, reply, found);
    return this.#sendStream(reply, { ...found, body: await begin(found.body) });
  }

  /** Decides where the request runs, unless its headers have decided that, and begins its work if that is here. */
  #run(
    { route, owner }: BoundRoute,
    context: RequestContext,
    request: FastifyRequest,
    reply: FastifyReply,
  ): RouteReply | OtherNode | Promise<RouteReply | OtherNode> {
    const { destination } = request;
    if (destination !== null && destination !== 'here') return destination;
    if (route.body === null && context.body.length > 0) {
      throw new SagittaError('invalid_request', `${context.operation} does not accept a body.`);
    }
    context.query = readQuery(route, context.rawQuery);
    const handle = (input: undefined) => {
      const work = route.handle(context, input);
      request.telemetry.workStarted(work);
      return work;
    };
    if (route.parse === undefined && route.touches === undefined) return handle(undefined);
    return (async () => {
      const input = await route.parse?.(context);
      const touched = route.touches?.(context, input);
      if (touched !== undefined) {
        for (const { id, name } of touched) context.authorize(id, { name });
        context.touched = touched;
        const ids = touched.map(({ id }) => id);
        const decided = await this.#routing?.destinationOf(owner, ids, request, reply);
        if (decided !== undefined && decided !== 'here') return decided;
      }
      return await handle(input);
    })();
  }

  /**
   * A body may take minutes to arrive and a stream hours: the credential must still be valid then, and the client
   * connected.
   */
  async #reauthorize(access: RouteAccess, request: FastifyRequest): Promise<void> {
    await this.#authenticate(access, request);
    authorizeRoute(access, request.principal, collectionOf(request));
  }

  /** An alias in the path is resolved once: the request stays with that collection. */
  #resolveCollection({ access }: Route, request: FastifyRequest): void {
    if (typeof access === 'string' || access.on !== 'path') return;
    const params = request.params as Record<string, string>;
    request.collectionName = params.id!;
    params.id = this.#services.database.resolve(params.id!);
  }

  /**
   * An early check for clients that wait for 100 Continue; the handler repeats it. Not for requests with an idempotency
   * key, whose stored reply may outlive the collection. Throws `collection_not_found`.
   */
  #requireCollection({ access }: Route, request: FastifyRequest): void {
    if (typeof access === 'string' || access.on !== 'path') return;
    if (!access.scope.startsWith('vectors:')) return;
    if (request.headers['idempotency-key'] !== undefined) return;
    const { id, name } = collectionOf(request);
    if (!this.#services.database.collection(id).exists) throw collectionNotFound(name);
  }

  /** Step 7, for the reply of a handler. Throws `overloaded`, except for writes, which have taken effect. */
  #sendChecked(
    { rateKind, headroomBytes }: BoundRoute,
    reply: FastifyReply,
    found: RouteReply,
  ): FastifyReply {
    const { request } = reply;
    request.replyReservation.endWork();
    if (rateKind !== 'write') {
      // Buffers are static bodies that all requests share. Text is counted in bytes when it is sent.
      const length = typeof found.body === 'string' ? found.body.length : 0;
      request.replyReservation.reserve(request.principal.id, length, headroomBytes);
    }
    return this.send(reply, found);
  }

  /** Step 7, for replies that cannot be refused: static files and errors. Not for streams. */
  send(reply: FastifyReply, found: RouteReply): FastifyReply {
    const { body } = found;
    assert(!isStream(body), 'streams are sent by sendStream');
    const { request } = reply;
    const byteCount = Buffer.byteLength(body);
    const encoding = byteCount < COMPRESSED_BYTES_MIN ? null : replyEncoding(request, found);
    this.#setHeaders(reply, found, { encoding, isLong: byteCount >= COMPRESSED_BYTES_MIN });
    const unsharedBytes = typeof body === 'string' ? byteCount : 0;
    request.replyReservation.endWork();
    request.replyReservation.reserveUnchecked(request.principal.id, unsharedBytes);
    const sendBytes = (bytes: string | Uint8Array) => {
      reply.send(bytes);
      const { stalledMsMax } = this.#services.limits;
      startSlowReaderTimeout(reply.raw, Buffer.byteLength(bytes), stalledMsMax);
    };
    if (encoding === null) sendBytes(body);
    else {
      const failed = (error: unknown) => this.#reportError(error, request);
      compress(body, encoding)
        .then(sendBytes)
        .catch((error: unknown) => {
          failed(error);
          abortReply(reply.raw);
        });
    }
    return reply;
  }

  #sendStream(
    reply: FastifyReply,
    found: RouteReply & { readonly body: ReplyChunks },
  ): FastifyReply {
    const { request } = reply;
    const encoding = replyEncoding(request, found);
    this.#setHeaders(reply, found, { encoding, isLong: true });
    return reply.send(
      toReadable(reply, found.body, {
        encoding,
        type: found.headers['content-type'] ?? '',
        problemContext: problemContextOf(request),
        stalledMsMax: this.#services.limits.stalledMsMax,
        onFailed: (error) => this.#reportError(error, request),
      }),
    );
  }

  /** `isLong`: whether the reply would be compressed for a client that asks. */
  #setHeaders(
    reply: FastifyReply,
    { status, headers }: RouteReply,
    { encoding, isLong }: { readonly encoding: Encoding | null; readonly isLong: boolean },
  ): void {
    reply.code(status).headers(headers);
    const { allowance, raw } = reply.request;
    this.#addPositions(reply);
    // The body that a 304 stands for may be long.
    const isVaried = status === 304 || (isLong && isCompressible(headers['content-type']));
    let vary: string | undefined = isVaried ? (headers.vary ?? 'accept-encoding') : headers.vary;
    if (encoding !== null) {
      reply.header('content-encoding', encoding);
      if (headers.etag !== undefined) reply.header('etag', tagOfEncoded(headers.etag, encoding));
    }
    if (this.#cors !== null) {
      reply.headers(this.#cors.replyHeaders(reply.request.headers.origin));
      vary = this.#cors.varyOf(vary);
    }
    if (vary !== undefined) reply.header('vary', vary);
    if (allowance !== null) {
      reply.header('ratelimit-policy', allowance.policy).header('ratelimit', allowance.state);
    }
    // HTTP/2 has no such header: the server closes its connections with GOAWAY.
    if (raw.httpVersionMajor === 2) reply.removeHeader('connection');
    else if (this.#isStopping) reply.header('connection', 'close');
  }

  /** Adds log positions for the node that forwarded the request, or for the client. */
  #addPositions(reply: FastifyReply): void {
    const { forwarder } = this.#services;
    const { request } = reply;
    const { forwarded, incarnations } = request;
    // Unauthorized clients must not learn what exists.
    if (forwarder === null || (forwarded === null && incarnations === null)) return;
    if (request.routeOptions.config.isOperational === true) return;
    reply.headers(forwarder.replyHeaders(request));
  }

  /** Replies with the problem document of an error. */
  fail(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
    // Fastify refuses an unknown method before it runs any hook.
    if (request.telemetry == null) this.begin(request, reply);
    const clientError = this.#reportError(error, request);
    discardUpload(request, reply);
    const { 'content-encoding': encoding } = request.headers;
    if (clientError.code === 'unsupported_media_type' && isEncodingRefused(encoding)) {
      reply.header('accept-encoding', ENCODINGS.join(', '));
    }
    return this.send(reply, problemReply(clientError, problemContextOf(request)));
  }

  /** Logs and counts an error. Returns the error to show to the client. */
  #reportError(error: unknown, request: FastifyRequest): SagittaError {
    const clientError = toClientError(error, request);
    request.telemetry.requestFailed(clientError);
    logFailure(this.#telemetry.logger, clientError, request);
    return clientError;
  }

  get isStopping(): boolean {
    return this.#isStopping;
  }

  /** Refuses new requests from now on. */
  stop(): void {
    this.#isStopping = true;
  }

  /** Resolves when no request is in flight, after `msMax` at the latest. */
  async drained(msMax: number): Promise<void> {
    if (this.#inFlightCount === 0) return;
    const drained = new Promise<void>((resolve) => {
      this.#onDrained = resolve;
    });
    await endsWithin(drained, msMax);
  }

  /** For metrics. */
  get inFlightCount(): number {
    return this.#inFlightCount;
  }

  get waitingCount(): number {
    return this.#turns.waitingCount;
  }

  get bodyBytesInFlight(): number {
    return this.#bodies.bytesInFlight;
  }

  get replyBytesInFlight(): number {
    return this.#replies.bytesInFlight;
  }
}

/** The encoding of the reply; null for none. A reply to another node is compressed there, for the client. */
function replyEncoding(request: FastifyRequest, { headers }: RouteReply): Encoding | null {
  if (request.forwarded != null || headers['content-encoding'] !== undefined) return null;
  if (!isCompressible(headers['content-type'])) return null;
  const { 'accept-encoding': accept } = request.headers;
  if (isOnThisMachine(request) && !refusesIdentity(accept)) return null;
  return chooseEncoding(accept, ENCODINGS);
}

/** The client among those that take turns: its principal or, without credentials, its address. */
function clientOf({ principal, ip }: FastifyRequest): string {
  return shareHolder(principal.id) ?? ip;
}

/**
 * Whether the client is on this machine, where sending bytes is faster than compressing them. HTTP libraries accept
 * compression without knowing that. A proxy on this machine names its client in a header.
 */
function isOnThisMachine({ ip, headers }: FastifyRequest): boolean {
  const forwarded = headers.forwarded ?? headers['x-forwarded-for'] ?? headers.via;
  return forwarded === undefined && isLoopback(ip);
}

/** Refuses ambiguous targets that Node accepts and proxies interpret differently. Throws `invalid_request`. */
function checkTargetForm({ method, url, httpVersion, headers, rawHeaders }: IncomingMessage): void {
  // Fastify would serve it as `/`. Preflights have been answered.
  if (url === '*' && method !== 'OPTIONS') {
    throw new SagittaError(
      'invalid_request',
      'The target * is valid for OPTIONS only; expected a path, such as /.',
    );
  }
  if (httpVersion === '1.1' && headers.host === undefined) {
    throw new SagittaError(
      'invalid_request',
      'The header Host is missing; every request of HTTP/1.1 has one.',
    );
  }
  let hostCount = 0;
  // Names and values alternate.
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!;
    if (name.length === 4 && name.toLowerCase() === 'host') hostCount++;
  }
  if (hostCount > 1) {
    throw new SagittaError(
      'invalid_request',
      `The request has ${hostCount} headers Host; expected one.`,
    );
  }
}

/** The methods of a path, in the order of the routes; empty if no route has the path. */
function methodsAt(routes: readonly Route[], path: string): string[] {
  const methods = new Set<string>();
  for (const route of routes) {
    if (!patternOf(route).test(path)) continue;
    methods.add(route.method);
    if (route.method === 'GET') methods.add('HEAD');
  }
  return [...methods];
}

function patternOf({ path, isOperational }: Route): RegExp {
  const prefix = isOperational === true ? '' : '(?:/v1)?';
  const segments = path.replaceAll('.', '\\.').replace(/\{\w+\}/g, '[^/]+');
  return new RegExp(`^${prefix}${segments}$`);
}

/** Refuses preconditions that the route does not check: ignoring one could lose an update. */
function checkPreconditions(route: Route, headers: IncomingHttpHeaders): void {
  const isUnsupported =
    headers['if-none-match'] !== undefined ||
    (headers['if-match'] !== undefined && route.takesIfMatch !== true);
  if (!isUnsupported) return;
  throw new SagittaError(
    'invalid_request',
    'Among the writes, only PATCH of a vector supports a precondition, and only If-Match.',
  );
}

function readQuery(
  route: Route,
  rawQuery: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  if (route.query !== undefined) return validateQuery(route.query, rawQuery);
  refuseParameters(Object.keys(rawQuery), 'This route has no query parameters.');
  return NO_QUERY;
}

/** Whether the handler reads the body as it arrives. */
function isStreamedTo({ streamTypes = [] }: Route, { headers }: FastifyRequest): boolean {
  const type = contentTypeOf(headers);
  return streamTypes.some((streamed) => streamed === type);
}

/** Releases the body and its memory when the work ends, even if the client has disconnected. */
function releaseBodyAfter<Value>(
  request: FastifyRequest,
  start: () => Value | Promise<Value>,
): Value | Promise<Value> {
  const { bodyReservation } = request;
  if (bodyReservation === null) return start();
  bodyReservation.isInUse = true;
  const release = () => {
    // The request object stays alive until a slow client has read the reply.
    request.body = undefined;
    bodyReservation.end();
  };
  try {
    const work = start();
    if (work instanceof Promise) work.then(release, release);
    else release();
    return work;
  } catch (error) {
    release();
    throw error;
  }
}

/** Rejects with `deadline_exceeded` when the work takes too long, and aborts its signal; null for no deadline. */
function withDeadline<Value>(
  work: Value | Promise<Value>,
  context: RequestContext,
  msMax: number | null,
): Value | Promise<Value> {
  if (msMax === null || !(work instanceof Promise)) return work;
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      const error = new SagittaError(
        'deadline_exceeded',
        `The request took longer than ${msMax} ms.`,
      );
      context.abort(error);
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

/**
 * Reads and discards the rest of a refused body: closing at once would reset the connection of a
 * client that is still sending, which would then never read the error.
 */
function discardUpload(request: FastifyRequest, reply: FastifyReply): void {
  if (isAwaitingContinue(request.raw)) reply.header('connection', 'close');
  else reply.removeHeader('connection');
  const { body } = request;
  if (body instanceof BodyStream) body.discard();
  else discardBody(request);
  // Unlike other bodies, a stream has no timeout, and may never end.
  if (body instanceof BodyStream && !body.isComplete) {
    limitRestOfBody(request.raw, reply.raw);
  }
}
