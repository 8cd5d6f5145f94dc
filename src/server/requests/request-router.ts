// Decides which node of a cluster carries out a request, and what this node waits for before it does: until it has
// applied what the client has seen, or with strong consistency every acknowledged write.

import type { FastifyReply, FastifyRequest } from 'fastify';
import { noLeaderError, SagittaError } from '../../common/errors.js';
import { NotHeldError } from '../../database/catalogue/not-held-error.js';
import { NotOwnerError, READ_MS_MAX, type RequestForwarder } from '../cluster/request-forwarder.js';
import type { RateKind } from '../limits/rate-limit.js';
import { onReplyClosed } from '../transport/connections.js';
import { type Consistency, consistencyOf } from '../wire/consistency.js';
import { collectionOf, type RequestContext } from './request-context.js';
import type { ownerOf, Route, RouteServices } from './route.js';

/** Where a request is carried out: here, or by the owner of a collection, or of the catalogue if null. */
export type Destination =
  | 'here'
  | { readonly incarnation: string | null; readonly isRead?: boolean };

type Owner = ReturnType<typeof ownerOf>;

/** How long a request waits for what its client has seen, or for what is acknowledged, at most. */
const CURRENT_MS_MAX = 8_000;

export class RequestRouter {
  readonly #database: RouteServices['database'];
  readonly #currentMsMax: number;
  readonly #forwarder: RequestForwarder;

  constructor({ database, limits }: RouteServices, forwarder: RequestForwarder) {
    this.#database = database;
    this.#currentMsMax = Math.min(CURRENT_MS_MAX, limits.requestMsMax);
    this.#forwarder = forwarder;
  }

  /** Also begins a write that this node carries out; it ends with the reply. Throws `no_leader`. */
  async destinationOf(
    { owner, rateKind }: { readonly owner: Owner; readonly rateKind: RateKind | null },
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<Destination> {
    const { forwarded } = request;
    if (forwarded !== null) await this.#forwarder.whenCaughtUp(forwarded, rateKind === 'read');
    else if (rateKind === 'write') {
      // The client may have pointed an alias to another collection through another node.
      const { seen } = consistencyOf(request.headers);
      await this.whenCurrent(null, { isStrong: false, seen }, request);
    }
    if (owner === 'any' || owner === 'named') return 'here';
    const { id } = collectionOf(request);
    // Only the owner of the catalogue knows whether an unknown collection exists.
    const incarnation = owner === 'collection' ? (this.#database.incarnationOf(id) ?? null) : null;
    const end = await this.#forwarder.beginWrite(incarnation, forwarded);
    if (end === null) return { incarnation };
    onReplyClosed(request.raw, reply.raw, end);
    return 'here';
  }

  /**
   * Waits until this node is as current as the request demands: for a collection, for everything if `id` is empty,
   * or for the catalogue if it is null. Throws `deadline_exceeded` if the other nodes do not answer, and
   * `no_leader` if this node is late and another one can be asked.
   */
  async whenCurrent(
    id: string | null,
    { isStrong, seen }: Consistency,
    { forwarded }: FastifyRequest,
  ): Promise<void> {
    if (!isStrong && Object.keys(seen).length === 0) return;
    const { progress } = this.#forwarder.cluster;
    const controller = new AbortController();
    const mayAskOther = forwarded !== null && !isStrong;
    const timer = mayAskOther
      ? setTimeout(() => controller.abort(noLeaderError()), READ_MS_MAX)
      : setTimeout(() => controller.abort(notCurrentError()), this.#currentMsMax);
    try {
      const { signal } = controller;
      if (id === '') {
        await (isStrong ? progress.whenAllCurrent(signal) : progress.whenAllSeen(seen, signal));
        return;
      }
      const incarnation = id === null ? null : this.#database.incarnationOf(id);
      if (incarnation === undefined) return;
      if (isStrong) await progress.whenCurrent(incarnation, signal);
      else await progress.whenSeen(incarnation, seen, signal);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Whether to forward a read because only the owner of the catalogue may know the collection in the path. */
  shouldAskCatalogueOwner({ access }: Route, request: FastifyRequest): boolean {
    if (request.forwarded !== null) return false;
    if (typeof access === 'string' || access.on !== 'path') return false;
    if (this.#database.incarnationOf(collectionOf(request).id) !== undefined) return false;
    const { cluster } = this.#forwarder;
    return !cluster.owns(null) && cluster.ownerOf(null) !== null;
  }

  /** Lets the reply of an authorized request tell how far this node has applied the log of the collection. */
  attachIncarnation(request: FastifyRequest): void {
    const incarnation = this.#database.incarnationOf(collectionOf(request).id);
    request.incarnations = incarnation === undefined ? [] : [incarnation];
  }

  /** Begins a write of a collection that the body names; it ends with the reply. Throws `NotOwnerError`. */
  async requireOwnership(id: string, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const incarnation = this.#database.incarnationOf(id) ?? null;
    if (incarnation !== null) request.incarnations?.push(incarnation);
    const end = await this.#forwarder.beginWrite(incarnation, request.forwarded);
    if (end === null) throw new NotOwnerError(incarnation);
    onReplyClosed(request.raw, reply.raw, end);
  }

  /** Keeps the rows on this node until the reply has ended. Throws `NotHeldError`. */
  requireRows(ids: readonly string[], request: FastifyRequest, reply: FastifyReply): void {
    const { cluster } = this.#forwarder;
    for (const id of ids) {
      const incarnation = this.#database.incarnationOf(id);
      // The handler reports a collection that does not exist.
      if (incarnation === undefined) continue;
      request.incarnations?.push(incarnation);
      if (!this.#database.holds(id) || !cluster.holds(incarnation)) throw new NotHeldError(ids);
      onReplyClosed(request.raw, reply.raw, cluster.beginRead(incarnation));
    }
  }

  /** Throws the error if the request cannot be forwarded, for example because a part of its stream has been read. */
  forwardToReplica(
    request: FastifyRequest,
    reply: FastifyReply,
    {
      owner,
      context,
      body,
      error,
    }: {
      readonly owner: Owner;
      readonly context: RequestContext;
      readonly body: Uint8Array;
      readonly error: NotHeldError;
    },
  ): Promise<FastifyReply> {
    const isChange = owner === 'catalogue';
    if (context.bodyStream !== null || (owner !== 'any' && !isChange)) throw error;
    const incarnations = error.collections.flatMap((id) => this.#database.incarnationOf(id) ?? []);
    return this.#forwarder.forwardToReplica(request, reply, {
      incarnations,
      body,
      needsRows: isChange,
      deadline: context.signal,
    });
  }
}

function notCurrentError(): SagittaError {
  return new SagittaError(
    'deadline_exceeded',
    'This node could not determine in time what the other nodes have acknowledged. Omit the headers Sagitta-Consistency and Sagitta-Session to read what it has.',
  );
}
