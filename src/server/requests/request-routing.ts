// In a cluster, which node carries a request out, and what this node waits for before it does: that it has what the
// client has seen, or with strong consistency what any node has acknowledged.

import type { FastifyReply, FastifyRequest } from 'fastify';
import { noLeaderError, SagittaError } from '../../common/errors.js';
import { NotHeldError } from '../../database/catalogue/not-held-error.js';
import { type Forwarding, OwnedElsewhere, READ_MS_MAX } from '../cluster/forwarding.js';
import type { RateKind } from '../limits/rate-limit.js';
import { onReplyClosed } from '../transport/connections.js';
import { type Consistency, consistencyOf } from '../wire/consistency.js';
import { collectionOf, type RequestContext } from './request-context.js';
import type { ownerOf, Route, RouteServices } from './route.js';

/** Where a request is carried out: here, or by the node that owns a collection, or with null the catalogue. */
export type Destination =
  | 'here'
  | { readonly incarnation: string | null; readonly isRead?: boolean };

type Owner = ReturnType<typeof ownerOf>;

export class RequestRouting {
  readonly #database: RouteServices['database'];
  readonly #requestMsMax: number;
  readonly #forwarding: Forwarding;

  constructor({ database, limits }: RouteServices, forwarding: Forwarding) {
    this.#database = database;
    this.#requestMsMax = limits.requestMsMax;
    this.#forwarding = forwarding;
  }

  /** For a write that this node carries out, begins it, until the reply has ended. Throws `no_leader`. */
  async destinationOf(
    { owner, rateKind }: { readonly owner: Owner; readonly rateKind: RateKind | null },
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<Destination> {
    const { forwarded } = request;
    if (forwarded !== null) await this.#forwarding.whenReached(forwarded, rateKind === 'read');
    else if (rateKind === 'write') {
      // An alias may have been pointed to another collection through another node.
      const { seen } = consistencyOf(request.headers);
      await this.whenCurrent(null, { isStrong: false, seen }, request);
    }
    if (owner === 'any' || owner === 'named') return 'here';
    const { id } = collectionOf(request);
    // Whether there is a collection of this id, the owner of the catalogue knows.
    const incarnation = owner === 'collection' ? (this.#database.incarnationOf(id) ?? null) : null;
    const end = await this.#forwarding.beginWrite(incarnation, forwarded);
    if (end === null) return { incarnation };
    onReplyClosed(request.raw, reply.raw, end);
    return 'here';
  }

  /**
   * For a collection, with "" for all of them, with null for the catalogue. Throws `deadline_exceeded` when the other
   * nodes do not answer, and `no_leader` when this node is late and another one can be asked.
   */
  async whenCurrent(
    id: string | null,
    { isStrong, seen }: Consistency,
    { forwarded }: FastifyRequest,
  ): Promise<void> {
    if (!isStrong && Object.keys(seen).length === 0) return;
    const { progress } = this.#forwarding.cluster;
    const controller = new AbortController();
    const mayAskOther = forwarded !== null && !isStrong;
    const timer = mayAskOther
      ? setTimeout(() => controller.abort(noLeaderError()), READ_MS_MAX)
      : setTimeout(() => controller.abort(notCurrentError()), this.#requestMsMax);
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

  /** Of a read: whether the owner of the catalogue may know the collection, and this node does not. */
  mayBeNew({ access }: Route, request: FastifyRequest): boolean {
    if (request.forwarded !== null) return false;
    if (typeof access === 'string' || access.on !== 'path') return false;
    if (this.#database.incarnationOf(collectionOf(request).id) !== undefined) return false;
    const { cluster } = this.#forwarding;
    return !cluster.owns(null) && cluster.ownerOf(null) !== null;
  }

  /** Of an authorized request: its reply tells up to where this node has the collection. */
  noteCollection(request: FastifyRequest): void {
    const incarnation = this.#database.incarnationOf(collectionOf(request).id);
    request.incarnations = incarnation === undefined ? [] : [incarnation];
  }

  /** Begins a write of a collection that the body names, until the reply has ended. Throws OwnedElsewhere. */
  async requireOwned(id: string, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const incarnation = this.#database.incarnationOf(id) ?? null;
    if (incarnation !== null) request.incarnations?.push(incarnation);
    const end = await this.#forwarding.beginWrite(incarnation, request.forwarded);
    if (end === null) throw new OwnedElsewhere(incarnation);
    onReplyClosed(request.raw, reply.raw, end);
  }

  /** The rows stay here until the reply has ended. Throws NotHeldError. */
  requireHeld(ids: readonly string[], request: FastifyRequest, reply: FastifyReply): void {
    const { cluster } = this.#forwarding;
    for (const id of ids) {
      const incarnation = this.#database.incarnationOf(id);
      // Whether there is one, the handler finds out.
      if (incarnation === undefined) continue;
      request.incarnations?.push(incarnation);
      if (!this.#database.holds(id) || !cluster.holds(incarnation)) throw new NotHeldError(ids);
      onReplyClosed(request.raw, reply.raw, cluster.beginRead(incarnation));
    }
  }

  /** Throws the error where the request cannot be sent on: as a stream it has been read in part. */
  forwardToHolder(
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
    return this.#forwarding.forwardToHolder(request, reply, {
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
    'This node could not find out in time what the other nodes have acknowledged. Without the headers Sagitta-Consistency and Sagitta-Session it answers from what it has.',
  );
}
