// Repeatedly kills a process that commits to a store as fast as it can. After each kill the store contains everything
// that was acknowledged, and each commit completely or not at all.

import assert from 'node:assert/strict';
import { eventually } from '../support/waiting.js';
import { requireCommitted, TRIMS_FROM } from './committed.js';
import { startCommitter } from './committer-process.js';

/**
 * Kills after a number of commits rather than a time, so that kills hit the middle of a write as often on a slow
 * machine.
 *
 * @param logBytesMax log size of the store; with short logs it writes bases all the time.
 */
export async function surviveKills(
  directory: string,
  rounds: number,
  logBytesMax?: number,
): Promise<void> {
  let acknowledged = 0;
  for (let round = 0; round < rounds; round++) {
    const child = startCommitter(directory, logBytesMax === undefined ? {} : { logBytesMax });
    assert.ok(await child.isReady(), child.errors());
    // The first round commits more than the committer keeps without a trim.
    const commitCount = round === 0 ? TRIMS_FROM + 10 : 1 + ((53 * round) % 211);
    await eventually(`${commitCount} acknowledged commits`, () => child.lines.length > commitCount);
    await child.kill();
    acknowledged = Math.max(acknowledged, ...child.lines.slice(1).map(Number));
    await requireCommitted(directory, acknowledged);
  }
  assert.ok(acknowledged > 0);
}
