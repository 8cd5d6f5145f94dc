// One node of a cluster. Its store and its memory hold the catalogue and some of the collections. Each log, of the
// catalogue or of a collection, is owned by one of the nodes that follow it, which carries out the writes to it.
//
// A node starts in three steps: `catchUp` brings its store up to date, before a database is opened on it; `attach` hands
// it the database, which then follows the logs or leads; `serve` announces that it can be reached.

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { SagittaError } from '../../common/errors.js';
import type { Logger } from '../../common/logger.js';
import type { ServiceProblem } from '../../common/problems.js';
import type { CommitLogs } from '../../storage/commit-log.js';
import type { Store, StoreOperation } from '../../storage/store.js';
import { ArchiveScheduler } from '../archive/archive-scheduler.js';
import { Archiver } from '../archive/archiver.js';
import type { Blobs } from '../blobs/blobs.js';
import { MemberStates, type MemberStatus } from '../health/member-states.js';
import { type Lag, NodeLag } from '../health/node-lag.js';
import { NodeLogger } from '../health/node-logger.js';
import { type CollectionProblem, NodeProblems } from '../health/node-problems.js';
import { StoreHealth } from '../health/store-health.js';
import { findAppliedPosition } from '../logs/applied-position.js';
import { CATALOGUE } from '../logs/store-entries.js';
import { drainOperation, isDrained } from '../members/drained-nodes.js';
import { type Member, Members, type MembersTiming, newMember } from '../members/members.js';
import { HeldSizes } from '../placement/collection-sizes.js';
import { HeldCollections } from '../placement/held-collections.js';
import { PlacementRequests } from '../placement/placement-requests.js';
import { type Placement, Placements, placementOperation } from '../placement/placements.js';
import { Rebalancer, type RebalancerTiming } from '../placement/rebalancer.js';
import { Elections, type ElectionTiming, ownerOf } from '../replication/elections.js';
import { InFlightRequests } from '../replication/in-flight-requests.js';
import { LogProgress } from '../replication/log-progress.js';
import { NodeLogs } from '../replication/node-logs.js';
import { OWNER_POLL_MS, Ownership } from '../replication/ownership.js';
import type { Durability } from '../service/nats-durability.js';
import type { LogServer, SharedService } from '../service/shared-service.js';
import type { StoreLayout } from '../snapshots/log-state.js';
import { readSnapshotRecord } from '../snapshots/snapshot-record.js';
import { Snapshotter } from '../snapshots/snapshotter.js';
import { StateLoader } from '../snapshots/state-loader.js';
import { ClusterLogs } from './cluster-logs.js';
import {
  type FoundingCollection,
  foreignData,
  found,
  foundedMeanwhile,
  isUnfinished,
  prepareFounding,
} from './founding.js';
import { type FollowingDatabase, LogApplier } from './log-applier.js';
import { type VerifiedFiles, verifyShared } from './verification.js';

export interface ClusterTiming extends MembersTiming, ElectionTiming, RebalancerTiming {
  /** The interval of all periodic work of a node. */
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
  planMs: 1_000,
  replaceMs: 600_000,
};

/** The collections that a node brings into an empty cluster. */
interface Founding {
  readonly collections: readonly FoundingCollection[];
}

export interface ClusterNodeOptions {
  readonly service: SharedService;
  /** Different for every node, and the same after a restart. */
  readonly node: string;
  /** Nodes of one zone may fail together; empty by default. */
  readonly zone?: string;
  readonly version: string;
  readonly store: Store;
  readonly blobs: Blobs;
  readonly layout: StoreLayout;
  /** The data in the store that the node may bring into an empty cluster. */
  readonly founding?: Founding;
  /** Bytes written to a log between two snapshots. */
  readonly snapshotBytes: number;
  /** The durability of the log servers, if it is known. */
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
  /** Up to `COLLECTIONS_MAX` collections with problems that the node as a whole does not have. */
  readonly collections: readonly CollectionProblem[];
  /** The NATS servers that store the log of the catalogue; empty if unknown. */
  readonly servers: readonly LogServer[];
  /** Null where the logs are in memory. */
  readonly durability: Durability | null;
}

/** Collections with problems that are listed. */
const COLLECTIONS_MAX = 100;

export class ClusterNode {
  /** The logs to which the database of this node commits. */
  readonly logs: CommitLogs;
  /** The positions up to which this node has applied the logs. */
  readonly progress: LogProgress;
  readonly #options: ClusterNodeOptions;
  readonly #timing: ClusterTiming;
  /** Null unless this node founds the cluster. */
  readonly #founding: Founding | null;
  readonly #members: Members;
  readonly #states: MemberStates;
  readonly #lag: NodeLag;
  readonly #sizes: HeldSizes;
  readonly #health: StoreHealth;
  readonly #problems: NodeProblems;
  readonly #logs: NodeLogs;
  readonly #applier: LogApplier;
  readonly #ownership: Ownership;
  readonly #elections: Elections;
  readonly #archiving: ArchiveScheduler;
  readonly #snapshotter: Snapshotter;
  readonly #placements: Placements;
  readonly #requests: PlacementRequests;
  readonly #held: HeldCollections;
  readonly #rebalancer: Rebalancer;
  readonly #reads = new InFlightRequests();
  readonly #closing = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #holderTurn = 0;

  private constructor(options: ClusterNodeOptions, founding: Founding | null) {
    this.#options = options;
    this.#founding = founding;
    const timing = { ...TIMING, ...options.timing };
    this.#timing = timing;
    const { node, zone = '', version, service, store, blobs, layout } = options;
    const { signal } = this.#closing;
    const idOf = (incarnation: string) => this.#applier.database?.idOf(incarnation);
    const logger = new NodeLogger(options.logger, idOf);
    const shared = { service, store, blobs, layout, logger, signal };
    const instance = `${node}/${randomUUID()}`;
    const self = newMember({ instance, node, version, zone, state: 'joining' });
    const members = new Members({ bus: service, self, timing });
    const placements = new Placements(store);
    const applier = new LogApplier(store, placements);
    const database = () => applier.database;
    const incarnations = () => applier.database?.incarnations ?? [];
    const openStream = (name: string) => service.openStream(name);
    const archiver = new Archiver({ blobs, openStream, logger });
    const archiving = new ArchiveScheduler({ archiver, logger, signal });
    const logBytesMax = options.snapshotBytes;
    const snapshotter = new Snapshotter({ ...shared, archiver, logBytesMax });
    const applyCatalogue = (operations: readonly StoreOperation[]) =>
      applier.applyCatalogue(operations);
    const loader = new StateLoader({ ...shared, database, applyCatalogue });
    const health = new StoreHealth(members);
    const logs = new NodeLogs({
      ...shared,
      archiver,
      owner: instance,
      apply: (name, operations) => applier.apply(name, operations),
      load: (name, ended) => loader.load(name, ended),
      onOwner: (name, owner) => this.#onOwner(name, owner),
      onStoreFailed: (error) => health.recordFailure(error),
      onBytes: (name, byteCount) => {
        snapshotter.countBytes(name, byteCount);
        archiving.countBytes(byteCount);
      },
      onCommitted: (name, operations) => {
        if (name === CATALOGUE) placements.apply(operations);
      },
    });
    const holds = (name: string, log: string) => placements.holds(name, log);
    const ownership = new Ownership({ members, logs, holds, archiving, logger, signal });
    const placed = { members, placements, isDrained: (name: string) => isDrained(store, name) };
    const elections = new Elections({
      ...placed,
      catalogue: logs.catalogue,
      timing,
      holdersOf: (log) => placements.of(log.name)?.nodes ?? null,
      lead: (log) => ownership.takeOver(log),
      release: (log) => ownership.release(log, { isUrgent: false }),
      logger,
    });
    const requests = new PlacementRequests(placed);
    const reads = this.#reads;
    const holding = { ...shared, node, members, placements, logs, archiver, snapshotter, reads };
    const held = new HeldCollections(holding);
    const progress = new LogProgress(logs);
    const replication = { logs, progress, elections, ownership, archiver, loader, applier, health };
    this.logs = new ClusterLogs({ ...shared, ...replication, node, placements, requests, held });
    const isLeader = () => this.isLeader;
    const commit = (operations: readonly StoreOperation[]) => logs.catalogue.commit(operations);
    const planning = { timing, isLeader, incarnations, commit, logger };
    this.#rebalancer = new Rebalancer({ ...placed, ...planning });
    const candidates = () => requests.candidates;
    this.#states = new MemberStates({ ...placed, logs, candidates, incarnations });
    this.#lag = new NodeLag({ node, placements, logs });
    this.#sizes = new HeldSizes({ node, placements, database, everyMs: timing.planMs });
    this.progress = progress;
    this.#members = members;
    this.#health = health;
    const { durability } = options;
    const ownerlessMs = elections.ownerlessMs.bind(elections);
    const judged = { service, members, logs, archiving, health, durability, ownerlessMs, idOf };
    this.#problems = new NodeProblems(judged);
    this.#logs = logs;
    this.#applier = applier;
    this.#ownership = ownership;
    this.#elections = elections;
    this.#archiving = archiving;
    this.#snapshotter = snapshotter;
    this.#placements = placements;
    this.#requests = requests;
    this.#held = held;
  }

  /** Creates the log of the catalogue unless it exists. */
  static async open(options: ClusterNodeOptions): Promise<ClusterNode> {
    await options.service.createLog(CATALOGUE, { isStarting: true });
    const { founding } = options;
    const isFounding =
      founding !== undefined && (await prepareFounding({ ...options, ...founding }));
    return new ClusterNode(options, isFounding ? founding : null);
  }

  #onOwner(log: string, owner: string): void {
    if (log !== CATALOGUE || owner === this.self.instance) return;
    this.#members.change({ epoch: 0 });
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
    const { catalogue } = this.#logs;
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
      this.#elections.run([catalogue]);
      await this.#elections.idle();
      await sleep(this.#timing.electionMs, undefined, { signal });
    }
    await this.#held.catchUp(options.incarnationsIn);
  }

  #startMembers(): void {
    const { instance } = this.self;
    this.#members.start({
      measure: () => ({
        ...this.#lag.ownedPositions(instance),
        sizes: this.#sizes.announced,
        problems: this.problems,
      }),
      onMember: (member) => {
        this.#lag.observe(member);
        this.#ownership.observe(member);
      },
    });
  }

  /** From now on, the database gets what others commit. It must have loaded its collections. */
  async attach(database: FollowingDatabase): Promise<void> {
    this.#applier.attach(database, this.#held);
    this.#logs.catalogue.follow();
    await this.#held.sync(database);
    this.#timer = setInterval(() => this.#run(database), this.#timing.electionMs).unref();
    await this.progress.whenCurrent(null, this.#closing.signal);
    const names = this.#logs.ofCollections.map(({ name }) => name);
    await Promise.all(names.map((name) => this.#whenCurrentOrFailed(name, database)));
  }

  #run(database: FollowingDatabase): void {
    const { all, owned, ofCollections } = this.#logs;
    this.#elections.run(all);
    this.#ownership.announce();
    if (this.#problems.update()) this.#members.change({});
    this.#health.update(ofCollections.some(({ name }) => database.isFailed(name)));
    this.#rebalancer.run();
    this.#held.run(database);
    this.#archiving.run(owned);
    this.#snapshotter.run(owned);
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
      const current = this.progress.whenCurrent(incarnation, signal).catch((error: unknown) => {
        // Otherwise the log was closed, since the collection was deleted meanwhile.
        if (this.#closing.signal.aborted) throw error;
      });
      await Promise.race([current, isFailed()]);
    } finally {
      ended.abort();
    }
  }

  /** Announces to the other nodes where they reach the API of this one. */
  serve(url: string): void {
    this.#members.change({ url, state: 'serving' });
  }

  /** Lets other nodes, if any, take over the logs, and waits for them. Requests are still answered. */
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
    await this.#rebalancer.settled();
  }

  /** Whether this node owns the log of the catalogue. */
  get isLeader(): boolean {
    return this.#logs.catalogue.isWritable;
  }

  /** Whether this node owns the log of a collection, or for null that of the catalogue. */
  owns(incarnation: string | null): boolean {
    const log = this.#logs.find(incarnation);
    return log !== undefined && this.#ownership.owns(log);
  }

  /** Registers a write on this node, and returns the function that ends it. */
  beginWrite(incarnation: string | null): () => void {
    return this.#ownership.beginWrite(incarnation ?? CATALOGUE);
  }

  /**
   * The reachable node that owns the log of a collection or, for null, of the catalogue, as far as this node knows; null
   * for none. For a collection that this node does not hold, a node that holds it, which knows the owner.
   */
  ownerOf(incarnation: string | null): Member | null {
    if (incarnation !== null && !this.holds(incarnation)) return this.#nextHolder(incarnation);
    const log = this.#logs.find(incarnation);
    const isKnown = log !== undefined && !this.#ownership.isReleasing(log);
    const owner = isKnown ? ownerOf(log, this.#members) : null;
    return owner === null || owner.url === '' ? null : owner;
  }

  /** The nodes that hold a collection, in turn. */
  #nextHolder(incarnation: string): Member | null {
    const holders = this.#members.present.filter(
      ({ node, state, url }) =>
        state === 'serving' && url !== '' && this.#placements.holds(node, incarnation),
    );
    this.#holderTurn++;
    return holders[this.#holderTurn % holders.length] ?? null;
  }

  /** Resolves with the node of `ownerOf` once one exists. Rejects with the reason of the signal. */
  async findOwner(incarnation: string | null, signal: AbortSignal): Promise<Member> {
    for (;;) {
      const owner = this.ownerOf(incarnation);
      if (owner !== null) return owner;
      signal.throwIfAborted();
      await sleep(OWNER_POLL_MS);
    }
  }

  /** Lets another node take over the log of a collection once no write is in flight. */
  async release(incarnation: string): Promise<void> {
    const log = this.#logs.find(incarnation);
    if (log !== undefined) await this.#ownership.release(log, { isUrgent: false });
  }

  /** Takes over the catalogue, for a change that needs the rows of a collection that this node holds. */
  async acquireCatalogue(): Promise<void> {
    if (!this.isLeader) await this.#elections.takeOver(this.#logs.catalogue);
  }

  /** Whether this node holds a collection. */
  holds(incarnation: string): boolean {
    return this.logs.holds(incarnation);
  }

  placementOf(incarnation: string): Placement | null {
    return this.#placements.of(incarnation);
  }

  /** Registers a request for rows of a collection that this node holds, and returns the function that ends it. */
  beginRead(incarnation: string): () => void {
    return this.#reads.begin(incarnation);
  }

  /**
   * Begins to move a collection from one node to another. Throws `invalid_request`, and `no_leader` unless this node
   * leads.
   */
  async move(
    incarnation: string,
    nodes: { readonly from: string; readonly to: string },
  ): Promise<void> {
    const placement = this.#requests.moved(incarnation, nodes);
    await this.#logs.catalogue.commit([placementOperation(incarnation, placement)]);
  }

  /**
   * Drains a node, or ends that; null for an unknown node. Throws `no_leader` unless this node leads.
   */
  async drain(node: string, isOn: boolean): Promise<MemberStatus | null> {
    if (!this.#states.isKnown(node)) return null;
    await this.#logs.catalogue.commit([drainOperation(node, isOn)]);
    this.#options.logger.info(
      { node },
      isOn ? 'the node is being drained' : 'the node is no longer drained',
    );
    return this.#states.of(node);
  }

  get self(): Member {
    return this.#members.self;
  }

  /** The nodes heard from recently, including this one. */
  get present(): readonly Member[] {
    return this.#members.present;
  }

  /** The current monotonic clock of a process; null for one not heard from. */
  clockOf(instance: string): number | null {
    return this.#members.clockOf(instance);
  }

  get status(): ClusterStatus {
    return {
      self: this.self,
      leader: this.ownerOf(null),
      members: this.#states.all,
      collections: this.#collectionProblems(),
      servers: this.#options.service.state.servers,
      durability: this.#options.durability?.() ?? null,
    };
  }

  /** What is wrong with this node at the moment. */
  get problems(): readonly ServiceProblem[] {
    return this.#problems.current;
  }

  /** Adds problems that other parts of the process find to those that the node announces. */
  addProblems(source: () => readonly ServiceProblem[]): void {
    this.#problems.add(source);
  }

  #collectionProblems(): readonly CollectionProblem[] {
    const codes = new Set(this.problems.map(({ code }) => code));
    const found: CollectionProblem[] = [];
    for (const incarnation of this.#applier.database?.incarnations ?? []) {
      const log = this.#logs.find(incarnation);
      const problem =
        log === undefined ? this.#unheldProblem(incarnation) : this.#problems.ofLog(log);
      // What all collections have in common is a problem of the node.
      if (problem === null || codes.has(problem.code)) continue;
      found.push({ incarnation, ...problem });
      if (found.length === COLLECTIONS_MAX) break;
    }
    return found;
  }

  #unheldProblem(incarnation: string): Omit<CollectionProblem, 'incarnation'> | null {
    if (this.#nextHolder(incarnation) !== null) return null;
    const nodes = this.placementOf(incarnation)?.nodes.join(', ') ?? 'all nodes';
    return { code: 'no_leader', detail: `None of the nodes that hold it serves: ${nodes}.` };
  }

  /** The number of logs that this node cannot follow at the moment. */
  get failedLogCount(): number {
    return this.#logs.all.filter(({ failure }) => failure !== null).length;
  }

  /** What this node has done since it started. */
  get counts() {
    const { taken, failed } = this.#snapshotter.counts;
    return {
      takeOvers: this.#ownership.takeOverCount,
      snapshots: taken,
      snapshotFailures: failed,
    };
  }

  /** How far this node is behind the owners of logs that it hears from. */
  get lag(): Lag {
    return this.#lag.read(this.#members);
  }

  /** The numbers of collections, for metrics. */
  get placementCounts() {
    const serving = this.present.filter(({ state }) => state === 'serving');
    const held = this.#applier.database?.heldIncarnations.length ?? 0;
    return { held, ...this.#placements.countsAmong(serving.map(({ node }) => node)) };
  }

  /** Records missing in logs that this node has read from the archive. */
  get repairedRecordCount(): number {
    return this.#logs.repairedRecordCount;
  }

  /** How long commits of this node have waited to be archived. */
  get archiveLagSeconds(): number {
    return this.#archiving.lagSecondsOf(this.#logs.owned);
  }

  /** Archives what this node has committed before the call to the logs that it owns. */
  archive(): Promise<void> {
    return this.#archiving.now(this.#logs.owned);
  }

  /** Reads the logs and the shared files, and reports what is wrong with them. */
  verifyFiles(signal: AbortSignal): Promise<VerifiedFiles[]> {
    const { blobs, service, logger } = this.#options;
    const logs = [CATALOGUE, ...(this.#applier.database?.incarnations ?? [])];
    return verifyShared({ blobs, service, logs, logger, signal });
  }
}

function ignoreNoLeader(error: unknown): void {
  if (!(error instanceof SagittaError && ['no_leader', 'outcome_unknown'].includes(error.code)))
    throw error;
}
