// A few faults of the nodes of a cluster, their NATS servers and the network; faults/main.ts causes hundreds. It runs as a
// command, since it needs namespaces of its own.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { testSeed } from '../database/harness.js';
import type { Totals } from './faults/totals.js';
import { natsMissing } from './nats-servers.js';

const PROGRAM = fileURLToPath(new URL('./faults/main.js', import.meta.url));
const FAULTS = 2;

it('a cluster loses nothing when its nodes, servers, disks and links fail', {
  skip: natsMissing() ?? false,
}, async (t) => {
  const seed = testSeed();
  t.diagnostic(`SAGITTA_TEST_SEED=${seed}`);
  const options = ['--of', 'nodes', '--faults', String(FAULTS), '--seed', String(seed)];
  const run = promisify(execFile)(process.execPath, [PROGRAM, ...options, '--acknowledged', '50']);
  // The output says what happened, also after a failure.
  const { stdout } = await run.catch((error: { stdout: string; stderr: string }) => {
    assert.fail(`seed ${seed}\n${error.stdout}\n${error.stderr}`);
  });
  for (const line of stdout.trim().split('\n')) t.diagnostic(line);
  const totals = JSON.parse(stdout.trim().split('\n').at(-1)!) as Totals;
  const { faults, lost, doubled, otherwiseWrong, acknowledged } = totals;
  assert.deepEqual(
    { faults, lost, doubled, otherwiseWrong },
    {
      faults: FAULTS,
      lost: 0,
      doubled: 0,
      otherwiseWrong: 0,
    },
  );
  assert.ok(acknowledged >= 50 * FAULTS, `${acknowledged} writes are acknowledged`);
});
