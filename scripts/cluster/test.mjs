// Runs the long cluster tests: all conformance cases on a cluster of three nodes, then faults of nodes, of NATS servers
// and of the network between them. test/cluster/faults/README.md describes the options for faults.
//
//   npm run test:cluster                     20 faults
//   npm run test:cluster -- --faults 500 --seed 7 --log bench/results/cluster-faults.ndjson
//   npm run test:cluster -- --sum bench/results/cluster-faults.ndjson

import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const FAULTS = 'dist/test/cluster/faults/main.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const { sum, ...options } = parseArgs({
  options: {
    faults: { type: 'string', default: '20' },
    seed: { type: 'string' },
    kinds: { type: 'string' },
    writers: { type: 'string' },
    acknowledged: { type: 'string' },
    log: { type: 'string' },
    sum: { type: 'string' },
  },
}).values;

if (sum !== undefined) {
  run([FAULTS, '--sum', sum]);
} else {
  run(['scripts/test.mjs', 'cluster/', '--nightly'], { SAGITTA_TEST_CLUSTER: 'all' });
  const given = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
  run([FAULTS, '--of', 'nodes', ...given]);
}

function run(args, env = {}) {
  const { status } = spawnSync(process.execPath, args, {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: 'inherit',
  });
  if (status !== 0) process.exit(status ?? 1);
}
