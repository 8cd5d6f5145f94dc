// One node of a cluster. Its store and its memory have the catalogue and the collections that it holds. Each log, of the
// catalogue or of a collection, is owned by one of the nodes that have it, which carries out the writes to it; the others
// follow (elections.ts).
//
// A node starts in three steps: `catchUp` brings its store up to date, before a database is opened on it; the database
// loads from the store; `attach` lets the database follow, or lead; `serve` when it can be reached.

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { noLeaderError, SagittaError } from '../../common/errors.js';
import type { Logger } from '../../common/logger.js';
import type { CommitLog, CommitLogs, NewLogOptions } from '../../storage/commit-log.js';
import type { Store, StoreOperation } from '../../storage/store.js';
import { ArchiveScheduler } from '../archive/archive-scheduler.js';
import { Archiver } from '../archive/archiver.js';
import { LogArchive } from '../archive/log-archive.js';
import type { Blobs } from '../blobs/blobs.js';
import { findAppliedPosition, startPositionOperation } from '../logs/applied-position.js';
import { CATALOGUE } from '../logs/store-keys.js';
import { drainOperation, isDrained } from '../members/drained-nodes.js';
import { type Member, Members, type MembersTiming, newMember } from '../members/members.js';
import { HeldSizes } from '../placement/collection-sizes.js';
import { HeldCollections, type HoldingDatabase } from '../placement/held-collections.js';
import { PlacementRequests } from '../placement/placement-requests.js';
import {
  type Placement,
  Placements,
  placementOperation,
  placementRemoval,
} from '../placement/placements.js';
import { Rebalancer, type RebalancerTiming } from '../placement/rebalancer.js';
import { Elections, type ElectionTiming } from '../replication/elections.js';
import { InFlightRequests } from '../replication/in-flight-requests.js';
import { LogProgress } from '../replication/log-progress.js';
import { NodeLogs } from '../replication/node-logs.js';
import { OWNER_POLL_MS, Ownership } from '../replication/ownership.js';
import type { ReplicatedLog } from '../replication/replicated-log.js';
import type { Durability } from '../service/nats-durability.js';
import type { SharedService } from '../service/shared-service.js';
import type { StoreLayout } from '../snapshots/log-state.js';
import { SnapshotFiles } from '../snapshots/snapshot-files.js';
import { readSnapshotRecord } from '../snapshots/snapshot-record.js';
import { Snapshotter } from '../snapshots/snapshotter.js';
import { type ReloadingDatabase, StateLoader } from '../snapshots/state-loader.js';
import {
  type FoundingCollection,
  foreignData,
  found,
  foundedMeanwhile,
  isUnfinished,
  prepareFounding,
} from './founding.js';
import { MemberStates, type MemberStatus } from './member-states.js';
import { type Lag, NodeLag } from './node-lag.js';
import { type VerifiedFiles, verifyShared } from './verification.js';

/** The database of the node, as far as it follows. */
export interface FollowingDatabase extends ReloadingDatabase, HoldingDatabase {
  /** Whether the data of a collection is damaged here: while one is, this node owns no logs that another one can own. */
  isFailed(incarnation: string): boolean;
  followCatalogue(operations: readonly StoreOperation[]): Promise<void>;
  followCollection(
    incarnation: string,
    operations: readonly StoreOperation[],
  ): Promise<{ readonly stored: Promise<void> }>;
}

export interface ClusterTiming extends MembersTiming, ElectionTiming, RebalancerTiming {
  /** How often it is looked at who owns the logs. */
  readonly electionMs: number;
}

const FAILED_POLL_MS = 200;

const TIMING: ClusterTiming = {
  announceMs: 300,
  silentMsMax: 1_500,
  electionMs: 100,
  settleMs: 750,
  // Longer than a release waits for writes.
  leaveMs: 3_000,
  balanceMs: 10_000,
  placeMs: 1_000,
  replaceMs: 600_000,
};
/** How long a node whose store has failed leaves the logs to others. */
const STORE_REST_MS = 10_000;

/** Of a collection that was deleted, or let go, while it was loaded anew: whoever has loaded it drops it again. */
const REMOVED_LOG: CommitLog = {
  commit: () => Promise.reject(noLeaderError()),
  whenStored: () => undefined,
  isWritable: false,
};

export interface ClusterNodeOptions {
  readonly service: SharedService;
  /** The same after a restart, and different for every node. */
  readonly node: string;
  /** Where it may fail together with others; empty by default. */
  readonly zone?: string;
  readonly version: string;
  readonly store: Store;
  readonly blobs: Blobs;
  /** Where a store has what was committed to which log. */
  readonly layout: StoreLayout;
  /** Whether the node may bring the data in its store, which has these collections, into an empty cluster. */
  readonly founding?: { readonly collections: readonly FoundingCollection[] };
  /** A snapshot of a log is made when so much has been written to it since the last one. */
  readonly snapshotBytes: number;
  /** What is known about the servers with the logs. */
  readonly durability?: () => Durability;
  readonly logger: Logger;
  readonly timing?: Partial<ClusterTiming>;
}

/** The state of a node, for operators. */
export interface ClusterStatus {
  readonly self: Member;
  /** The node that owns the log of the catalogue; null for none. */
  readonly leader: Member | null;
  readonly members: readonly MemberStatus[];
  /** Null where the logs are in memory. */
  readonly durability: Durability | null;
}

export class ClusterNode implements CommitLogs {
  /** Up to where this node has the logs. */
  readonly progress: LogProgress;
  readonly #options: ClusterNodeOptions;
  readonly #timing: ClusterTiming;
  readonly #members: Members;
  readonly #logs: NodeLogs;
  readonly #placements: Placements;
  readonly #snapshotter: Snapshotter;
  readonly #loader: StateLoader;
  /** The collections that the node brings into the cluster; null where it brings nothing. */
  readonly #founding: { readonly collections: readonly FoundingCollection[] } | null;
  readonly #archiver: Archiver;
  readonly #archiving: ArchiveScheduler;
  readonly #ownership: Ownership;
  readonly #elections: Elections;
  readonly #asked: PlacementRequests;
  readonly #held: HeldCollections;
  readonly #placing: Rebalancer;
  readonly #states: MemberStates;
  readonly #lag: NodeLag;
  readonly #readsUnderWay = new InFlightRequests();
  readonly #closing = new AbortController();
  #database: FollowingDatabase | null = null;
  #timer: NodeJS.Timeout | undefined;
  #storeRestsUntilMs = 0;
  #holderTurn = 0;

  private constructor(
    options: ClusterNodeOptions,
    founding: { readonly collections: readonly FoundingCollection[] } | null,
  ) {
    this.#options = options;
    this.#founding = founding;
    const timing = { ...TIMING, ...options.timing };
    this.#timing = timing;
    const { node, zone = '', version, service, store, blobs, layout, logger } = options;
    const { signal } = this.#closing;
    const stored = { store, blobs, layout, logger };
    const placements = new Placements(store);
    this.#placements = placements;
    const instance = `${node}/${randomUUID()}`;
    this.#lag = new NodeLag({ node, placements, logs: () => this.#logs.all });
    const { placeMs: everyMs } = timing;
    const sizes = new HeldSizes({ node, placements, database: () => this.#database, everyMs });
    const members = new Members({
      bus: service,
      self: newMember({ instance, node, version, zone, state: 'joining' }),
      timing,
      measure: () => ({ ...this.#lag.ownedPositions(instance), sizes: sizes.announced }),
      onMember: (member) => {
        this.#lag.observe(member);
        this.#ownership.observe(member);
      },
    });
    this.#members = members;
    const openStream = (name: string) => service.openStream(name);
    const archiver = new Archiver({ blobs, openStream, logger });
    this.#archiver = archiver;
    const archiving = new ArchiveScheduler({
      archiver,
      logs: () => this.#logs.owned,
      logger,
      signal,
    });
    this.#archiving = archiving;
    const logBytes = options.snapshotBytes;
    const snapshotter = new Snapshotter({ ...stored, archiver, logBytes, signal });
    this.#snapshotter = snapshotter;
    this.#loader = new StateLoader({
      ...stored,
      database: () => this.#database,
      applyCatalogue: async (operations) => {
        await this.#applyCatalogue(operations);
      },
    });
    const logs = this.#openLogs();
    this.#logs = logs;
    this.progress = new LogProgress(logs);
    const isOwnedElsewhere = (log: ReplicatedLog) => this.#elections.isOwnedElsewhere(log);
    const owned = { members, logs, isOwnedElsewhere, logger, signal };
    const holds = (name: string, log: string) => placements.holds(name, log);
    const ownership = new Ownership({ ...owned, archiving, holds });
    this.#ownership = ownership;
    const placed = { members, placements, isDrained: (name: string) => isDrained(store, name) };
    this.#elections = new Elections({
      ...placed,
      catalogue: logs.catalogue,
      timing,
      holdersOf: (log) => placements.of(log.name)?.nodes ?? null,
      lead: (log) => ownership.takeOver(log),
      release: (log) => ownership.release(log, { isUrgent: false }),
      logger,
    });
    const asked = new PlacementRequests(placed);
    this.#asked = asked;
    const readsUnderWay = this.#readsUnderWay;
    const holding = {
      ...stored,
      ...owned,
      placements,
      node,
      archiver,
      snapshotter,
      readsUnderWay,
    };
    this.#held = new HeldCollections(holding);
    this.#placing = new Rebalancer({
      ...placed,
      timing,
      isLeader: () => this.isLeader,
      incarnations: () => this.#database?.incarnations ?? [],
      commit: (operations) => logs.catalogue.commit(operations),
      logger,
    });
    this.#states = new MemberStates({
      ...placed,
      logs,
      candidates: () => asked.candidates,
      incarnations: () => this.#database?.incarnations ?? [],
    });
  }

  #openLogs(): NodeLogs {
    const { service, store, blobs, layout, logger } = this.#options;
    const members = this.#members;
    const owner = members.self.instance;
    return new NodeLogs({
      service,
      store,
      blobs,
      layout,
      archiver: this.#archiver,
      owner,
      apply: (name, operations) =>
        name === CATALOGUE
          ? this.#applyCatalogue(operations)
          : this.#applyCollection(name, operations),
      load: (name, signal) => this.#loader.load(name, signal),
      onOwner: (name, other) => {
        if (name !== CATALOGUE || other === owner) return;
        members.change({ epoch: 0 });
        logger.info({ node: other }, 'another node leads');
      },
      onStoreFailed: () => this.#noteStoreFailed(),
      onBytes: (name, byteCount) => {
        this.#snapshotter.countBytes(name, byteCount);
        this.#archiving.countBytes(byteCount);
      },
      onCommitted: (name, operations) => {
        if (name === CATALOGUE) this.#placements.follow(operations);
      },
      logger,
    });
  }

  /** Makes the log of the catalogue where there is none. */
  static async open(options: ClusterNodeOptions): Promise<ClusterNode> {
    await options.service.createLog(CATALOGUE, { isStarting: true });
    const { founding } = options;
    const isFounding =
      founding !== undefined && (await prepareFounding({ ...options, ...founding }));
    return new ClusterNode(options, isFounding ? founding : null);
  }

  get catalogue(): CommitLog {
    return this.#logs.catalogue;
  }

  ofCollection(incarnation: string): CommitLog {
    const isOpen =
      this.#database === null ||
      this.#held.isExpected(incarnation) ||
      this.#logs.find(incarnation) !== undefined;
    return isOpen ? this.#logs.open(incarnation) : REMOVED_LOG;
  }

  ofReplies(incarnation: string): CommitLog {
    return this.#logs.find(incarnation) ?? this.#logs.catalogue;
  }

  get isAlone(): boolean {
    return false;
  }

  holds(incarnation: string): boolean {
    return this.#placements.holds(this.#options.node, incarnation);
  }

  placementOf(incarnation: string): Placement | null {
    return this.#placements.of(incarnation);
  }

  replicate(incarnation: string, factor: number | null): readonly StoreOperation[] {
    return this.#asked.withFactor(incarnation, factor);
  }

  async create(incarnation: string, options: NewLogOptions): Promise<readonly StoreOperation[]> {
    if (!this.isLeader) throw noLeaderError();
    this.#held.expect(incarnation);
    const { isCopied } = options;
    const placing = this.#asked.ofNew(incarnation, options);
    this.#placements.follow(placing);
    const { service, store, blobs, layout } = this.#options;
    await service.createLog(incarnation);
    await store.commit([startPositionOperation(incarnation)]).catch((error: unknown) => {
      this.#noteStoreFailed();
      throw error;
    });
    if (isCopied) {
      const check = () => this.#closing.signal.throwIfAborted();
      const files = new SnapshotFiles(blobs, incarnation);
      await files.upload({ store, layout, base: null, check });
    }
    const log = this.#logs.open(incarnation);
    await log.lead(this.#closing.signal);
    if (this.holds(incarnation)) {
      // When it no longer owns the log.
      log.follow();
      return placing;
    }
    // The first in line of those that hold the collection then takes over at once.
    await log.release();
    await this.#held.forget(incarnation);
    return placing;
  }

  removal(incarnation: string): readonly StoreOperation[] {
    return [placementRemoval(incarnation)];
  }

  /** Lets another node take over the log of a collection when no write is under way. */
  async release(incarnation: string): Promise<void> {
    const log = this.#logs.find(incarnation);
    if (log !== undefined) await this.#ownership.release(log, { isUrgent: false });
  }

  async acquire(incarnation: string): Promise<void> {
    if (!this.isLeader) throw noLeaderError();
    const log = this.#logs.open(incarnation);
    if (this.#ownership.keeps(log)) return;
    // What another owner of the catalogue has committed is applied after the change that waits here.
    await this.#whileLeading(this.#elections.takeOver(log));
  }

  /** Throws `no_leader` when this node no longer leads; the work goes on. */
  async #whileLeading(work: Promise<void>): Promise<void> {
    let isOver = false;
    const deposed = async () => {
      while (!isOver) {
        if (!this.isLeader) throw noLeaderError();
        await sleep(OWNER_POLL_MS);
      }
    };
    try {
      await Promise.race([work, deposed()]);
    } finally {
      isOver = true;
      work.catch(() => {});
    }
  }

  end(incarnation: string): void {
    this.#logs
      .find(incarnation)
      ?.close()
      .catch((err: unknown) => {
        this.#options.logger.warn({ err, log: incarnation }, 'a log that is gone was not closed');
      });
  }

  async prepare(incarnation: string): Promise<void> {
    this.#held.expect(incarnation);
    if (findAppliedPosition(this.#options.store, incarnation) !== undefined) return;
    await this.#loader.load(incarnation, this.#closing.signal);
  }

  async drop(incarnation: string): Promise<void> {
    this.#held.expectNoMore(incarnation);
    // Of one that never came to be named.
    this.#placements.follow([placementRemoval(incarnation)]);
    await this.#archiver.stop(incarnation);
    await this.#held.forget(incarnation);
    const { service, blobs, logger } = this.#options;
    try {
      await service.openStream(incarnation).drop();
      await new SnapshotFiles(blobs, incarnation).removeAll();
      await new LogArchive(incarnation, { blobs, logger }).removeAll();
    } catch (err) {
      logger.warn(
        { err, log: incarnation },
        'the log or blobs of a collection that is gone are left',
      );
    }
  }

  /**
   * Brings the store up to date, before a database is opened. `incarnationsIn` lists the collections in the store,
   * and `isFounded` tells whether it has the foundation, which the first leader writes. Throws
   * `configuration_invalid` for a store of a service that was alone, and `data_corrupt` when a log is not the one that
   * the store has followed.
   */
  async catchUp(options: {
    readonly incarnationsIn: () => readonly string[];
    readonly isFounded: () => boolean;
    readonly foundation: () => readonly StoreOperation[];
  }): Promise<void> {
    const { signal } = this.#closing;
    const { store, blobs, layout, logger } = this.#options;
    const { catalogue } = this.#logs;
    const isForeign = options.isFounded() && findAppliedPosition(store, CATALOGUE) === undefined;
    if (isForeign && this.#founding === null) throw foreignData();
    this.#members.start();
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
        // Another node may have taken over meanwhile, and writes it then.
        await catalogue.commit(options.foundation()).catch(ignoreNoLeader);
        continue;
      }
      this.#elections.run([catalogue]);
      await this.#elections.idle();
      await sleep(this.#timing.electionMs, undefined, { signal });
    }
    await this.#held.catchUp(options.incarnationsIn());
  }

  /** From now on the database gets what others commit. It must have loaded its collections. */
  async attach(database: FollowingDatabase): Promise<void> {
    this.#database = database;
    this.#logs.catalogue.follow();
    await this.#held.sync(database);
    this.#timer = setInterval(() => {
      this.#elections.run(this.#logs.all);
      this.#ownership.announce();
      this.#announceStore();
      this.#placing.run();
      this.#held.run(database);
      this.#archiving.run();
      this.#snapshotter.run(this.#logs.owned);
    }, this.#timing.electionMs).unref();
    await this.whenCurrent(null);
    const names = this.#logs.ofCollections.map(({ name }) => name);
    await Promise.all(names.map((name) => this.#whenCurrentOrFailed(name, database)));
  }

  /** A collection that cannot be served does not keep the node from serving the others. */
  async #whenCurrentOrFailed(incarnation: string, database: FollowingDatabase): Promise<void> {
    const ended = new AbortController();
    const isFailed = async () => {
      while (!ended.signal.aborted && !database.isFailed(incarnation)) {
        await sleep(FAILED_POLL_MS);
      }
    };
    try {
      const signal = AbortSignal.any([ended.signal, this.#closing.signal]);
      await Promise.race([this.progress.whenCurrent(incarnation, signal), isFailed()]);
    } finally {
      ended.abort();
    }
  }

  /** Tells the other nodes where they reach the API of this one. */
  serve(url: string): void {
    this.#members.change({ url, state: 'serving' });
  }

  /** For the database; others wait with `progress`. */
  whenCurrent(incarnation: string | null): Promise<void> {
    return this.progress.whenCurrent(incarnation, this.#closing.signal);
  }

  /** Whether this node owns the log of the catalogue. */
  get isLeader(): boolean {
    return this.#logs.catalogue.isWritable;
  }

  /** Whether this node carries out the writes of a collection, or with null those of the catalogue. */
  owns(incarnation: string | null): boolean {
    const log = this.#logs.find(incarnation);
    return log !== undefined && this.#ownership.keeps(log);
  }

  /** A write begins on this node. Returns the function that ends it. */
  beginWrite(incarnation: string | null): () => void {
    return this.#ownership.beginWrite(incarnation ?? CATALOGUE);
  }

  /**
   * The node that does and can be reached, as far as this one knows; null for none. For a collection that this node
   * does not hold, one that does: it knows the owner.
   */
  ownerOf(incarnation: string | null): Member | null {
    if (incarnation !== null && !this.holds(incarnation)) return this.#holderOf(incarnation);
    const log = this.#logs.find(incarnation);
    const isKnown = log !== undefined && !this.#ownership.isReleasing(log);
    const owner = isKnown ? this.#elections.ownerOf(log) : null;
    return owner === null || owner.url === '' ? null : owner;
  }

  /** Another one each time. */
  #holderOf(incarnation: string): Member | null {
    const holders = this.#members.present.filter(
      ({ node, state, url }) =>
        state === 'serving' && url !== '' && this.#placements.holds(node, incarnation),
    );
    this.#holderTurn++;
    return holders[this.#holderTurn % holders.length] ?? null;
  }

  /** A request for rows of a collection that this node holds begins. Returns the function that ends it. */
  beginRead(incarnation: string): () => void {
    return this.#readsUnderWay.begin(incarnation);
  }

  /**
   * Moves a collection from one node to another one. The move goes on when it resolves. Throws `node_not_found` and
   * `invalid_request`, and `no_leader` unless this node leads.
   */
  async move(
    incarnation: string,
    nodes: { readonly from: string; readonly to: string },
  ): Promise<void> {
    const placement = this.#asked.moved(incarnation, nodes);
    await this.#logs.catalogue.commit([placementOperation(incarnation, placement)]);
  }

  /** Takes over the catalogue, for a change that needs the rows of a collection that this node holds. */
  async acquireCatalogue(): Promise<void> {
    if (!this.isLeader) await this.#elections.takeOver(this.#logs.catalogue);
  }

  /** Resolves with such a node when there is one. Rejects with the reason of the signal. */
  async findOwner(incarnation: string | null, signal: AbortSignal): Promise<Member> {
    for (;;) {
      const owner = this.ownerOf(incarnation);
      if (owner !== null) return owner;
      signal.throwIfAborted();
      await sleep(OWNER_POLL_MS);
    }
  }

  /** Logs that this node cannot follow at the moment. */
  get failedLogCount(): number {
    return this.#logs.all.filter(({ failure }) => failure !== null).length;
  }

  /** What this node has done since it started. */
  get counts() {
    return {
      takeOvers: this.#ownership.takeOverCount,
      snapshots: this.#snapshotter.counts.made,
      snapshotFailures: this.#snapshotter.counts.failed,
    };
  }

  /** How far this node is behind those that own logs, as far as it hears of them. */
  get lag(): Lag {
    return this.#lag.read(this.#members);
  }

  /** Records that logs did not have, and that this node has read from the archive. */
  get repairedRecordCount(): number {
    return this.#logs.repairedRecordCount;
  }

  /** For how long what this node has committed has not been archived. */
  get archiveLagSeconds(): number {
    return this.#archiving.lagSeconds;
  }

  /** Archives what this node has committed before the call to the logs that it owns. */
  archive(): Promise<void> {
    return this.#archiving.now();
  }

  /** Reads the logs and the shared files, and tells what is wrong with them. */
  verifyFiles(signal: AbortSignal): Promise<VerifiedFiles[]> {
    const { blobs, service, logger } = this.#options;
    const logs = [CATALOGUE, ...(this.#database?.incarnations ?? [])];
    return verifyShared({ blobs, service, logs, logger, signal });
  }

  get self(): Member {
    return this.#members.self;
  }

  /** What the monotonic clock of a process shows now; null for one that is not heard of. */
  clockOf(instance: string): number | null {
    return this.#members.clockOf(instance);
  }

  /** The nodes that were heard of lately, with this one. */
  get present(): readonly Member[] {
    return this.#members.present;
  }

  get status(): ClusterStatus {
    return {
      self: this.#members.self,
      leader: this.ownerOf(null),
      members: this.#states.present,
      durability: this.#options.durability?.() ?? null,
    };
  }

  /**
   * Drains a node, or ends that; null where no node has the name. Only on the node that leads; another
   * one throws `no_leader`.
   */
  async drain(node: string, isOn: boolean): Promise<MemberStatus | null> {
    if (!this.#states.isKnown(node)) return null;
    await this.#logs.catalogue.commit([drainOperation(node, isOn)]);
    this.#options.logger.info(
      { node },
      isOn ? 'the node is to be drained' : 'the node is in use again',
    );
    return this.#states.of(node);
  }

  /** Of all collections, for metrics. */
  get placementCounts() {
    const { present } = this.#members;
    const serving = present.filter(({ state }) => state === 'serving').map(({ node }) => node);
    const held = this.#database?.heldIncarnations.length ?? 0;
    return { held, ...this.#placements.countsAmong(serving) };
  }

  /** Lets other nodes take over, if there are any, and waits for them. Requests are still answered. */
  async leave(msMax: number): Promise<void> {
    this.#members.change({ state: 'leaving' });
    await this.#ownership.releaseAll(msMax);
  }

  async close(): Promise<void> {
    this.#closing.abort(
      new SagittaError('stopping', 'The service is stopping.', { retryAfterSeconds: 5 }),
    );
    clearInterval(this.#timer);
    this.#members.close();
    await this.#elections.idle();
    await this.#archiving.settled();
    await this.#held.settled();
    await Promise.all(this.#logs.all.map((log) => log.close()));
    await this.#ownership.settled();
    await this.#snapshotter.settled();
    await this.#placing.settled();
  }

  async #applyCatalogue(operations: readonly StoreOperation[]) {
    this.#placements.follow(operations);
    const stored = Promise.resolve();
    if (this.#database === null) {
      await this.#options.store.commit(operations);
    } else {
      await this.#database.followCatalogue(operations);
      await this.#held.sync(this.#database);
    }
    return { stored };
  }

  async #applyCollection(incarnation: string, operations: readonly StoreOperation[]) {
    return this.#database === null
      ? { stored: this.#options.store.commit(operations) }
      : this.#database.followCollection(incarnation, operations);
  }

  /** Others are to own the logs for a while, also that of the catalogue. */
  #noteStoreFailed(): void {
    this.#storeRestsUntilMs = performance.now() + STORE_REST_MS;
    if (this.#members.self.canStore) this.#members.change({ canStore: false });
  }

  #announceStore(): void {
    const hasFailed = this.#logs.ofCollections.some(({ name }) => this.#database?.isFailed(name));
    const canStore = performance.now() >= this.#storeRestsUntilMs && !hasFailed;
    if (canStore !== this.#members.self.canStore) this.#members.change({ canStore });
  }
}

function ignoreNoLeader(error: unknown): void {
  if (!(error instanceof SagittaError && ['no_leader', 'outcome_unknown'].includes(error.code)))
    throw error;
}
