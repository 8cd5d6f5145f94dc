// Drained nodes: others take over from them while writes go on, and they own logs only if no other node can.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Members } from '../../src/cluster/members/members.js';
import { Elections } from '../../src/cluster/replication/elections.js';
import { InFlightRequests } from '../../src/cluster/replication/in-flight-requests.js';
import type { ReplicatedLog } from '../../src/cluster/replication/replicated-log.js';
import { silentLogger } from '../../src/common/logger.js';
import { batchOf } from '../database/harness.js';
import { MemoryCluster, SHAPE, type TestNode, waitFor } from './memory-cluster.js';

/** Waits until every connected node knows these drain states. */
async function whenDrains(cluster: MemoryCluster, expected: Readonly<Record<string, string>>) {
  await waitFor(JSON.stringify(expected), () => {
    const isSeen = ({ node }: TestNode) => {
      const found = node.health.status.members.map((member) => [member.node, member.drain]);
      return Object.entries(expected).every(([name, drain]) =>
        found.some(([other, state]) => other === name && state === drain),
      );
    };
    return cluster.nodes.every(isSeen) || undefined;
  });
}

async function drain(cluster: MemoryCluster, name: string, isOn = true) {
  const { node } = await cluster.leader();
  return await node.drain(name, isOn);
}

describe('a node that is drained', () => {
  it('hands over everything while writes go on, and each write is there or was refused', async () => {
    const cluster = await MemoryCluster.start(['n1', 'n2', 'n3']);
    try {
      const first = await cluster.leader();
      const ids = Array.from({ length: 12 }, (_, i) => `c${i}`);
      for (const id of ids) await first.database.createCollection({ id, ...SHAPE });
      await cluster.settle();
      const written: { readonly collection: string; readonly id: string }[] = [];
      let isOver = false;
      const writing = (async () => {
        for (let i = 0; !isOver; i++) {
          const collection = ids[i % ids.length]!;
          const incarnation = first.database.incarnationOf(collection)!;
          const owner = cluster.nodes.find(({ node }) => node.owns(incarnation));
          const rows = [{ id: `row-${i}`, values: [1, i], metadata: '{}' }];
          try {
            await owner?.database.collection(collection).write(batchOf(rows), { mode: 'upsert' });
            if (owner !== undefined) written.push({ collection, id: `row-${i}` });
          } catch (error) {
            assert.match((error as { code: string }).code, /^(no_leader|outcome_unknown)$/);
          }
          await new Promise(setImmediate);
        }
      })();
      assert.equal((await first.node.drain(first.name, true))!.drain, 'draining');
      await whenDrains(cluster, { [first.name]: 'drained' });
      isOver = true;
      await writing;
      assert.notEqual((await cluster.leader()).name, first.name);
      for (const id of ids) assert.notEqual((await cluster.ownerOf(id)).name, first.name);
      assert.ok(written.length > 0);
      await cluster.settle();
      for (const { database } of cluster.nodes) {
        for (const { collection, id } of written) {
          const found = database.collection(collection).get(id, { values: true, metadata: false });
          assert.ok(await found, id);
        }
      }
    } finally {
      await cluster.stop();
    }
  });

  it('owns logs only if no other node can, also after a restart, until draining ends', async () => {
    const cluster = await MemoryCluster.start(['n1', 'n2', 'n3']);
    const ids = Array.from({ length: 12 }, (_, i) => `c${i}`);
    const owners = async () => {
      const found = new Set([(await cluster.leader()).name]);
      for (const id of ids) found.add((await cluster.ownerOf(id)).name);
      return [...found].sort();
    };
    try {
      const { database } = await cluster.leader();
      for (const id of ids) await database.createCollection({ id, ...SHAPE });
      await cluster.settle();
      assert.equal((await drain(cluster, 'n1'))!.node, 'n1');
      await whenDrains(cluster, { n1: 'drained', n2: 'none', n3: 'none' });
      await cluster.nodes.find(({ name }) => name === 'n1')!.stop();
      await cluster.add('n1');
      const second = await cluster.leader();
      assert.ok(!(await owners()).includes('n1'));
      // The drained node would be first in line for some of the logs.
      await second.kill();
      const third = await cluster.leader();
      assert.deepEqual(await owners(), [third.name]);
      assert.notEqual(third.name, 'n1');
      await third.kill();
      assert.deepEqual(await owners(), ['n1']);
      await whenDrains(cluster, { n1: 'draining' });
      await cluster.add('n2');
      await whenDrains(cluster, { n1: 'drained' });
      assert.deepEqual(await owners(), ['n2']);
      assert.equal((await drain(cluster, 'n1', false))!.drain, 'none');
      await whenDrains(cluster, { n1: 'none', n2: 'none' });
      await cluster.nodes.find(({ name }) => name === 'n2')!.kill();
      assert.deepEqual(await owners(), ['n1']);
    } finally {
      await cluster.stop();
    }
  });

  it('keeps a collection until its writes have ended, and releases the others meanwhile', async () => {
    const cluster = await MemoryCluster.start(['n1', 'n2', 'n3']);
    try {
      const first = await cluster.leader();
      for (const id of ['busy', 'idle']) await first.database.createCollection({ id, ...SHAPE });
      await cluster.settle();
      const busy = first.database.incarnationOf('busy')!;
      const end = first.node.beginWrite(busy);
      await first.node.drain(first.name, true);
      const owners = async () => [await cluster.leader(), await cluster.ownerOf('idle')];
      const areOthers = async () => (await owners()).every((owner) => owner !== first) || undefined;
      await waitFor('other owners', areOthers);
      const { members } = first.node.health.status;
      assert.equal(members.find(({ node }) => node === first.name)!.drain, 'draining');
      end();
      await whenDrains(cluster, { [first.name]: 'drained' });
      assert.notEqual((await cluster.ownerOf('busy')).name, first.name);
    } finally {
      await cluster.stop();
    }
  });

  it('goes on leading when all are drained, and an unknown name is refused', async () => {
    const cluster = await MemoryCluster.start(['n1', 'n2']);
    try {
      const leader = await cluster.leader();
      const follower = await cluster.follower();
      await drain(cluster, follower.name);
      await drain(cluster, leader.name);
      await whenDrains(cluster, { [leader.name]: 'draining', [follower.name]: 'drained' });
      assert.equal((await cluster.leader()).name, leader.name);
      assert.equal(await drain(cluster, 'n7'), null);
      await assert.rejects(follower.node.drain('n1', true), { code: 'no_leader' });
      // Draining can be ended for a node that is gone, too.
      await follower.kill();
      assert.equal((await leader.node.drain(follower.name, false))!.drain, 'none');
    } finally {
      await cluster.stop();
    }
  });
});

describe('elections', () => {
  it('let a drained node take over a log that names it as owner, and then release it', async () => {
    const [self, other] = ['n1', 'n2'].map((node) => ({
      node,
      instance: node,
      state: 'serving',
      canStore: true,
    }));
    const members = { self, present: [self, other], find: () => self, listenedMs: 0 };
    // After a failed commit, the log names n1 as its owner, but n1 cannot write.
    const log = { name: 'log', owner: 'n1', isWritable: false, epoch: 1 };
    const done: string[] = [];
    const elections = new Elections({
      members: members as unknown as Members,
      catalogue: log as unknown as ReplicatedLog,
      timing: { settleMs: 0, silentMsMax: 0, leaveMs: 0, balanceMs: 60_000 },
      holdersOf: () => null,
      isDrained: (node) => node === 'n1',
      lead: async () => {
        done.push('lead');
        log.isWritable = true;
        return '';
      },
      release: async () => {
        done.push('release');
        Object.assign(log, { isWritable: false, owner: '' });
      },
      logger: silentLogger,
    });
    const logs = [log as unknown as ReplicatedLog];
    for (let i = 0; i < 3; i++) {
      elections.run(logs);
      await elections.idle();
    }
    assert.deepEqual(done, ['lead', 'release']);
  });
});

describe('in-flight requests', () => {
  it('are awaited for several logs, up to a time', async () => {
    const writes = new InFlightRequests();
    const ends = ['a', 'b'].map((log) => writes.begin(log));
    assert.equal(await writes.whenNone(['c'], 0), true);
    assert.equal(await writes.whenNone(['c', 'b'], 1), false);
    const ended = writes.whenNone(['a', 'b'], 60_000);
    let isEnded = false;
    void ended.then(() => {
      isEnded = true;
    });
    ends[0]!();
    await new Promise(setImmediate);
    assert.equal(isEnded, false);
    ends[1]!();
    assert.equal(await ended, true);
  });
});
