// In a cluster one node carries out the writes of a collection, and one those of the catalogue. The others authenticate
// a write, send it there as it is, with the principal that they have found, and pass the reply on when they have applied
// the write themselves: whoever reads from the same node afterwards finds it. What a node does not hold is read on one
// that does: that one waits for what the client has seen through the first.

import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto';
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
import { EVERYBODY, NOBODY, OPERATOR, type Principal } from '../common/access.js';
import { noLeaderError, SagittaError } from '../common/errors.js';
import type { Logger } from '../common/logger.js';
import type { Metrics } from '../platform/metrics.js';
import { SESSION, writeSession } from './consistency.js';
import { NDJSON } from './media-types.js';
import { problemContextOf, problemReply } from './problem.js';
import { type LogPositions, laterOf, SeenPositions } from './seen-positions.js';
import {
  abortAfterFlush,
  clearBodyTimeout,
  limitRestOfBody,
  onReplyClosed,
  sendContinue,
} from './transport/connections.js';

export interface ClusterMember {
  /** The process: another one after each start. */
  readonly instance: string;
  /** Its name. */
  readonly node: string;
  readonly url: string;
  readonly version: string;
  readonly state: 'joining' | 'serving' | 'leaving';
  /** Of how many collections it carries out the writes. */
  readonly collectionCount: number;
  /** Where it may fail together with others; empty where that is not configured. */
  readonly zone: string;
}

export interface ClusterMemberStatus extends ClusterMember {
  readonly drain: 'none' | 'draining' | 'drained';
  /** How many collections it holds. */
  readonly heldCount: number;
}

interface ClusterStatus {
  readonly self: ClusterMember;
  readonly leader: ClusterMember | null;
  readonly members: readonly ClusterMemberStatus[];
  readonly durability: {
    readonly state: 'verified' | 'unverified' | 'insufficient';
    readonly detail: string;
  } | null;
}

/** The cluster that this process is a node of. */
export interface Cluster {
  /** For operators: it looks at every collection. */
  readonly status: ClusterStatus;
  /** This node. */
  readonly self: ClusterMember;
  /** The nodes that were heard of lately, with this one. */
  readonly present: readonly ClusterMember[];
  /** Whether this node carries out the writes of a collection, or with null those of the catalogue. */
  owns(incarnation: string | null): boolean;
  /** A write begins on this node. Returns the function that ends it. */
  beginWrite(incarnation: string | null): () => void;
  /**
   * The node that does, as far as this one knows; null for none. For a collection that this node does not hold, one
   * that does.
   */
  ownerOf(incarnation: string | null): ClusterMember | null;
  /** Resolves with that node when there is one. Rejects with the reason of the signal. */
  findOwner(incarnation: string | null, signal: AbortSignal): Promise<ClusterMember>;
  /** Whether this node has the rows of a collection. Also true of one that is deleted: no record says where it is. */
  holds(incarnation: string): boolean;
  /** The names of the nodes that do; null where all do. */
  placementOf(incarnation: string): { readonly nodes: readonly string[] } | null;
  /** A request for rows of a collection begins on this node. Returns the function that ends it. */
  beginRead(incarnation: string): () => void;
  /** Begins to move a collection. Throws `node_not_found`, `invalid_request`, and `no_leader` unless this node leads. */
  move(
    incarnation: string,
    nodes: { readonly from: string; readonly to: string },
  ): Promise<unknown>;
  /** From now on this node carries out the changes of the catalogue. */
  acquireCatalogue(): Promise<void>;
  /** Up to where this node has the log of the catalogue. */
  readonly cataloguePositions: LogPositions;
  /** Drains a node, or ends that; null for an unknown one. Throws `no_leader` unless this node leads. */
  drain(node: string, isOn: boolean): Promise<ClusterMemberStatus | null>;
  /** Of the logs that this node has written to since a time (`performance.now`), and of collections. */
  writtenSince(startedAtMs: number, incarnations: readonly string[]): LogPositions;
  /** Up to where this node has the logs of collections that it holds. */
  positionsOf(incarnations: readonly string[]): LogPositions;
  /** Resolves when everything is applied here that any node has acknowledged before, of a collection or the catalogue. */
  whenCurrent(incarnation: string | null, signal: AbortSignal): Promise<void>;
  /** The same for everything. */
  whenAllCurrent(signal: AbortSignal): Promise<void>;
  /** Resolves when this node has applied the logs up to there. Rejects with the reason of the signal. */
  whenApplied(positions: LogPositions, signal: AbortSignal): Promise<void>;
  /**
   * Resolves when this node has what a client has seen of a collection or the catalogue, as far as the log has it: the client
   * may name any position.
   */
  whenSeen(incarnation: string | null, positions: LogPositions, signal: AbortSignal): Promise<void>;
  /** The same for everything that the client has seen. */
  whenAllSeen(positions: LogPositions, signal: AbortSignal): Promise<void>;
  /** Reads the logs and the shared files, and tells what is wrong with them. */
  verifyFiles(signal: AbortSignal): Promise<readonly VerifiedFiles[]>;
}

/** What belongs together among the logs and the shared files. */
interface VerifiedFiles {
  readonly kind: 'log' | 'archive' | 'checkpoint' | 'origin';
  readonly name: string;
  /** Records of a log, chunks of an archive, files of the others. */
  readonly count: number;
  readonly byteCount: number;
  /** Null when everything is as it was written. */
  readonly problem: string | null;
}

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

/** Thrown where the body of a request names a collection whose writes another node carries out. */
export class OwnedElsewhere extends Error {
  readonly incarnation: string | null;

  constructor(incarnation: string | null) {
    super('Another node carries out the writes of the collection.');
    this.incarnation = incarnation;
  }
}

/** A request of one node to another. */
export interface NodeRequest {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  /** JSON. */
  readonly body?: string;
  /** In whose place it is made. */
  readonly principal: Principal;
  /** Of the collections that it is about: the other node is to have what was seen of them here. */
  readonly incarnations?: readonly string[];
  readonly id?: string;
}

export interface NodeReply {
  readonly status: number;
  readonly text: string;
}

export interface ForwardingOptions {
  readonly cluster: Cluster;
  /** Known to the nodes only. Asked for with the first request, since the first node has none before it has begun. */
  readonly secret: () => Uint8Array;
  readonly metrics: Metrics;
  readonly logger: Logger;
}

const FORWARDED = 'sagitta-forwarded';
const APPLIED = 'sagitta-applied';
const AUDIT_TARGET = 'sagitta-audit-target';
/** Between the nodes only. */
const INNER_HEADERS = [APPLIED, AUDIT_TARGET];
/** About one connection between two nodes; RFC 9110, section 7.6.1. */
const HOP_HEADERS = ['connection', 'keep-alive', 'transfer-encoding', 'upgrade', 'expect', 'host'];
/** Those that a request to another node has of its own. */
const OWN_HEADERS = [...HOP_HEADERS, 'content-length'];
const LINE_FEED = 10;
/** A node may know less than the one that it forwards a request to; while a collection moves, all of them may. */
const HOPS_MAX = 4;
/** A node that did not answer is asked again only after the others, for so long. */
const REST_MS = 5_000;
/** A reply waits so long at most for the write to be applied here, too. */
const APPLY_MS_MAX = 10_000;
const CONNECT_MS_MAX = 2_000;
/** A connection is kept so long while no request uses it: less than the other node keeps it, by default. */
const IDLE_MS_MAX = 15_000;
/** A write waits so long at most until a node can carry it out: longer than another one takes to take over. */
const OWNER_MS_MAX = 10_000;
/** A read waits so long at most until this node has what was seen before: then another node is asked. */
export const READ_MS_MAX = 1_000;
/** How often it is looked at whether the node is still there while it does not answer. */
const WATCH_MS = 1_000;

export class Forwarding {
  readonly cluster: Cluster;
  readonly #secret: () => Uint8Array;
  readonly #logger: Logger;
  readonly #count: ReturnType<Metrics['addCounter']>;
  // Only with a timeout of its own, Node's agent also ends a connection before the other node does.
  readonly #http = new HttpAgent({ keepAlive: true, timeout: IDLE_MS_MAX });
  readonly #https = new HttpsAgent({ keepAlive: true, timeout: IDLE_MS_MAX });
  #key: Buffer | undefined;
  readonly #seen: SeenPositions;
  /** Nodes that did not answer: until when others are asked first, by instance. */
  readonly #restsUntilMs = new Map<string, number>();
  #turn = 0;

  constructor({ cluster, secret, metrics, logger }: ForwardingOptions) {
    this.cluster = cluster;
    this.#seen = new SeenPositions((incarnation) => cluster.holds(incarnation));
    this.#secret = secret;
    this.#logger = logger;
    this.#count = metrics.addCounter(
      'sagitta_cluster_forwarded_requests_total',
      'Requests that this node has sent to one that carries them out, by whether that replied.',
      { name: 'outcome', values: ['replied', 'failed'] },
    );
  }

  /** What another node has found; null for a request of a client. Throws `credentials_invalid`. */
  read({ headers, method, url, id }: FastifyRequest): ForwardedRequest | null {
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

  /** Waits for what the other node had when it forwarded the request. Throws `no_leader` when that does not come. */
  async whenReached({ positions }: ForwardedRequest, isRead: boolean): Promise<void> {
    const msMax = isRead ? READ_MS_MAX : OWNER_MS_MAX;
    try {
      await this.cluster.whenApplied(positions, AbortSignal.timeout(msMax));
    } catch (cause) {
      throw noLeaderError(cause);
    }
  }

  /**
   * Begins a write of a collection, or with null of the catalogue, on this node. Returns the function that ends it;
   * null when it is one for another node. Throws `no_leader` when there is no node for it.
   */
  async beginWrite(
    incarnation: string | null,
    forwarded: ForwardedRequest | null,
  ): Promise<(() => void) | null> {
    if (this.cluster.owns(incarnation)) return this.cluster.beginWrite(incarnation);
    if (incarnation === null && forwarded?.needsRows === true) {
      await this.cluster.acquireCatalogue();
      return this.cluster.beginWrite(null);
    }
    await this.cluster
      .findOwner(incarnation, AbortSignal.timeout(OWNER_MS_MAX))
      .catch((cause: unknown) => {
        const isHeld = incarnation === null || this.cluster.holds(incarnation);
        throw isHeld ? noLeaderError(cause) : this.noHolder([incarnation], cause);
      });
    if (this.cluster.owns(incarnation)) return this.cluster.beginWrite(incarnation);
    // This node may be about to own the log; but nodes that take each other for the owner do not send it to and fro.
    if (forwarded !== null && forwarded.hopCount >= HOPS_MAX) throw noLeaderError();
    return null;
  }

  /** Headers of the reply to a request of another node, or to one of a client that is authorized. */
  replyHeaders(request: FastifyRequest): Readonly<Record<string, string>> {
    const { forwarded, incarnations, telemetry } = request;
    if (forwarded === null) return this.#sessionHeader(incarnations ?? []);
    const { startedAtMs, auditTarget } = telemetry;
    const applied = incarnations && {
      ...this.#newTo(forwarded.positions),
      ...this.cluster.writtenSince(startedAtMs, incarnations),
    };
    return {
      ...(applied && { [APPLIED]: JSON.stringify(applied) }),
      ...(auditTarget !== null && { [AUDIT_TARGET]: encodeURIComponent(auditTarget) }),
    };
  }

  /** Of the catalogue, where the other node has less: it may not know the collection that the request is about. */
  #newTo(positions: LogPositions): LogPositions {
    const own = Object.entries(this.cluster.cataloguePositions);
    return Object.fromEntries(own.filter(([log, position]) => position > (positions[log] ?? 0)));
  }

  /** `elsewhere`: up to where the node has the logs that has carried the request out. */
  #sessionHeader(
    incarnations: readonly string[],
    elsewhere: LogPositions = {},
  ): Readonly<Record<string, string>> {
    const { cataloguePositions } = this.cluster;
    const held = { ...cataloguePositions, ...this.cluster.positionsOf(incarnations) };
    const named = Object.entries(elsewhere).filter(
      ([log]) => log in cataloguePositions || incarnations.includes(log),
    );
    const shown = laterOf(held, this.#seen.of(incarnations), Object.fromEntries(named));
    return { [SESSION]: writeSession(shown) };
  }

  /**
   * Sends the request to the node that carries out the writes of a collection, or with null of the catalogue, and its
   * reply to the client. `body` is what was read of the body; null when nothing was. `isRead`: it changes nothing. Throws
   * `no_leader`, and `outcome_unknown`.
   */
  async forward(
    request: FastifyRequest,
    reply: FastifyReply,
    {
      incarnation,
      body,
      isRead = false,
    }: {
      readonly incarnation: string | null;
      readonly body: Uint8Array | null;
      readonly isRead?: boolean;
    },
  ): Promise<FastifyReply> {
    const url = this.cluster.ownerOf(incarnation)?.url;
    if (url === undefined) throw noLeaderError();
    const signal = abortedWith(request, reply);
    const incarnations = incarnation === null ? [] : [incarnation];
    // The other node has a time for it, and another one for streams.
    clearBodyTimeout(request.raw);
    const found = await this.#send(request, reply, { url, incarnations, body, isRead, signal });
    return await this.#passOn(request, reply, { found, incarnations, isRead, signal });
  }

  /**
   * Sends a request to a node that holds all of some collections, and its reply to the client; to another one where a
   * node does not answer. `needsRows`: a change of the catalogue, which that node is to carry out. Throws `no_holder`,
   * `collections_apart`, and the reason of the deadline.
   */
  async forwardToHolder(
    request: FastifyRequest,
    reply: FastifyReply,
    options: {
      readonly incarnations: readonly string[];
      readonly body: Uint8Array;
      readonly needsRows: boolean;
      /** Ends the request to the other node until it replies; null for none. */
      readonly deadline: AbortSignal | null;
    },
  ): Promise<FastifyReply> {
    const { incarnations, body, needsRows, deadline } = options;
    if ((request.forwarded?.hopCount ?? 0) >= HOPS_MAX) throw this.noHolder(incarnations);
    this.#requireTogether(incarnations);
    const holders = this.holdersOf(incarnations);
    const closed = abortedWith(request, reply);
    const signal = deadline === null ? closed : AbortSignal.any([closed, deadline]);
    let failure: unknown;
    for (const [i, { instance, url }] of holders.entries()) {
      try {
        const sent = { url, incarnations, body, needsRows, isRead: !needsRows, signal };
        const found = await this.#send(request, reply, sent);
        // Such a node is starting, stopping or late: another one may not be.
        const isUnable = found.statusCode === 503;
        if (isUnable) this.askLater(instance);
        else this.#restsUntilMs.delete(instance);
        if (isUnable && !needsRows && i + 1 < holders.length) {
          found.resume();
          continue;
        }
        const passed = { found, incarnations, isRead: !needsRows, signal: closed };
        return await this.#passOn(request, reply, passed);
      } catch (error) {
        deadline?.throwIfAborted();
        // What became of a change is not known, so it is not made twice.
        if (closed.aborted || reply.sent || (needsRows && isSent(error))) throw error;
        this.askLater(instance);
        failure = error;
      }
    }
    throw this.noHolder(incarnations, failure);
  }

  /** The nodes that hold all of some collections and serve; those that have not answered lately are the last ones. */
  holdersOf(incarnations: readonly string[]): ClusterMember[] {
    const { self, present } = this.cluster;
    const nowMs = performance.now();
    const rests = ({ instance }: ClusterMember) =>
      (this.#restsUntilMs.get(instance) ?? 0) > nowMs ? 1 : 0;
    const holders = present.filter(
      ({ instance, node, state, url }) =>
        instance !== self.instance &&
        state === 'serving' &&
        url !== '' &&
        incarnations.every((incarnation) => this.#nodesOf(incarnation)?.includes(node) ?? true),
    );
    this.#turn++;
    const first = this.#turn % Math.max(1, holders.length);
    return [...holders.slice(first), ...holders.slice(0, first)].sort(
      (a, b) => rests(a) - rests(b),
    );
  }

  /** A node has not answered: `holdersOf` gives it as the last one for a while. */
  askLater(instance: string): void {
    const nowMs = performance.now();
    for (const [other, untilMs] of this.#restsUntilMs) {
      if (untilMs <= nowMs) this.#restsUntilMs.delete(other);
    }
    this.#restsUntilMs.set(instance, nowMs + REST_MS);
  }

  /** Null for all nodes. */
  #nodesOf(incarnation: string): readonly string[] | null {
    return this.cluster.placementOf(incarnation)?.nodes ?? null;
  }

  /** Throws `collections_apart`. */
  #requireTogether(incarnations: readonly string[]): void {
    const placed = incarnations.flatMap((incarnation) => {
      const nodes = this.#nodesOf(incarnation);
      return nodes === null ? [] : [nodes];
    });
    const [first = [], ...others] = placed;
    const isTogether = first.some((node) => others.every((nodes) => nodes.includes(node)));
    if (placed.length < 2 || isTogether) return;
    throw new SagittaError(
      'collections_apart',
      `No node holds both collections: one is on ${first.join(', ')}, the other on ${others[0]!.join(', ')}. A request about two collections needs a node that holds both. Create them with a higher replication_factor, or with none: all nodes then hold them.`,
    );
  }

  /** For a request that no node can answer which holds these collections. */
  noHolder(incarnations: readonly string[], cause?: unknown): SagittaError {
    const names = [...new Set(incarnations.flatMap((each) => this.#nodesOf(each) ?? []))];
    const where =
      names.length === 0 ? 'No node' : `Its rows are on ${names.join(', ')}, and no such node`;
    return new SagittaError(
      'no_holder',
      `${where} answers at the moment. Nothing was read or written. Start a node that holds the collection, or retry after 1 s.`,
      { cause, retryAfterSeconds: 1 },
    );
  }

  async #passOn(
    request: FastifyRequest,
    reply: FastifyReply,
    {
      found,
      incarnations,
      isRead,
      signal,
    }: {
      readonly found: IncomingMessage;
      readonly incarnations: readonly string[];
      readonly isRead: boolean;
      readonly signal: AbortSignal;
    },
  ): Promise<FastifyReply> {
    const { [APPLIED]: applied, [AUDIT_TARGET]: target } = found.headers;
    // Not with a reply to a request that the other node has not authorized.
    if (typeof applied === 'string') {
      const positions = JSON.parse(applied) as LogPositions;
      // Also one that this node did not know.
      const named = Object.keys(positions).filter(
        (log) => !(log in this.cluster.cataloguePositions),
      );
      const all = [...new Set([...incarnations, ...named])];
      await this.#whenApplied(positions, { incarnations: all, isRead, signal });
      if (request.forwarded === null) reply.headers(this.#sessionHeader(all, positions));
    }
    const status = found.statusCode ?? 502;
    const isText = typeof target === 'string';
    request.telemetry.carriedOut(status, isText ? decodeURIComponent(target) : null);
    const dropped = request.forwarded === null ? [...HOP_HEADERS, ...INNER_HEADERS] : HOP_HEADERS;
    const headers = Object.entries(found.headers).filter(([name]) => !dropped.includes(name));
    reply.code(status).headers(Object.fromEntries(headers));
    return reply.send(Readable.from(bodyOf(found, reply)));
  }

  close(): void {
    this.#http.destroy();
    this.#https.destroy();
  }

  async #whenApplied(
    positions: LogPositions,
    {
      incarnations,
      isRead,
      signal,
    }: {
      readonly incarnations: readonly string[];
      readonly isRead: boolean;
      readonly signal: AbortSignal;
    },
  ): Promise<void> {
    const timeout = AbortSignal.timeout(isRead ? READ_MS_MAX : APPLY_MS_MAX);
    this.noteSeen(incarnations, positions);
    try {
      await this.cluster.whenApplied(positions, AbortSignal.any([timeout, signal]));
    } catch (err) {
      // Of a read, the client is told what it has seen.
      if (signal.aborted || isRead) return;
      this.#logger.warn(
        { err },
        'this node is late: a write was confirmed before it was applied here',
      );
    }
  }

  /** What a client sees of collections; later replies through this node do not go back behind it. */
  noteSeen(incarnations: readonly string[], positions: LogPositions): void {
    for (const incarnation of incarnations) {
      const { [incarnation]: position = 0 } = positions;
      if (!this.cluster.holds(incarnation)) this.#seen.note(incarnation, position);
    }
  }

  async #send(
    request: FastifyRequest,
    reply: FastifyReply,
    options: SendOptions,
  ): Promise<IncomingMessage> {
    try {
      const found = await this.#request(request, reply, options);
      this.#count(1, { outcome: 'replied' });
      return found;
    } catch (error) {
      this.#count(1, { outcome: 'failed' });
      throw error;
    }
  }

  #request(
    request: FastifyRequest,
    reply: FastifyReply,
    { url: memberUrl, incarnations, body, needsRows = false, isRead, signal }: SendOptions,
  ): Promise<IncomingMessage> {
    const framing = framingOf(request, body);
    const headers = {
      ...this.#headersFor(request, { incarnations, needsRows }),
      ...framing,
    };
    return new Promise((resolve, reject) => {
      let isConnected = false;
      const sent = this.#open(memberUrl, originForm(request.url), {
        method: request.method,
        headers,
        signal,
      });
      const timer = setTimeout(() => sent.destroy(), CONNECT_MS_MAX);
      // A machine that is gone closes no connection.
      const watch = setInterval(() => {
        if (!this.cluster.present.some((member) => member.url === memberUrl)) sent.destroy();
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
        else reject(isRead ? noAnswer(cause) : new LostReply(cause));
      });
      if (body !== null || framing === null) {
        sent.end(framing === null ? undefined : body);
        return;
      }
      sendContinue(request.raw);
      request.raw.pipe(sent);
    });
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

  #headersFor(
    request: FastifyRequest,
    {
      incarnations,
      needsRows,
    }: Pick<SendOptions, 'incarnations'> & { readonly needsRows: boolean },
  ): Record<string, string | string[]> {
    const headers: Record<string, string | string[]> = {};
    for (const [name, value] of Object.entries(request.headers)) {
      // Those of HTTP/2 that begin with a colon are the method, the path and so on.
      if (value === undefined || name.startsWith(':') || OWN_HEADERS.includes(name)) continue;
      headers[name] = value;
    }
    const hopCount = 1 + (request.forwarded?.hopCount ?? 0);
    const positions = laterOf(request.forwarded?.positions ?? {}, this.#seen.of(incarnations));
    const forwarded = { principal: request.principal, hopCount, positions, needsRows };
    return { ...headers, ...this.#sign(request, forwarded) };
  }

  #sign(
    { method, url, id }: Pick<FastifyRequest, 'method' | 'url' | 'id'>,
    forwarded: Omit<ForwardedRequest, 'positions'> & { readonly positions?: LogPositions },
  ): Record<string, string> {
    const positions = { ...forwarded.positions, ...this.cluster.cataloguePositions };
    const sent: ForwardedRequest = { ...forwarded, positions };
    const text = Buffer.from(JSON.stringify(sent)).toString('base64url');
    const digest = this.#digestOf([method, originForm(url), id, text]).toString('base64url');
    return { 'x-request-id': id, [FORWARDED]: `${text}.${digest}` };
  }

  /** Asks another node for something, in place of a principal. Rejects when it does not answer. */
  async ask(
    member: ClusterMember,
    { method, path, body = '', principal, incarnations = [], id = randomUUID() }: NodeRequest,
    signal: AbortSignal,
  ): Promise<NodeReply> {
    const sent = this.#open(member.url, path, {
      method,
      headers: {
        ...(body !== '' && {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
        }),
        ...this.#sign(
          { method, url: path, id },
          { principal, hopCount: HOPS_MAX, positions: this.#seen.of(incarnations) },
        ),
      },
      signal,
    });
    sent.end(body);
    const [reply] = (await once(sent, 'response')) as [IncomingMessage];
    return { status: reply.statusCode ?? 502, text: await readText(reply) };
  }

  #digestOf(parts: readonly string[]): Buffer {
    this.#key ??= createHmac('sha256', this.#secret()).update('forwarded requests').digest();
    return createHmac('sha256', this.#key).update(JSON.stringify(parts)).digest();
  }
}

interface SendOptions {
  readonly url: string;
  /** Of the collections that it is about. */
  readonly incarnations: readonly string[];
  /** What was read of the body; null when nothing was. */
  readonly body: Uint8Array | null;
  readonly needsRows?: boolean;
  /** Whether it changes nothing. */
  readonly isRead: boolean;
  readonly signal: AbortSignal;
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

/** Aborted when nobody waits for the reply any more. */
function abortedWith(request: FastifyRequest, reply: FastifyReply): AbortSignal {
  const aborted = new AbortController();
  onReplyClosed(request.raw, reply.raw, () => aborted.abort());
  return aborted.signal;
}

/** Whether a request has reached the other node, which may have carried it out. */
function isSent(error: unknown): boolean {
  return error instanceof LostReply;
}

/** Some principals are told from others by identity. */
function knownPrincipal(principal: Principal): Principal {
  const text = JSON.stringify(principal);
  return [NOBODY, EVERYBODY, OPERATOR].find((known) => JSON.stringify(known) === text) ?? principal;
}

/** Of a reply, which may end early: then the client must not take what it has for all of it. */
async function* bodyOf(found: IncomingMessage, reply: FastifyReply): AsyncGenerator<Buffer> {
  let last: number | undefined;
  try {
    for await (const chunk of found as AsyncIterable<Buffer>) {
      last = chunk.at(-1) ?? last;
      yield chunk;
    }
  } catch (cause) {
    const error = noAnswer(cause as Error);
    if (found.headers['content-type']?.startsWith(NDJSON) === true) {
      const { body } = problemReply(error, problemContextOf(reply.request));
      yield Buffer.from(
        `${last === LINE_FEED || last === undefined ? '' : '\n'}{"error":${body}}\n`,
      );
    }
    await abortAfterFlush(reply.raw);
    throw error;
  }
}

/** For a request that changes nothing. */
function noAnswer(cause: Error): SagittaError {
  return new SagittaError(
    'no_holder',
    `The node that was asked did not answer to the end (${cause.message}). Retry after 1 s.`,
    { cause, retryAfterSeconds: 1 },
  );
}

/** For a request that was sent to another node. */
class LostReply extends SagittaError {
  constructor(cause: Error) {
    super(
      'outcome_unknown',
      `The node that carries out writes did not answer (${cause.message}), so whether this one took effect is not known. Send it again with its idempotency key, or read what it was to write.`,
      { cause },
    );
  }
}
