// The problems that a node finds in what it knows of the servers that store its logs.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { LogServer } from '../../src/cluster/service/shared-service.js';
import { MemoryCluster, waitFor } from './memory-cluster.js';

it('a node reports a replica whose server has been silent for over a minute, and what to do', async () => {
  const cluster = await MemoryCluster.start(['n1']);
  try {
    const { node, service } = await cluster.soleWriter();
    const problemWith = async (change: Partial<LogServer>) => {
      const silent = { isLeader: false, isSilent: true, silentMs: 61_000, lag: 0, ...change };
      service.servers = [{ name: 'nats-2', ...silent }];
      await waitFor('a look at the servers', () => {
        const found = node.health.problems.find(({ code }) => code === 'durability');
        return (found !== undefined) === (silent.isSilent && silent.silentMs > 60_000) || undefined;
      });
      return node.health.problems.find(({ code }) => code === 'durability') ?? null;
    };
    const found = await problemWith({});
    assert.match(found!.detail, /nats-2 is silent.*sagitta cluster nats --remove "nats-2"/);
    assert.equal(found!.blocksWrites, false);
    assert.equal(await problemWith({ silentMs: 30_000 }), null);
    assert.notEqual(await problemWith({}), null);
    assert.equal(await problemWith({ isSilent: false }), null);
  } finally {
    await cluster.stop();
  }
});
