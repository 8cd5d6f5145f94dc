// The lag that a node reports behind the owners of logs.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { OwnerLag } from '../../src/cluster/health/node-lag.js';
import { batchOf } from '../database/harness.js';
import { MemoryCluster, SHAPE, waitFor } from './memory-cluster.js';

describe('the lag of a node', () => {
  it('is the age of the first announcement that it has not reached', () => {
    const lag = new OwnerLag();
    assert.deepEqual(lag.read(0, 0), { seconds: 0, messages: 0 });
    lag.observe(10, 1_000);
    lag.observe(20, 2_000);
    lag.observe(20, 3_000);
    assert.deepEqual(lag.read(5, 5_000), { seconds: 4, messages: 15 });
    assert.deepEqual(lag.read(10, 5_000), { seconds: 3, messages: 10 });
    assert.deepEqual(lag.read(25, 5_000), { seconds: 0, messages: 0 });
  });

  it('does not count the log of a deleted collection', () => {
    const lag = new OwnerLag();
    lag.observe(1_000, 0);
    lag.observe(400, 1_000);
    assert.deepEqual(lag.read(390, 3_000), { seconds: 2, messages: 10 });
    assert.deepEqual(lag.read(400, 3_000), { seconds: 0, messages: 0 });
  });

  it('remembers a bounded number of announcements, including the oldest', () => {
    const lag = new OwnerLag();
    for (let i = 1; i <= 5_000; i++) lag.observe(i, i);
    assert.deepEqual(lag.read(0, 6_000), { seconds: 5.999, messages: 5_000 });
  });

  it('grows on a node that gets no messages, and is 0 where everything is applied', async () => {
    const cluster = await MemoryCluster.start(['n1', 'n2']);
    let release = () => {};
    try {
      const leader = await cluster.soleWriter();
      const follower = await cluster.follower();
      await leader.database.createCollection({ id: 'c', ...SHAPE });
      await cluster.settle();
      release = follower.service.hold();
      const rows = [{ id: 'a', values: [1, 1], metadata: '{}' }];
      await leader.database.collection('c').write(batchOf(rows), { mode: 'upsert' });
      const { messages } = await waitFor('a lag', () => {
        const { lag } = follower.node.health;
        return lag.messages > 0 && lag.seconds > 0 ? lag : undefined;
      });
      // A fragment and a record, and the barriers before them.
      assert.ok(messages >= 2);
      assert.equal(leader.node.health.lag.messages, 0);
      release();
      await waitFor('no lag', () => follower.node.health.lag.messages === 0 || undefined);
      assert.equal(follower.node.health.lag.seconds, 0);
      assert.ok(leader.node.health.counts.takeOvers >= 1);
    } finally {
      release();
      await cluster.stop();
    }
  });
});
