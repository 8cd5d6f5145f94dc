// Timing of engine and peers: rounds of calls; the rate is that of the median round, the percentiles are
// over all calls.

import { setImmediate as nextIteration } from 'node:timers/promises';

export interface Timing {
  readonly p50Ms: number;
  /** The slowest call if there are fewer than a hundred. */
  readonly p99Ms: number;
  /** The rate of the median round. */
  readonly queriesPerSecond: number;
  readonly callCount: number;
  /** CPU time of the process divided by wall time: the number of busy threads. */
  readonly threadsBusy: number;
}

export interface TimingPlan {
  /** Queries per call. */
  readonly batchCount: number;
  readonly roundQueriesMin: number;
  readonly roundsMin: number;
  readonly secondsMin: number;
}

/**
 * Calls `call` with 0, 1, 2, … until there are enough rounds and seconds, each in an iteration of the event
 * loop of its own. The caller warms up.
 */
export async function timeCalls(
  plan: TimingPlan,
  call: (index: number) => Promise<unknown> | unknown,
): Promise<Timing> {
  const callsPerRound = Math.ceil(plan.roundQueriesMin / plan.batchCount);
  const callMs: number[] = [];
  const roundRates: number[] = [];
  const cpuBefore = process.cpuUsage();
  const startedAt = performance.now();
  let now = startedAt;
  while (roundRates.length < plan.roundsMin || now - startedAt < plan.secondsMin * 1000) {
    const roundStartedAt = now;
    for (let i = 0; i < callsPerRound; i++) {
      // Requests do the same: otherwise the messages of worker threads would never be received.
      await nextIteration();
      const callStartedAt = performance.now();
      await call(callMs.length);
      now = performance.now();
      callMs.push(now - callStartedAt);
    }
    roundRates.push((callsPerRound * plan.batchCount * 1000) / (now - roundStartedAt));
  }
  const { user, system } = process.cpuUsage(cpuBefore);
  return {
    p50Ms: quantile(callMs, 0.5),
    p99Ms: quantile(callMs, 0.99),
    queriesPerSecond: quantile(roundRates, 0.5),
    callCount: callMs.length,
    threadsBusy: (user + system) / 1000 / (now - startedAt),
  };
}

/** Returns the quantile at `share` (0 to 1) of the values. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((left, right) => left - right);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!;
}
