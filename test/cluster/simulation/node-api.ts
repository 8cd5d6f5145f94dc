// The API of a simulated node: carries out what it owns or holds, and forwards the rest, with the rules of
// src/server/requests/request-router.ts and src/server/cluster/request-forwarder.ts.

import type { Member } from '../../../src/cluster/members/members.js';
import type { ClusterNode } from '../../../src/cluster/nodes/cluster-node.js';
import { field, noLeaderError, SagittaError } from '../../../src/common/errors.js';
import type { Database } from '../../../src/database/database.js';
import {
  addFileForPeer,
  commitFile,
  type EncodedFile,
} from '../../../src/server/cluster/added-files.js';
import { HighWaterMarks, laterOf } from '../../../src/server/cluster/high-water-marks.js';
import type { LogPositions } from '../../../src/server/wire/consistency.js';
import { batchOf } from '../../database/harness.js';
import { type Calls, NoReplyError } from './calls.js';
import type { Read, ReadResult, Reply, Row, Write } from './operations.js';
import type { SimProcess } from './scheduler.js';

/** The limits of src/server for waiting. */
const CURRENT_MS_MAX = 8_000;
const OWNER_MS_MAX = 8_000;
const READ_MS_MAX = 1_000;
const APPLY_MS_MAX = 5_000;
const HOPS_MAX = 4;
/** How long a client waits for a bulk stream. */
const BULK_MS_MAX = 60_000;
/** The shape of all collections. */
export const EMPTY = {
  vectors: { '': { kind: 'dense', dimension: 2, metric: 'dot' } },
  description: null,
  labels: {},
} as const;

export interface Forwarded {
  readonly hopCount: number;
  readonly positions: LogPositions;
  readonly waitedMs: number;
}

/** A file that another node has shared, for the owner of the log. */
interface FileToCommit {
  readonly kind: 'file';
  readonly body: string;
}

export interface NodeRequest {
  readonly operation: Write | Read | FileToCommit;
  readonly seen: LogPositions;
  /** Null for a request of a client. */
  readonly forwarded: Forwarded | null;
}

/** A reply with the positions that the forwarding node waits for. */
interface NodeReply<Result> extends Reply<Result> {
  readonly applied: LogPositions;
  readonly incarnations: readonly string[];
}

export class NodeApi {
  readonly #node: ClusterNode;
  readonly #database: Database;
  readonly #calls: Calls;
  readonly #process: SimProcess;
  readonly #marks: HighWaterMarks;
  #turn = 0;

  constructor(options: {
    readonly node: ClusterNode;
    readonly database: Database;
    readonly calls: Calls;
    readonly process: SimProcess;
  }) {
    this.#node = options.node;
    this.#database = options.database;
    this.#calls = options.calls;
    this.#process = options.process;
    this.#marks = new HighWaterMarks((incarnation) => this.#node.holds(incarnation));
  }

  async handle(request: NodeRequest): Promise<unknown> {
    const { operation } = request;
    if (operation.kind === 'file') return await this.#commitFile(operation.body);
    const startedAtMs = performance.now();
    return operation.kind === 'read'
      ? await this.#read(operation, request, startedAtMs)
      : await this.#write(operation, request, startedAtMs);
  }

  async #write(
    write: Write,
    request: NodeRequest,
    startedAtMs: number,
  ): Promise<NodeReply<{ sequence: number }>> {
    const { forwarded, seen } = request;
    const waitMsMax = Math.max(0, OWNER_MS_MAX - (forwarded?.waitedMs ?? 0));
    if (forwarded !== null) await this.#whenCaughtUp(forwarded, waitMsMax);
    else await this.#whenCurrent(null, { isStrong: false, seen, msMax: CURRENT_MS_MAX });
    const incarnation = isOfCatalogue(write)
      ? null
      : (this.#database.incarnationOf(write.collection) ?? null);
    const isHeld = this.#database.holds(write.collection) && this.#node.holds(incarnation ?? '');
    if (write.kind === 'bulk' && incarnation !== null && isHeld) {
      const sequence = await this.#writeInBulk(write, incarnation);
      return this.#replyOf({ sequence }, request, { incarnations: [incarnation], startedAtMs });
    }
    const end = await this.#beginWrite(incarnation, forwarded, waitMsMax);
    if (end === null) {
      const member = this.#ownerOf(incarnation);
      if (member === null) throw noLeaderError();
      const incarnations = incarnation === null ? [] : [incarnation];
      return await this.#forward(member, request, { incarnations, startedAtMs, isRead: false });
    }
    try {
      const sequence = await this.#carryOut(write, incarnation);
      const incarnations = incarnation === null ? [] : [incarnation];
      return this.#replyOf({ sequence }, request, { incarnations, startedAtMs });
    } finally {
      end();
    }
  }

  async #writeInBulk({ collection, key, marker }: Write, incarnation: string): Promise<number> {
    const end = this.#node.beginRead(incarnation);
    try {
      const services = { database: this.#database, forwarder: this.#forwarder };
      const signal = AbortSignal.timeout(BULK_MS_MAX);
      const stream = await this.#database
        .collection(collection)
        .openBulkStream((log, file) => commitFile(services, log, file, signal));
      const metadata = JSON.stringify({ marker });
      await stream.write(batchOf([{ id: key, values: [1, 2], metadata }]));
      const { reply } = await stream.end(({ sequence }) => ({ sequence: sequence! }));
      return reply.sequence;
    } finally {
      end();
    }
  }

  /** The members of a forwarder that the code of the server uses. */
  get #forwarder(): Parameters<typeof commitFile>[0]['forwarder'] {
    return {
      cluster: this.#node,
      beginWrite: (incarnation) => this.#beginWrite(incarnation, null, OWNER_MS_MAX),
      ask: async ({ url }, { body = '' }) => {
        const operation = { kind: 'file', body } as const;
        const request: NodeRequest = { operation, seen: {}, forwarded: null };
        return await this.#calls.call(this.#process, url, request);
      },
      whenApplied: async (positions) => {
        const inTime = AbortSignal.timeout(APPLY_MS_MAX);
        await this.#node.progress.whenApplied(positions, inTime).catch(() => {
          for (const [log, position] of Object.entries(positions)) this.#marks.raise(log, position);
        });
      },
    };
  }

  async #commitFile(body: string): Promise<{ status: number; text: string }> {
    const services = { database: this.#database, forwarder: this.#forwarder };
    try {
      const added = await addFileForPeer(services, JSON.parse(body) as EncodedFile);
      return { status: 200, text: JSON.stringify(added) };
    } catch (error) {
      if (!(error instanceof SagittaError)) throw error;
      return { status: 503, text: JSON.stringify({ code: error.code, detail: error.message }) };
    }
  }

  async #beginWrite(
    incarnation: string | null,
    forwarded: Forwarded | null,
    msMax: number,
  ): Promise<(() => void) | null> {
    const node = this.#node;
    if (node.owns(incarnation)) return node.beginWrite(incarnation);
    const isKnown = () => this.#ownerOf(incarnation) !== null || null;
    await node.changes.until(isKnown, AbortSignal.timeout(msMax)).catch((cause: unknown) => {
      throw noLeaderError(cause);
    });
    if (node.owns(incarnation)) return node.beginWrite(incarnation);
    if (forwarded !== null && forwarded.hopCount >= HOPS_MAX) throw noLeaderError();
    return null;
  }

  /** The owner or, of a collection that this node does not hold, a node that holds it. */
  #ownerOf(incarnation: string | null): Member | null {
    const node = this.#node;
    if (incarnation === null || node.holds(incarnation)) return node.ownerOf(incarnation);
    const holders = node.placementOf(incarnation)?.nodes ?? [];
    const isServing = ({ node: name, state, url }: Member) =>
      state === 'serving' && url !== '' && holders.includes(name);
    return node.present.find(isServing) ?? null;
  }

  async #carryOut(write: Write, incarnation: string | null): Promise<number> {
    const { kind, key, marker, collection, ifSequence, idempotencyKey } = write;
    if (kind === 'alias') {
      await this.#database.setAliases([{ name: key, collection }], {
        authorize: () => {},
        locate: () => field(),
      });
      return 0;
    }
    if (kind === 'create') {
      // The first digit decides how many nodes hold it.
      const replicationFactor = Number(/\d/.exec(key)![0]) % 3 || undefined;
      await this.#database.createCollection({ ...EMPTY, id: key, replicationFactor });
      return 0;
    }
    if (kind === 'drop') {
      await this.#database.collection(key).drop();
      return 0;
    }
    const handle = this.#database.collection(collection);
    if (kind === 'delete') return (await handle.deleteVector(key, { ifSequence })).sequence;
    const metadata = JSON.stringify({ marker });
    if (kind === 'patch') return (await handle.patch(key, { metadata, ifSequence })).sequence;
    const mode = kind === 'bulk' ? 'upsert' : kind;
    const batch = {
      ...batchOf([{ id: key, values: [1, 2], metadata }]),
      ...(ifSequence !== undefined && { ifSequences: Float64Array.of(ifSequence) }),
    };
    if (idempotencyKey === undefined) return (await handle.write(batch, { mode })).sequence;
    const { reply } = await this.#database.runIdempotent<{ sequence: number }>(
      {
        scope: 'clients',
        key: idempotencyKey,
        payloadDigest: marker,
        incarnation: incarnation ?? undefined,
      },
      async (attach) => {
        const attachedReply = attach(({ sequence }: { sequence: number }) => ({ sequence }));
        const { sequence } = await handle.write(batch, { mode, attachedReply });
        return { sequence };
      },
    );
    return reply.sequence;
  }

  async #read(
    read: Read,
    request: NodeRequest,
    startedAtMs: number,
  ): Promise<NodeReply<ReadResult>> {
    const { forwarded, seen } = request;
    if (forwarded !== null) await this.#whenCaughtUp(forwarded, READ_MS_MAX);
    const { isStrong, collection } = read;
    const msMax = forwarded !== null && !isStrong ? READ_MS_MAX : CURRENT_MS_MAX;
    await this.#whenCurrent(null, { isStrong, seen, msMax });
    await this.#whenCurrent(collection, { isStrong, seen, msMax });
    const incarnation = this.#database.incarnationOf(collection);
    if (incarnation === undefined) throw new SagittaError('collection_not_found', collection);
    const incarnations = [incarnation];
    if (!this.#database.holds(collection) || !this.#node.holds(incarnation)) {
      return await this.#forwardToReplica(request, { incarnations, startedAtMs });
    }
    const end = this.#node.beginRead(incarnation);
    try {
      const handle = this.#database.collection(collection);
      const from = handle.record().sequence;
      const rows = await rowsOf(this.#database, collection, read.keys);
      const to = handle.record().sequence;
      const result = { incarnation, rows, from, to };
      return this.#replyOf(result, request, { incarnations, startedAtMs });
    } finally {
      end();
    }
  }

  async #whenCaughtUp({ positions }: Forwarded, msMax: number): Promise<void> {
    try {
      await this.#node.progress.whenApplied(positions, AbortSignal.timeout(msMax));
    } catch (cause) {
      throw noLeaderError(cause);
    }
  }

  /** `id`: null for the catalogue. */
  async #whenCurrent(
    id: string | null,
    options: { readonly isStrong: boolean; readonly seen: LogPositions; readonly msMax: number },
  ): Promise<void> {
    const { isStrong, seen, msMax } = options;
    if (!isStrong && Object.keys(seen).length === 0) return;
    const { progress } = this.#node;
    const late = new AbortController();
    const timer = setTimeout(
      () => late.abort(new SagittaError('deadline_exceeded', 'not current in time')),
      msMax,
    );
    try {
      const incarnation = id === null ? null : this.#database.incarnationOf(id);
      if (incarnation === undefined) return;
      if (isStrong) await progress.whenCurrent(incarnation, late.signal);
      else await progress.whenSeen(incarnation, seen, late.signal);
    } finally {
      clearTimeout(timer);
    }
  }

  #replyOf<Result>(
    result: Result,
    { forwarded }: NodeRequest,
    options: { readonly incarnations: readonly string[]; readonly startedAtMs: number },
  ): NodeReply<Result> {
    const { incarnations, startedAtMs } = options;
    const { progress } = this.#node;
    const written = progress.writtenSince(startedAtMs, incarnations);
    const own = laterOf(progress.cataloguePositions, written, this.#marks.of(incarnations));
    const applied = forwarded === null ? {} : own;
    return { result, applied, incarnations, session: this.#session(incarnations) };
  }

  #session(incarnations: readonly string[], remote: LogPositions = {}): LogPositions {
    const { cataloguePositions } = this.#node.progress;
    const held = { ...cataloguePositions, ...this.#node.progress.positionsOf(incarnations) };
    const named = Object.entries(remote).filter(
      ([log]) => log in cataloguePositions || incarnations.includes(log),
    );
    return laterOf(held, this.#marks.of(incarnations), Object.fromEntries(named));
  }

  async #forward<Result>(
    member: Member,
    request: NodeRequest,
    options: {
      readonly incarnations: readonly string[];
      readonly startedAtMs: number;
      readonly isRead: boolean;
    },
  ): Promise<NodeReply<Result>> {
    const { incarnations, startedAtMs, isRead } = options;
    const { forwarded } = request;
    const sent: NodeRequest = {
      ...request,
      forwarded: {
        hopCount: 1 + (forwarded?.hopCount ?? 0),
        positions: laterOf(forwarded?.positions ?? {}, this.#marks.of(incarnations)),
        waitedMs: performance.now() - startedAtMs + (forwarded?.waitedMs ?? 0),
      },
    };
    const reply = await this.#calls.call<NodeReply<Result>>(this.#process, member.url, sent);
    const all = [...new Set([...incarnations, ...reply.incarnations])];
    for (const incarnation of all) {
      const { [incarnation]: position = 0 } = reply.applied;
      if (!this.#node.holds(incarnation)) this.#marks.raise(incarnation, position);
    }
    const msMax = isRead ? READ_MS_MAX : APPLY_MS_MAX;
    await this.#node.progress
      .whenApplied(reply.applied, AbortSignal.timeout(msMax))
      .catch(() => {});
    const applied = forwarded === null ? {} : reply.applied;
    return { ...reply, incarnations: all, applied, session: this.#session(all, reply.applied) };
  }

  async #forwardToReplica(
    request: NodeRequest,
    options: { readonly incarnations: readonly string[]; readonly startedAtMs: number },
  ): Promise<NodeReply<ReadResult>> {
    const { incarnations } = options;
    if ((request.forwarded?.hopCount ?? 0) >= HOPS_MAX) throw noHolder();
    const { self, present } = this.#node;
    const replicas = present.filter(
      ({ instance, node, state, url }) =>
        instance !== self.instance &&
        state === 'serving' &&
        url !== '' &&
        incarnations.every((each) => this.#node.placementOf(each)?.nodes.includes(node) ?? true),
    );
    this.#turn++;
    for (let i = 0; i < replicas.length; i++) {
      const member = replicas[(this.#turn + i) % replicas.length]!;
      try {
        return await this.#forward(member, request, { ...options, isRead: true });
      } catch (error) {
        const isUnable = error instanceof NoReplyError || error instanceof SagittaError;
        if (!isUnable) throw error;
      }
    }
    throw noHolder();
  }
}

/** Whether a change is one of the catalogue. */
export function isOfCatalogue({ kind }: Write): boolean {
  return kind === 'alias' || kind === 'create' || kind === 'drop';
}

/** Rows with their sequences, all of one state. */
async function rowsOf(
  database: Database,
  collection: string,
  ids: readonly string[],
): Promise<Row[]> {
  const include = { values: false, metadata: true, sequence: true };
  const { vectors } = await database.collection(collection).fetch(ids, include);
  return vectors.map(({ id, sequence, metadata }) => {
    const { marker } = JSON.parse(metadata!) as { marker: string };
    return { id, sequence: sequence!, marker };
  });
}

function noHolder(): SagittaError {
  return new SagittaError('no_holder', 'no replica answers', { retryAfterSeconds: 1 });
}
