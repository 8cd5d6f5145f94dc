// Hundreds of clients with heavy work on a server with 1 GB of memory: it refuses what does not fit, and continues. Its
// speed meanwhile depends on the machine; `overload/main.ts` measures it.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { testSeed } from '../database/harness.js';
import { MemoryCgroup } from './overload/memory-cgroup.js';
import { findFaults, runOverload } from './overload/overload.js';

const LIMIT_BYTES = 1_000_000_000;

const cgroup = MemoryCgroup.create(`sagitta-test-${process.pid}`, LIMIT_BYTES);
const skip = cgroup === null && 'a cgroup with a limit of memory cannot be created';

it('a server with little memory survives many clients with heavy work', { skip }, async () => {
  const seed = testSeed();
  try {
    const report = await runOverload({
      cgroup: cgroup!,
      clientCount: 512,
      durationMs: 15_000,
      seed,
    });
    assert.deepEqual(findFaults(report), [], `seed ${seed}`);
    const heavy = Object.values(report.heavy);
    const sum = (outcome: string) =>
      heavy.reduce((total, counts) => total + (counts[outcome] ?? 0), 0);
    assert.ok(sum('200') > 0, 'some heavy work is done');
    assert.ok(sum('503') > 0, 'some is refused');
    assert.ok(report.smallMs.length > 0, 'small requests are answered');
  } finally {
    cgroup!.remove();
  }
});
