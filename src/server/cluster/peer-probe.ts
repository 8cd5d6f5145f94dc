// Finds out which other nodes this one cannot reach although they announce themselves: writes that they carry out, and
// reads of what only they hold, then fail through this node, while every other sign is good.

import { setTimeout as sleep } from 'node:timers/promises';
import { anySignal } from '../../common/cancel-signal.js';
import { type ServiceProblem, toSeconds } from '../../common/problems.js';
import type { Cluster, ClusterMember } from './cluster.js';

const PAUSE_MS = 500;
const ANSWER_MS_MAX = 1_200;

interface Unreachable {
  readonly member: ClusterMember;
  readonly reason: string;
  /** When the first failed probe began, on `performance.now`. */
  readonly sinceMs: number;
}

export interface PeerProbeOptions {
  readonly cluster: Pick<Cluster, 'self' | 'present' | 'ownerOf'>;
  /** Rejects if the node does not answer. */
  readonly ping: (member: ClusterMember, signal: AbortSignal) => Promise<void>;
}

export class PeerProbe {
  readonly #options: PeerProbeOptions;
  readonly #closing = new AbortController();
  /** By instance. */
  readonly #failing = new Map<string, Unreachable>();

  constructor(options: PeerProbeOptions) {
    this.#options = options;
    void this.#run();
  }

  get problems(): readonly ServiceProblem[] {
    const { cluster } = this.#options;
    const failing = [...this.#failing.values()];
    const [first] = failing;
    if (first === undefined) return [];
    const leader = cluster.ownerOf(null);
    const blocksWrites = failing.some(
      ({ member }) => member.instance === leader?.instance || member.collectionCount > 0,
    );
    const names = failing
      .map(({ member, reason }) => `${member.node} at ${member.url} (${reason})`)
      .join(', ');
    const detail = `This node hears from ${names} through NATS, but cannot connect there: check SAGITTA_CLUSTER_URL of these nodes, and the network between them and this one.`;
    const sinceMs = Math.min(...failing.map((each) => each.sinceMs));
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
      for (const instance of this.#failing.keys()) {
        if (!instances.has(instance)) this.#failing.delete(instance);
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
      this.#failing.delete(instance);
    } catch (error) {
      const known = this.#failing.get(instance);
      const isTimeout = signal.aborted;
      this.#failing.set(instance, {
        member,
        reason: isTimeout ? `no answer within ${ANSWER_MS_MAX} ms` : (error as Error).message,
        sinceMs: known?.sinceMs ?? startedAtMs,
      });
    }
  }
}
