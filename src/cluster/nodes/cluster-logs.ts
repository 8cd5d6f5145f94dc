// The logs to which the database of a node commits. A new collection gets a log, a placement and, if it is a copy, a first
// snapshot before the catalogue names it; a deleted one loses all of them.

import type { Changes } from '../../common/changes.js';
import { noLeaderError, SagittaError } from '../../common/errors.js';
import type { Logger } from '../../common/logger.js';
import type {
  CommitLog,
  CommitLogs,
  FileSharing,
  NewLogOptions,
} from '../../storage/commit-log.js';
import type { Store, StoreOperation } from '../../storage/store.js';
import type { Archiver } from '../archive/archiver.js';
import { LogArchive } from '../archive/log-archive.js';
import type { SealedBlobs } from '../blobs/sealed-blobs.js';
import type { StoreHealth } from '../health/store-health.js';
import { findAppliedPosition, startPositionOperation } from '../logs/applied-position.js';
import type { HeldCollections } from '../placement/held-collections.js';
import type { PlacementRequests } from '../placement/placement-requests.js';
import { type Placement, type Placements, placementRemoval } from '../placement/placements.js';
import type { Elections } from '../replication/elections.js';
import type { LogProgress } from '../replication/log-progress.js';
import type { NodeLogs } from '../replication/node-logs.js';
import type { Ownership } from '../replication/ownership.js';
import type { SharedService } from '../service/shared-service.js';
import type { StoreLayout } from '../snapshots/log-state.js';
import { SnapshotFiles } from '../snapshots/snapshot-files.js';
import { originOperation, originRemoval } from '../snapshots/snapshot-record.js';
import type { StateLoader } from '../snapshots/state-loader.js';
import type { LogApplier } from './log-applier.js';

/** How long the logs may not accept messages before creating a log is refused rather than tried. */
const ELECTION_MS_MAX = 3_000;
/** How long the first record of a new log may take: clients get an answer within ten seconds. */
const LEAD_MS_MAX = 5_000;

/** The log of a collection that was deleted or dropped while it was being loaded, and is about to be closed. */
const REMOVED_LOG: CommitLog = {
  commit: () => Promise.reject(noLeaderError()),
  whenStored: () => undefined,
  isWritable: false,
};

export interface ClusterLogsOptions {
  /** The name of this node. */
  readonly node: string;
  readonly service: SharedService;
  readonly store: Store;
  readonly blobs: SealedBlobs;
  readonly layout: StoreLayout;
  readonly logs: NodeLogs;
  readonly progress: LogProgress;
  readonly placements: Placements;
  readonly requests: PlacementRequests;
  readonly held: HeldCollections;
  readonly elections: Elections;
  readonly ownership: Ownership;
  readonly archiver: Archiver;
  readonly loader: StateLoader;
  readonly files: FileSharing;
  readonly applier: LogApplier;
  readonly storeHealth: StoreHealth;
  /** Changes of owners of logs. */
  readonly changes: Changes;
  readonly logger: Logger;
  /** Aborted when the node closes. */
  readonly signal: AbortSignal;
}

export class ClusterLogs implements CommitLogs {
  readonly isAlone = false;
  readonly catalogue: CommitLog;
  readonly files: FileSharing;
  readonly #options: ClusterLogsOptions;

  constructor(options: ClusterLogsOptions) {
    this.#options = options;
    this.catalogue = options.logs.catalogue;
    this.files = options.files;
  }

  ofCollection(incarnation: string): CommitLog {
    const { applier, held, logs } = this.#options;
    const isOpen =
      applier.database === null ||
      held.isExpected(incarnation) ||
      logs.find(incarnation) !== undefined;
    return isOpen ? logs.open(incarnation) : REMOVED_LOG;
  }

  ofReplies(incarnation: string): CommitLog {
    return this.#options.logs.find(incarnation) ?? this.catalogue;
  }

  holds(incarnation: string): boolean {
    return this.#options.placements.holds(this.#options.node, incarnation);
  }

  placementOf(incarnation: string): Placement | null {
    return this.#options.placements.of(incarnation);
  }

  replicate(incarnation: string, factor: number | null): readonly StoreOperation[] {
    return this.#options.requests.withFactor(incarnation, factor);
  }

  async create(incarnation: string, options: NewLogOptions): Promise<readonly StoreOperation[]> {
    const { service, store, blobs, layout, signal } = this.#options;
    const { held, logs, placements, requests, storeHealth } = this.#options;
    this.#requireLeader();
    this.#requireQuorum();
    held.expect(incarnation);
    const placing = requests.ofNew(incarnation, options);
    placements.apply(placing);
    const made = options.isCopied ? [...placing, originOperation(incarnation)] : placing;
    await service.createLog(incarnation);
    await store.commit([startPositionOperation(incarnation)]).catch((error: Error) => {
      storeHealth.recordFailure(error);
      throw error;
    });
    if (options.isCopied) {
      const check = () => signal.throwIfAborted();
      await new SnapshotFiles(blobs, incarnation).upload({ store, layout, base: null, check });
    }
    const log = logs.open(incarnation);
    const inTime = AbortSignal.any([signal, AbortSignal.timeout(LEAD_MS_MAX)]);
    await log.lead(inTime).catch((error: unknown) => {
      throw signal.aborted || error instanceof SagittaError ? error : noLeaderError(error);
    });
    if (this.holds(incarnation)) {
      // For the time when this node no longer owns the log.
      log.follow();
      return made;
    }
    // The first in line of the nodes that hold the collection then takes over immediately.
    await log.release();
    await held.forget(incarnation);
    return made;
  }

  removal(incarnation: string): readonly StoreOperation[] {
    return [placementRemoval(incarnation), originRemoval(incarnation)];
  }

  async prepare(incarnation: string): Promise<void> {
    const { held, store, loader, signal } = this.#options;
    held.expect(incarnation);
    if (findAppliedPosition(store, incarnation) !== undefined) return;
    await loader.load(incarnation, signal);
  }

  async drop(incarnation: string): Promise<void> {
    const { service, blobs, logger, held, placements, archiver } = this.#options;
    held.unexpect(incarnation);
    // For a collection that the catalogue has never named.
    placements.apply([placementRemoval(incarnation)]);
    await archiver.stop(incarnation);
    await held.forget(incarnation);
    try {
      await service.openStream(incarnation).drop();
      await new SnapshotFiles(blobs, incarnation).removeAll();
      await new LogArchive(incarnation, { blobs, logger }).removeAll();
    } catch (err) {
      logger.warn(
        { err, log: incarnation },
        'the log or the files of a deleted collection could not be removed',
      );
    }
  }

  end(incarnation: string): void {
    const { logs, logger } = this.#options;
    logs
      .find(incarnation)
      ?.close()
      .catch((err: unknown) => {
        logger.warn({ err, log: incarnation }, 'the log of a deleted collection was not closed');
      });
  }

  async acquire(incarnation: string): Promise<void> {
    const { logs, ownership, elections } = this.#options;
    this.#requireLeader();
    const log = logs.open(incarnation);
    if (ownership.owns(log)) return;
    // Commits of a new leader are applied after the change that waits here, so it must fail if this node is deposed.
    await this.#whileLeading(elections.takeOver(log));
  }

  whenCurrent(incarnation: string): Promise<void> {
    return this.#options.progress.whenCurrent(incarnation, this.#options.signal);
  }

  /** Throws `no_leader` when this node no longer leads; the work goes on. */
  async #whileLeading(work: Promise<void>): Promise<void> {
    const over = new AbortController();
    const deposed = this.#options.changes.until(() => {
      this.#requireLeader();
      return null;
    }, over.signal);
    try {
      await Promise.race([work, deposed]);
    } finally {
      over.abort();
      for (const each of [work, deposed]) each.catch(() => {});
    }
  }

  /** Throws `no_leader` while the logs have not accepted messages for longer than an election takes. */
  #requireQuorum(): void {
    const { kind, detail, sinceMs } = this.#options.service.state;
    if (kind === 'connected' || performance.now() - sinceMs < ELECTION_MS_MAX) return;
    throw new SagittaError('no_leader', `${detail} Nothing was written. Retry after 1 s.`, {
      retryAfterSeconds: 1,
    });
  }

  #requireLeader(): void {
    if (!this.catalogue.isWritable) throw noLeaderError();
  }
}
