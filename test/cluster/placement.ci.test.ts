// Collections that only some nodes of a cluster hold are spread evenly, and every node answers as if it held them.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { LogArchive } from '../../src/cluster/archive/log-archive.js';
import { placedOn, placementOperation } from '../../src/cluster/placement/placements.js';
import { SagittaError } from '../../src/common/errors.js';
import { silentLogger } from '../../src/common/logger.js';
import { ARROW_STREAM, NDJSON } from '../../src/server/wire/media-types.js';
import { createMemoryStore } from '../../src/storage/memory-store.js';
import type { Store } from '../../src/storage/store.js';
import { batchOf, openDatabase, overrideStore } from '../database/harness.js';
import type { Reply } from '../server/harness.js';
import { arrowStream } from '../server/ingest/streams.js';
import { MemoryCluster, SHAPE, waitFor } from './memory-cluster.js';
import { ServedCluster } from './served-cluster.js';

const NODES = ['n1', 'n2', 'n3'];

function countsOf(cluster: MemoryCluster): number[] {
  const [node] = cluster.nodes;
  return node!.node.health.status.members.map(({ heldCount }) => heldCount);
}

describe('new collections', () => {
  it('are spread evenly over the nodes, in different zones, and not on drained ones', async () => {
    const cluster = new MemoryCluster();
    const zones = { n1: 'a', n2: 'a', n3: 'b', n4: 'b' };
    try {
      await Promise.all(Object.entries(zones).map(([name, zone]) => cluster.add(name, { zone })));
      const leader = await cluster.leader();
      await waitFor('all nodes', () => leader.node.health.status.members.length === 4 || undefined);
      await waitFor(
        'serving nodes',
        () =>
          leader.node.health.status.members.every(({ state }) => state === 'serving') || undefined,
      );
      for (let i = 0; i < 8; i++) {
        const { record } = await leader.database.createCollection({
          id: `c${i}`,
          ...SHAPE,
          replicationFactor: 2,
        });
        const found = record.nodes!.map((name) => zones[name as keyof typeof zones]);
        assert.deepEqual(found.sort(), ['a', 'b']);
      }
      await cluster.settle();
      assert.deepEqual(countsOf(cluster), [4, 4, 4, 4]);
      await leader.node.drain('n2', true);
      const { record } = await leader.database.createCollection({
        id: 'more',
        ...SHAPE,
        replicationFactor: 4,
      });
      assert.deepEqual(record.nodes, ['n1', 'n3', 'n4']);
      const { record: everywhere } = await leader.database.createCollection({
        id: 'all',
        ...SHAPE,
      });
      assert.equal(everywhere.nodes, undefined);
    } finally {
      await cluster.stop();
    }
  });

  it('are stored by their holders, and by no other node', async () => {
    const cluster = await MemoryCluster.start(NODES);
    try {
      const leader = await cluster.leader();
      const made = [];
      for (let i = 0; i < 6; i++) {
        const input = { id: `c${i}`, ...SHAPE, replicationFactor: 1 };
        made.push((await leader.database.createCollection(input)).record);
      }
      await cluster.settle();
      for (const { id, nodes } of made) {
        const incarnation = leader.database.incarnationOf(id)!;
        for (const name of NODES) {
          const { database } = cluster.find(name);
          assert.equal(database.holds(id), nodes!.includes(name));
          const stored = createMemoryStore({ state: cluster.stateOf(name) });
          assert.equal(
            stored.get(['absent', incarnation]) === undefined,
            nodes!.includes(name),
            `${id} on ${name}`,
          );
        }
        // Replies about it are committed to a log that the leader owns.
        const isHeld = nodes!.includes(leader.name);
        const { node } = leader;
        const log = isHeld ? node.logs.ofCollection(incarnation) : node.logs.catalogue;
        assert.equal(node.logs.ofReplies(incarnation), log);
      }
      // A service without a cluster, on the data of one node, does not take the other collections for empty.
      const [first] = made;
      const other = NODES.find((name) => !first!.nodes!.includes(name))!;
      await cluster.find(other).kill();
      const alone = await openDatabase({ state: cluster.stateOf(other) });
      const { status, statusReason } = alone.collection(first!.id).record();
      assert.equal(status, 'failed');
      assert.match(statusReason!, /are not in this data directory/);
      await alone.close();
    } finally {
      await cluster.stop();
    }
  });
});

describe('the nodes of a deleted collection', () => {
  it('are not changed, and keep no node from being drained', async () => {
    const cluster = await MemoryCluster.start(NODES);
    try {
      const leader = await cluster.leader();
      const input = { id: 'c', ...SHAPE, replicationFactor: 1 };
      const { record } = await leader.database.createCollection(input);
      const [holder] = record.nodes!;
      const left = placementOperation('gone', placedOn([holder!], 1));
      await leader.node.logs.catalogue.commit([left]);
      await leader.node.drain(holder!, true);
      await waitFor('another node', () => {
        const { nodes, move } = leader.database.collection('c').record();
        return (move === undefined && nodes![0] !== holder) || undefined;
      });
      assert.ok(left.kind === 'put');
      assert.deepEqual(Buffer.from(leader.store.get(left.key)!), Buffer.from(left.value));
    } finally {
      await cluster.stop();
    }
  });
});

describe('a collection that a node could not load at first', () => {
  it('is archived by it afterwards', async () => {
    const cluster = await MemoryCluster.start(['n1', 'n2']);
    try {
      const leader = await cluster.leader();
      const input = { id: 'c', ...SHAPE, replicationFactor: 1 };
      const { record } = await leader.database.createCollection(input);
      const [from] = record.nodes!;
      const incarnation = leader.database.incarnationOf('c')!;
      let attemptCount = 0;
      let isFull = true;
      const change = (store: Store) =>
        overrideStore(store, {
          commit: async (operations) => {
            const isBringingIn = operations.some(
              (operation) => operation.kind === 'remove' && operation.key[0] === 'absent',
            );
            if (isBringingIn && isFull) {
              attemptCount++;
              throw new SagittaError('storage_full', 'for the test');
            }
            await store.commit(operations);
          },
        });
      const to = await cluster.add('n3', { change });
      await leader.node.move(incarnation, { from: from!, to: 'n3' });
      await waitFor('an attempt', () => attemptCount > 0 || undefined);
      // With each of them, the node syncs the logs that it follows.
      for (let i = 0; i < 20; i++)
        await leader.database.createCollection({ id: `d${i}`, ...SHAPE });
      isFull = false;
      await waitFor('the move', () => to.database.holds('c') || undefined);
      const owner = await waitFor('the owner', async () => {
        const found = await cluster.ownerOf('c');
        return found === to ? found : undefined;
      });
      const rows = [{ id: 'a', values: [1, 0], metadata: '{}' }];
      const { sequence } = await owner.database
        .collection('c')
        .write(batchOf(rows), { mode: 'upsert' });
      assert.equal(sequence, 1);
      await owner.node.archive();
      const archive = new LogArchive(incarnation, { blobs: cluster.files, logger: silentLogger });
      assert.ok((await archive.list()).length > 0);
    } finally {
      await cluster.stop();
    }
  });
});

describe('the sizes of collections', () => {
  it('are announced by the nodes that hold them', async () => {
    const cluster = await MemoryCluster.start(NODES);
    try {
      const leader = await cluster.leader();
      const input = { id: 'c', ...SHAPE, replicationFactor: 1 };
      const { record } = await leader.database.createCollection(input);
      await leader.database.createCollection({ id: 'all', ...SHAPE });
      const holder = record.nodes![0]!;
      const owner = await cluster.ownerOf('c');
      const rows = Array.from({ length: 50 }, (_, i) => ({
        id: `v${i}`,
        values: [i, 1],
        metadata: '{}',
      }));
      await owner.database.collection('c').write(batchOf(rows), { mode: 'upsert' });
      const incarnation = owner.database.incarnationOf('c')!;
      const { diskBytes } = owner.database.collection('c').record();
      assert.ok(diskBytes > 1_000);
      for (const { node } of cluster.nodes) {
        await waitFor('the sizes', () => {
          const found = node.health.status.members.map(({ node: name, sizes }) => [
            name,
            sizes?.largest,
          ]);
          const expected = NODES.map((name) => [
            name,
            name === holder ? { [incarnation]: diskBytes } : {},
          ]);
          return isDeepStrictEqual(found, expected) || undefined;
        });
      }
    } finally {
      await cluster.stop();
    }
  });
});

describe('a collection that one node holds', () => {
  let served: ServedCluster;
  let holder: string;
  let others: readonly string[];
  before(async () => {
    served = await ServedCluster.start(NODES);
    for (const [id, factor] of [
      ['all', null],
      ['one', 1],
    ] as const) {
      const body = { id, dimension: 3, metric: 'cosine', replication_factor: factor };
      const { status, json } = await served.call('n1', 'POST', '/collections', { body });
      assert.equal(status, 200, JSON.stringify(json));
    }
    const { json } = await served.call('n1', 'GET', '/collections/one');
    [holder] = json.nodes;
    others = NODES.filter((name) => name !== holder);
  });
  after(() => served.stop());

  /** Sends a request about both collections through a node, and compares the replies without what differs between machines. */
  async function both(node: string, method: string, path: string, body?: unknown) {
    const options = body === undefined ? {} : { body };
    const replies = [];
    for (const id of ['all', 'one']) {
      replies.push(await served.call(node, method, path.replace('ID', id), options));
    }
    return replies.map(({ status, text, json }) => ({
      status,
      body: status === 200 && json !== undefined ? comparable(json) : text,
    }));
  }

  it('is written and read through every node, like one on all nodes', async () => {
    for (let round = 0; round < 3; round++) {
      const node = NODES[round % 3]!;
      const vectors = Array.from({ length: 60 }, (_, i) => ({
        id: `v${(round * 40 + i) % 150}`,
        values: [1 + i, round, (i * 7) % 11],
        metadata: { round, i },
      }));
      const written = await both(node, 'POST', '/collections/ID/vectors', { vectors });
      assert.equal(written[0]!.status, 200, JSON.stringify(written));
      assert.deepEqual(written[1], written[0]);
      // A write through a node can be read there, whichever node holds the collection.
      const requests = [
        ['POST', '/collections/ID/query', { vector: [1, 2, 3], top_k: 40, include_metadata: true }],
        ['POST', '/collections/ID/query', { vector: [1, 0, 0], filter: { round }, limit: 7 }],
        ['GET', '/collections/ID/vectors?limit=200', undefined],
        ['GET', `/collections/ID/vectors/v${(round * 40) % 150}`, undefined],
        ['POST', '/collections/ID/vectors/fetch', { ids: ['v1', 'v17', 'nothing'] }],
        ['POST', '/collections/ID/aggregate', { facets: [{ path: 'i', limit: 5 }] }],
        ['GET', '/collections/ID/segments', undefined],
        ['POST', '/collections/ID/count', { filter: { i: { $lt: 10 } } }],
        ['GET', '/collections/ID/digest', undefined],
        ['GET', '/collections/ID', undefined],
      ] as const;
      for (const [method, path, body] of requests) {
        const [all, one] = await both(node, method, path, body);
        assert.equal(all!.status, 200, `${path}: ${all!.body}`);
        assert.deepEqual(one, all, `${method} ${path} through ${node}`);
      }
    }
  });

  it('is also read by names and aliases outside the path', async () => {
    await served.call('n2', 'PUT', '/aliases/alias', { body: { collection: 'one' } });
    for (const node of NODES) {
      const body = { vector: [3, 2, 1], top_k: 5 };
      const expected = await served.call(node, 'POST', '/collections/all/query', { body });
      const named = { body: { ...body, collection: 'alias' } };
      // Another node knows the alias a moment later.
      const headers = { 'sagitta-consistency': 'strong' };
      const found = await served.call(node, 'POST', '/query', { ...named, headers });
      assert.deepEqual(found.json.matches, expected.json.matches);
      const list = await served.call(node, 'GET', '/vectors?collection=one&limit=3');
      assert.equal(list.json.vectors.length, 3);
    }
  });

  it('answers queries that are streamed to any node', async () => {
    const body = arrowStream([
      [{ id: 'x', values: [1, 0, 0] }],
      [
        { id: 'y', values: [0, 1, 0] },
        { id: 'z', values: [0, 0, 1] },
      ],
    ]);
    const path = '/query/batch?vector_column=values&top_k=2';
    const headers = { 'content-type': ARROW_STREAM, accept: NDJSON };
    for (const node of NODES) {
      const [all, one] = await Promise.all(
        ['all', 'one'].map((id) =>
          served.call(node, 'POST', `/collections/${id}${path}`, { body, headers }),
        ),
      );
      assert.equal(one!.status, 200, one!.text);
      const idsOf = ({ text }: Reply) =>
        text
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line))
          .map(({ query_id, matches }) => [query_id, matches.map(({ id }: { id: string }) => id)]);
      assert.deepEqual(idsOf(one!), idsOf(all!));
      assert.equal(idsOf(one!).length, 3);
    }
  });

  it('has pages that are continued through any node', async () => {
    const body = { vector: [1, 1, 1], limit: 10 };
    const pages: unknown[][] = [];
    for (const id of ['all', 'one']) {
      let reply = await served.call('n1', 'POST', `/collections/${id}/query`, { body });
      const matches = [...reply.json.matches];
      for (let i = 1; reply.json.next_cursor !== undefined; i++) {
        const next = { body: { cursor: reply.json.next_cursor } };
        reply = await served.call(NODES[i % 3]!, 'POST', `/collections/${id}/query`, next);
        assert.equal(reply.status, 200, reply.text);
        matches.push(...reply.json.matches);
        const vectors = [{ id: `during-${id}-${i}`, values: [9, 9, 9] }];
        await served.call('n2', 'POST', `/collections/${id}/vectors`, { body: { vectors } });
      }
      pages.push(matches);
    }
    assert.ok(pages[0]!.length > 100);
    assert.deepEqual(pages[1], pages[0]);
  });

  it('shows everything acknowledged anywhere in strong reads and with min_sequence', async () => {
    for (let i = 0; i < 10; i++) {
      const id = `strong-${i}`;
      const vectors = [{ id, values: [0, i + 1, 0] }];
      const { json } = await served.call(NODES[i % 3]!, 'POST', '/collections/one/vectors', {
        body: { vectors },
      });
      const other = NODES[(i + 1) % 3]!;
      const headers = { 'sagitta-consistency': 'strong' };
      const found = await served.call(other, 'GET', `/collections/one/vectors/${id}`, { headers });
      assert.equal(found.status, 200);
      const query = { id, top_k: 1, min_sequence: json.sequence };
      const { status } = await served.call(other, 'POST', '/collections/one/query', {
        body: query,
      });
      assert.equal(status, 200);
    }
  });

  it('is counted in lists of collections on every node', async () => {
    const counts = [];
    for (const node of NODES) {
      const { json } = await served.call(node, 'GET', '/collections');
      counts.push(
        json.collections.map((record: Record<string, unknown>) => [
          record.id,
          record.status,
          record.vector_count,
          record.nodes,
        ]),
      );
    }
    assert.deepEqual(counts[0][1].slice(0, 2), ['one', 'ready']);
    assert.ok(counts[0][1][2] > 100);
    assert.deepEqual(counts[0][1][3], [holder]);
    assert.deepEqual(counts[1], counts[0]);
    assert.deepEqual(counts[2], counts[0]);
  });

  it('is changed, cloned and renamed through any node', async () => {
    const [first, second] = others as [string, string];
    const schema = { i: 'integer' };
    const changed = await served.call(first, 'PATCH', '/collections/one', { body: { schema } });
    assert.deepEqual([changed.status, changed.json.schema], [200, schema], changed.text);
    assert.ok(changed.json.vector_count > 100);
    const wrong = { vectors: [{ id: 'x', values: [1, 1, 1], metadata: { i: 'text' } }] };
    const refused = await served.call(second, 'POST', '/collections/one/vectors', { body: wrong });
    assert.equal(refused.json.code, 'invalid_metadata');
    const labels = { team: 'x' };
    const labelled = await served.call(second, 'PATCH', '/collections/one', { body: { labels } });
    assert.deepEqual(labelled.json.labels, labels);
    const options = { body: { id: 'copy' }, headers: { 'idempotency-key': 'clone' } };
    const copied = await served.call(second, 'POST', '/collections/one/clone', options);
    assert.equal(copied.status, 200, copied.text);
    const again = await served.call(second, 'POST', '/collections/one/clone', options);
    assert.equal(again.headers['idempotent-replayed'], 'true', again.text);
    const renamed = await served.call(first, 'POST', '/collections/copy/rename', {
      body: { id: 'renamed' },
    });
    assert.equal(renamed.status, 200, renamed.text);
    const digests = [];
    for (const id of ['one', 'renamed']) {
      digests.push((await served.call(first, 'GET', `/collections/${id}/digest`)).json);
    }
    assert.deepEqual(digests[1], digests[0]);
    const compared = await served.call(first, 'GET', '/collections/one/digest?all_nodes=true');
    assert.deepEqual(
      compared.json.nodes.map(({ node }: { node: string }) => node),
      [holder],
    );
    const deleted = await served.call(second, 'DELETE', '/collections/renamed');
    assert.deepEqual([deleted.status, deleted.json.vector_count], [200, digests[0].vector_count]);
  });
});

describe('several collections, each on one node', () => {
  let served: ServedCluster;
  /** The collections by their holders. */
  const on = new Map<string, string[]>();
  before(async () => {
    served = await ServedCluster.start(NODES);
    for (let i = 0; i < 6; i++) {
      const body = { id: `c${i}`, dimension: 2, replication_factor: 1 };
      const { json } = await served.call(NODES[i % 3]!, 'POST', '/collections', { body });
      const [node] = json.nodes as [string];
      on.set(node, [...(on.get(node) ?? []), json.id]);
      const vectors = [
        { id: 'a', values: [1, i] },
        { id: 'b', values: [i, 1] },
      ];
      const path = `/collections/${json.id}/vectors`;
      assert.equal((await served.call('n1', 'POST', path, { body: { vectors } })).status, 200);
    }
  });
  after(() => served.stop());

  it('are joined where one node holds both, through every node', async () => {
    const replies = [];
    const [first, second] = on.get('n2')!;
    for (const node of NODES) {
      const { status, text } = await served.call(node, 'POST', `/collections/${first}/join`, {
        body: { with: second, top_k: 1 },
      });
      assert.equal(status, 200, text);
      replies.push(text);
    }
    assert.equal(replies[0]!.trim().split('\n').length, 2);
    assert.deepEqual(replies, [replies[0], replies[0], replies[0]]);
    const [other] = on.get('n3')!;
    for (const node of NODES) {
      const { status, json } = await served.call(node, 'POST', `/collections/${first}/join`, {
        body: { with: other, top_k: 1 },
      });
      assert.deepEqual([status, json.code], [409, 'collections_apart']);
      assert.match(json.detail, /one is on n2, the other on n3/);
    }
  });

  it('have all rows after a node has been killed and started', async () => {
    const [id] = on.get('n3')! as [string];
    await served.kill('n3');
    const path = `/collections/${id}/vectors/a`;
    const refused = await served.call('n1', 'GET', path);
    assert.deepEqual([refused.status, refused.json.code], [503, 'no_holder']);
    assert.match(refused.json.detail, /rows are on n3/);
    assert.equal(refused.headers['retry-after'], '1');
    const { json } = await served.call('n1', 'GET', '/collections');
    const found = json.collections.find((record: { id: string }) => record.id === id);
    assert.deepEqual([found.status, found.nodes], ['elsewhere', ['n3']]);
    // The other collections are unchanged.
    const [other] = on.get('n2')!;
    assert.equal((await served.call('n1', 'GET', `/collections/${other}/vectors/a`)).status, 200);
    await served.add('n3');
    await served.whenServing(NODES);
    assert.equal((await served.call('n1', 'GET', path)).status, 200);
    const vectors = [{ id: 'c', values: [1, 1] }];
    const written = await waitFor('the owner', async () => {
      const reply = await served.call('n2', 'POST', `/collections/${id}/vectors`, {
        body: { vectors },
      });
      return reply.json.code === 'no_leader' ? undefined : reply;
    });
    assert.equal(written.status, 200, written.text);
    assert.equal((await served.call('n2', 'GET', `/collections/${id}/vectors/c`)).status, 200);
  });

  it('are deleted although the node that holds them is gone', async () => {
    const [, id] = on.get('n1')! as [string, string];
    await served.kill('n1');
    await served.cluster.leader();
    const { status, text } = await served.call('n2', 'DELETE', `/collections/${id}`);
    assert.equal(status, 200, text);
    await served.add('n1');
    await served.whenServing(NODES);
    assert.equal((await served.call('n1', 'GET', `/collections/${id}`)).status, 404);
  });
});

describe('a collection that two nodes hold', () => {
  it('is read from the other one when one does not answer, and survives the loss of one', async () => {
    const served = await ServedCluster.start(NODES);
    try {
      const body = { id: 'c', dimension: 2, replication_factor: 2 };
      const made = await served.call('n1', 'POST', '/collections', { body });
      const [first, second] = made.json.nodes as [string, string];
      const other = NODES.find((name) => name !== first && name !== second)!;
      const write = async (id: string) => {
        const vectors = [{ id, values: [1, 1] }];
        return await waitFor('a write', async () => {
          const reply = await served.call(other, 'POST', '/collections/c/vectors', {
            body: { vectors },
          });
          return reply.status === 200 ? reply : undefined;
        });
      };
      await write('a');
      await served.silence(first);
      // Each of the two is asked first at some time.
      for (let i = 0; i < 4; i++) {
        const { status, text } = await served.call(other, 'GET', '/collections/c/vectors/a');
        assert.equal(status, 200, text);
        const query = { body: { vector: [1, 1], top_k: 1 } };
        assert.equal((await served.call(other, 'POST', '/collections/c/query', query)).status, 200);
        const { json } = await served.call(other, 'GET', '/collections');
        assert.deepEqual(
          [json.collections[0].status, json.collections[0].vector_count],
          ['ready', 1],
        );
      }
      await served.kill(first);
      await write('b');
      assert.equal((await served.call(other, 'GET', '/collections/c/vectors/b')).status, 200);
    } finally {
      await served.stop();
    }
  });

  it('never goes back when it is read through a third node, although a holder is late', async () => {
    const served = await ServedCluster.start(NODES);
    let release = () => {};
    try {
      const body = { id: 'c', dimension: 2, replication_factor: 2 };
      const made = await served.call('n1', 'POST', '/collections', { body });
      const other = NODES.find((name) => !made.json.nodes.includes(name))!;
      const owner = await served.cluster.ownerOf('c');
      const late = made.json.nodes.find((name: string) => name !== owner.name)!;
      const strong = { 'sagitta-consistency': 'strong' };
      const write = async (node: string, id: string) => {
        const vectors = [{ id, values: [1, 1] }];
        const path = '/collections/c/vectors';
        const { status, text } = await served.call(node, 'POST', path, { body: { vectors } });
        assert.equal(status, 200, text);
      };
      /** Enough collections for every holder to be asked first for one of them. */
      const expectCount = async (count: number, headers = {}) => {
        for (let i = 0; i < 4; i++) {
          const { status, json } = await served.call(other, 'GET', '/collections/c', { headers });
          assert.deepEqual([status, json.vector_count], [200, count]);
          const list = await served.call(other, 'GET', '/collections', { headers });
          assert.equal(list.json.collections[0].vector_count, count);
        }
      };
      await write(other, 'a');
      await expectCount(1, strong);
      release = served.cluster.find(late).service.hold();
      await write(other, 'b');
      await expectCount(2);
      await write(owner.name, 'c');
      await expectCount(3, strong);
      // Rows that were read through that node once stay visible there.
      await expectCount(3);
      release();
      await expectCount(3, strong);
    } finally {
      release();
      await served.stop();
    }
  });

  it('has positions that all holders reach, although one of them has read barriers', async () => {
    const cluster = await MemoryCluster.start(NODES);
    try {
      const leader = await cluster.leader();
      await leader.database.createCollection({ id: 'c', ...SHAPE });
      const owner = await cluster.ownerOf('c');
      const follower = cluster.nodes.find((node) => node !== owner)!;
      const incarnation = owner.database.incarnationOf('c')!;
      await follower.node.logs.whenCurrent(incarnation);
      const positions = follower.node.progress.writtenSince(performance.now(), [incarnation]);
      await owner.node.progress.whenApplied(positions, AbortSignal.timeout(30_000));
    } finally {
      await cluster.stop();
    }
  });
});

describe('a collection that the leader does not hold', () => {
  let served: ServedCluster;
  let leader: string;
  let holder: string;
  let id: string;
  before(async () => {
    served = await ServedCluster.start(NODES);
    leader = (await served.cluster.leader()).name;
    for (let i = 0; holder === undefined; i++) {
      const body = { id: `c${i}`, dimension: 2, replication_factor: 1 };
      const { json } = await served.call('n1', 'POST', '/collections', { body });
      if (!json.nodes.includes(leader)) [holder, id] = [json.nodes[0], json.id];
    }
    const vectors = [
      { id: 'a', values: [1, 0] },
      { id: 'b', values: [0, 1] },
    ];
    const path = `/collections/${id}/vectors`;
    assert.equal((await served.call(holder, 'POST', path, { body: { vectors } })).status, 200);
  });
  after(() => served.stop());

  /** The record from the node that holds the rows. */
  async function recordOf(name: string) {
    const headers = { 'sagitta-consistency': 'strong' };
    const { status, text, json } = await served.call(holder, 'GET', `/collections/${name}`, {
      headers,
    });
    assert.equal(status, 200, text);
    assert.deepEqual([json.status, json.vector_count, json.sequence], ['ready', 2, 1]);
    return json;
  }

  it('has the record of a holder in replies to changes', async () => {
    for (const change of [
      { labels: { a: 'b' } },
      { description: 'text' },
      { ttl_seconds: 9_999 },
    ]) {
      for (const node of NODES) {
        const reply = await served.call(node, 'PATCH', `/collections/${id}`, { body: change });
        assert.deepEqual(reply.json, await recordOf(id), `${JSON.stringify(change)} by ${node}`);
      }
    }
    const body = { id, dimension: 2 };
    const existing = await served.call(leader, 'POST', '/collections?if_not_exists=true', { body });
    assert.deepEqual(existing.json, await recordOf(id));
  });

  it('has that record in the reply to a rename, also in the stored one', async () => {
    for (const [i, node] of NODES.entries()) {
      for (const headers of [{}, { 'idempotency-key': `rename ${i}` }]) {
        const path = `/collections/${id}/rename`;
        id = `renamed-${i}-${Object.keys(headers).length}`;
        const renamed = await served.call(node, 'POST', path, { body: { id }, headers });
        assert.equal(renamed.status, 200, renamed.text);
        assert.deepEqual(renamed.json, await recordOf(id), `by ${node}`);
        assert.equal(renamed.headers.location, `/v1/collections/${id}`);
        if (Object.keys(headers).length === 0) continue;
        const again = await served.call(node, 'POST', path, { body: { id }, headers });
        assert.equal(again.headers['idempotent-replayed'], 'true', again.text);
        assert.equal(again.text, renamed.text);
      }
    }
  });
});

/** Members of replies that differ between machines or between collections. */
const DIFFERENT: readonly string[] = [
  ...['version', 'next_cursor', 'id', 'created_at', 'updated_at', 'replication_factor', 'nodes'],
  ...['memory', 'disk_bytes', 'engine', 'timings'],
];

/** Beside versions, what says which rows of a node are in files: nodes that follow a log wait for those of its owner. */
const DIFFERENT_WITHIN = ['version', 'file_bytes', 'log_bytes', 'state'];

/** The reply to a request about one of two collections with the same rows. */
function comparable(json: Readonly<Record<string, unknown>>): unknown {
  const isShown = ([name]: [string, unknown]) => !DIFFERENT.includes(name);
  const shown = Object.fromEntries(Object.entries(json).filter(isShown));
  return JSON.parse(
    JSON.stringify(shown, (name, value) => (DIFFERENT_WITHIN.includes(name) ? undefined : value)),
  );
}
