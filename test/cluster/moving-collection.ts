// A collection of a served cluster that a test moves, writes to and compares with its writes.

import assert from 'node:assert/strict';
import type { ClusterTiming } from '../../src/cluster/nodes/node-parts.js';
import { createMemoryStore } from '../../src/storage/memory-store.js';
import { MemoryCluster, waitFor } from './memory-cluster.js';
import { ServedCluster } from './served-cluster.js';

export const NODES = ['n1', 'n2', 'n3'];

interface Shown {
  readonly nodes: readonly string[];
  readonly move?: { readonly from?: string; readonly to: string };
  readonly status: string;
  readonly vector_count: number;
}

/** A cluster with a collection, and methods to write to it and to compare it with the writes. */
export class MovingCollection {
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

  /** Writes rows, waiting while no node can write. */
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

  /** Begins a move to a node that reads nothing from any log until `release` is called. */
  async moveHeldUp() {
    // Holding up the leader would hold up the move as well.
    const leader = (await this.served.cluster.leader()).name;
    const to = (await this.others).find((name) => name !== leader)!;
    const release = this.served.cluster.find(to).service.hold();
    const { from } = await this.move(to);
    return { from, to, release };
  }

  /** Moves the collection away from the leader, which keeps its rows until `end` is called, since it still reads them. */
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

  /** Resolves when every node knows that these nodes hold the collection, and that no move is running. */
  async whenOn(nodes: readonly string[]): Promise<void> {
    await waitFor(`the nodes ${nodes.join()}`, async () => {
      for (const name of this.served.names) {
        const { nodes: found, move } = await this.shown(name);
        if (move !== undefined || String(found) !== String(nodes)) return undefined;
      }
      return true;
    });
  }

  /** The rows on every holder, and as read through every node. */
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

  /** Resolves when the store of a node contains nothing of the collection. */
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

/** Runs a test with a collection that `factor` of three nodes hold, and then stops the nodes. */
export async function withCollection(
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
