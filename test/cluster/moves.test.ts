// Collections that move from node to node: nothing is lost or doubled, whichever node stops, and a node keeps nothing of
// what it has dropped. Moves during writes, and those that the cluster decides on, are in moves.ci.test.ts.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NODES, withCollection } from './moving-collection.js';

describe('a collection that is moved', () => {
  it('is changed and copied by its new holder before the leader has dropped it', async () => {
    await withCollection({ factor: 1 }, async (moving, served) => {
      const { from, to, end } = await moving.moveFromLeader();
      try {
        await moving.write(to);
        const { vector_count: count } = await moving.shown();
        const body = { schema: { type: 'string' } };
        const changed = await served.call(from, 'PATCH', '/collections/c', { body });
        assert.deepEqual([changed.status, changed.json.vector_count], [200, count], changed.text);
        assert.equal((await served.cluster.leader()).name, to);
        const clone = { body: { id: 'copy' } };
        const copied = await served.call(from, 'POST', '/collections/c/clone', clone);
        assert.deepEqual([copied.status, copied.json.vector_count], [200, count], copied.text);
      } finally {
        end();
      }
    });
  });

  it('is deleted by the leader, which has not dropped it yet, without its log', async () => {
    await withCollection({ factor: 1 }, async (moving, served) => {
      const { from, to, end } = await moving.moveFromLeader();
      try {
        await moving.write(to);
        const { vector_count: count } = await moving.shown();
        // The log may be closed at any moment, since the rows are dropped.
        served.cluster.find(from).node.logs.acquire = async () =>
          assert.fail('the log is taken over');
        const deleted = await served.call(from, 'DELETE', '/collections/c');
        assert.deepEqual([deleted.status, deleted.json.vector_count], [200, count], deleted.text);
      } finally {
        end();
      }
    });
  });

  it('is not moved between impossible nodes', async () => {
    await withCollection({ factor: 1 }, async (moving, served) => {
      const [holder] = (await moving.shown()).nodes;
      const [other, third] = await moving.others;
      const refused = async (from: string, to: string, path = '/collections/c/move') => {
        const { status, json } = await served.call('n1', 'POST', path, { body: { from, to } });
        return [status, json.code];
      };
      assert.deepEqual(await refused(other!, third!), [400, 'invalid_request']);
      assert.deepEqual(await refused(holder!, holder!), [400, 'invalid_request']);
      assert.deepEqual(await refused(holder!, 'n9'), [404, 'node_not_found']);
      const body = { id: 'all', dimension: 2 };
      await served.call('n1', 'POST', '/collections', { body });
      const onAll = await refused('n1', 'n2', '/collections/all/move');
      assert.deepEqual(onAll, [400, 'invalid_request']);
    });
  });

  it('arrives although its new node is killed in between', async () => {
    await withCollection({ factor: 1 }, async (moving, served) => {
      const { from, to, release } = await moving.moveHeldUp();
      await moving.write(from);
      // The node has read nothing of the collection yet.
      served.cluster.find(to).service.cutOff();
      release();
      await served.kill(to);
      assert.deepEqual((await moving.shown(from)).nodes, [from]);
      await moving.write(from);
      await served.add(to);
      await served.whenServing(NODES);
      await moving.whenOn([to]);
      await moving.whenForgotten(from);
      await moving.assertWhole();
    });
  });

  it('arrives although the leader is killed in between', async () => {
    await withCollection({ factor: 1 }, async (moving, served) => {
      const { to, release } = await moving.moveHeldUp();
      const leader = (await served.cluster.leader()).name;
      await served.kill(leader);
      release();
      // It may also be the node that held the collection.
      await moving.whenOn([to]);
      await served.add(leader);
      await served.whenServing(NODES);
      await moving.write(leader);
      await moving.assertWhole();
    });
  });

  it('arrives from the log although the only node that held it is gone', async () => {
    await withCollection({ factor: 1 }, async (moving, served) => {
      const { from, to, release } = await moving.moveHeldUp();
      await served.kill(from);
      release();
      await moving.whenOn([to]);
      await moving.write(to);
      await moving.assertWhole();
      await served.add(from);
      await served.whenServing(NODES);
      await moving.whenForgotten(from);
      await moving.assertWhole();
    });
  });
});
