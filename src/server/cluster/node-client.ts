// Requests of one node of a cluster to another: signed with a secret of the nodes, on connections that are kept, and
// given up when the other node cannot be reached or is no longer heard of.

import { createHmac, timingSafeEqual } from 'node:crypto';
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
import { text as readText } from 'node:stream/consumers';
import { urlToHttpOptions } from 'node:url';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { EVERYBODY, NOBODY, OPERATOR, type Principal } from '../../common/access.js';
import { noLeaderError, SagittaError } from '../../common/errors.js';
import { limitRestOfBody, sendContinue } from '../transport/connections.js';
import type { Cluster, ClusterMember } from './cluster.js';
import type { LogPositions } from './seen-positions.js';

/** What a node sends along with a request. */
export interface ForwardedRequest {
  readonly principal: Principal;
  /** How many nodes have forwarded it. */
  readonly hopCount: number;
  /** What it had of the catalogue, and its clients have seen of the collection: the request may be about that. */
  readonly positions: LogPositions;
  /** Whether it is a change of the catalogue for which the node that was asked first lacks rows. */
  readonly needsRows?: boolean;
}

export interface NodeReply {
  readonly status: number;
  readonly text: string;
}

interface SendOptions {
  /** Of the other node. */
  readonly url: string;
  /** What was read of the body; null when nothing was. */
  readonly body: Uint8Array | null;
  /** Whether it changes nothing. */
  readonly isRead: boolean;
  readonly signal: AbortSignal;
}

const FORWARDED = 'sagitta-forwarded';
/** About one connection between two nodes; RFC 9110, section 7.6.1. */
export const HOP_HEADERS = [
  'connection',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
  'expect',
  'host',
];
/** Those that a request to another node has of its own. */
const OWN_HEADERS = [...HOP_HEADERS, 'content-length'];
const CONNECT_MS_MAX = 2_000;
/** A connection is kept so long while no request uses it: less than the other node keeps it, by default. */
const IDLE_MS_MAX = 15_000;
/** How often it is looked at whether the node is still there while it does not answer. */
const WATCH_MS = 1_000;

export class NodeClient {
  readonly #cluster: Cluster;
  readonly #secret: () => Uint8Array;
  // Only with a timeout of its own, Node's agent also ends a connection before the other node does.
  readonly #http = new HttpAgent({ keepAlive: true, timeout: IDLE_MS_MAX });
  readonly #https = new HttpsAgent({ keepAlive: true, timeout: IDLE_MS_MAX });
  #key: Buffer | undefined;

  /** `secret` is asked for with the first request, since the first node of a cluster has none before it has begun. */
  constructor(cluster: Cluster, secret: () => Uint8Array) {
    this.#cluster = cluster;
    this.#secret = secret;
  }

  /** What another node has sent along; null for a request of a client. Throws `credentials_invalid`. */
  read({ headers, method, originalUrl: url, id }: FastifyRequest): ForwardedRequest | null {
    const found = headers[FORWARDED];
    if (found === undefined) return null;
    const [text = '', digest = ''] = String(found).split('.');
    const expected = this.#digestOf([method, originForm(url), id, text]);
    const actual = Buffer.from(digest, 'base64url');
    if (actual.length !== expected.length || !timingSafeEqual(actual, expected)) {
      throw new SagittaError(
        'credentials_invalid',
        `The header ${FORWARDED} was not made by a node of this cluster; clients do not send it.`,
      );
    }
    const forwarded = JSON.parse(Buffer.from(text, 'base64url').toString()) as ForwardedRequest;
    return { ...forwarded, principal: knownPrincipal(forwarded.principal) };
  }

  /**
   * Sends a request of a client as it is, with its body. Resolves with the head of the reply. Rejects with `no_leader`
   * when the node was not reached; when it was and does not answer, with `no_holder` for a read, and `LostReply`.
   */
  send(
    request: FastifyRequest,
    reply: FastifyReply,
    forwarded: ForwardedRequest,
    { url: memberUrl, body, isRead, signal }: SendOptions,
  ): Promise<IncomingMessage> {
    const framing = framingOf(request, body);
    const { method, originalUrl: url, id } = request;
    const passed = passedHeaders(request);
    // A body that was read here is decoded.
    if (body !== null) delete passed['content-encoding'];
    const headers = {
      ...passed,
      ...this.#sign({ method, url, id }, forwarded),
      ...framing,
    };
    return new Promise((resolve, reject) => {
      let isConnected = false;
      const sent = this.#open(memberUrl, originForm(url), { method, headers, signal });
      const timer = setTimeout(() => {
        // After a pause of the event loop, this runs before the connections that were made meanwhile are seen.
        setImmediate(() => {
          if (!isConnected) sent.destroy();
        });
      }, CONNECT_MS_MAX);
      // A machine that is gone closes no connection.
      const watch = setInterval(() => {
        if (!this.#cluster.present.some((member) => member.url === memberUrl)) sent.destroy();
      }, WATCH_MS).unref();
      sent.once('socket', (socket) => {
        const onConnect = () => {
          isConnected = true;
          clearTimeout(timer);
        };
        if (socket.connecting) socket.once('connect', onConnect);
        else onConnect();
      });
      sent.once('response', (found) => {
        // The rest of an upload is of no use to a node that has refused it.
        if ((found.statusCode ?? 502) >= 400 && !sent.writableEnded) {
          request.raw.unpipe(sent);
          request.raw.resume();
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
      if (body !== null || framing === null) {
        sent.end(framing === null ? undefined : body);
        return;
      }
      sendContinue(request.raw);
      request.raw.pipe(sent);
    });
  }

  /** Sends a request of this node. Rejects when the other one does not answer. `body`: JSON, or "". */
  async ask(
    { url }: ClusterMember,
    { method, path, body, id }: Readonly<Record<'method' | 'path' | 'body' | 'id', string>>,
    forwarded: ForwardedRequest,
    signal: AbortSignal,
  ): Promise<NodeReply> {
    const headers = {
      ...(body !== '' && {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      }),
      ...this.#sign({ method, url: path, id }, forwarded),
    };
    const sent = this.#open(url, path, { method, headers, signal });
    sent.end(body);
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

  #sign(
    { method, url, id }: Readonly<Record<'method' | 'url' | 'id', string>>,
    forwarded: ForwardedRequest,
  ): Record<string, string> {
    const positions = { ...forwarded.positions, ...this.#cluster.progress.cataloguePositions };
    const sent: ForwardedRequest = { ...forwarded, positions };
    const text = Buffer.from(JSON.stringify(sent)).toString('base64url');
    const digest = this.#digestOf([method, originForm(url), id, text]).toString('base64url');
    return { 'x-request-id': id, [FORWARDED]: `${text}.${digest}` };
  }

  #digestOf(parts: readonly string[]): Buffer {
    this.#key ??= createHmac('sha256', this.#secret()).update('forwarded requests').digest();
    return createHmac('sha256', this.#key).update(JSON.stringify(parts)).digest();
  }
}

/** The headers of a request of a client that another node gets. */
function passedHeaders(request: FastifyRequest): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(request.headers)) {
    // Those of HTTP/2 that begin with a colon are the method, the path and so on.
    if (value === undefined || name.startsWith(':') || OWN_HEADERS.includes(name)) continue;
    headers[name] = value;
  }
  return headers;
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

/**
 * The headers that say where the body of a request ends, since the two connections may say it in different ways; null
 * for a request without a body. Node would send the body of a DELETE without either.
 */
function framingOf(
  { method, raw, headers }: FastifyRequest,
  body: Uint8Array | null,
): Record<string, string> | null {
  // The bodies of these mean nothing.
  if (method === 'GET' || method === 'HEAD') return null;
  if (body !== null) return { 'content-length': String(body.length) };
  const { 'content-length': length, 'transfer-encoding': encoding } = headers;
  if (length !== undefined) return { 'content-length': length };
  const mayHaveBody =
    'stream' in raw
      ? !(raw as unknown as Http2ServerRequest).stream.endAfterHeaders
      : encoding !== undefined;
  return mayHaveBody ? { 'transfer-encoding': 'chunked' } : null;
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
