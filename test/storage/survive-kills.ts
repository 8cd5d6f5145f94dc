// A process that commits to a store as fast as it can and is killed in the midst of it, several times. After each kill
// the store has all that was acknowledged, and of each commit all or nothing.

import assert from 'node:assert/strict';
import { eventually } from '../support/waiting.js';
import { startCommitter } from './committer-process.js';
import { openIn } from './directories.js';

/** See committer.ts: the number of the first commit that trims the log. */
const TRIMS_FROM = 250;

/** Kills after some commits, not after some time, so that a slow machine kills as often in the middle. */
export async function surviveKills(directory: string, rounds: number): Promise<void> {
  let acknowledged = 0;
  for (let round = 0; round < rounds; round++) {
    const child = startCommitter(directory);
    assert.ok(await child.isReady(), child.errors());
    // More in the first round than the committer keeps without a trim.
    const commitCount = round === 0 ? TRIMS_FROM + 10 : 1 + ((53 * round) % 211);
    await eventually(`${commitCount} acknowledged commits`, () => child.lines.length > commitCount);
    await child.kill();
    acknowledged = Math.max(acknowledged, ...child.lines.slice(1).map(Number));

    const store = await openIn(directory);
    const count = Number(Buffer.from(store.get(['count'])!).toString());
    assert.ok(count >= acknowledged, `${count} kept, ${acknowledged} acknowledged`);
    const sequences: number[] = [];
    for (const { sequence, record } of store.readLog('l', 0)) {
      assert.equal(record.byteLength, 1_500);
      assert.ok(record.every((byte) => byte === sequence % 251));
      sequences.push(sequence);
    }
    const first = sequences[0]!;
    assert.deepEqual(
      sequences,
      sequences.map((_, i) => first + i),
      'no record is missing in the middle',
    );
    assert.equal(sequences.at(-1), count, 'record and value of a commit came together');
    // The trim of the last commit that had one, no more and no less.
    const trimmedAt = Math.floor(count / 50) * 50;
    assert.equal(first, trimmedAt > 200 ? trimmedAt - 200 + 1 : 1);
    await store.close();
  }
  assert.ok(acknowledged > 0);
}
