// Which other nodes answer this one. Nodes that failed a request are avoided for a while. Regular pings find those that
// this node cannot reach although they announce themselves: writes that they carry out, and reads of what only they
// hold, then fail through this node, while every other sign is good.

import { setTimeout as sleep } from 'node:timers/promises';
import { anySignal } from '../../common/cancel-signal.js';
import { type ServiceProblem, toSeconds } from '../../common/problems.js';
import type { Cluster, ClusterMember } from './cluster.js';

/** With ANSWER_MS_MAX, it takes less than three seconds until a status shows a node that cannot be reached. */
const PAUSE_MS = 1_000;
const ANSWER_MS_MAX = 1_200;
/** How long a node that failed a request is avoided. */
const AVOIDED_MS = 5_000;

interface Unreachable {
  readonly member: ClusterMember;
  readonly reason: string;
  /** When the first failed probe began, on `performance.now`. */
  readonly sinceMs: number;
}

export interface PeerStatesOptions {
  readonly cluster: Pick<Cluster, 'self' | 'present' | 'ownerOf'>;
  /** Rejects if the node does not answer. */
  readonly ping: (member: ClusterMember, signal: AbortSignal) => Promise<void>;
}

export class PeerStates {
  readonly #options: PeerStatesOptions;
  readonly #closing = new AbortController();
  /** Nodes that do not answer pings, by instance. */
  readonly #unreachable = new Map<string, Unreachable>();
  /** When nodes that failed a request may be asked again, by instance, on `performance.now`. */
  readonly #avoidedUntilMs = new Map<string, number>();

  constructor(options: PeerStatesOptions) {
    this.#options = options;
    void this.#run();
  }

  /** Whether other nodes should be asked first. */
  isAvoided({ instance }: Pick<ClusterMember, 'instance'>): boolean {
    if (this.#unreachable.has(instance)) return true;
    return (this.#avoidedUntilMs.get(instance) ?? 0) > performance.now();
  }

  /** Called when a node has not answered a request, or is unable to. */
  requestFailed({ instance }: Pick<ClusterMember, 'instance'>): void {
    this.#avoidedUntilMs.set(instance, performance.now() + AVOIDED_MS);
  }

  requestAnswered({ instance }: Pick<ClusterMember, 'instance'>): void {
    this.#avoidedUntilMs.delete(instance);
  }

  /** Nodes that this one cannot connect to. */
  get problems(): readonly ServiceProblem[] {
    const { cluster } = this.#options;
    const unreachable = [...this.#unreachable.values()];
    if (unreachable.length === 0) return [];
    const leader = cluster.ownerOf(null);
    const blocksWrites = unreachable.some(
      ({ member }) => member.instance === leader?.instance || member.collectionCount > 0,
    );
    const names = unreachable
      .map(({ member, reason }) => `${member.node} at ${member.url} (${reason})`)
      .join(', ');
    const detail = `This node hears from ${names} through NATS, but cannot connect there: check SAGITTA_CLUSTER_URL of these nodes, and the network between them and this one.`;
    const sinceMs = Math.min(...unreachable.map((each) => each.sinceMs));
    const seconds = toSeconds(performance.now() - sinceMs);
    return [{ code: 'peer_unreachable', detail, seconds, blocksWrites }];
  }

  close(): void {
    this.#closing.abort();
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      const { self, present } = this.#options.cluster;
      const others = present.filter(
        ({ instance, state, url }) =>
          instance !== self.instance && state === 'serving' && url !== '',
      );
      const instances = new Set(others.map(({ instance }) => instance));
      for (const known of [this.#unreachable, this.#avoidedUntilMs]) {
        for (const instance of known.keys()) {
          if (!instances.has(instance)) known.delete(instance);
        }
      }
      await Promise.all(others.map((member) => this.#probe(member)));
      await sleep(PAUSE_MS, undefined, { signal, ref: false }).catch(() => {});
    }
  }

  async #probe(member: ClusterMember): Promise<void> {
    const { instance } = member;
    const startedAtMs = performance.now();
    const signal = anySignal([this.#closing.signal, AbortSignal.timeout(ANSWER_MS_MAX)]);
    try {
      await this.#options.ping(member, signal);
      this.#unreachable.delete(instance);
    } catch (error) {
      const known = this.#unreachable.get(instance);
      const isTimeout = signal.aborted;
      this.#unreachable.set(instance, {
        member,
        reason: isTimeout ? `no answer within ${ANSWER_MS_MAX} ms` : (error as Error).message,
        sinceMs: known?.sinceMs ?? startedAtMs,
      });
    }
  }
}
