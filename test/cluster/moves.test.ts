// Collections that move from node to node while they are written and read: nothing is lost or doubled, whoever stops in
// between, and what a node gives up it does not keep.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ClusterTiming } from '../../src/cluster/nodes/cluster-node.js';
import { createMemoryStore } from '../../src/storage/memory-store.js';
import { MemoryCluster, waitFor } from './memory-cluster.js';
import { ServedCluster } from './served-cluster.js';

const NODES = ['n1', 'n2', 'n3'];

interface Shown {
  readonly nodes: readonly string[];
  readonly move?: { readonly from?: string; readonly to: string };
  readonly status: string;
  readonly vector_count: number;
}

/** A cluster with a collection, and a way to write to it and to compare it with what was written. */
class MovingCollection {
  readonly served: ServedCluster;
  readonly #written = new Set<string>();
  #count = 0;

  constructor(served: ServedCluster) {
    this.served = served;
  }

  static async start(factor: number, timing: Partial<ClusterTiming>): Promise<MovingCollection> {
    const served = await ServedCluster.start(NODES, new MemoryCluster({}, timing));
    const moving = new MovingCollection(served);
    const body = { id: 'c', dimension: 2, metric: 'dot', replication_factor: factor };
    const { status, text } = await served.call('n1', 'POST', '/collections', { body });
    assert.equal(status, 200, text);
    for (let i = 0; i < 3; i++) await moving.write(NODES[i]!);
    return moving;
  }

  async shown(node = this.served.names[0]!): Promise<Shown> {
    return (await this.served.call(node, 'GET', '/collections/c')).json;
  }

  /** Rows that are there afterwards. While no node can write, it waits. */
  async write(node: string): Promise<void> {
    const first = this.#count;
    this.#count += 20;
    const ids = Array.from({ length: 20 }, (_, i) => `v${first + i}`);
    const vectors = ids.map((id, i) => ({ id, values: [first + i, 1] }));
    await waitFor('a write', async () => {
      const reply = await this.served.call(node, 'POST', '/collections/c/vectors', {
        body: { vectors },
      });
      if (reply.status === 503) return undefined;
      assert.equal(reply.status, 200, reply.text);
      return reply;
    });
    for (const id of ids) this.#written.add(id);
  }

  async move(to: string): Promise<{ readonly from: string; readonly to: string }> {
    const { nodes } = await this.shown();
    const from = nodes[0]!;
    const options = { body: { from, to } };
    const { status, text } = await this.served.call('n1', 'POST', '/collections/c/move', options);
    assert.equal(status, 200, text);
    return { from, to };
  }

  /** Begins a move to a node that gets nothing from any log until `release` is called. */
  async moveHeldUp() {
    // What holds up the leader would hold up the move as well.
    const leader = (await this.served.cluster.leader()).name;
    const to = (await this.others).find((name) => name !== leader)!;
    const release = this.served.cluster.find(to).service.hold();
    const { from } = await this.move(to);
    return { from, to, release };
  }

  /** Moves it away from the owner of the catalogue, which has its rows until `end` is called, since it still reads them. */
  async moveFromLeader() {
    const { name: from, node, database } = await this.served.cluster.leader();
    if ((await this.shown()).nodes[0] !== from) {
      await this.move(from);
      await this.whenOn([from]);
    }
    const to = NODES.find((other) => other !== from)!;
    const end = node.beginRead(database.incarnationOf('c')!);
    await this.move(to);
    await this.whenOn([to]);
    assert.ok(database.holds('c'));
    return { from, to, end };
  }

  /** Resolves when every node knows that the collection is on these, and that no move is under way. */
  async whenOn(nodes: readonly string[]): Promise<void> {
    await waitFor(`the nodes ${nodes.join()}`, async () => {
      for (const name of this.served.names) {
        const { nodes: found, move } = await this.shown(name);
        if (move !== undefined || String(found) !== String(nodes)) return undefined;
      }
      return true;
    });
  }

  /** The rows of every node that holds the collection, and through every node. */
  async assertWhole(): Promise<void> {
    const { sequence } = (await this.served.call(this.served.names[0]!, 'GET', '/collections/c'))
      .json;
    for (const name of this.served.names) {
      const found: string[] = [];
      let reply = await this.served.call(name, 'POST', '/collections/c/query', {
        body: { vector: [1, 0], limit: 50, min_sequence: sequence },
      });
      for (;;) {
        assert.equal(reply.status, 200, reply.text);
        found.push(...reply.json.matches.map(({ id }: { id: string }) => id));
        if (reply.json.next_cursor === undefined) break;
        reply = await this.served.call(name, 'POST', '/collections/c/query', {
          body: { cursor: reply.json.next_cursor },
        });
      }
      assert.deepEqual(new Set(found), this.#written, `through ${name}`);
      assert.equal(found.length, this.#written.size);
    }
    const { json } = await this.served.call(
      this.served.names[0]!,
      'GET',
      '/collections/c/digest?all_nodes=true',
    );
    for (const { digest, node } of json.nodes) assert.equal(digest, json.digest, node);
  }

  /** Resolves when a node has stored nothing of the collection any more. */
  async whenForgotten(name: string): Promise<void> {
    const { database } = this.served.cluster.find(name);
    const incarnation = database.incarnationOf('c')!;
    await waitFor(`${name} without rows`, () => {
      const state = this.served.cluster.stateOf(name);
      const store = createMemoryStore({ state });
      const isStored =
        store.get(['absent', incarnation]) === undefined ||
        store.get(['replication', incarnation]) !== undefined ||
        store.get(['manifest', incarnation]) !== undefined ||
        [...store.readLog(incarnation, 0)].length > 0 ||
        [...state.blobs.keys()].some((blob) => blob.startsWith(incarnation));
      return isStored ? undefined : true;
    });
  }

  /** Nodes that do not hold the collection. */
  get others(): Promise<readonly string[]> {
    return this.shown().then(({ nodes }) => NODES.filter((name) => !nodes.includes(name)));
  }
}

/** Runs a test with a collection that `factor` of three nodes hold, and stops these. */
async function withCollection(
  { factor, timing = {} }: { readonly factor: number; readonly timing?: Partial<ClusterTiming> },
  test: (moving: MovingCollection, served: ServedCluster) => Promise<void>,
): Promise<void> {
  const moving = await MovingCollection.start(factor, timing);
  try {
    await test(moving, moving.served);
  } finally {
    await moving.served.stop();
  }
}

describe('a collection that is moved', () => {
  it('is whole on every node of its way, under writes, with pages that go on', async () => {
    await withCollection({ factor: 1 }, async (moving, served) => {
      let reply = await served.call('n1', 'POST', '/collections/c/query', {
        body: { vector: [1, 0], limit: 5 },
      });
      const walked: string[] = reply.json.matches.map(({ id }: { id: string }) => id);
      // To both other nodes, and back to one that has had it before.
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
      // The pages are those of the moment at which they began.
      const expected = Array.from({ length: 50 }, (_, i) => `v${59 - i}`);
      assert.deepEqual(walked, expected);
    });
  });

  it('is changed and copied by its new holder while the owner of the catalogue has not dropped it yet', async () => {
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

  it('is deleted by the owner of the catalogue, which has not dropped it yet, without its log', async () => {
    await withCollection({ factor: 1 }, async (moving, served) => {
      const { from, to, end } = await moving.moveFromLeader();
      try {
        await moving.write(to);
        const { vector_count: count } = await moving.shown();
        // The log may be closed at any moment, as the rows are dropped.
        served.cluster.find(from).node.acquire = async () => assert.fail('the log is taken over');
        const deleted = await served.call(from, 'DELETE', '/collections/c');
        assert.deepEqual([deleted.status, deleted.json.vector_count], [200, count], deleted.text);
      } finally {
        end();
      }
    });
  });

  it('is refused for nodes that cannot be meant', async () => {
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

  it('arrives although the node that brings it in is killed in between', async () => {
    await withCollection({ factor: 1 }, async (moving, served) => {
      const { from, to, release } = await moving.moveHeldUp();
      await moving.write(from);
      // It has not read what it is to bring in.
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

  it('arrives although the owner of the catalogue is killed in between', async () => {
    await withCollection({ factor: 1 }, async (moving, served) => {
      const { to, release } = await moving.moveHeldUp();
      const leader = (await served.cluster.leader()).name;
      await served.kill(leader);
      release();
      // If it was also the node that held the collection, that one is gone with it.
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

describe('the nodes of a collection', () => {
  it('are as many as its replication factor, when that changes', async () => {
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
      // From all nodes to one.
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

  it('are others when one is drained, which can then be stopped', async () => {
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

  it('are others when one is gone for long, also the only one', async () => {
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

  it('include one that is new, when it has served for a while', async () => {
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
        // The nodes may still be busy with the end of a move.
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
