// Kills and halts the servers of a log; faults/main.ts does so for hours.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { testSeed } from '../database/harness.js';
import { runLogFaults } from './faults/log-faults.js';
import { natsMissing } from './nats-servers.js';

it('a log on JetStream loses nothing when its servers fail', {
  skip: natsMissing() ?? false,
}, async () => {
  const seed = testSeed();
  const report = await runLogFaults({ faultCount: 6, seed, onFault: console.log });
  console.log(JSON.stringify(report));
  assert.ok(report.acknowledgedCount >= 60, `seed ${seed}`);
});
