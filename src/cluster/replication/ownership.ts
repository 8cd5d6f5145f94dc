// The logs that this node owns: how it takes them over, when elections.ts says so, releases them between two writes, and
// finds out that others have taken them over from it while it was halted or cut off.

import { setTimeout as sleep } from 'node:timers/promises';
import { forEachAtOnce } from '../../common/for-each-at-once.js';
import type { Logger } from '../../common/logger.js';
import type { ArchiveScheduler } from '../archive/archive-scheduler.js';
import { CATALOGUE } from '../logs/store-keys.js';
import type { Member, Members } from '../members/members.js';
import { InFlightRequests } from './in-flight-requests.js';
import type { NodeLogs } from './node-logs.js';
import type { ReplicatedLog } from './replicated-log.js';

/** Logs that are looked at at the same time. */
const LOGS_AT_ONCE = 8;
/** How often it is looked at whether another node owns a log by now. */
export const OWNER_POLL_MS = 20;
/** How long a log that is to be released waits for the end of the writes under way, and writes that come then for it. */
const QUIET_MS_MAX = 2_000;

export interface OwnershipOptions {
  readonly members: Members;
  readonly logs: NodeLogs;
  /** Whether a node, by its name, holds the collection of a log. */
  readonly holds: (node: string, log: string) => boolean;
  readonly archiving: ArchiveScheduler;
  /** Whether another process owns a log and is there. */
  readonly isOwnedElsewhere: (log: ReplicatedLog) => boolean;
  readonly logger: Logger;
  /** Of the node, which ends. */
  readonly signal: AbortSignal;
}

export class Ownership {
  readonly #options: OwnershipOptions;
  readonly #writesUnderWay = new InFlightRequests();
  /** Logs that wait for the end of the writes under way. */
  readonly #releasing = new Set<ReplicatedLog>();
  /** How many logs other processes have taken over from this one, by the processes. */
  readonly #lostTo = new Map<string, number>();
  #checking: Promise<void> = Promise.resolve();
  #takeOverCount = 0;

  constructor(options: OwnershipOptions) {
    this.#options = options;
  }

  /** Logs that this node has taken over. */
  get takeOverCount(): number {
    return this.#takeOverCount;
  }

  /** Whether the node owns a log and is not about to release it. */
  keeps(log: ReplicatedLog): boolean {
    return log.isWritable && !this.#releasing.has(log);
  }

  isReleasing(log: ReplicatedLog): boolean {
    return this.#releasing.has(log);
  }

  /** A write to a log begins, by its name. Returns the function that ends it. */
  beginWrite(name: string): () => void {
    return this.#writesUnderWay.begin(name);
  }

  /** Takes over a log. Resolves with the process that owned it; empty for none. */
  async takeOver(log: ReplicatedLog): Promise<string> {
    const { logs, archiving, logger, signal } = this.#options;
    const startedAtMs = performance.now();
    // Its definition may have been changed by whoever owned the log before.
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
   * Lets another node take over a log when no write is under way. Writes that come meanwhile wait for the next owner. A
   * change of the catalogue under way may have acquired the log, and needs it to its end. `isUrgent`: the log is
   * released although writes go on.
   */
  async release(log: ReplicatedLog, { isUrgent }: { readonly isUrgent: boolean }): Promise<void> {
    if (!this.keeps(log)) return;
    this.#releasing.add(log);
    try {
      const isQuiet = await this.#writesUnderWay.whenNone([log.name, CATALOGUE], QUIET_MS_MAX);
      if (isQuiet || isUrgent) await log.release();
    } finally {
      this.#releasing.delete(log);
    }
  }

  /** Lets other nodes take over everything, as far as there are any for it, and waits for them. */
  async releaseAll(msMax: number): Promise<void> {
    const { members, logs, holds, isOwnedElsewhere } = this.#options;
    const deadline = AbortSignal.timeout(msMax);
    const released = new Set<ReplicatedLog>();
    const isTakenBy = ({ node, state }: Member, { name }: ReplicatedLog) =>
      state === 'serving' && holds(node, name);
    while (!deadline.aborted) {
      const { present } = members;
      const taken = logs.all.filter((log) => present.some((member) => isTakenBy(member, log)));
      if (taken.every(isOwnedElsewhere)) return;
      // One may just have been taken over. A release that is not urgent may end without one.
      const owned = taken.filter((log) => this.keeps(log) && !released.has(log));
      for (const log of owned) released.add(log);
      for (const log of owned) void this.release(log, { isUrgent: true }).catch(() => {});
      await sleep(OWNER_POLL_MS);
    }
  }

  /** A node that was halted, or cut off, does not know that others have taken over from it, and what they have written. */
  observe({ instance, epoch, takeOverCounts }: Member): void {
    const { members, logs } = this.#options;
    const { catalogue } = logs;
    const lostCount = takeOverCounts[members.self.instance] ?? 0;
    const isNew = lostCount > (this.#lostTo.get(instance) ?? 0);
    if (isNew) this.#lostTo.set(instance, lostCount);
    if (isNew || (catalogue.isWritable && epoch > catalogue.epoch)) this.#check();
  }

  /** Finds out which logs this node still owns: a commit to another one fails, and ends the ownership. */
  #check(): void {
    this.#checking = this.#checking.then(() =>
      forEachAtOnce(this.#options.logs.owned, LOGS_AT_ONCE, (log) =>
        log.commit([]).catch(() => {}),
      ),
    );
  }

  /** Tells the other nodes what this one owns, if that has changed. */
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

  /** Resolves when no logs are being checked. Their commits wait for logs that do not answer, until these are closed. */
  async settled(): Promise<void> {
    await this.#checking;
  }
}
