// One request as its handler sees it, made from what Fastify has.

import type { IncomingHttpHeaders } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Principal } from '../common/access.js';
import { assert, SagittaError } from '../common/errors.js';
import { authorizeCollection, authorizeCreation } from './auth/authorization.js';
import { chooseType, notAcceptableError } from './media-types.js';
import { type IssueLayout, PARAMETER_LAYOUT, type ProblemContext } from './problem.js';
import type { Route, RouteRequest } from './route.js';
import type { RequestTelemetry } from './telemetry/request-telemetry.js';
import { BodyStream } from './transport/body-stream.js';
import { isReplyClosed } from './transport/listener.js';

const NO_BODY = new Uint8Array(0);
/** Of routes without parameters. */
export const NO_QUERY = {};

/** For parts of a stream: what is revoked ends it within a part and this time. */
const READMIT_MS = 1_000;

export class RequestContext implements RouteRequest<Readonly<Record<string, unknown>>> {
  readonly #route: Route;
  readonly #readmit: () => Promise<void>;
  #admittedAtMs = performance.now();
  /** Set once it has been checked. */
  query: Readonly<Record<string, unknown>> = NO_QUERY;
  readonly #request: FastifyRequest;
  readonly #reply: FastifyReply;
  #controller: AbortController | undefined;
  #abortReason: SagittaError | undefined;

  /** `readmit` throws unless who sent the request may still do what it asks. */
  constructor(
    route: Route,
    request: FastifyRequest,
    reply: FastifyReply,
    readmit: () => Promise<void>,
  ) {
    this.#readmit = readmit;
    this.#route = route;
    this.#request = request;
    this.#reply = reply;
    if (route.body === null) request.issueLayout = PARAMETER_LAYOUT;
  }

  get operation(): string {
    return `${this.#route.method} ${this.#route.path}`;
  }

  get principal(): Principal {
    return this.#request.principal;
  }

  get telemetry(): RequestTelemetry {
    return this.#request.telemetry;
  }

  authorize(collectionId: string, options: { isNew?: boolean } = {}): void {
    const { access } = this.#route;
    assert(
      typeof access === 'object' && (access.on === 'named' || access.on === 'path'),
      'the route says what it asks for',
    );
    // One beside the collection in the path is not what the request is about.
    if (access.on === 'named') this.telemetry.setAuditTarget(collectionId);
    const check = options.isNew === true ? authorizeCreation : authorizeCollection;
    check(access.scope, this.principal, collectionId);
  }

  charge(cost: number): void {
    this.#request.allowance?.charge(cost);
  }

  async chargeOrWait(cost: number): Promise<void> {
    // A stream may last for hours, and a key be revoked or a token expire meanwhile.
    if (performance.now() - this.#admittedAtMs >= READMIT_MS) {
      await this.#readmit();
      this.#admittedAtMs = performance.now();
    }
    const { allowance } = this.#request;
    if (allowance === null) return;
    for (;;) {
      const waitMs = allowance.chargeOrWaitMs(cost);
      if (waitMs === 0) return;
      // What the timer rejects with when it is aborted is an error of its own.
      await wait(waitMs, undefined, { signal: this.signal }).catch(() => {});
      this.signal.throwIfAborted();
    }
  }

  chooseReplyType(offered: readonly string[]): string {
    const { accept } = this.headers;
    const type = chooseType(accept, offered);
    if (type === null) throw notAcceptableError(offered, accept);
    return type;
  }

  reserveReply(byteCount: number): void {
    this.#request.replyReservation.reserve(this.principal.id, byteCount);
  }

  get params(): Readonly<Record<string, string>> {
    return this.#request.params as Readonly<Record<string, string>>;
  }

  get rawQuery(): Readonly<Record<string, unknown>> {
    return this.#request.query as Readonly<Record<string, unknown>>;
  }

  get headers(): IncomingHttpHeaders {
    return this.#request.headers;
  }

  get contentType(): string | undefined {
    const [type] = this.headers['content-type']?.split(';') ?? [];
    return type?.trim().toLowerCase();
  }

  get body(): Uint8Array {
    const { body } = this.#request;
    return body instanceof Uint8Array ? body : NO_BODY;
  }

  get bodyStream(): BodyStream | null {
    const { body } = this.#request;
    return body instanceof BodyStream ? body : null;
  }

  get issueLayout(): IssueLayout {
    return this.#request.issueLayout;
  }

  set issueLayout(layout: IssueLayout) {
    this.#request.issueLayout = layout;
  }

  get problemContext(): ProblemContext {
    return problemContextOf(this.#request);
  }

  /** Made when first asked for: most routes have no use for it. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      const controller = new AbortController();
      this.#controller = controller;
      const { raw } = this.#reply;
      const abortUnlessAnswered = () => {
        if (!raw.writableEnded) {
          controller.abort(new SagittaError('deadline_exceeded', 'The client went away.'));
        }
      };
      if (this.#abortReason !== undefined) controller.abort(this.#abortReason);
      else if (isReplyClosed(raw)) abortUnlessAnswered();
      else raw.once('close', abortUnlessAnswered);
    }
    return this.#controller.signal;
  }

  abort(reason: SagittaError): void {
    this.#abortReason = reason;
    this.#controller?.abort(reason);
  }
}

/** Where problems happen, as they tell it. */
export function problemContextOf(request: FastifyRequest): ProblemContext {
  return { requestId: request.id, path: pathOf(request), layout: request.issueLayout };
}

/** Of the URL, without the query. */
export function pathOf(request: FastifyRequest): string {
  const end = request.url.indexOf('?');
  return end === -1 ? request.url : request.url.slice(0, end);
}
