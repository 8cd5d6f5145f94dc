// What a store must contain after committer.ts was killed at any time.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { openStore } from '../../src/storage/open-store.js';
import { type Finding, StoreInspection } from '../../src/storage/store-inspection.js';

/** The first commit of committer.ts that trims the log. */
export const TRIMS_FROM = 250;
const TRIM_EVERY = 50;
const KEPT_COUNT = 200;
const RECORD_BYTES = 1_500;

/**
 * Throws AssertionError unless the store contains all commits through the acknowledged one, each completely. Returns
 * the number of commits in it, which may include one that was not acknowledged.
 */
export async function requireCommitted(directory: string, acknowledged: number): Promise<number> {
  // If it was killed before a store existed, there is nothing to verify, and the next start creates one.
  if (acknowledged > 0 || existsSync(join(directory, 'store.mark'))) await requireSound(directory);
  const store = await openStore({ directory });
  try {
    const count = Number(Buffer.from(store.get(['count']) ?? []).toString() || 0);
    assert.ok(count >= acknowledged, `${count} kept, ${acknowledged} acknowledged`);
    const sequences: number[] = [];
    for (const { sequence, record } of store.readLog('l', 0)) {
      assert.equal(record.byteLength, RECORD_BYTES);
      assert.ok(record.every((byte) => byte === sequence % 251));
      sequences.push(sequence);
    }
    // Exactly the trim of the last commit that had one.
    const trimmedAt = Math.floor(count / TRIM_EVERY) * TRIM_EVERY;
    const first = trimmedAt > KEPT_COUNT ? trimmedAt - KEPT_COUNT + 1 : 1;
    assert.deepEqual(
      sequences,
      Array.from({ length: count - first + 1 }, (_, i) => first + i),
      'no record is missing, and record and value of a commit came together',
    );
    return count;
  } finally {
    await store.close();
  }
}

async function requireSound(directory: string): Promise<void> {
  const findings: Finding[] = [];
  const inspection = await StoreInspection.open(directory, (found) => findings.push(found));
  await inspection.close();
  const errors = findings.filter(({ severity }) => severity === 'error');
  assert.deepEqual(errors, []);
}
