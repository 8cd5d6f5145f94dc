// Many clients on all nodes of a cluster for some seconds, while nodes and NATS servers are killed and halted: all replies
// fit one order of all writes. `checker/main.ts` runs for hours.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { testSeed } from '../database/harness.js';
import { runChecker } from '../hostile/checker/checker.js';
import { ClusterService } from './checker/cluster-service.js';
import { NatsServers, natsMissing } from './nats-servers.js';

it('all replies of all nodes are explained by one order of the writes, whatever fails', {
  skip: natsMissing() ?? false,
}, async (t) => {
  const seed = testSeed();
  t.diagnostic(`SAGITTA_TEST_SEED=${seed}`);
  const servers = await NatsServers.start();
  let service: ClusterService | undefined;
  try {
    const { faults, ...report } = await runChecker({
      clientCount: 16,
      durationMs: 12_000,
      seed,
      faults: new Set(['kill', 'stop']),
      retentionMs: 20_000,
      createService: (options) => {
        service = new ClusterService(servers, options);
        return service;
      },
      isEnough: ({ counters }) =>
        service!.faultCount > 1 &&
        counters.pagesOfOtherNodes > 0 &&
        Math.min(counters.writes, counters.reads) > 100,
    });
    t.diagnostic(JSON.stringify(report));
    assert.deepEqual(faults, [], `seed ${seed}`);
    const { counters } = report;
    assert.ok(counters.writes > 100 && counters.reads > 100, 'there is load');
    assert.ok(counters.pagesOfOtherNodes > 0, 'pages are read from several nodes');
    assert.ok(service!.faultCount > 1, 'nodes and servers fail under load');
  } finally {
    await servers.stop();
  }
});
