// The parts of one node, and how they are connected.

import { randomUUID } from 'node:crypto';
import { Changes } from '../../common/changes.js';
import type { Logger } from '../../common/logger.js';
import type { Store } from '../../storage/store.js';
import { ArchiveScheduler } from '../archive/archive-scheduler.js';
import { Archiver } from '../archive/archiver.js';
import type { SealedBlobs } from '../blobs/sealed-blobs.js';
import { NodeHealth } from '../health/node-health.js';
import { NodeLogger } from '../health/node-logger.js';
import { StoreHealth } from '../health/store-health.js';
import { CATALOGUE } from '../logs/store-entries.js';
import { isDrained } from '../members/drained-nodes.js';
import { type Member, Members, type MembersTiming, newMember } from '../members/members.js';
import { FileHomes } from '../placement/file-homes.js';
import { HeldCollections } from '../placement/held-collections.js';
import { PlacementRequests } from '../placement/placement-requests.js';
import { Placements } from '../placement/placements.js';
import { Rebalancer, type RebalancerTiming } from '../placement/rebalancer.js';
import { Elections, type ElectionTiming } from '../replication/elections.js';
import { InFlightRequests } from '../replication/in-flight-requests.js';
import { LogProgress } from '../replication/log-progress.js';
import { NodeLogs } from '../replication/node-logs.js';
import { Ownership } from '../replication/ownership.js';
import type { Durability } from '../service/nats-durability.js';
import type { SharedService } from '../service/shared-service.js';
import { FileAdoption } from '../snapshots/file-adoption.js';
import { FileFetcher } from '../snapshots/file-fetcher.js';
import { SharedFiles } from '../snapshots/file-sharing.js';
import type { StoreLayout } from '../snapshots/log-state.js';
import { Snapshotter } from '../snapshots/snapshotter.js';
import { StateLoader } from '../snapshots/state-loader.js';
import { ClusterLogs } from './cluster-logs.js';
import { LogApplier } from './log-applier.js';

export interface ClusterTiming extends MembersTiming, ElectionTiming, RebalancerTiming {
  /** The interval of all periodic work of a node. */
  readonly electionMs: number;
}

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

export interface NodePartsOptions {
  readonly service: SharedService;
  /** Different for every node, and the same after a restart. */
  readonly node: string;
  /** Nodes of one zone may fail together; empty by default. */
  readonly zone?: string;
  readonly version: string;
  readonly store: Store;
  readonly blobs: SealedBlobs;
  readonly layout: StoreLayout;
  /** Bytes written to a log between two snapshots. */
  readonly snapshotBytes: number;
  /** How many of the nodes that hold a collection keep the whole of each segment file; all of them by default. */
  readonly fileCopies?: number | null;
  /** The durability of the log servers, if it is known. */
  readonly durability?: () => Durability;
  readonly logger: Logger;
  readonly timing?: Partial<ClusterTiming>;
}

interface NodeCallbacks {
  /** Aborted when the node closes. */
  readonly signal: AbortSignal;
  /** The node that owns the log of the catalogue; null for none. */
  readonly leader: () => Member | null;
  /** Called when another process has taken over the catalogue, or with an empty text when the owner has released it. */
  readonly onLeader: (owner: string) => void;
}

export type NodeParts = ReturnType<typeof composeNode>;

export function composeNode(options: NodePartsOptions, callbacks: NodeCallbacks) {
  const replication = composeReplication(options, callbacks);
  const { shared, placed, timing, ...parts } = replication;
  const { node } = options;
  const { logs, applier } = parts;
  const requests = new PlacementRequests(placed);
  const reads = new InFlightRequests();
  const holding = { ...shared, ...parts, node, reads };
  const held = new HeldCollections(holding);
  const progress = new LogProgress(logs);
  const clusterLogs = new ClusterLogs({ ...holding, progress, requests, held });
  const rebalancer = new Rebalancer({
    ...placed,
    timing,
    isLeader: () => logs.catalogue.isWritable,
    incarnations: () => applier.database?.incarnations ?? [],
    commit: (operations) => logs.catalogue.commit(operations),
    logger: shared.logger,
  });
  const health = new NodeHealth({
    ...{ ...shared, ...placed, ...parts, node, requests },
    database: () => applier.database,
    durability: options.durability,
    leader: callbacks.leader,
    measureMs: timing.planMs,
  });
  const { changes } = shared;
  const own = { changes, timing, requests, reads, held, progress, health };
  return { ...parts, ...own, clusterLogs, rebalancer };
}

/** The logs of a node, who owns them, and what happens to their records. */
function composeReplication(
  options: NodePartsOptions,
  { signal, onLeader }: Pick<NodeCallbacks, 'signal' | 'onLeader'>,
) {
  const { node, zone = '', version, service, store, blobs, layout } = options;
  const timing = { ...TIMING, ...options.timing };
  const placements = new Placements(store);
  const changes = new Changes();
  const applier: LogApplier = new LogApplier({
    store,
    layout,
    placements,
    changes,
    fetch: (log, file, name) => files.fetch(log, file, { name, parts: null }),
  });
  const logger = new NodeLogger(options.logger, (name) => applier.database?.idOf(name));
  const shared = { service, store, blobs, layout, logger, signal, changes };
  const instance = `${node}/${randomUUID()}`;
  const self = newMember({ instance, node, version, zone, state: 'joining' });
  const members = new Members({ bus: service, self, timing });
  const archiver = new Archiver({ ...shared, openStream: (name) => service.openStream(name) });
  const archiving = new ArchiveScheduler({ archiver, logger, signal });
  const logBytesMax = options.snapshotBytes;
  const snapshotter = new Snapshotter({
    ...shared,
    archiver,
    logBytesMax,
    fileBytesOf: (name) => applier.database?.writtenFileBytes(name) ?? 0,
  });
  const homes = new FileHomes({ placements, node, copies: options.fileCopies ?? null });
  const fetcher = new FileFetcher({
    ...shared,
    isHome: (log, homeKey) => homes.isHere(log, homeKey),
  });
  const files = new SharedFiles({
    ...shared,
    fetcher,
    homeKeyFor: (incarnation, present) => homes.keyFor(incarnation, present),
    positionOf: (log) => logs.find(log)?.recordPosition ?? 0,
  });
  const adoption = new FileAdoption({
    ...shared,
    fetcher,
    database: () => applier.database,
    isHeld: (name) => logs.find(name) !== undefined,
  });
  const loader = new StateLoader({
    ...shared,
    fetcher,
    database: () => applier.database,
    applyCatalogue: (operations) => applier.applyCatalogue(operations),
  });
  const storeHealth = new StoreHealth(members);
  const logs = new NodeLogs({
    ...shared,
    archiver,
    owner: instance,
    apply: (name, operations) => {
      adoption.follow(name, operations);
      return applier.apply(name, operations);
    },
    load: (name, ended) => loader.load(name, ended),
    onOwner: (name, owner) => {
      changes.notify();
      if (name === CATALOGUE) onLeader(owner);
    },
    onRole: () => changes.notify(),
    onStoreFailed: (error) => storeHealth.recordFailure(error),
    onBytes: (name, byteCount) => {
      snapshotter.countBytes(name, byteCount);
      archiving.countBytes(byteCount);
    },
    onCommitted: (name, operations) => {
      if (name === CATALOGUE) placements.apply(operations);
      adoption.follow(name, operations);
    },
  });
  const holds = (name: string, log: string) => placements.holds(name, log);
  const ownership = new Ownership({ ...shared, members, logs, holds, archiving });
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
  const storing = { archiver, archiving, snapshotter, homes, files, adoption, loader, storeHealth };
  const parts = { members, placements, applier, logs, ownership, elections, ...storing };
  return { shared, placed, timing, ...parts };
}
