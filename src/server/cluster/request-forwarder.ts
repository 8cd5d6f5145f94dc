// Forwards requests between the nodes of a cluster. Each collection has one node that carries out its writes, and
// so has the catalogue. Another node authenticates a write, forwards it with the principal, and relays the reply
// after it has applied the write itself, so that later reads through it reflect the write. A read of a collection
// that a node does not hold is forwarded to a replica, which first waits for what the client has seen through the
// forwarding node.

import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Principal } from '../../common/access.js';
import { anySignal } from '../../common/cancel-signal.js';
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
import { HighWaterMarks, laterOf } from './high-water-marks.js';
import {
  HOP_HEADERS,
  NodeClient,
  type NodeReply,
  noAnswerError,
  OutcomeUnknownError,
  type ReceivedRequest,
} from './node-client.js';
import { PeerStates } from './peer-states.js';
import type { ForwardedRequest } from './request-signature.js';

/** Where a request runs. */
export type Destination = 'here' | OtherNode;

export type OtherNode =
  /** The owner of a collection, or of the catalogue if null. */
  | { readonly kind: 'owner'; readonly incarnation: string | null; readonly isRead: boolean }
  /** A node that holds all of the collections. `isChange`: it takes over the catalogue, which the request changes. */
  | {
      readonly kind: 'replica';
      readonly incarnations: readonly string[];
      readonly isChange: boolean;
    };

interface ForwardOptions {
  /** The body; null if it has not been read yet. */
  readonly body: Uint8Array | null;
  /** Aborts a request to a replica until it replies; null for no deadline. */
  readonly deadline: AbortSignal | null;
}

/** A request that a node makes itself. */
export interface NodeRequest {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  /** JSON. */
  readonly body?: string;
  /** The principal on whose behalf the request is made. */
  readonly principal: Principal;
  /** The collections that the request reads: the other node waits for what was seen of them here. */
  readonly incarnations?: readonly string[];
  readonly id?: string;
}

export interface RequestForwarderOptions {
  readonly cluster: Cluster;
  /** The keys that nodes sign requests with. */
  readonly keys: NodeKeys;
  readonly metrics: Metrics;
  readonly logger: Logger;
}

const APPLIED = 'sagitta-applied';
const AUDIT_TARGET = 'sagitta-audit-target';
/** Headers of replies between nodes, which clients do not get. */
const INTERNAL_HEADERS = [APPLIED, AUDIT_TARGET];
const LINE_FEED = 10;
/** Nodes may have outdated knowledge of the owner, all of them while a collection moves. */
const HOPS_MAX = 4;
/** How long a relayed reply waits until this node has applied the write too. */
const APPLY_MS_MAX = 5_000;
/**
 * How long a write waits for an owner, on all nodes together: longer than a failover takes, and so short that clients get
 * an answer within ten seconds.
 */
export const OWNER_MS_MAX = 8_000;
/** How long a read waits until this node has applied what the client has seen; then another node is asked. */
export const READ_MS_MAX = 1_000;

export class RequestForwarder {
  readonly cluster: Cluster;
  readonly peers: PeerStates;
  readonly #nodes: NodeClient;
  readonly #logger: Logger;
  readonly #count: ReturnType<Metrics['addCounter']>;
  readonly #marks: HighWaterMarks;
  /** Rotates over replicas. */
  #turn = 0;
  /** Limits log lines about forged requests, which anyone can send. */
  readonly #refusedLimiter = createAuditLimiter();

  constructor({ cluster, keys, metrics, logger }: RequestForwarderOptions) {
    this.cluster = cluster;
    this.#marks = new HighWaterMarks((incarnation) => cluster.holds(incarnation));
    this.#nodes = new NodeClient(cluster, keys);
    const ping = this.#nodes.ping.bind(this.#nodes);
    this.peers = new PeerStates({ cluster, ping });
    this.#logger = logger;
    this.#count = metrics.addCounter('sagitta_cluster_forwarded_requests_total');
  }

  /**
   * The data that another node has forwarded; null for a request of a client. Throws `credentials_invalid`, and
   * `no_leader` for a request that is too old.
   */
  read(request: FastifyRequest): ReceivedRequest | null {
    try {
      return this.#nodes.read(request);
    } catch (err) {
      const unlogged = this.#refusedLimiter.next() - 1;
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

  /** Waits until this node has applied what the forwarding node had applied. Throws `no_leader` after a timeout. */
  async whenCaughtUp(forwarded: ForwardedRequest, isRead: boolean): Promise<void> {
    const { positions } = forwarded;
    const msMax = isRead ? READ_MS_MAX : ownerMsMax(forwarded);
    try {
      await this.cluster.progress.whenApplied(positions, AbortSignal.timeout(msMax));
    } catch (cause) {
      throw noLeaderError(cause);
    }
  }

  /**
   * Begins a write of a collection, or of the catalogue if null, on this node. Returns the function that ends it, or
   * null if another node is the owner. Throws `no_leader` if there is no owner.
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
    await this.#whenOwned(incarnation, ownerMsMax(forwarded));
    if (this.cluster.owns(incarnation)) return this.cluster.beginWrite(incarnation);
    // This node may become the owner soon, but two nodes that regard each other as the owner must not loop.
    if (forwarded !== null && forwarded.hopCount >= HOPS_MAX) throw noLeaderError();
    return null;
  }

  /** Resolves once a write can be forwarded. Throws `no_leader` and `no_holder` after a timeout. */
  async #whenOwned(incarnation: string | null, msMax: number): Promise<void> {
    const isKnown = () => this.#ownerOf(incarnation) !== null || null;
    try {
      await this.cluster.changes.until(isKnown, AbortSignal.timeout(msMax));
    } catch (cause) {
      const isHeld = incarnation === null || this.cluster.holds(incarnation);
      throw isHeld ? noLeaderError(cause) : this.noHolderError([incarnation], cause);
    }
  }

  /** The owner or, of a collection that this node does not hold, a node that holds it, which knows the owner. */
  #ownerOf(incarnation: string | null): ClusterMember | null {
    const isHeld = incarnation === null || this.cluster.holds(incarnation);
    return isHeld ? this.cluster.ownerOf(incarnation) : (this.replicasOf([incarnation])[0] ?? null);
  }

  /** Headers of the reply to a forwarded request, or to an authorized request of a client. */
  replyHeaders(request: FastifyRequest): Readonly<Record<string, string>> {
    const { forwarded, incarnations, telemetry } = request;
    if (forwarded === null) return this.#sessionHeader(incarnations ?? []);
    const { startedAtMs, auditTarget } = telemetry;
    const applied =
      incarnations &&
      laterOf(
        this.#newTo(forwarded.positions),
        this.cluster.progress.writtenSince(startedAtMs, incarnations),
        this.#marks.of(incarnations),
      );
    return {
      ...(applied && { [APPLIED]: JSON.stringify(applied) }),
      ...(auditTarget !== null && { [AUDIT_TARGET]: encodeURIComponent(auditTarget) }),
    };
  }

  /** Positions of the catalogue beyond those given: the other node may not know the collection of the request. */
  #newTo(positions: LogPositions): LogPositions {
    const own = Object.entries(this.cluster.progress.cataloguePositions);
    return Object.fromEntries(own.filter(([log, position]) => position > (positions[log] ?? 0)));
  }

  /** `remote`: the positions of the node that has carried out the request. */
  #sessionHeader(
    incarnations: readonly string[],
    remote: LogPositions = {},
  ): Readonly<Record<string, string>> {
    const { cataloguePositions } = this.cluster.progress;
    const held = { ...cataloguePositions, ...this.cluster.progress.positionsOf(incarnations) };
    const named = Object.entries(remote).filter(
      ([log]) => log in cataloguePositions || incarnations.includes(log),
    );
    const shown = laterOf(held, this.#marks.of(incarnations), Object.fromEntries(named));
    return { [SESSION]: writeSession(shown) };
  }

  /**
   * Forwards the request and relays the reply. Throws `no_leader`, `outcome_unknown`, `no_holder`, `collections_apart`,
   * and the reason of the deadline.
   */
  async forward(
    request: FastifyRequest,
    reply: FastifyReply,
    destination: OtherNode,
    options: ForwardOptions,
  ): Promise<FastifyReply> {
    // The other node applies its own timeouts for bodies and streams.
    if (options.body === null) clearBodyTimeout(request.raw);
    return destination.kind === 'owner'
      ? await this.#forwardToOwner(request, reply, destination, options)
      : await this.#forwardToReplica(request, reply, destination, options);
  }

  async #forwardToOwner(
    request: FastifyRequest,
    reply: FastifyReply,
    { incarnation, isRead }: OtherNode & { readonly kind: 'owner' },
    { body }: ForwardOptions,
  ): Promise<FastifyReply> {
    const member = this.#ownerOf(incarnation);
    if (member === null) throw noLeaderError();
    const signal = clientSignal(request, reply);
    const incarnations = incarnation === null ? [] : [incarnation];
    const found = await this.#send(request, reply, { member, incarnations, body, isRead, signal });
    return await this.#passOn(request, reply, { found, incarnations, isRead, signal });
  }

  /** Tries the next replica if one does not answer, unless it may have read the body from the client. */
  async #forwardToReplica(
    request: FastifyRequest,
    reply: FastifyReply,
    { incarnations, isChange }: OtherNode & { readonly kind: 'replica' },
    { body, deadline }: ForwardOptions,
  ): Promise<FastifyReply> {
    if ((request.forwarded?.hopCount ?? 0) >= HOPS_MAX) throw this.noHolderError(incarnations);
    this.#requireTogether(incarnations);
    const replicas = this.replicasOf(incarnations).slice(0, body === null ? 1 : undefined);
    const closed = clientSignal(request, reply);
    const signal = deadline === null ? closed : anySignal([closed, deadline]);
    const isRead = !isChange;
    let failure: unknown;
    for (const [i, member] of replicas.entries()) {
      try {
        const sent = { member, incarnations, body, needsRows: isChange, isRead, signal };
        const found = await this.#send(request, reply, sent);
        // The node is starting, stopping or late; another one may be able to answer.
        const isUnable = found.statusCode === 503;
        if (isUnable) this.peers.requestFailed(member);
        else this.peers.requestAnswered(member);
        if (isUnable && isRead && i + 1 < replicas.length) {
          found.resume();
          continue;
        }
        const passed = { found, incarnations, isRead, signal: closed };
        return await this.#passOn(request, reply, passed);
      } catch (error) {
        deadline?.throwIfAborted();
        // A change that may have taken effect must not be made twice.
        const isUncertain = isChange && error instanceof OutcomeUnknownError;
        if (closed.aborted || reply.sent || isUncertain) throw error;
        this.peers.requestFailed(member);
        failure = error;
      }
    }
    throw this.noHolderError(incarnations, failure);
  }

  /** The other serving nodes that hold all of the collections, in rotation; those that do not answer come last. */
  replicasOf(incarnations: readonly string[]): ClusterMember[] {
    const { self, present } = this.cluster;
    const isAvoided = (member: ClusterMember) => Number(this.peers.isAvoided(member));
    const replicas = present.filter(
      ({ instance, node, state, url }) =>
        instance !== self.instance &&
        state === 'serving' &&
        url !== '' &&
        incarnations.every((incarnation) => this.#nodesOf(incarnation)?.includes(node) ?? true),
    );
    this.#turn++;
    const first = this.#turn % Math.max(1, replicas.length);
    return [...replicas.slice(first), ...replicas.slice(0, first)].sort(
      (a, b) => isAvoided(a) - isAvoided(b),
    );
  }

  /** Null if all nodes hold the collection. */
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
      `No node holds both collections: one is on ${first.join(', ')}, the other on ${others[0]!.join(', ')}. A request about two collections needs a node that holds both. Create them with a higher replication_factor, or without one, so that all nodes hold them.`,
    );
  }

  /** The error if no replica of the collections answers. */
  noHolderError(incarnations: readonly string[], cause?: unknown): SagittaError {
    const names = [...new Set(incarnations.flatMap((each) => this.#nodesOf(each) ?? []))];
    const where =
      names.length === 0
        ? 'No node'
        : `The rows are on ${names.join(', ')}, and none of these nodes`;
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
    // Absent if the other node has not authorized the request.
    if (typeof applied === 'string') {
      const positions = JSON.parse(applied) as LogPositions;
      // The reply may be about a collection that this node did not know.
      const named = Object.keys(positions).filter(
        (log) => !(log in this.cluster.progress.cataloguePositions),
      );
      const all = [...new Set([...incarnations, ...named])];
      await this.whenApplied(positions, { incarnations: all, isRead, signal });
      if (request.forwarded === null) reply.headers(this.#sessionHeader(all, positions));
    }
    const status = found.statusCode ?? 502;
    const isText = typeof target === 'string';
    request.telemetry.requestForwarded(status, isText ? decodeURIComponent(target) : null);
    const dropped =
      request.forwarded === null ? [...HOP_HEADERS, ...INTERNAL_HEADERS] : HOP_HEADERS;
    const headers = Object.entries(found.headers).filter(([name]) => !dropped.includes(name));
    reply.code(status).headers(Object.fromEntries(headers));
    return reply.send(Readable.from(relayedBody(found, reply)));
  }

  close(): void {
    this.peers.close();
    this.#nodes.close();
  }

  /** Waits for a moment until this node has applied what another one has: it may be late. */
  async whenApplied(
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
    this.raiseMarks(incarnations, positions);
    try {
      await this.cluster.progress.whenApplied(positions, anySignal([timeout, signal]));
    } catch (err) {
      // After a read, Sagitta-Session tells the client what it has seen.
      if (signal.aborted || isRead) return;
      // Until this node has applied the write, its replies refer to it.
      for (const incarnation of incarnations) this.#raise(incarnation, positions);
      this.#logger.info(
        { err },
        'this node is late: a write was confirmed before it was applied here',
      );
    }
  }

  /** Records what a client has seen; later replies through this node reflect at least that. */
  raiseMarks(incarnations: readonly string[], positions: LogPositions): void {
    for (const incarnation of incarnations) {
      if (!this.cluster.holds(incarnation)) this.#raise(incarnation, positions);
    }
  }

  #raise(incarnation: string, { [incarnation]: position = 0 }: LogPositions): void {
    this.#marks.raise(incarnation, position);
  }

  async #send(
    request: FastifyRequest,
    reply: FastifyReply,
    { incarnations, needsRows = false, ...options }: SendOptions,
  ): Promise<IncomingMessage> {
    const { principal, forwarded } = request;
    const hopCount = 1 + (forwarded?.hopCount ?? 0);
    const positions = laterOf(forwarded?.positions ?? {}, this.#marks.of(incarnations));
    const client = forwarded?.client ?? request.telemetry.client;
    const via = forwarded?.via ?? this.cluster.self.node;
    const hereMs = performance.now() - request.telemetry.startedAtMs;
    const waitedMs = Math.round(hereMs + (forwarded?.waitedMs ?? 0));
    const sent = { principal, client, via, hopCount, waitedMs, positions, needsRows };
    try {
      const found = await this.#nodes.send(request, reply, sent, options);
      this.#count(1, { outcome: 'replied' });
      return found;
    } catch (error) {
      this.#count(1, { outcome: 'failed' });
      throw error;
    }
  }

  /** Sends a request of this node on behalf of a principal. Rejects if the other node does not answer. */
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
      waitedMs: 0,
      positions: this.#marks.of(incarnations),
    };
    return this.#nodes.ask(member, { method, path, body, id }, sent, signal);
  }
}

interface SendOptions {
  readonly member: ClusterMember;
  /** The collections that the request is about. */
  readonly incarnations: readonly string[];
  /** The body, if it has been read; null if it has not. */
  readonly body: Uint8Array | null;
  readonly needsRows?: boolean;
  /** Whether the request only reads. */
  readonly isRead: boolean;
  readonly signal: AbortSignal;
}

/** How long a write may still wait for an owner here. */
function ownerMsMax(forwarded: ForwardedRequest | null): number {
  return Math.max(0, OWNER_MS_MAX - (forwarded?.waitedMs ?? 0));
}

/** Aborted when the client no longer waits for the reply. */
function clientSignal(request: FastifyRequest, reply: FastifyReply): AbortSignal {
  const aborted = new AbortController();
  onReplyClosed(request.raw, reply.raw, () => aborted.abort());
  return aborted.signal;
}

/** The body of a relayed reply. If it ends early, the client must not mistake the part for the whole. */
async function* relayedBody(found: IncomingMessage, reply: FastifyReply): AsyncGenerator<Buffer> {
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
