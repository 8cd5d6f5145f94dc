// Replicas of a log, or members of the JetStream cluster, as the server that leads them describes them.

const NANOSECONDS_PER_MS = 1e6;

/** A server that is silent for longer does not just restart. */
export const GONE_MS_MIN = 60_000;

/** The members that matter here. */
export interface NatsReplica {
  readonly name: string;
  /** Whether it has everything. */
  readonly current: boolean;
  readonly offline?: boolean;
  /** Nanoseconds since the leader heard from it; 0 also if it never did. */
  readonly active: number;
}

/** How long the leader has not heard from it. */
export function silentMsOf({ active }: Pick<NatsReplica, 'active'>): number {
  return active / NANOSECONDS_PER_MS;
}

/** Whether the leader has not heard from it for longer than this, or never. */
export function isSilent(replica: NatsReplica, msMax: number): boolean {
  const { active, current, offline = false } = replica;
  return offline || silentMsOf(replica) > msMax || (active === 0 && !current);
}
