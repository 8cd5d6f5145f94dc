// The state of a node and of its cluster, for operators, for metrics, and for the announcements of the node.

import type { ServiceProblem } from '../../common/problems.js';
import type { ArchiveScheduler } from '../archive/archive-scheduler.js';
import type { Member, Members, MembersListener } from '../members/members.js';
import { HeldSizes, type HeldSizesOptions } from '../placement/collection-sizes.js';
import type { HoldingDatabase } from '../placement/held-collections.js';
import type { PlacementRequests } from '../placement/placement-requests.js';
import type { Placements } from '../placement/placements.js';
import type { Elections } from '../replication/elections.js';
import type { NodeLogs } from '../replication/node-logs.js';
import type { Ownership } from '../replication/ownership.js';
import type { Durability } from '../service/nats-durability.js';
import type { LogServer, SharedService } from '../service/shared-service.js';
import type { Snapshotter } from '../snapshots/snapshotter.js';
import { MemberStates, type MemberStatus } from './member-states.js';
import { type Lag, NodeLag } from './node-lag.js';
import { type CollectionProblem, NodeProblems } from './node-problems.js';
import type { StoreHealth } from './store-health.js';

/** The state of the cluster as one node sees it, for operators. */
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

type ObservedDatabase = Pick<HoldingDatabase, 'incarnations' | 'heldIncarnations'> & {
  readonly heldBytes: ReadonlyMap<string, number>;
  idOf(incarnation: string): string | undefined;
  isFailed(incarnation: string): boolean;
};

export interface NodeHealthOptions {
  readonly node: string;
  readonly service: SharedService;
  readonly members: Members;
  readonly logs: NodeLogs;
  readonly placements: Placements;
  readonly requests: PlacementRequests;
  readonly archiving: ArchiveScheduler;
  readonly snapshotter: Snapshotter;
  readonly storeHealth: StoreHealth;
  readonly ownership: Ownership;
  readonly elections: Elections;
  readonly isDrained: (node: string) => boolean;
  /** Null until it is open. */
  readonly database: () => ObservedDatabase | null;
  /** The durability of the log servers, if it is known. */
  readonly durability: (() => Durability) | undefined;
  /** The node that owns the log of the catalogue; null for none. */
  readonly leader: () => Member | null;
  /** How long announced sizes of collections are kept before they are measured again. */
  readonly measureMs: HeldSizesOptions['everyMs'];
}

export class NodeHealth {
  readonly members: MemberStates;
  readonly #options: NodeHealthOptions;
  readonly #problems: NodeProblems;
  readonly #lag: NodeLag;
  readonly #sizes: HeldSizes;

  constructor(options: NodeHealthOptions) {
    this.#options = options;
    const { database, requests, elections } = options;
    const incarnations = () => database()?.incarnations ?? [];
    const candidates = () => requests.candidates;
    this.members = new MemberStates({ ...options, candidates, incarnations });
    this.#lag = new NodeLag(options);
    this.#sizes = new HeldSizes({ ...options, everyMs: options.measureMs });
    this.#problems = new NodeProblems({
      ...options,
      ownerlessMs: (log) => elections.ownerlessMs(log),
      idOf: (incarnation) => database()?.idOf(incarnation),
    });
  }

  /** Looks for problems, and announces other ones than before. Called periodically. */
  update(): void {
    const { members, logs, storeHealth, database } = this.#options;
    if (this.#problems.update()) members.change({});
    const opened = database();
    storeHealth.update({
      hasDamage: logs.ofCollections.some(({ name }) => opened?.isFailed(name) === true),
      storingMs: Math.max(...logs.all.map(({ storingMs }) => storingMs)),
    });
  }

  /** What this node announces of its state. */
  measure(): ReturnType<MembersListener['measure']> {
    const { instance } = this.#options.members.self;
    const { problems } = this;
    return { ...this.#lag.ownedPositions(instance), sizes: this.#sizes.announced, problems };
  }

  /** Called with each announcement of another node. */
  observe(member: Member): void {
    this.#lag.observe(member);
  }

  /** Computing it visits every collection. */
  get status(): ClusterStatus {
    const { service, members, leader, durability } = this.#options;
    return {
      self: members.self,
      leader: leader(),
      members: this.members.all,
      collections: this.#collectionProblems(),
      servers: service.state.servers,
      durability: durability?.() ?? null,
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
    const { database, logs } = this.#options;
    const codes = new Set(this.problems.map(({ code }) => code));
    const found: CollectionProblem[] = [];
    for (const incarnation of database()?.incarnations ?? []) {
      const log = logs.find(incarnation);
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
    const { members, placements } = this.#options;
    const isServed = members.present.some(
      ({ node, state, url }) =>
        state === 'serving' && url !== '' && placements.holds(node, incarnation),
    );
    if (isServed) return null;
    const nodes = placements.of(incarnation)?.nodes.join(', ') ?? 'all nodes';
    return { code: 'no_leader', detail: `None of the nodes that hold it serves: ${nodes}.` };
  }

  /** The number of logs that this node cannot follow at the moment. */
  get failedLogCount(): number {
    return this.#options.logs.all.filter(({ failure }) => failure !== null).length;
  }

  /** What this node has done since it started. */
  get counts() {
    const { ownership, snapshotter, logs } = this.#options;
    const { taken, failed } = snapshotter.counts;
    return {
      takeOvers: ownership.takeOverCount,
      snapshots: taken,
      snapshotFailures: failed,
      /** Records missing in logs that this node has read from the archive. */
      repairedRecords: logs.repairedRecordCount,
    };
  }

  /** How far this node is behind the owners of logs that it hears from. */
  get lag(): Lag {
    return this.#lag.read(this.#options.members);
  }

  /** The numbers of collections. */
  get placementCounts() {
    const { members, placements, database } = this.#options;
    const serving = members.present.filter(({ state }) => state === 'serving');
    const held = database()?.heldIncarnations.length ?? 0;
    return { held, ...placements.countsAmong(serving.map(({ node }) => node)) };
  }

  /** How long commits of this node have waited to be archived. */
  get archiveLagSeconds(): number {
    const { archiving, logs } = this.#options;
    return archiving.lagSecondsOf(logs.owned);
  }
}
