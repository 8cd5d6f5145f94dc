// Requests of one node of a cluster to another: signed (request-signature.ts, signed-body.ts), on connections that are
// kept, and given up when the other node cannot be reached or is no longer heard of.

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

/** A request of another node, with its body as that node got it. */
export interface ReceivedRequest extends ForwardedRequest {
  readonly bodyStream: Readable;
}

/** What is sent along, without what is found out here. */
export type SentAlong = Omit<ForwardedRequest, 'body'>;

interface SendOptions {
  readonly member: ClusterMember;
  /** What was read of the body; null when nothing was. */
  readonly body: Uint8Array | null;
  /** Whether it changes nothing. */
  readonly isRead: boolean;
  readonly signal: AbortSignal;
}

/** About one connection between two nodes; RFC 9110, section 7.6.1. */
export const HOP_HEADERS = [
  'connection',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
  'expect',
  'host',
];
const CONNECT_MS_MAX = 2_000;
/** A connection is kept so long while no request uses it: less than the other node keeps it, by default. */
const IDLE_MS_MAX = 15_000;
/** How often it is looked at whether the node is still there while it does not answer. */
const WATCH_MS = 1_000;

export class NodeClient {
  readonly #cluster: Cluster;
  readonly #keys: NodeKeys;
  readonly #signer: RequestSigner;
  readonly #verifier: RequestVerifier;
  // Only with a timeout of its own, Node's agent also ends a connection before the other node does.
  readonly #http = new HttpAgent({ keepAlive: true, timeout: IDLE_MS_MAX });
  readonly #https = new HttpsAgent({ keepAlive: true, timeout: IDLE_MS_MAX });

  constructor(cluster: Cluster, keys: NodeKeys) {
    const { instance } = cluster.self;
    this.#cluster = cluster;
    this.#keys = keys;
    this.#signer = new RequestSigner(keys, instance);
    this.#verifier = new RequestVerifier(keys, instance, () => cluster.clockOf(instance)!);
  }

  /** Null for a request of a client. Throws `credentials_invalid`, and `no_leader` for one that is late. */
  read({ headers, method, originalUrl, id, raw }: FastifyRequest): ReceivedRequest | null {
    const found = headers[FORWARDED];
    if (found === undefined) return null;
    const request = { method, target: originForm(originalUrl), id, headers };
    const { forwarded, tag } = this.#verifier.verify(String(found), request);
    const { principal, body } = forwarded;
    const hasBody = headers['transfer-encoding'] !== undefined;
    if (body !== null && !hasBody) {
      throw new SagittaError('credentials_invalid', 'The body that a node has sent is missing.');
    }
    const bodyStream =
      body === null ? Readable.from([]) : verifiedBody(raw, new BodyVerifier(this.#keys, tag));
    return { ...forwarded, principal: knownPrincipal(principal), bodyStream };
  }

  /**
   * Sends a request of a client with its body. Resolves with the head of the reply. Rejects with `no_leader`
   * when the node was not reached; when it was and does not answer, with `no_holder` for a read, and `LostReply`.
   */
  async send(
    request: FastifyRequest,
    reply: FastifyReply,
    along: SentAlong,
    { member, body, isRead, signal }: SendOptions,
  ): Promise<IncomingMessage> {
    const { method, originalUrl, id } = request;
    const target = originForm(originalUrl);
    const forwarded = { ...along, body: bodyLengthOf(request, body) };
    const passed = passedHeaders(request.headers);
    // A body that was read here is decoded.
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
        // After a pause of the event loop, this runs before the connections that were made meanwhile are seen.
        setImmediate(() => {
          if (!isConnected) sent.destroy();
        });
      }, CONNECT_MS_MAX);
      // A machine that is gone closes no connection.
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
        // The rest of an upload is of no use to a node that has refused it.
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
        else reject(isRead ? noAnswerError(cause) : new LostReply(cause));
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
      // Of a body that another node has sent: one that was changed on the way.
      if (source !== request.raw) source.once('error', (error) => sent.destroy(error));
      source.pipe(signer);
    });
  }

  /** Sends a request of this node. Rejects when the other one does not answer. `body`: JSON, or "". */
  async ask(
    member: ClusterMember,
    { method, path, body, id }: Readonly<Record<'method' | 'path' | 'body' | 'id', string>>,
    along: SentAlong,
    signal: AbortSignal,
  ): Promise<NodeReply> {
    const request = {
      method,
      target: path,
      id,
      headers: body === '' ? {} : { 'content-type': 'application/json' },
    };
    const length = body === '' ? null : { byteCount: Buffer.byteLength(body) };
    const { headers, signature } = this.#sign(request, { ...along, body: length }, member);
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

  close(): void {
    this.#http.destroy();
    this.#https.destroy();
  }

  /** `path` is sent as it is. */
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

  /** The headers of a request with its signature. Throws `no_leader` when the node is not heard of any more. */
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
      // The chunks of the body have signatures, which the client has not counted.
      ...(forwarded.body !== null && { 'transfer-encoding': 'chunked' }),
      'x-request-id': request.id,
      [FORWARDED]: signature.header,
    };
    return { headers, signature };
  }
}

/** The body of a request that another node has sent. */
function verifiedBody(raw: FastifyRequest['raw'], verifier: BodyVerifier): BodyVerifier {
  raw.once('error', (error) => verifier.destroy(error));
  raw.once('close', () => {
    if (!raw.readableEnded) verifier.destroy(new Error('the connection was closed'));
  });
  // Whoever reads it gets the error; nobody may be reading it yet.
  verifier.on('error', () => {});
  return raw.pipe(verifier);
}

/**
 * The path and the query of a request's target. A target may be a URL (RFC 9112, section 3.2.2), whose host is this
 * node, whatever it says.
 */
function originForm(target: string): string {
  if (target.startsWith('/')) return target;
  const authority = target.indexOf('://');
  const path = target.indexOf('/', authority + 3);
  return authority === -1 || path === -1 ? '/' : target.slice(path);
}

/** Null for a request without a body, such as a DELETE whose client has sent none. */
function bodyLengthOf(
  { method, raw, headers, forwarded }: FastifyRequest,
  body: Uint8Array | null,
): ForwardedRequest['body'] {
  // The bodies of these mean nothing.
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

/** Some principals are told from others by identity. */
function knownPrincipal(principal: Principal): Principal {
  const text = JSON.stringify(principal);
  return [NOBODY, EVERYBODY, OPERATOR].find((known) => JSON.stringify(known) === text) ?? principal;
}

/** For a request that changes nothing. */
export function noAnswerError(cause: Error): SagittaError {
  return new SagittaError(
    'no_holder',
    `The node that was asked did not answer to the end (${cause.message}). Retry after 1 s.`,
    { cause, retryAfterSeconds: 1 },
  );
}

/** For a request that was sent to another node. */
export class LostReply extends SagittaError {
  constructor(cause: Error) {
    super(
      'outcome_unknown',
      `The node that carries out writes did not answer (${cause.message}), so whether this one took effect is not known. Send it again with its idempotency key, or read what it was to write.`,
      { cause },
    );
  }
}
