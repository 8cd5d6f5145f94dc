// Sends signed requests to other nodes of the cluster over persistent connections, and verifies those that arrive. A
// request is abandoned when the other node cannot be reached or has stopped announcing itself.

import { once } from 'node:events';
import {
  type ClientRequest,
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingMessage,
  type RequestOptions,
} from 'node:http';
import type { Http2ServerRequest } from 'node:http2';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { Readable } from 'node:stream';
import { text as readText } from 'node:stream/consumers';
import { urlToHttpOptions } from 'node:url';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { EVERYBODY, NOBODY, OPERATOR, type Principal } from '../../common/access.js';
import { noLeaderError, SagittaError } from '../../common/errors.js';
import type { NodeKeys } from '../../platform/node-keys.js';
import { discardBody, limitRestOfBody, sendContinue } from '../transport/connections.js';
import type { Cluster, ClusterMember } from './cluster.js';
import {
  FORWARDED,
  type ForwardedRequest,
  passedHeaders,
  RequestSigner,
  RequestVerifier,
  type Signature,
} from './request-signature.js';
import { BodySigner, BodyVerifier } from './signed-body.js';

export interface NodeReply {
  readonly status: number;
  readonly text: string;
}

/** A request that another node has forwarded, with its verified body. */
export interface ReceivedRequest extends ForwardedRequest {
  readonly bodyStream: Readable;
}

/** What the caller of the client knows of a forwarded request. */
export type ForwardingContext = Omit<ForwardedRequest, 'body'>;

interface SendOptions {
  readonly member: ClusterMember;
  /** The body, if it has been read; null if it has not. */
  readonly body: Uint8Array | null;
  /** Whether the request only reads. */
  readonly isRead: boolean;
  readonly signal: AbortSignal;
}

/** Headers that are about a single connection (RFC 9110, section 7.6.1). */
export const HOP_HEADERS = [
  'connection',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
  'expect',
  'host',
];
const CONNECT_MS_MAX = 2_000;
/** How long idle connections are kept: less than the default of the server at the other end. */
const IDLE_MS_MAX = 15_000;
/** The interval of checks that the other node still announces itself while it does not answer. */
const WATCH_MS = 1_000;

export class NodeClient {
  readonly #cluster: Cluster;
  readonly #keys: NodeKeys;
  readonly #signer: RequestSigner;
  readonly #verifier: RequestVerifier;
  // With a timeout of its own, the agent closes idle connections before the other node does.
  readonly #http = new HttpAgent({ keepAlive: true, timeout: IDLE_MS_MAX });
  readonly #https = new HttpsAgent({ keepAlive: true, timeout: IDLE_MS_MAX });

  constructor(cluster: Cluster, keys: NodeKeys) {
    const { instance } = cluster.self;
    this.#cluster = cluster;
    this.#keys = keys;
    this.#signer = new RequestSigner(keys, instance);
    this.#verifier = new RequestVerifier(keys, instance, () => cluster.clockOf(instance)!);
  }

  /** Null for a request of a client. Throws `credentials_invalid`, and `no_leader` for a request that is too old. */
  read({ headers, method, originalUrl, id, raw }: FastifyRequest): ReceivedRequest | null {
    const found = headers[FORWARDED];
    if (found === undefined) return null;
    const request = { method, target: originForm(originalUrl), id, headers };
    const { forwarded, tag } = this.#verifier.verify(String(found), request);
    const { principal, body } = forwarded;
    const hasBody = headers['transfer-encoding'] !== undefined;
    if (body !== null && !hasBody) {
      throw new SagittaError(
        'credentials_invalid',
        'The forwarded request lacks the body that its signature announces.',
      );
    }
    const bodyStream =
      body === null ? Readable.from([]) : verifiedBody(raw, new BodyVerifier(this.#keys, tag));
    return { ...forwarded, principal: knownPrincipal(principal), bodyStream };
  }

  /**
   * Forwards a request of a client with its body. Resolves when the head of the reply has arrived. Rejects with
   * `no_leader` if the node cannot be reached. If it was reached but does not answer, rejects with `no_holder` for a
   * read and `OutcomeUnknownError` for a write.
   */
  async send(
    request: FastifyRequest,
    reply: FastifyReply,
    context: ForwardingContext,
    { member, body, isRead, signal }: SendOptions,
  ): Promise<IncomingMessage> {
    const { method, originalUrl, id } = request;
    const target = originForm(originalUrl);
    const forwarded = { ...context, body: bodyLengthOf(request, body) };
    const passed = passedHeaders(request.headers);
    // A body that was read here has been decoded.
    if (body !== null) delete passed['content-encoding'];
    const { headers, signature } = this.#sign(
      { method, target, id, headers: passed },
      forwarded,
      member,
    );
    return await new Promise((resolve, reject) => {
      let isConnected = false;
      const sent = this.#open(member.url, target, { method, headers, signal });
      const timer = setTimeout(() => {
        // After a pause of the event loop, timers run before the events of connections made meanwhile.
        setImmediate(() => {
          if (!isConnected) sent.destroy();
        });
      }, CONNECT_MS_MAX);
      // A machine that has failed does not close its connections.
      const watch = setInterval(() => {
        if (!this.#cluster.present.some(({ url }) => url === member.url)) sent.destroy();
      }, WATCH_MS).unref();
      sent.once('socket', (socket) => {
        const onConnect = () => {
          isConnected = true;
          clearTimeout(timer);
        };
        if (socket.connecting) socket.once('connect', onConnect);
        else onConnect();
      });
      const source = request.forwarded?.bodyStream ?? request.raw;
      sent.once('response', (found) => {
        // A node that has refused a request does not need the rest of its body.
        if ((found.statusCode ?? 502) >= 400 && !sent.writableEnded) {
          source.unpipe();
          discardBody(request);
          limitRestOfBody(request.raw, reply.raw);
          found.once('end', () => sent.destroy());
        }
        resolve(found);
      });
      sent.once('close', () => clearInterval(watch));
      sent.on('error', (cause) => {
        clearTimeout(timer);
        if (!isConnected) reject(noLeaderError(cause));
        else reject(isRead ? noAnswerError(cause) : new OutcomeUnknownError(cause));
      });
      if (forwarded.body === null) {
        sent.end();
        return;
      }
      const signer = new BodySigner(this.#keys, signature.tag);
      signer.pipe(sent);
      if (body !== null) {
        signer.end(body);
        return;
      }
      sendContinue(request.raw);
      // A body that another node has forwarded may fail verification.
      if (source !== request.raw) source.once('error', (error) => sent.destroy(error));
      source.pipe(signer);
    });
  }

  /** Sends a request of this node itself. `body` is JSON or empty. Rejects if the other node does not answer. */
  async ask(
    member: ClusterMember,
    { method, path, body, id }: Readonly<Record<'method' | 'path' | 'body' | 'id', string>>,
    context: ForwardingContext,
    signal: AbortSignal,
  ): Promise<NodeReply> {
    const request = {
      method,
      target: path,
      id,
      headers: body === '' ? {} : { 'content-type': 'application/json' },
    };
    const length = body === '' ? null : { byteCount: Buffer.byteLength(body) };
    const { headers, signature } = this.#sign(request, { ...context, body: length }, member);
    const sent = this.#open(member.url, path, { method, headers, signal });
    if (length === null) sent.end();
    else {
      const signer = new BodySigner(this.#keys, signature.tag);
      signer.pipe(sent);
      signer.end(body);
    }
    const [reply] = (await once(sent, 'response')) as [IncomingMessage];
    return { status: reply.statusCode ?? 502, text: await readText(reply) };
  }

  /** Resolves when the other node answers anything. Rejects with the error of the connection. */
  async ping({ url }: ClusterMember, signal: AbortSignal): Promise<void> {
    const sent = this.#open(url, '/livez', { method: 'GET', headers: {}, signal });
    sent.end();
    const [reply] = (await once(sent, 'response')) as [IncomingMessage];
    reply.resume();
  }

  close(): void {
    this.#http.destroy();
    this.#https.destroy();
  }

  /** `path` is sent unchanged. */
  #open(
    memberUrl: string,
    path: string,
    options: Pick<RequestOptions, 'method' | 'headers' | 'signal'>,
  ): ClientRequest {
    const member = urlToHttpOptions(new URL(memberUrl));
    const isSecure = member.protocol === 'https:';
    const agent = isSecure ? this.#https : this.#http;
    return (isSecure ? httpsRequest : httpRequest)({ ...member, ...options, path, agent });
  }

  /** Throws `no_leader` if the other node has stopped announcing itself. */
  #sign(
    request: Parameters<RequestSigner['sign']>[0],
    forwarded: ForwardedRequest,
    { instance }: ClusterMember,
  ): { readonly headers: Record<string, string | string[]>; readonly signature: Signature } {
    const clockMs = this.#cluster.clockOf(instance);
    if (clockMs === null) throw noLeaderError();
    const positions = { ...forwarded.positions, ...this.#cluster.progress.cataloguePositions };
    const signature = this.#signer.sign(
      request,
      { ...forwarded, positions },
      { instance, clockMs },
    );
    const headers = {
      ...(request.headers as Record<string, string | string[]>),
      // Signatures make the body longer than its Content-Length.
      ...(forwarded.body !== null && { 'transfer-encoding': 'chunked' }),
      'x-request-id': request.id,
      [FORWARDED]: signature.header,
    };
    return { headers, signature };
  }
}

function verifiedBody(raw: FastifyRequest['raw'], verifier: BodyVerifier): BodyVerifier {
  raw.once('error', (error) => verifier.destroy(error));
  raw.once('close', () => {
    if (!raw.readableEnded) verifier.destroy(new Error('the connection was closed'));
  });
  // Readers get the error from the stream; it must not be uncaught if there is no reader yet.
  verifier.on('error', () => {});
  return raw.pipe(verifier);
}

/** Path and query of a request target, which may be an absolute URL (RFC 9112, section 3.2.2). */
function originForm(target: string): string {
  if (target.startsWith('/')) return target;
  const authority = target.indexOf('://');
  const path = target.indexOf('/', authority + 3);
  return authority === -1 || path === -1 ? '/' : target.slice(path);
}

/** Null for a request without a body, such as most DELETE requests. */
function bodyLengthOf(
  { method, raw, headers, forwarded }: FastifyRequest,
  body: Uint8Array | null,
): ForwardedRequest['body'] {
  // A body has no meaning in these methods.
  if (method === 'GET' || method === 'HEAD') return null;
  if (body !== null) return { byteCount: body.length };
  if (forwarded !== null) return forwarded.body;
  const { 'content-length': length, 'transfer-encoding': encoding } = headers;
  if (length !== undefined) return Number(length) === 0 ? null : { byteCount: Number(length) };
  const mayHaveBody =
    'stream' in raw
      ? !(raw as unknown as Http2ServerRequest).stream.endAfterHeaders
      : encoding !== undefined;
  return mayHaveBody ? { byteCount: null } : null;
}

/** Restores the principals that are compared by identity. */
function knownPrincipal(principal: Principal): Principal {
  const text = JSON.stringify(principal);
  return [NOBODY, EVERYBODY, OPERATOR].find((known) => JSON.stringify(known) === text) ?? principal;
}

/** The error of a read. */
export function noAnswerError(cause: Error): SagittaError {
  return new SagittaError(
    'no_holder',
    `The other node did not complete its reply (${cause.message}). Retry after 1 s.`,
    { cause, retryAfterSeconds: 1 },
  );
}

/** The error of a write that reached another node, which may have carried it out. */
export class OutcomeUnknownError extends SagittaError {
  constructor(cause: Error) {
    super(
      'outcome_unknown',
      `The node that carries out writes did not answer (${cause.message}), so it is unknown whether this write took effect. Repeat it with the same idempotency key, or read back what it should have written.`,
      { cause },
    );
  }
}
