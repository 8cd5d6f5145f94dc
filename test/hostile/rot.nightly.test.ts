// A sample of damage to every kind of file: no answer comes from damaged data, no process crashes, every message says
// what to do, and verify finds what the service finds. `rot/main.ts` tries thousands of cases.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { testSeed } from '../database/harness.js';
import { runRot } from './rot/rot.js';

const CASES = [
  { what: 'any file', options: { caseCount: 20 } },
  { what: 'the journal', options: { caseCount: 60, isStoreOnly: true } },
] as const;

for (const { what, options } of CASES) {
  it(`damage of ${what} is refused, repaired, or changes nothing`, async () => {
    const seed = testSeed();
    const { outcomes, faults } = await runRot({ ...options, seed });
    assert.deepEqual(faults, [], `seed ${seed}`);
    const total = (outcome: string) =>
      Object.values(outcomes).reduce((sum, counts) => sum + (counts[outcome] ?? 0), 0);
    // Neither is everything refused, nor does everything go unnoticed.
    assert.ok(total('refused at the start') + total('refused by restore') > 0, `seed ${seed}`);
    assert.ok(total('without effect') + total('repaired') > 0, `seed ${seed}`);
  });
}
