// The logs that this node owns. It takes them over as elections.ts decides, releases them between two writes, and finds
// out that other nodes have taken them over while it was halted or cut off.

import type { Changes } from '../../common/changes.js';
import { forEachAtOnce } from '../../common/for-each-at-once.js';
import type { Logger } from '../../common/logger.js';
import type { ArchiveScheduler } from '../archive/archive-scheduler.js';
import { CATALOGUE } from '../logs/store-entries.js';
import type { Member, Members } from '../members/members.js';
import { isOwnedElsewhere } from './elections.js';
import { InFlightRequests } from './in-flight-requests.js';
import type { NodeLogs } from './node-logs.js';
import type { ReplicatedLog } from './replicated-log.js';

/** Logs that are checked at the same time. */
const LOGS_AT_ONCE = 8;
/** How long a release waits for writes in flight, and new writes for the release. */
const QUIET_MS_MAX = 2_000;

export interface OwnershipOptions {
  readonly members: Members;
  readonly logs: NodeLogs;
  /** Whether a node, by its name, holds the collection of a log. */
  readonly holds: (node: string, log: string) => boolean;
  readonly archiving: ArchiveScheduler;
  /** Changes of members, and of owners of logs. */
  readonly changes: Changes;
  readonly logger: Logger;
  /** Aborted when the node closes. */
  readonly signal: AbortSignal;
}

export class Ownership {
  readonly #options: OwnershipOptions;
  readonly #writes = new InFlightRequests();
  /** Logs whose release waits for writes in flight. */
  readonly #releasing = new Set<ReplicatedLog>();
  /** The number of logs that other processes have taken over from this one, by process. */
  readonly #lostCounts = new Map<string, number>();
  #checking: Promise<void> = Promise.resolve();
  #takeOverCount = 0;

  constructor(options: OwnershipOptions) {
    this.#options = options;
  }

  /** Take-overs by this node. */
  get takeOverCount(): number {
    return this.#takeOverCount;
  }

  /** Whether the node owns a log and is not about to release it. */
  owns(log: ReplicatedLog): boolean {
    return log.isWritable && !this.#releasing.has(log);
  }

  isReleasing(log: ReplicatedLog): boolean {
    return this.#releasing.has(log);
  }

  /** Registers a write to a log, and returns the function that ends it. */
  beginWrite(name: string): () => void {
    return this.#writes.begin(name);
  }

  /** Takes over a log. Resolves with the process that owned it; empty for none. */
  async takeOver(log: ReplicatedLog): Promise<string> {
    const { logs, archiving, logger, signal } = this.#options;
    const startedAtMs = performance.now();
    // The previous owner may have changed the definition of the collection.
    const whenOwned = async (ended: AbortSignal) => {
      if (log !== logs.catalogue) await logs.catalogue.whenCurrent(ended);
    };
    // Another node may have archived since this one did.
    archiving.begin(log.name);
    const previousOwner = await log.lead(signal, { whenOwned });
    this.#takeOverCount++;
    this.announce();
    if (log === logs.catalogue) {
      const milliseconds = Math.round(performance.now() - startedAtMs);
      logger.info({ milliseconds }, 'this node leads');
    }
    return previousOwner;
  }

  /**
   * Lets another node take over a log once no write is in flight. New writes wait for the next owner. Changes of the
   * catalogue count as writes, since one may have acquired the log. `isUrgent`: the log is released although writes have
   * not ended.
   */
  async release(log: ReplicatedLog, { isUrgent }: { readonly isUrgent: boolean }): Promise<void> {
    if (!this.owns(log)) return;
    this.#releasing.add(log);
    try {
      const isQuiet = await this.#writes.whenNone([log.name, CATALOGUE], QUIET_MS_MAX);
      if (isQuiet || isUrgent) await log.release();
    } finally {
      this.#releasing.delete(log);
      this.#options.changes.notify();
    }
  }

  /** Releases all logs for which another node exists, and waits until they have new owners. */
  async releaseAll(msMax: number): Promise<void> {
    const { members, logs, holds, changes } = this.#options;
    const deadline = AbortSignal.timeout(msMax);
    const released = new Set<ReplicatedLog>();
    const mayOwn = ({ node, state }: Member, { name }: ReplicatedLog) =>
      state === 'serving' && holds(node, name);
    const releaseMore = () => {
      const { present } = members;
      const shared = logs.all.filter((log) => present.some((member) => mayOwn(member, log)));
      if (shared.every((log) => isOwnedElsewhere(log, members))) return true;
      // A log may have been taken over since, and a release that is not urgent may have failed.
      const owned = shared.filter((log) => this.owns(log) && !released.has(log));
      for (const log of owned) released.add(log);
      for (const log of owned) void this.release(log, { isUrgent: true }).catch(() => {});
      return null;
    };
    await changes.until(releaseMore, deadline).catch((error: unknown) => {
      if (!deadline.aborted) throw error;
    });
  }

  /** Handles an announcement: after a halt, it may be the first sign that others have taken over from this node. */
  observe({ instance, epoch, takeOverCounts }: Member): void {
    const { members, logs } = this.#options;
    const { catalogue } = logs;
    const lostCount = takeOverCounts[members.self.instance] ?? 0;
    const isNew = lostCount > (this.#lostCounts.get(instance) ?? 0);
    if (isNew) this.#lostCounts.set(instance, lostCount);
    if (isNew || (catalogue.isWritable && epoch > catalogue.epoch)) this.#check();
  }

  /** Commits to all owned logs. The commit to a log of another owner fails, and this node no longer counts as its owner. */
  #check(): void {
    this.#checking = this.#checking.then(() =>
      forEachAtOnce(this.#options.logs.owned, LOGS_AT_ONCE, (log) =>
        log.commit([]).catch(() => {}),
      ),
    );
  }

  /** Announces what this node owns, if that has changed. */
  announce(): void {
    const { members, logs } = this.#options;
    const { catalogue, owned } = logs;
    const { epoch, collectionCount } = members.self;
    const found = {
      epoch: catalogue.isWritable ? catalogue.epoch : 0,
      collectionCount: owned.length - (catalogue.isWritable ? 1 : 0),
    };
    if (found.epoch !== epoch || found.collectionCount !== collectionCount) members.change(found);
  }

  /** Resolves when no logs are being checked. Commits to logs that do not answer end only when those are closed. */
  async settled(): Promise<void> {
    await this.#checking;
  }
}
