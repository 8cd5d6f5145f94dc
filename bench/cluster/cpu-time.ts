// The processor time that processes have used, as counted by Linux.

import { readFileSync } from 'node:fs';

/** Ticks of the clock in which Linux counts processor time, on all architectures that it supports today. */
const TICKS_PER_SECOND = 100;
/** Fields of /proc/PID/stat after the name of the program, which ends with the last parenthesis. */
const USER_TICKS = 11;
const SYSTEM_TICKS = 12;

/**
 * Returns the milliseconds used by all threads of some processes since they started, or null if they cannot be read.
 */
export function cpuMsOf(pids: readonly number[]): number | null {
  try {
    const ticks = pids.map((pid) => {
      const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
      const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
      return Number(fields[USER_TICKS]) + Number(fields[SYSTEM_TICKS]);
    });
    return ticks.reduce((sum, each) => sum + each, 0) * (1_000 / TICKS_PER_SECOND);
  } catch {
    return null;
  }
}
