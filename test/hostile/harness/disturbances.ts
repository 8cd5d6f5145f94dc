// Disturbances of processes under test: they are killed while they start, and paused.

import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Starts a process and kills it after this time unless it is ready; null to never kill it. Resolves to null if it was
 * killed and has ended, and rejects if it ended otherwise.
 */
export async function startOrKill<Started>(
  killAfterMs: number | null,
  start: (onSpawned: (child: ChildProcess) => void) => Promise<Started>,
): Promise<Started | null> {
  let timer: NodeJS.Timeout | undefined;
  let isKilled = false;
  let hasEnded: Promise<unknown> | undefined;
  try {
    return await start((child) => {
      hasEnded = once(child, 'close');
      if (killAfterMs === null) return;
      timer = setTimeout(() => {
        isKilled = true;
        child.kill('SIGKILL');
      }, killAfterMs);
    });
  } catch (error) {
    if (!isKilled) throw error;
    await hasEnded;
    return null;
  } finally {
    clearTimeout(timer);
  }
}

/** Pauses a process for this time and then resumes it. */
export async function halt(
  signal: (name: 'SIGSTOP' | 'SIGCONT') => unknown,
  lastsMs: number,
): Promise<void> {
  signal('SIGSTOP');
  try {
    await sleep(lastsMs);
  } finally {
    signal('SIGCONT');
  }
}
