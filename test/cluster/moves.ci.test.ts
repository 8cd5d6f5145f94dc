// Collections that move from node to node during writes and reads, and moves that the cluster decides on.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MemoryCluster, waitFor } from './memory-cluster.js';
import { NODES, withCollection } from './moving-collection.js';
import { ServedCluster } from './served-cluster.js';

describe('a collection that is moved under writes', () => {
  it('is whole on every node that gets it, with pages that go on', async () => {
    await withCollection({ factor: 1 }, async (moving, served) => {
      let reply = await served.call('n1', 'POST', '/collections/c/query', {
        body: { vector: [1, 0], limit: 5 },
      });
      const walked: string[] = reply.json.matches.map(({ id }: { id: string }) => id);
      // Moves to both other nodes, and back to the first one.
      for (let i = 0; i < 3; i++) {
        const [to] = await moving.others;
        const { from } = await moving.move(to!);
        let isOver = false;
        const writing = (async () => {
          for (let k = 0; !isOver || k < 3; k++) await moving.write(NODES[k % 3]!);
        })();
        for (let k = 0; k < 3; k++) {
          const next = { body: { cursor: reply.json.next_cursor } };
          reply = await served.call(NODES[k]!, 'POST', '/collections/c/query', next);
          assert.equal(reply.status, 200, reply.text);
          walked.push(...reply.json.matches.map(({ id }: { id: string }) => id));
        }
        await moving.whenOn([to!]);
        isOver = true;
        await writing;
        await moving.whenForgotten(from);
        await moving.assertWhole();
      }
      // The pages are as of the moment at which they began.
      const expected = Array.from({ length: 50 }, (_, i) => `v${59 - i}`);
      assert.deepEqual(walked, expected);
    });
  });
});

describe('the nodes of a collection', () => {
  it('are as many as its replication factor after a change', async () => {
    await withCollection({ factor: 1 }, async (moving, served) => {
      const setFactor = async (factor: number | null) => {
        const options = { body: { replication_factor: factor } };
        const { status, text } = await served.call('n2', 'PATCH', '/collections/c', options);
        assert.equal(status, 200, text);
      };
      await setFactor(3);
      await moving.whenOn(NODES);
      await moving.write('n1');
      await moving.assertWhole();
      await setFactor(2);
      await waitFor(
        'two nodes',
        async () => (await moving.shown()).nodes.length === 2 || undefined,
      );
      const [given] = await moving.others;
      await moving.whenForgotten(given!);
      await moving.write('n1');
      await moving.assertWhole();
      await setFactor(null);
      await waitFor('no list', async () => (await moving.shown()).nodes === undefined || undefined);
      await moving.write('n1');
      await served.cluster.settle();
      for (const { database } of served.cluster.nodes) assert.equal(database.holds('c'), true);
      await moving.assertWhole();
      // Reduces all nodes to one.
      await setFactor(1);
      await waitFor(
        'one node',
        async () => (await moving.shown()).nodes?.length === 1 || undefined,
      );
      for (const name of await moving.others) await moving.whenForgotten(name);
      await moving.write('n2');
      await moving.assertWhole();
    });
  });

  it('change when one is drained, which can then be stopped', async () => {
    await withCollection({ factor: 2 }, async (moving, served) => {
      const [drained, kept] = (await moving.shown()).nodes as [string, string];
      const [other] = await moving.others;
      await served.call(kept, 'PUT', `/cluster/nodes/${drained}/drain`);
      await moving.whenOn([kept, other!].sort());
      await moving.whenForgotten(drained);
      await waitFor('the end', async () => {
        const { json } = await served.call(kept, 'GET', '/cluster');
        const found = json.nodes.find(({ name }: { name: string }) => name === drained);
        return found.drain === 'drained' && found.held_count === 0 ? true : undefined;
      });
      await moving.write(drained);
      await moving.assertWhole();
    });
  });

  it('change when one is gone for long, even the only one', async () => {
    for (const factor of [2, 1]) {
      await withCollection({ factor, timing: { replaceMs: 50 } }, async (moving, served) => {
        const [gone, ...kept] = (await moving.shown()).nodes as [string, ...string[]];
        await served.kill(gone);
        await waitFor('other nodes', async () => {
          const { nodes, move } = await moving.shown();
          return move === undefined && !nodes.includes(gone) ? true : undefined;
        });
        const { nodes } = await moving.shown();
        assert.equal(nodes.length, factor);
        for (const node of kept) assert.ok(nodes.includes(node));
        await moving.write(nodes[0]!);
        await moving.assertWhole();
        await served.add(gone);
        await served.whenServing(NODES);
        await moving.whenForgotten(gone);
        await moving.assertWhole();
      });
    }
  });

  it('include a new node that has served for a while', async () => {
    const cluster = new MemoryCluster({}, { balanceMs: 50 });
    const served = await ServedCluster.start(['n1', 'n2'], cluster);
    try {
      for (let i = 0; i < 6; i++) {
        const body = { id: `c${i}`, dimension: 2, replication_factor: 1 };
        await served.call('n1', 'POST', '/collections', { body });
        const vectors = [{ id: 'a', values: [1, i] }];
        const path = `/collections/c${i}/vectors`;
        assert.equal((await served.call('n2', 'POST', path, { body: { vectors } })).status, 200);
      }
      await served.add('n3');
      await waitFor('the same count', async () => {
        const { json } = await served.call('n1', 'GET', '/cluster');
        const counts = json.nodes.map((node: { held_count: number }) => node.held_count);
        return String(counts) === '2,2,2' || undefined;
      });
      for (let i = 0; i < 6; i++) {
        // The nodes may still be finishing a move.
        const reply = await waitFor('the row', async () => {
          const found = await served.call('n3', 'GET', `/collections/c${i}/vectors/a`);
          return found.status === 503 ? undefined : found;
        });
        assert.equal(reply.status, 200, JSON.stringify(reply.json));
        assert.deepEqual(reply.json.values, [1, i]);
      }
    } finally {
      await served.stop();
    }
  });
});
