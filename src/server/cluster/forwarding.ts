// In a cluster one node carries out the writes of a collection, and one those of the catalogue. The others authenticate
// a write, send it there as it is, with the principal that they have found, and pass the reply on when they have applied
// the write themselves: whoever reads from the same node afterwards finds it. What a node does not hold is read on one
// that does: that one waits for what the client has seen through the first.

import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Principal } from '../../common/access.js';
import { noLeaderError, SagittaError } from '../../common/errors.js';
import type { Logger } from '../../common/logger.js';
import type { Metrics } from '../../platform/metrics.js';
import type { NodeKeys } from '../../platform/node-keys.js';
import { createAuditLimiter } from '../telemetry/request-telemetry.js';
import { abortAfterFlush, clearBodyTimeout, onReplyClosed } from '../transport/connections.js';
import { type LogPositions, SESSION, writeSession } from '../wire/consistency.js';
import { NDJSON } from '../wire/media-types.js';
import { problemContextOf, problemReply } from '../wire/problem.js';
import type { Cluster, ClusterMember } from './cluster.js';
import {
  HOP_HEADERS,
  LostReply,
  NodeClient,
  type NodeReply,
  noAnswerError,
  type ReceivedRequest,
} from './node-client.js';
import type { ForwardedRequest } from './request-signature.js';
import { laterOf, SeenPositions } from './seen-positions.js';

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

export interface ForwardingOptions {
  readonly cluster: Cluster;
  /** What the nodes sign with. */
  readonly keys: NodeKeys;
  readonly metrics: Metrics;
  readonly logger: Logger;
}

const APPLIED = 'sagitta-applied';
const AUDIT_TARGET = 'sagitta-audit-target';
/** Between the nodes only. */
const INNER_HEADERS = [APPLIED, AUDIT_TARGET];
const LINE_FEED = 10;
/** A node may know less than the one that it forwards a request to; while a collection moves, all of them may. */
const HOPS_MAX = 4;
/** A node that did not answer is asked again only after the others, for so long. */
const REST_MS = 5_000;
/** A reply waits so long at most for the write to be applied here, too. */
const APPLY_MS_MAX = 10_000;
/** A write waits so long at most until a node can carry it out: longer than another one takes to take over. */
const OWNER_MS_MAX = 10_000;
/** A read waits so long at most until this node has what was seen before: then another node is asked. */
export const READ_MS_MAX = 1_000;

export class Forwarding {
  readonly cluster: Cluster;
  readonly #nodes: NodeClient;
  readonly #logger: Logger;
  readonly #count: ReturnType<Metrics['addCounter']>;
  readonly #seen: SeenPositions;
  /** Nodes that did not answer: until when others are asked first, by instance. */
  readonly #restsUntilMs = new Map<string, number>();
  #turn = 0;
  /** Anybody may send such requests. */
  readonly #refused = createAuditLimiter();

  constructor({ cluster, keys, metrics, logger }: ForwardingOptions) {
    this.cluster = cluster;
    this.#seen = new SeenPositions((incarnation) => cluster.holds(incarnation));
    this.#nodes = new NodeClient(cluster, keys);
    this.#logger = logger;
    this.#count = metrics.addCounter('sagitta_cluster_forwarded_requests_total');
  }

  /**
   * What another node has sent along; null for a request of a client. Throws `credentials_invalid`, and `no_leader` for
   * one that is late.
   */
  read(request: FastifyRequest): ReceivedRequest | null {
    try {
      return this.#nodes.read(request);
    } catch (err) {
      const unlogged = this.#refused.next() - 1;
      if (unlogged >= 0) {
        const { ip: client, id: request_id, method } = request;
        this.#logger.warn(
          { err, client, request_id, method, ...(unlogged > 0 && { unlogged }) },
          'refused a request in the name of a node',
        );
      }
      throw err;
    }
  }

  /** Waits for what the other node had when it forwarded the request. Throws `no_leader` when that does not come. */
  async whenReached({ positions }: ForwardedRequest, isRead: boolean): Promise<void> {
    const msMax = isRead ? READ_MS_MAX : OWNER_MS_MAX;
    try {
      await this.cluster.progress.whenApplied(positions, AbortSignal.timeout(msMax));
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
      ...this.cluster.progress.writtenSince(startedAtMs, incarnations),
    };
    return {
      ...(applied && { [APPLIED]: JSON.stringify(applied) }),
      ...(auditTarget !== null && { [AUDIT_TARGET]: encodeURIComponent(auditTarget) }),
    };
  }

  /** Of the catalogue, where the other node has less: it may not know the collection that the request is about. */
  #newTo(positions: LogPositions): LogPositions {
    const own = Object.entries(this.cluster.progress.cataloguePositions);
    return Object.fromEntries(own.filter(([log, position]) => position > (positions[log] ?? 0)));
  }

  /** `elsewhere`: up to where the node has the logs that has carried the request out. */
  #sessionHeader(
    incarnations: readonly string[],
    elsewhere: LogPositions = {},
  ): Readonly<Record<string, string>> {
    const { cataloguePositions } = this.cluster.progress;
    const held = { ...cataloguePositions, ...this.cluster.progress.positionsOf(incarnations) };
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
    const member = this.cluster.ownerOf(incarnation);
    if (member === null) throw noLeaderError();
    const signal = abortedWith(request, reply);
    const incarnations = incarnation === null ? [] : [incarnation];
    // The other node has a time for it, and another one for streams.
    clearBodyTimeout(request.raw);
    const found = await this.#send(request, reply, { member, incarnations, body, isRead, signal });
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
    for (const [i, member] of holders.entries()) {
      const { instance } = member;
      try {
        const sent = { member, incarnations, body, needsRows, isRead: !needsRows, signal };
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
        (log) => !(log in this.cluster.progress.cataloguePositions),
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
    this.#nodes.close();
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
      await this.cluster.progress.whenApplied(positions, AbortSignal.any([timeout, signal]));
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
    { incarnations, needsRows = false, ...options }: SendOptions,
  ): Promise<IncomingMessage> {
    const { principal, forwarded } = request;
    const hopCount = 1 + (forwarded?.hopCount ?? 0);
    const positions = laterOf(forwarded?.positions ?? {}, this.#seen.of(incarnations));
    const client = forwarded?.client ?? request.telemetry.client;
    const via = forwarded?.via ?? this.cluster.self.node;
    const sent = { principal, client, via, hopCount, positions, needsRows };
    try {
      const found = await this.#nodes.send(request, reply, sent, options);
      this.#count(1, { outcome: 'replied' });
      return found;
    } catch (error) {
      this.#count(1, { outcome: 'failed' });
      throw error;
    }
  }

  /** Asks another node for something, in place of a principal. Rejects when it does not answer. */
  ask(
    member: ClusterMember,
    { method, path, body = '', principal, incarnations = [], id = randomUUID() }: NodeRequest,
    signal: AbortSignal,
  ): Promise<NodeReply> {
    const sent = {
      principal,
      client: 'local',
      via: this.cluster.self.node,
      hopCount: HOPS_MAX,
      positions: this.#seen.of(incarnations),
    };
    return this.#nodes.ask(member, { method, path, body, id }, sent, signal);
  }
}

interface SendOptions {
  readonly member: ClusterMember;
  /** Of the collections that it is about. */
  readonly incarnations: readonly string[];
  /** What was read of the body; null when nothing was. */
  readonly body: Uint8Array | null;
  readonly needsRows?: boolean;
  /** Whether it changes nothing. */
  readonly isRead: boolean;
  readonly signal: AbortSignal;
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

/** Of a reply, which may end early: then the client must not take what it has for all of it. */
async function* bodyOf(found: IncomingMessage, reply: FastifyReply): AsyncGenerator<Buffer> {
  let last: number | undefined;
  try {
    for await (const chunk of found as AsyncIterable<Buffer>) {
      last = chunk.at(-1) ?? last;
      yield chunk;
    }
  } catch (cause) {
    const error = noAnswerError(cause as Error);
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
