// Decides which node of a cluster carries out a request, by what its route says that it touches: by the headers if they
// suffice, otherwise by the body. What runs here is registered until the reply ends, so that this node neither gives up
// the log nor drops the rows meanwhile. Also knows what this node waits for before it decides: until it has applied
// what the client has seen, or with strong consistency every acknowledged write.

import type { FastifyReply, FastifyRequest } from 'fastify';
import { noLeaderError, SagittaError } from '../../common/errors.js';
import {
  type Destination,
  READ_MS_MAX,
  type RequestForwarder,
} from '../cluster/request-forwarder.js';
import type { RateKind } from '../limits/rate-limit.js';
import { onReplyClosed } from '../transport/connections.js';
import { type Consistency, consistencyOf } from '../wire/consistency.js';
import { collectionOf } from './request-context.js';
import type { Owner, Route, RouteServices } from './route.js';

/** What the decision depends on besides the request. */
interface RoutedRoute {
  readonly route: Pick<Route, 'isBulk'>;
  readonly owner: Owner;
  readonly touchesPath: boolean;
}

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

  /** Waits until this node knows what the node or the client that sends the request knows. Throws `no_leader`. */
  async whenCaughtUp(rateKind: RateKind | null, request: FastifyRequest): Promise<void> {
    const { forwarded } = request;
    if (forwarded !== null) await this.#forwarder.whenCaughtUp(forwarded, rateKind === 'read');
    else if (rateKind === 'write') {
      // The client may have pointed an alias to another collection through another node.
      const { seen } = consistencyOf(request.headers);
      await this.whenCurrent(null, { isStrong: false, seen }, request);
    }
  }

  /**
   * Where a write of the catalogue or of the collection in the path runs, as soon as the headers have arrived. For other
   * requests, `here`. Throws like `#writeIn`.
   */
  async destinationOfWrite(
    { route, owner, touchesPath }: RoutedRoute,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<Destination> {
    if (owner === 'catalogue') return await this.#writeIn(null, request, reply);
    if (owner === 'any' || !touchesPath) return 'here';
    const { id } = request.params as { readonly id: string };
    const incarnation = this.#incarnationOf(id);
    if (incarnation !== null && route.isBulk?.(request) === true) {
      const destination = this.#readIn([id], { isChange: false }, request, reply);
      if (destination === 'here') return destination;
    }
    return await this.#writeIn(incarnation, request, reply);
  }

  /**
   * Where a read that names a collection in the path runs, as soon as it is authorized; null if that depends on the body.
   */
  destinationOfRead(
    { touchesPath }: RoutedRoute,
    request: FastifyRequest,
    reply: FastifyReply,
    { isStrong }: Consistency,
  ): Destination | null {
    const { id } = collectionOf(request);
    if (id !== '' && !isStrong && this.#isUnknown(id, request)) {
      return { kind: 'owner', incarnation: null, isRead: true };
    }
    return touchesPath ? this.#readIn([id], { isChange: false }, request, reply) : null;
  }

  /** Where a request runs that touches these collections, which the body or the query string determines. */
  async destinationOf(
    owner: Owner,
    ids: readonly string[],
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<Destination> {
    if (owner === 'catalogue') return this.#readIn(ids, { isChange: true }, request, reply);
    if (owner === 'any') {
      const wanted = consistencyOf(request.headers);
      for (const id of ids) await this.whenCurrent(id, wanted, request);
      return this.#readIn(ids, { isChange: false }, request, reply);
    }
    const incarnation = this.#incarnationOf(ids[0]!);
    if (incarnation !== null) request.incarnations?.push(incarnation);
    return await this.#writeIn(incarnation, request, reply);
  }

  /** For a write: only the owner of the catalogue, which null stands for, knows whether an unknown collection exists. */
  #incarnationOf(name: string): string | null {
    return this.#database.incarnationOf(name) ?? null;
  }

  /**
   * Begins a write of a collection, or of the catalogue if null, that this node carries out; it ends with the reply.
   * Throws `no_leader` and `no_holder`.
   */
  async #writeIn(
    incarnation: string | null,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<Destination> {
    const end = await this.#forwarder.beginWrite(incarnation, request.forwarded);
    if (end === null) return { kind: 'owner', incarnation, isRead: false };
    onReplyClosed(request.raw, reply.raw, end);
    return 'here';
  }

  /** Keeps rows that this node holds until the reply has ended. */
  #readIn(
    ids: readonly string[],
    { isChange }: { readonly isChange: boolean },
    request: FastifyRequest,
    reply: FastifyReply,
  ): Destination {
    const { cluster } = this.#forwarder;
    // The handler reports a collection that does not exist.
    const found = ids.flatMap((id) => {
      const incarnation = this.#database.incarnationOf(id);
      return incarnation === undefined ? [] : { id, incarnation };
    });
    const incarnations = found.map(({ incarnation }) => incarnation);
    request.incarnations?.push(...incarnations);
    const isHeld = found.every(
      // While a collection is moved to this node, the node has only some of its rows.
      ({ id, incarnation }) => this.#database.holds(id) && cluster.holds(incarnation),
    );
    if (!isHeld) return { kind: 'replica', incarnations, isChange };
    for (const incarnation of incarnations) {
      onReplyClosed(request.raw, reply.raw, cluster.beginRead(incarnation));
    }
    return 'here';
  }

  /** Whether only the owner of the catalogue, which is another node, may know the collection. */
  #isUnknown(id: string, { forwarded }: FastifyRequest): boolean {
    if (forwarded !== null || this.#database.incarnationOf(id) !== undefined) return false;
    const { cluster } = this.#forwarder;
    return !cluster.owns(null) && cluster.ownerOf(null) !== null;
  }

  /**
   * Waits like `whenCurrent` for what a read shows, as far as its headers tell; `destinationOf` waits for the collections
   * that the body or the query string names.
   */
  async whenReadable(
    { access, touches }: Route,
    wanted: Consistency,
    request: FastifyRequest,
  ): Promise<void> {
    if (touches !== undefined || typeof access === 'string') return;
    if (access.on === 'path') await this.whenCurrent(collectionOf(request).id, wanted, request);
    // A list shows the state of every collection.
    else if (access.on === 'visible') await this.whenCurrent('', wanted, request);
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

  /** Lets the reply of an authorized request tell how far this node has applied the log of the collection. */
  attachIncarnation(request: FastifyRequest): void {
    const incarnation = this.#database.incarnationOf(collectionOf(request).id);
    request.incarnations = incarnation === undefined ? [] : [incarnation];
  }
}

function notCurrentError(): SagittaError {
  return new SagittaError(
    'deadline_exceeded',
    'This node could not determine in time what the other nodes have acknowledged. Omit the headers Sagitta-Consistency and Sagitta-Session to read what it has.',
  );
}
