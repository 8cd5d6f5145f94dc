// One node of a cluster. Its store and its memory hold the catalogue and some of the collections. Each log, of the
// catalogue or of a collection, is owned by one of the nodes that follow it, which carries out the writes to it.
//
// A node starts in three steps: `catchUp` brings its store up to date, before a database is opened on it; `attach` hands
// it the database, which then follows the logs or leads; `serve` announces that it can be reached.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Changes } from '../../common/changes.js';
import { SagittaError } from '../../common/errors.js';
import { LogLimiter } from '../../common/log-limiter.js';
import type { CommitLogs } from '../../storage/commit-log.js';
import type { StoreOperation } from '../../storage/store.js';
import type { MemberStatus } from '../health/member-states.js';
import type { NodeHealth } from '../health/node-health.js';
import { findAppliedPosition } from '../logs/applied-position.js';
import { ChainedLog } from '../logs/chained-log.js';
import { CLUSTER_FORMAT } from '../logs/cluster-format.js';
import { CATALOGUE } from '../logs/store-entries.js';
import { drainOperation } from '../members/drained-nodes.js';
import type { Member } from '../members/members.js';
import { type Placement, placementOperation } from '../placement/placements.js';
import { ownerOf } from '../replication/elections.js';
import type { LogProgress } from '../replication/log-progress.js';
import type { ReplicatedLog } from '../replication/replicated-log.js';
import { readSnapshotRecord } from '../snapshots/snapshot-record.js';
import {
  type FoundingCollection,
  foreignData,
  found,
  foundedMeanwhile,
  isUnfinished,
  prepareFounding,
} from './founding.js';
import type { FollowingDatabase } from './log-applier.js';
import { composeNode, type NodeParts, type NodePartsOptions } from './node-parts.js';
import { type VerifiedFiles, verifyShared } from './verification.js';

/** A node that is late for longer makes sure that it misses nothing, with pauses, since it may only be busy. */
const LAG_SECONDS_MAX = 2;
const READ_ON_MS = 30_000;
/** How long the first record of the catalogue may take. */
const FORMAT_MS_MAX = 60_000;
/** The interval between two warnings about nodes with another format. */
const WARN_MS = 60_000;

/** The collections that a node brings into an empty cluster. */
interface Founding {
  readonly collections: readonly FoundingCollection[];
}

export interface ClusterNodeOptions extends NodePartsOptions {
  /** The data in the store that the node may bring into an empty cluster. */
  readonly founding?: Founding;
}

export class ClusterNode {
  readonly #options: ClusterNodeOptions;
  /** Null unless this node founds the cluster. */
  readonly #founding: Founding | null;
  readonly #parts: NodeParts;
  readonly #closing = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  /** When the logs were last told to read on, on `performance.now`. */
  #readOnAtMs = Number.NEGATIVE_INFINITY;

  private constructor(options: ClusterNodeOptions, founding: Founding | null) {
    this.#options = options;
    this.#founding = founding;
    this.#parts = composeNode(options, {
      signal: this.#closing.signal,
      leader: () => this.ownerOf(null),
      onLeader: (owner) => this.#onLeader(owner),
    });
  }

  /** The logs to which the database of this node commits. */
  get logs(): CommitLogs {
    return this.#parts.clusterLogs;
  }

  /** The positions up to which this node has applied the logs. */
  get progress(): LogProgress {
    return this.#parts.progress;
  }

  get health(): NodeHealth {
    return this.#parts.health;
  }

  /** Changes of members, of owners of logs, and of whatever is looked at periodically. */
  get changes(): Changes {
    return this.#parts.changes;
  }

  /** Creates the log of the catalogue unless it exists. Throws `configuration_invalid` for one of another format. */
  static async open(options: ClusterNodeOptions): Promise<ClusterNode> {
    const { service, founding } = options;
    await service.createLog(CATALOGUE, { isStarting: true });
    await new ChainedLog(service.openStream(CATALOGUE)).requireFormat(
      AbortSignal.timeout(FORMAT_MS_MAX),
    );
    const isFounding =
      founding !== undefined && (await prepareFounding({ ...options, ...founding }));
    return new ClusterNode(options, isFounding ? founding : null);
  }

  #onLeader(owner: string): void {
    if (owner === this.self.instance) return;
    this.#parts.members.change({ epoch: 0 });
    const [node] = owner.split('/');
    this.#options.logger.info({ node }, 'another node leads');
  }

  /**
   * Brings the store up to date, before a database is opened. `incarnationsIn` lists the collections in the store, and
   * `isFounded` tells whether it contains the foundation, which the first leader writes. Throws `configuration_invalid`
   * for a store of a service that was alone, and `data_corrupt` for a log that is not the one that the store has
   * followed.
   */
  async catchUp(options: {
    readonly incarnationsIn: () => readonly string[];
    readonly isFounded: () => boolean;
    readonly foundation: () => readonly StoreOperation[];
  }): Promise<void> {
    const { signal } = this.#closing;
    const { store, blobs, layout, logger } = this.#options;
    const { catalogue } = this.#parts.logs;
    const isForeign = options.isFounded() && findAppliedPosition(store, CATALOGUE) === undefined;
    if (isForeign && this.#founding === null) throw foreignData();
    this.#startMembers();
    if (this.#founding !== null) {
      await found(catalogue, { ...this.#founding, store, blobs, layout, logger, signal });
    }
    for (;;) {
      await catalogue.catchUp(signal);
      if (isUnfinished(store)) throw foreignData();
      const isFoundedNow = readSnapshotRecord(store, CATALOGUE) !== null;
      if (!options.isFounded() && isFoundedNow) throw foundedMeanwhile();
      if (options.isFounded()) break;
      if (this.isLeader) {
        // If another node has taken over meanwhile, that one writes it.
        await catalogue.commit(options.foundation()).catch(ignoreNoLeader);
        continue;
      }
      this.#parts.elections.run([catalogue]);
      await this.#parts.elections.idle();
      await sleep(this.#parts.timing.electionMs, undefined, { signal });
    }
    await this.#parts.held.catchUp(options.incarnationsIn);
  }

  #startMembers(): void {
    const warnings = new LogLimiter({ intervalMs: WARN_MS });
    this.#parts.members.start({
      measure: () => this.health.measure(),
      onMember: (member) => {
        this.health.observe(member);
        this.#parts.ownership.observe(member);
        this.changes.notify();
      },
      onOtherFormat: ({ node, version, format }) => {
        if (warnings.next() === 0) return;
        this.#options.logger.warn(
          { node, version, format, expected: CLUSTER_FORMAT },
          'ignored a node whose version has another format: it cannot be part of this cluster (docs/cluster.md, Update)',
        );
      },
    });
  }

  /** From now on, the database gets what others commit. It must have loaded its collections. */
  async attach(database: FollowingDatabase): Promise<void> {
    this.#parts.applier.attach(database, this.#parts.held);
    this.#parts.logs.catalogue.follow();
    await this.#parts.held.sync(database);
    this.#timer = setInterval(() => this.#run(database), this.#parts.timing.electionMs);
    await this.progress.whenCurrent(null, this.#closing.signal);
    const names = this.#parts.logs.ofCollections.map(({ name }) => name);
    this.#parts.adoption.begin(names);
    await Promise.all(names.map((name) => this.#whenCurrentOrFailed(name, database)));
  }

  #run(database: FollowingDatabase): void {
    const { all, owned } = this.#parts.logs;
    this.#readOnIfBehind(all);
    this.#parts.elections.run(all);
    this.#parts.ownership.announce();
    this.health.update();
    this.#parts.rebalancer.run();
    this.#parts.held.run(database);
    this.#parts.archiving.run(owned);
    this.#parts.snapshotter.run(owned);
    this.#parts.adoption.run();
    this.changes.notify();
  }

  /** The lag does not tell in which logs: perhaps in one of which another process has become the owner. */
  #readOnIfBehind(logs: readonly ReplicatedLog[]): void {
    const nowMs = performance.now();
    if (nowMs - this.#readOnAtMs < READ_ON_MS || this.health.lag.seconds < LAG_SECONDS_MAX) return;
    this.#readOnAtMs = nowMs;
    for (const log of logs) log.readOn();
  }

  /** A collection that cannot be served does not keep the node from serving the others. */
  async #whenCurrentOrFailed(incarnation: string, database: FollowingDatabase): Promise<void> {
    const ended = new AbortController();
    const signal = AbortSignal.any([ended.signal, this.#closing.signal]);
    const current = this.progress.whenCurrent(incarnation, signal).catch((error: unknown) => {
      // Otherwise the log was closed, since the collection was deleted meanwhile.
      if (this.#closing.signal.aborted) throw error;
    });
    const failed = this.changes.until(() => database.isFailed(incarnation) || null, signal);
    try {
      await Promise.race([current, failed]);
    } finally {
      ended.abort();
      for (const each of [current, failed]) each.catch(() => {});
    }
  }

  /** Announces to the other nodes where they reach the API of this one. */
  serve(url: string): void {
    this.#parts.members.change({ url, state: 'serving' });
  }

  /** Lets other nodes, if any, take over the logs, and waits for them. Requests are still answered. */
  async leave(msMax: number): Promise<void> {
    this.#parts.members.change({ state: 'leaving' });
    await this.#parts.ownership.releaseAll(msMax);
  }

  async close(): Promise<void> {
    this.#closing.abort(
      new SagittaError('stopping', 'The service is stopping.', { retryAfterSeconds: 5 }),
    );
    clearInterval(this.#timer);
    this.#parts.members.close();
    await this.#parts.elections.idle();
    await this.#parts.archiving.settled();
    await this.#parts.held.settled();
    await Promise.all(this.#parts.logs.all.map((log) => log.close()));
    await this.#parts.ownership.settled();
    await this.#parts.snapshotter.settled();
    await this.#parts.adoption.settled();
    await this.#parts.rebalancer.settled();
  }

  /** Whether this node owns the log of the catalogue. */
  get isLeader(): boolean {
    return this.#parts.logs.catalogue.isWritable;
  }

  /** Whether this node owns the log of a collection, or for null that of the catalogue. */
  owns(incarnation: string | null): boolean {
    const log = this.#parts.logs.find(incarnation);
    return log !== undefined && this.#parts.ownership.owns(log);
  }

  /** Registers a write on this node, and returns the function that ends it. */
  beginWrite(incarnation: string | null): () => void {
    return this.#parts.ownership.beginWrite(incarnation ?? CATALOGUE);
  }

  /**
   * The reachable node that owns the log of a collection that this node holds or, for null, of the catalogue, as far as
   * this node knows; null for none.
   */
  ownerOf(incarnation: string | null): Member | null {
    if (incarnation !== null && !this.holds(incarnation)) return null;
    const log = this.#parts.logs.find(incarnation);
    const isKnown = log !== undefined && !this.#parts.ownership.isReleasing(log);
    const owner = isKnown ? ownerOf(log, this.#parts.members) : null;
    return owner === null || owner.url === '' ? null : owner;
  }

  /** Lets another node take over the log of a collection once no write is in flight. */
  async release(incarnation: string): Promise<void> {
    const log = this.#parts.logs.find(incarnation);
    if (log !== undefined) await this.#parts.ownership.release(log, { isUrgent: false });
  }

  /** Takes over the catalogue, for a change that needs the rows of a collection that this node holds. */
  async acquireCatalogue(): Promise<void> {
    if (!this.isLeader) await this.#parts.elections.takeOver(this.#parts.logs.catalogue);
  }

  /** Whether this node holds a collection. */
  holds(incarnation: string): boolean {
    return this.logs.holds(incarnation);
  }

  /** The nodes that keep the whole of a segment file with a key; null for all that hold the collection. */
  keepersOf(incarnation: string, homeKey: string): readonly string[] | null {
    return this.#parts.homes.of(incarnation, homeKey);
  }

  placementOf(incarnation: string): Placement | null {
    return this.#parts.placements.of(incarnation);
  }

  /** Registers a request for rows of a collection that this node holds, and returns the function that ends it. */
  beginRead(incarnation: string): () => void {
    return this.#parts.reads.begin(incarnation);
  }

  /**
   * Begins to move a collection from one node to another. Throws `invalid_request`, and `no_leader` unless this node
   * leads.
   */
  async move(
    incarnation: string,
    nodes: { readonly from: string; readonly to: string },
  ): Promise<void> {
    const placement = this.#parts.requests.moved(incarnation, nodes);
    await this.#parts.logs.catalogue.commit([placementOperation(incarnation, placement)]);
  }

  /**
   * Drains a node, or ends that; null for an unknown node. Throws `no_leader` unless this node leads.
   */
  async drain(node: string, isOn: boolean): Promise<MemberStatus | null> {
    if (!this.health.members.isKnown(node)) return null;
    await this.#parts.logs.catalogue.commit([drainOperation(node, isOn)]);
    this.#options.logger.info(
      { node },
      isOn ? 'the node is being drained' : 'the node is no longer drained',
    );
    return this.health.members.of(node);
  }

  get self(): Member {
    return this.#parts.members.self;
  }

  /** The nodes heard from recently, including this one. */
  get present(): readonly Member[] {
    return this.#parts.members.present;
  }

  /** The current monotonic clock of a process; null for one not heard from. */
  clockOf(instance: string): number | null {
    return this.#parts.members.clockOf(instance);
  }

  /** Archives what this node has committed before the call to the logs that it owns. */
  archive(): Promise<void> {
    return this.#parts.archiving.now(this.#parts.logs.owned);
  }

  /** Reads the logs and the shared files, and reports what is wrong with them. */
  verifyFiles(signal: AbortSignal): Promise<VerifiedFiles[]> {
    const { store, blobs, layout, service, logger } = this.#options;
    const logs = [CATALOGUE, ...(this.#parts.applier.database?.incarnations ?? [])];
    return verifyShared({ store, blobs, layout, service, logs, logger, signal });
  }
}

function ignoreNoLeader(error: unknown): void {
  if (!(error instanceof SagittaError && ['no_leader', 'outcome_unknown'].includes(error.code)))
    throw error;
}
