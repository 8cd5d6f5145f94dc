// What is wrong with a node and with its logs at the moment. Each node announces its problems, so that any of them can
// show those of all.

import { type ProblemCode, type ServiceProblem, toSeconds } from '../../common/problems.js';
import type { ArchiveScheduler } from '../archive/archive-scheduler.js';
import { CATALOGUE } from '../logs/store-entries.js';
import type { Members } from '../members/members.js';
import { ownerOf } from '../replication/elections.js';
import type { NodeLogs } from '../replication/node-logs.js';
import type { ReplicatedLog } from '../replication/replicated-log.js';
import { type Durability, replacementAdvice } from '../service/nats-durability.js';
import { GONE_MS_MIN } from '../service/nats-replica.js';
import type { SharedService } from '../service/shared-service.js';
import type { StoreHealth } from './store-health.js';

/** Archiving usually takes a few seconds. */
const ARCHIVE_SECONDS_MAX = 60;
/** How long a commit waits for its log, and a log for an owner, before that is a problem. */
const STALLED_MS_MIN = 1_000;

export interface NodeProblemsOptions {
  readonly service: SharedService;
  readonly members: Members;
  readonly logs: NodeLogs;
  readonly archiving: ArchiveScheduler;
  readonly storeHealth: StoreHealth;
  readonly durability: (() => Durability) | undefined;
  /** How long a log has had no owner that is present, in milliseconds; 0 if it has one. */
  readonly ownerlessMs: (log: ReplicatedLog) => number;
  /** The id of a collection by its incarnation; undefined if it is not known. */
  readonly idOf: (incarnation: string) => string | undefined;
}

type Found = Omit<ServiceProblem, 'code' | 'seconds'>;

/** A problem of a collection that the node as a whole does not have. */
export interface CollectionProblem extends Pick<ServiceProblem, 'code' | 'detail'> {
  readonly incarnation: string;
}

export class NodeProblems {
  readonly #options: NodeProblemsOptions;
  readonly #sources: (() => readonly ServiceProblem[])[] = [];
  /** When each problem began, on `performance.now`. */
  readonly #sinceMs = new Map<ProblemCode, number>();
  #found: ReadonlyMap<ProblemCode, Found> = new Map();

  constructor(options: NodeProblemsOptions) {
    this.#options = options;
  }

  /** Adds problems that other parts of the process find. */
  add(source: () => readonly ServiceProblem[]): void {
    this.#sources.push(source);
  }

  get current(): readonly ServiceProblem[] {
    const nowMs = performance.now();
    const own = [...this.#found].map(([code, found]) => ({
      code,
      ...found,
      seconds: toSeconds(nowMs - this.#sinceMs.get(code)!),
    }));
    return [...own, ...this.#sources.flatMap((read) => read())];
  }

  /** Looks for problems. Called periodically. Returns whether there are others than before. */
  update(): boolean {
    const before = this.#found;
    this.#found = this.#find();
    for (const code of this.#sinceMs.keys()) if (!this.#found.has(code)) this.#sinceMs.delete(code);
    for (const code of this.#found.keys()) {
      if (!this.#sinceMs.has(code)) this.#sinceMs.set(code, performance.now());
    }
    const isSame =
      before.size === this.#found.size && [...before.keys()].every((code) => this.#found.has(code));
    return !isSame;
  }

  #find(): Map<ProblemCode, Found> {
    const { service, members, logs, archiving, storeHealth, durability } = this.#options;
    const found = new Map<ProblemCode, Found>();
    const { kind, detail } = service.state;
    if (kind === 'disconnected') found.set('nats_disconnected', { detail, blocksWrites: true });
    if (kind === 'no_quorum') found.set('nats_no_quorum', { detail, blocksWrites: true });
    const { catalogue } = logs;
    if (members.present.some(({ epoch }) => catalogue.isWritable && epoch > catalogue.epoch)) {
      found.set('deposed', { detail: DEPOSED, blocksWrites: true });
    } else if (ownerOf(catalogue, members) === null) {
      found.set('no_leader', { detail: NO_LEADER, blocksWrites: true });
    }
    if (!members.self.canStore) {
      // Other nodes carry out the writes, and this one replies once it has stored them, too.
      found.set('store_failed', {
        detail: storeHealth.reason,
        blocksWrites: storeHealth.isFailing,
      });
    }
    const failed = logs.all.flatMap(({ name, failure }) =>
      failure === null ? [] : [[name, failure] as const],
    );
    const [first] = failed;
    if (first !== undefined) {
      const [name, failure] = first;
      const others = failed.length === 1 ? '' : ` (and ${failed.length - 1} other logs)`;
      found.set('log_failed', {
        detail: `The log of ${this.#nameOf(name)}${others} cannot be followed: ${failure.message}`,
        blocksWrites: failed.some(([failing]) => failing === catalogue.name),
      });
    }
    const stalled = this.#stalled();
    if (stalled !== null) found.set('log_stalled', { detail: stalled, blocksWrites: true });
    const lagSeconds = archiving.lagSecondsOf(logs.owned);
    if (lagSeconds > ARCHIVE_SECONDS_MAX) {
      found.set('archive_late', { detail: archiveLate(lagSeconds), blocksWrites: false });
    }
    const kept = durability?.();
    const lost = service.state.servers.find(
      ({ isSilent, silentMs }) => isSilent && silentMs > GONE_MS_MIN,
    );
    if (kept !== undefined && kept.state !== 'verified') {
      found.set('durability', { detail: kept.detail, blocksWrites: false });
    } else if (lost !== undefined) {
      found.set('durability', { detail: replacementAdvice(lost.name), blocksWrites: false });
    }
    return found;
  }

  /** What is known of collections whose writes wait; null for nothing. Other nodes announce what they own. */
  #stalled(): string | null {
    const { logs, members, ownerlessMs } = this.#options;
    const waiting = logs.all.filter(
      (log) => log.waitingMs > STALLED_MS_MIN || ownerlessMs(log) > STALLED_MS_MIN,
    );
    const [first] = waiting;
    if (first !== undefined) {
      const others = waiting.length === 1 ? '' : ` and ${waiting.length - 1} others`;
      return `Writes to ${this.#nameOf(first.name)}${others} wait for the logs, for a disk, or for a node that takes over.`;
    }
    for (const { instance, node, problems } of members.present) {
      const announced = problems.find(({ code }) => code === 'log_stalled');
      if (instance === members.self.instance || announced === undefined) continue;
      // What that node knows from others is not passed on.
      if (!announced.detail.includes(SAID_BY)) return `${node}${SAID_BY}${announced.detail}`;
    }
    return null;
  }

  #nameOf(log: string): string {
    if (log === CATALOGUE) return 'the catalogue';
    return `the collection ${JSON.stringify(this.#options.idOf(log) ?? log)}`;
  }

  /** The problem of a collection whose log this node has; null for none. */
  ofLog(log: ReplicatedLog): Pick<CollectionProblem, 'code' | 'detail'> | null {
    const { ownerlessMs } = this.#options;
    const { failure, waitingMs } = log;
    if (failure !== null) {
      return { code: 'log_failed', detail: `Its log cannot be followed: ${failure.message}` };
    }
    if (waitingMs > STALLED_MS_MIN) {
      const seconds = Math.round(waitingMs / 1_000);
      return {
        code: 'log_stalled',
        detail: `A write has been waiting for its log, ${log.name}, for ${seconds} s.`,
      };
    }
    return ownerlessMs(log) > STALLED_MS_MIN ? { code: 'no_leader', detail: NO_OWNER } : null;
  }
}

const SAID_BY = ' says: ';
const NO_LEADER =
  'No node that this one hears from carries out changes of the catalogue. Another one takes over within seconds if it can reach NATS.';
const NO_OWNER =
  'No node that this one hears from carries out its writes. Another one takes over within seconds if it holds the collection and can reach NATS.';
const DEPOSED =
  'Another node has taken over the catalogue while this one was halted or cut off. This node finds out with its next message.';

function archiveLate(seconds: number): string {
  return `Commits of this node have waited ${Math.round(seconds)} s to be archived in SAGITTA_BLOBS; the log of the node says why. The logs of NATS grow meanwhile.`;
}
