// A request as its handler sees it, and the state that the steps of the pipeline attach to Fastify's request.

import type { IncomingHttpHeaders } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Principal, Scope } from '../../common/access.js';
import { CancelSignal } from '../../common/cancel-signal.js';
import { assert, SagittaError } from '../../common/errors.js';
import {
  authorizeCollection,
  authorizeCreation,
  type NamedCollection,
  type RouteAccess,
} from '../auth/authorization.js';
import type { ReceivedRequest } from '../cluster/node-client.js';
import type { Destination } from '../cluster/request-forwarder.js';
import type { BodyReservation } from '../limits/body-admission.js';
import type { Allowance } from '../limits/rate-limit.js';
import type { ReplyReservation } from '../limits/reply-admission.js';
import type { RequestTelemetry } from '../telemetry/request-telemetry.js';
import { BodyStream } from '../transport/body-stream.js';
import { isReplyClosed } from '../transport/connections.js';
import { chooseType, notAcceptableError } from '../wire/media-types.js';
import {
  type IssueLayout,
  PARAMETER_LAYOUT,
  type ProblemContext,
  problemContextOf,
} from '../wire/problem.js';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The path of the route with its placeholders, without a prefix. */
    route?: string;
    /** The name of the operation in the audit log; undefined if it is not logged. */
    audit?: string | undefined;
    streamTypes?: readonly string[] | undefined;
    isOperational?: boolean | undefined;
    /** Whether the path may begin with `/v1`. */
    isVersioned?: boolean;
    isInternal?: boolean | undefined;
    /** Whether requests count as traffic: not those of probes, of monitoring and of other nodes. */
    isTraffic?: boolean;
  }
  interface FastifyRequest {
    telemetry: RequestTelemetry;
    /** `NOBODY` until the request is authenticated. */
    principal: Principal;
    /** The rate limit of the principal; null without one, or before authentication. */
    allowance: Allowance | null;
    /** The memory of the body; null before admission and for GET. */
    bodyReservation: BodyReservation | null;
    replyReservation: ReplyReservation;
    issueLayout: IssueLayout;
    /** The id or alias of a collection in the path, as sent; "" for other paths. */
    collectionName: string;
    /** The data of a request that another node has forwarded; null for a request of a client. */
    forwarded: ReceivedRequest | null;
    /** The incarnations of the collections that it reads or writes; null before authorization. */
    incarnations: string[] | null;
    /** Where it runs; null until that is decided. */
    destination: Destination | null;
  }
}

const NO_BODY = new Uint8Array(0);
/** The query of routes without parameters. */
export const NO_QUERY = {};

/** The collection in the path of a request once an alias is resolved; both members are "" if there is none. */
export function collectionOf({ params, collectionName: name }: FastifyRequest): NamedCollection {
  // In other paths, `id` may be that of a vector or of a key.
  return { id: name === '' ? '' : (params as Record<string, string>).id!, name };
}

/** The media type without parameters; undefined if there is no body. */
export function contentTypeOf(headers: IncomingHttpHeaders): string | undefined {
  const [type] = headers['content-type']?.split(';') ?? [];
  return type?.trim().toLowerCase();
}

/** How often a stream checks that its credential is still valid. */
const REAUTHORIZE_MS = 1_000;

/** The part of a `Route` that its requests use. */
interface RouteInfo {
  readonly method: string;
  readonly path: string;
  readonly access: RouteAccess;
  /** Null for routes that do not accept a body. */
  readonly body: unknown;
}

/** Steps of the pipeline that handlers may repeat; the same object serves all requests. */
export interface PipelineSteps {
  /** Rejects if the credential is no longer valid for the route. */
  reauthorize(access: RouteAccess, request: FastifyRequest): Promise<void>;
  /** Milliseconds of a monotonic clock. */
  readonly nowMs: () => number;
}

/** `Query` is the type of the query string by the schema of the route. */
export class RequestContext<Query = Readonly<Record<string, unknown>>> {
  readonly #route: RouteInfo;
  readonly #request: FastifyRequest;
  readonly #reply: FastifyReply;
  readonly #steps: PipelineSteps;
  #authorizedAtMs: number;
  /** When the body had been received, or a stream began, by `performance.now()`. */
  readonly receivedAtMs = performance.now();
  #signal: CancelSignal | undefined;
  #abortReason: SagittaError | undefined;
  /** Set by the pipeline after validation, before the body is parsed. */
  query: Query = NO_QUERY as Query;
  /** What `Route.touches` returned. Set by the pipeline before the handler runs. */
  touched: readonly NamedCollection[] = [];

  constructor(
    route: RouteInfo,
    request: FastifyRequest,
    reply: FastifyReply,
    steps: PipelineSteps,
  ) {
    this.#route = route;
    this.#request = request;
    this.#reply = reply;
    this.#steps = steps;
    this.#authorizedAtMs = steps.nowMs();
    if (route.body === null) request.issueLayout = PARAMETER_LAYOUT;
  }

  /** Method and path of the route, without a prefix. */
  get operation(): string {
    return `${this.#route.method} ${this.#route.path}`;
  }

  /** Decoded values by the names in the path of the route. An alias is replaced by the id of the collection. */
  get params(): Readonly<Record<string, string>> {
    return this.#request.params as Readonly<Record<string, string>>;
  }

  /** The params as sent, for the digest of an idempotent request. */
  get rawParams(): Readonly<Record<string, string>> {
    const { params } = this;
    return this.collectionName === '' ? params : { ...params, id: this.collectionName };
  }

  /** The id or alias of a collection in the path, as sent; "" for other paths. */
  get collectionName(): string {
    return this.#request.collectionName;
  }

  /** Both members are "" for paths without a collection. */
  get collectionInPath(): NamedCollection {
    return collectionOf(this.#request);
  }

  /** The id of the collection in the path whose vectors the route writes; undefined for other routes. */
  get writtenCollection(): string | undefined {
    const { access } = this.#route;
    const isWrite = typeof access === 'object' && access.scope === 'vectors:write';
    return isWrite && access.on === 'path' ? this.params.id : undefined;
  }

  /** The query string before validation, for the digest of an idempotent request. */
  get rawQuery(): Readonly<Record<string, unknown>> {
    return this.#request.query as Readonly<Record<string, unknown>>;
  }

  get headers(): IncomingHttpHeaders {
    return this.#request.headers;
  }

  /** The media type without parameters; undefined if there is no body. */
  get contentType(): string | undefined {
    return contentTypeOf(this.headers);
  }

  /** The bytes as sent; empty if there are none. */
  get body(): Uint8Array {
    const { body } = this.#request;
    return body instanceof Uint8Array ? body : NO_BODY;
  }

  /** Shared memory for what is parsed from the body, valid until the work on it ends; null without a body. */
  allocate(byteCount: number): Uint8Array | null {
    return this.#request.bodyReservation?.allocate(byteCount) ?? null;
  }

  /** The body if `contentType` is one of the route's `streamTypes`; else null. */
  get bodyStream(): BodyStream | null {
    const { body } = this.#request;
    return body instanceof BodyStream ? body : null;
  }

  /**
   * How errors render the locations of fields; by default as members of the body, or as parameters
   * for routes without a body.
   */
  get issueLayout(): IssueLayout {
    return this.#request.issueLayout;
  }

  set issueLayout(layout: IssueLayout) {
    this.#request.issueLayout = layout;
  }

  get problemContext(): ProblemContext {
    return problemContextOf(this.#request);
  }

  get principal(): Principal {
    return this.#request.principal;
  }

  /** Receives what only the handler knows: the target of the operation and the duration of its phases. */
  get telemetry(): RequestTelemetry {
    return this.#request.telemetry;
  }

  /**
   * Authorizes the request for a collection that is not named in the path, or for another scope than that of the
   * route. `isNew` is for a collection to be created; `name` is the id or alias in the request. Throws
   * `collection_not_found` and `insufficient_scope`.
   */
  authorize(
    collectionId: string,
    options: { isNew?: boolean; name?: string; scope?: Scope } = {},
  ): void {
    const { access } = this.#route;
    assert(
      typeof access === 'object' && (access.on === 'named' || access.on === 'path'),
      'the route declares a scope on a collection',
    );
    // If the path names a collection, that one is the target of the operation.
    if (access.on === 'named') this.telemetry.setAuditTarget(collectionId);
    const check = options.isNew === true ? authorizeCreation : authorizeCollection;
    const { name = collectionId, scope = access.scope } = options;
    check(scope, this.principal, { id: collectionId, name });
  }

  /**
   * Charges the rate limit for the whole request: the number of queries, or of vectors read, written or deleted by id.
   * 1 has been charged already. Must precede any effect. Throws `rate_limited`.
   */
  charge(cost: number): void {
    this.#request.allowance?.charge(cost);
  }

  /**
   * Charges the rate limit for the next batch of a stream, in the same unit, and waits where `charge`
   * would throw. Rejects if the credential is no longer valid, and with the reason of `signal`.
   */
  async chargeOrWait(cost: number): Promise<void> {
    const { nowMs } = this.#steps;
    if (nowMs() - this.#authorizedAtMs >= REAUTHORIZE_MS) {
      await this.#steps.reauthorize(this.#route.access, this.#request);
      this.#authorizedAtMs = nowMs();
    }
    const { allowance } = this.#request;
    if (allowance === null) return;
    for (;;) {
      const waitMs = allowance.chargeOrWaitMs(cost);
      if (waitMs === 0) return;
      // An aborted timer rejects with its own error; the reason of the signal is thrown below.
      await wait(waitMs, undefined, { signal: this.signal }).catch(() => {});
      this.signal.throwIfAborted();
    }
  }

  /**
   * The offered content type that Accept prefers, for routes whose choice depends on the request.
   * Throws `not_acceptable`.
   */
  chooseReplyType(offered: readonly string[]): string {
    const { accept } = this.headers;
    const type = chooseType(accept, offered);
    if (type === null) throw notAcceptableError(offered, accept);
    return type;
  }

  /**
   * Sets the memory of a long reply while it is being made. Throws `overloaded`, and
   * `deadline_exceeded` if the client has disconnected.
   */
  reserveReply(byteCount: number): void {
    this.#request.replyReservation.reserve(this.principal.id, byteCount);
  }

  /**
   * Reserves memory for the results that the reply will be made from, before they are computed; for a stream, for those
   * in memory at one time. Throws like `reserveReply`.
   */
  reserveWork(byteCount: number, { isStreamed = false } = {}): void {
    this.#request.replyReservation.reserveWork(this.principal.id, byteCount, isStreamed);
  }

  /**
   * Aborted with a `deadline_exceeded` error when the deadline passes or the client disconnects.
   * Created on first use: most routes do not need it.
   */
  get signal(): AbortSignal {
    if (this.#signal === undefined) {
      const signal = new CancelSignal();
      this.#signal = signal;
      const { raw } = this.#reply;
      const abortUnlessReplied = () => {
        if (!raw.writableEnded) {
          signal.abort(new SagittaError('deadline_exceeded', 'The client disconnected.'));
        }
      };
      if (this.#abortReason !== undefined) signal.abort(this.#abortReason);
      else if (isReplyClosed(raw)) abortUnlessReplied();
      else raw.once('close', abortUnlessReplied);
    }
    return this.#signal;
  }

  abort(reason: SagittaError): void {
    this.#abortReason = reason;
    this.#signal?.abort(reason);
  }
}
