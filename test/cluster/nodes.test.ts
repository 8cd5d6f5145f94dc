// Nodes of a cluster: all have what one of them writes, and when the leader is gone, another one takes over, and no
// acknowledged write is lost.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { readAppliedPosition } from '../../src/cluster/logs/applied-position.js';
import { ChainedLog } from '../../src/cluster/logs/chained-log.js';
import { LOG_START } from '../../src/cluster/logs/collection-log.js';
import type { MemoryStream } from '../../src/cluster/logs/memory-stream.js';
import { encodeOperations } from '../../src/cluster/logs/operations.js';
import { CATALOGUE } from '../../src/cluster/logs/store-entries.js';
import { field, SagittaError } from '../../src/common/errors.js';
import { Database } from '../../src/database/database.js';
import type { Store } from '../../src/storage/store.js';
import { batchOf, overrideStore } from '../database/harness.js';
import { idsIn, MemoryCluster, SHAPE, type TestNode, waitFor } from './memory-cluster.js';

function write(database: Database, ids: readonly string[], collection = 'c') {
  const rows = ids.map((id, i) => ({ id, values: [1, i], metadata: JSON.stringify({ i }) }));
  return database.collection(collection).write(batchOf(rows), { mode: 'upsert' });
}

/** The record of a collection, without members that differ between machines. */
async function stateOf(node: TestNode, collection = 'c') {
  const { database } = node;
  const { vectorCount, sequence, schema, labels, createdAt, updatedAt } = database
    .collection(collection)
    .record();
  const include = { values: true, metadata: true, expiry: true, sequence: true };
  const ids = await idsIn(node, collection);
  const { vectors } = await database.collection(collection).fetch(ids, include);
  return { vectorCount, sequence, schema, labels, createdAt, updatedAt, vectors };
}

/** The number of messages of a log, including claims and barriers. */
function messageCountOf(log: MemoryStream): number {
  let count = 0;
  log.change((messages) => {
    count = messages.length;
    return messages;
  });
  return count;
}

async function assertAlike(cluster: MemoryCluster, collection = 'c'): Promise<void> {
  await cluster.settle();
  const [first, ...others] = cluster.nodes;
  const expected = await stateOf(first!, collection);
  for (const node of others) assert.deepEqual(await stateOf(node, collection), expected);
}

describe('nodes of a cluster', () => {
  let cluster: MemoryCluster;
  let leader: TestNode;
  before(async () => {
    cluster = await MemoryCluster.start(['n1', 'n2', 'n3'], { retentionMs: 60_000 });
    leader = await cluster.leader();
    await leader.database.createCollection({ id: 'c', ...SHAPE });
  });
  after(() => cluster.stop());

  it('have what the leader writes', async () => {
    const { database } = leader;
    await write(database, ['a', 'b', 'c']);
    await Promise.all([
      write(database, ['d']),
      write(database, ['e', 'a']),
      write(database, ['f']),
    ]);
    await database.collection('c').delete({ kind: 'ids', ids: ['b'] }, { dryRun: false });
    await database.collection('c').patch('c', { metadata: '{"i":7}' });
    await assertAlike(cluster);
    for (const node of cluster.nodes) {
      const { matches } = await node.database
        .collection('c')
        .query({ vector: Float32Array.of(0, 1), topK: 3, filter: { i: 7 } });
      assert.deepEqual(
        matches.map(({ id, score }) => [id, score]),
        [['c', 2]],
      );
    }
  });

  it('have enough rows for several segments', async () => {
    for (let i = 0; i < 20; i++) {
      await write(
        leader.database,
        Array.from({ length: 30 }, (_, j) => `row-${i}-${j}`),
      );
    }
    await assertAlike(cluster);
  });

  it('refuse to write unless they lead', async () => {
    const follower = await cluster.follower();
    await assert.rejects(write(follower.database, ['x']), { code: 'no_leader' });
    await assert.rejects(follower.database.createCollection({ id: 'x', ...SHAPE }), {
      code: 'no_leader',
    });
    await assert.rejects(follower.database.collection('c').drop(), { code: 'no_leader' });
    // The failed deletion had closed the collection.
    await write(leader.database, ['y']);
    await assertAlike(cluster);
  });

  it('have aliases, other ids, types and API keys', async () => {
    const { database } = leader;
    await database.createCollection({ id: 'first', ...SHAPE });
    await write(database, ['a', 'b'], 'first');
    await database.setAliases([{ name: 'alias', collection: 'first' }], {
      authorize() {},
      locate: () => field(),
    });
    await database.collection('first').rename('second');
    await database.collection('alias').update({ schema: { i: 'integer' }, labels: { team: 'x' } });
    const { key } = await database.apiKeys.create({
      owner: 'test',
      scopes: ['admin'],
      expiresAt: null,
    });
    await cluster.settle();
    for (const node of cluster.nodes) {
      assert.equal(node.database.alias('alias')?.collection, 'second');
      assert.equal(node.database.collection('first').exists, false);
      assert.deepEqual(node.database.collection('second').record().schema, { i: 'integer' });
      assert.equal(node.database.apiKeys.verify(key).grants[0]!.scope, 'admin');
    }
    await assertAlike(cluster, 'second');
    await assert.rejects(
      database
        .collection('second')
        .write(batchOf([{ id: 'z', values: [1, 1], metadata: '{"i":"text"}' }]), {
          mode: 'upsert',
        }),
      { code: 'invalid_metadata' },
    );
  });

  it('have clones, with the sequence of their original', async () => {
    const { database } = leader;
    await database.collection('c').clone({ id: 'clone' });
    const { sequence } = database.collection('c').record();
    assert.equal(database.collection('clone').record().sequence, sequence);
    await write(database, ['only in the clone'], 'clone');
    await assertAlike(cluster, 'clone');
    assert.ok(!(await idsIn(leader)).includes('only in the clone'));
  });

  it('commit replies to the catalogue, and nothing else, for a collection that they do not have', async () => {
    const { node, database } = leader;
    const position = node.progress.cataloguePositions;
    const gone = randomUUID();
    const log = node.logs.ofCollection(gone);
    assert.equal(log.isWritable, false);
    const record = { kind: 'append', log: gone, sequence: 1, record: Buffer.from('row') } as const;
    await assert.rejects(log.commit([record]), { code: 'no_leader' });
    assert.deepEqual(node.progress.cataloguePositions, position);
    assert.equal(node.logs.ofReplies(gone), node.logs.catalogue);
    const known = database.incarnationOf('c')!;
    assert.equal(node.logs.ofReplies(known), node.logs.ofCollection(known));
    assert.notEqual(node.logs.ofReplies(known), node.logs.catalogue);
  });

  it('delete expired rows once', async () => {
    const { database } = leader;
    await database.createCollection({ id: 'ttl', ...SHAPE, ttlSeconds: 60 });
    await write(database, ['a', 'b'], 'ttl');
    await cluster.settle();
    cluster.clock.nowMs += 60_000;
    for (const node of cluster.nodes) await node.database.deleteExpired();
    await assertAlike(cluster, 'ttl');
    assert.deepEqual(await idsIn(leader, 'ttl'), []);
    assert.equal(database.collection('ttl').record().sequence, 2);
  });

  it('forget collections that are deleted', async () => {
    const { database } = leader;
    await database.createCollection({ id: 'gone', ...SHAPE });
    await write(database, ['a'], 'gone');
    await cluster.settle();
    const streamCount = cluster.network.streams.size;
    await database.collection('gone').drop();
    await database.createCollection({ id: 'gone', ...SHAPE });
    await cluster.settle();
    assert.equal(cluster.network.streams.size, streamCount);
    for (const node of cluster.nodes) assert.deepEqual(await idsIn(node, 'gone'), []);
  });

  it('repeat the reply to a request that is sent again to the next leader', async () => {
    const request = { scope: 'test', key: 'k', payloadDigest: 'd' };
    const perform = (node: TestNode) =>
      node.database.runIdempotent<{ sequence: number }>(request, async (attach) => {
        const attachedReply = attach((result: { sequence: number }) => ({
          sequence: result.sequence,
        }));
        const row = { id: 'once', values: [1, 1], metadata: '{}' };
        return await node.database
          .collection('c')
          .write(batchOf([row]), { mode: 'insert', attachedReply });
      });
    const first = await perform(leader);
    await leader.kill();
    leader = await cluster.leader();
    const second = await perform(await cluster.ownerOf('c'));
    assert.equal(second.isReplay, true);
    assert.equal(second.reply.sequence, first.reply.sequence);
    await cluster.add('n4');
    await assertAlike(cluster);
  });
});

describe('a new cluster', () => {
  it('starts although another process takes over before the first leader has written', async () => {
    const cluster = new MemoryCluster();
    const log = new ChainedLog(cluster.network.connect().openStream(CATALOGUE));
    let isTaken = false;
    const takeOver = async (store: Store) => {
      if (isTaken || readAppliedPosition(store, CATALOGUE).owner === '') return;
      isTaken = true;
      const writer = await log.takeOver({
        owner: 'another',
        after: LOG_START,
        onRecord() {},
        signal: new AbortController().signal,
      });
      const fragments = [{ shard: 0, bytes: encodeOperations([]) }];
      const summary = Buffer.from('released');
      await writer.append({ firstSequence: 0, lastSequence: 0, fragments, summary });
    };
    try {
      const { node, database } = await cluster.add('n1', {
        change: (store) =>
          overrideStore(store, {
            commit: async (operations) => {
              await store.commit(operations);
              await takeOver(store);
            },
          }),
      });
      assert.ok(isTaken);
      await waitFor('the leader', () => node.isLeader || undefined);
      await database.createCollection({ id: 'c', ...SHAPE });
    } finally {
      await cluster.stop();
    }
  });
});

describe('the collections of a cluster', () => {
  it('are written to by several nodes, each by one', async () => {
    const balanceMs = 50;
    const cluster = await MemoryCluster.start(['n1', 'n2', 'n3'], {}, { balanceMs });
    const leader = await cluster.leader();
    const ids = Array.from({ length: 40 }, (_, i) => `c${i}`);
    for (const id of ids) await leader.database.createCollection({ id, ...SHAPE });
    const owners = await waitFor('owners that differ', async () => {
      const found = new Map<string, string>();
      for (const id of ids) found.set((await cluster.ownerOf(id)).name, id);
      return found.size === 3 ? found : undefined;
    });
    // One collection owned by each node.
    for (const id of owners.values()) {
      // The last of them may still be on its way to another node.
      await waitFor('a write', async () => {
        const { database } = await cluster.ownerOf(id);
        return await write(database, ['a'], id).catch(() => undefined);
      });
      await assertAlike(cluster, id);
    }
    await cluster.stop();
  });

  it('can be changed by the leader although another node writes to them', async () => {
    const cluster = await MemoryCluster.start(['n1', 'n2', 'n3']);
    const leader = await cluster.leader();
    await leader.database.createCollection({ id: 'c', ...SHAPE });
    await cluster.settle();
    const other = await cluster.follower();
    const incarnation = other.database.incarnationOf('c')!;
    await leader.node.release(incarnation);
    const owner = await cluster.ownerOf('c');
    const writing = Array.from({ length: 20 }, (_, i) =>
      write(owner.database, [`v${i}`]).then(
        () => `v${i}`,
        () => null,
      ),
    );
    await leader.database.collection('c').update({ schema: { i: 'integer' } });
    const written = (await Promise.all(writing)).filter((id) => id !== null);
    await cluster.settle();
    await assertAlike(cluster);
    const ids = await idsIn(other);
    for (const id of written) assert.ok(ids.includes(id));
    const { vectorCount } = await leader.database.collection('c').drop();
    assert.equal(vectorCount, ids.length);
    await cluster.settle();
    assert.equal(other.database.incarnationOf('c'), undefined);
    await cluster.stop();
  });
});

describe('a collection that is deleted while its owner writes', () => {
  it('is forgotten by the owner, although the log is removed before a write has ended', async () => {
    const cluster = await MemoryCluster.start(['n1', 'n2', 'n3']);
    const leader = await cluster.leader();
    const shape = { ...SHAPE, replicationFactor: 1 };
    for (let i = 0; i < 12; i++) {
      const id = `c${i}`;
      await leader.database.createCollection({ id, ...shape });
      const owner = await cluster.ownerOf(id);
      let isOver = false;
      const writing = Promise.all(
        Array.from({ length: 4 }, async (_, writer) => {
          for (let row = 0; !isOver; row++) {
            await write(owner.database, [`${writer}-${row}`], id).catch(() => {});
            await new Promise(setImmediate);
          }
        }),
      );
      await leader.database.collection(id).drop();
      await waitFor(`the end of ${id}`, () =>
        cluster.nodes.every(({ database }) => database.incarnationOf(id) === undefined)
          ? true
          : undefined,
      );
      isOver = true;
      await writing;
    }
    await cluster.stop();
  });
});

describe('a node with a damaged copy of a collection', () => {
  it('starts and serves the others, and leaves the logs to nodes that can apply them', async () => {
    const cluster = await MemoryCluster.start(['n1', 'n2']);
    const leader = await cluster.leader();
    for (const id of ['c', 'd']) await leader.database.createCollection({ id, ...SHAPE });
    await write(leader.database, ['a']);
    await write(leader.database, ['a'], 'd');
    await cluster.settle();
    const name = (await cluster.follower()).name;
    const incarnation = leader.database.incarnationOf('c')!;
    await cluster.find(name).kill();
    const { log } = Database.storeLayout.collection(incarnation);
    const { entries, frames } = cluster.stateOf(name);
    const [entry] = [...entries.logs.get(log)!.records.after(0)];
    const { file, offset, byteLength } = entry!.extent;
    frames.get(file)!.fill(0xff, offset + byteLength - 3, offset + byteLength);
    // The node has to apply this before it serves, and cannot.
    let isOver = false;
    const written = ['a'];
    const writing = (async () => {
      while (!isOver) {
        const id = `b${written.length}`;
        await write(leader.database, [id]);
        written.push(id);
        // In memory, a write never yields to the event loop, which the starting node waits for.
        await new Promise((resolve) => setImmediate(resolve));
      }
    })();
    const damaged = await cluster.add(name);
    isOver = true;
    await writing;
    assert.ok(damaged.database.isFailed(incarnation));
    assert.deepEqual(await idsIn(damaged, 'd'), ['a']);
    await waitFor('the announcement', () => !damaged.node.health.status.self.canStore || undefined);
    await leader.node.release(incarnation);
    assert.equal(await cluster.ownerOf('c'), leader);
    await write(leader.database, ['c']);
    assert.deepEqual((await idsIn(leader)).sort(), [...written, 'c'].sort());
    await cluster.stop();
  });
});

describe('a node that leads and cannot store a new collection', () => {
  it('lets another one lead', async () => {
    const cluster = new MemoryCluster();
    let isFull = false;
    const change = (store: Store) =>
      overrideStore(store, {
        commit: async (operations) => {
          if (isFull) throw new SagittaError('storage_full', 'for the test');
          await store.commit(operations);
        },
      });
    try {
      await cluster.add('n1', { change });
      await cluster.add('n2');
      const full = await cluster.leader();
      assert.equal(full.name, 'n1');
      isFull = true;
      await assert.rejects(full.database.createCollection({ id: 'c', ...SHAPE }), {
        code: 'storage_full',
      });
      const other = await waitFor('another leader', () =>
        cluster.find('n2').node.isLeader ? cluster.find('n2') : undefined,
      );
      await other.database.createCollection({ id: 'c', ...SHAPE });
    } finally {
      await cluster.stop();
    }
  });
});

describe('a page', () => {
  it('contains what other nodes had before the owner of the collection', async () => {
    const cluster = await MemoryCluster.start(['n1', 'n2']);
    const owner = cluster.nodes.find(({ name }) => name === 'n1')!;
    const other = cluster.nodes.find(({ name }) => name === 'n2')!;
    await (await cluster.leader()).database.createCollection({ id: 'c', ...SHAPE });
    await cluster.settle();
    const incarnation = owner.database.incarnationOf('c')!;
    if ((await cluster.ownerOf('c')) === other) {
      await waitFor('the owner', async () => {
        await other.node.release(incarnation);
        return owner.node.owns(incarnation) || undefined;
      });
    }
    await write(owner.database, ['a']);
    // The log and the other node have the write; the owner does not know that yet.
    const release = owner.service.hold();
    const writing = write(owner.database, ['b']);
    const first = await waitFor('the write', async () => {
      const page = await other.database.collection('c').list({ limit: 1 });
      return page.hasMore ? page : undefined;
    });
    assert.equal(owner.database.collection('c').record().sequence, 1);
    const second = owner.database.collection('c').list({ cursor: first.nextCursor });
    release();
    assert.deepEqual(
      (await second).vectors.map(({ id }) => id),
      ['b'],
    );
    await writing;
    await cluster.stop();
  });
});

describe('the leader of a cluster', () => {
  it('is replaced when it is gone, and follows when it is back', async () => {
    const cluster = await MemoryCluster.start(['n1', 'n2', 'n3']);
    const first = await cluster.leader();
    await first.database.createCollection({ id: 'c', ...SHAPE });
    await write(first.database, ['a']);
    const { name } = first;
    await first.kill();
    const second = await cluster.leader();
    assert.notEqual(second.name, name);
    const owner = await cluster.ownerOf('c');
    assert.deepEqual(await idsIn(owner), ['a']);
    await write(owner.database, ['b']);
    await second.database.createCollection({ id: 'd', ...SHAPE });
    const back = await cluster.add(name);
    assert.equal(back.node.isLeader, false);
    await assertAlike(cluster);
    await assertAlike(cluster, 'd');
    await cluster.stop();
  });

  it('cannot write when another one has taken over meanwhile, and then follows', async () => {
    const cluster = await MemoryCluster.start(['n1', 'n2', 'n3']);
    const first = await cluster.leader();
    await first.database.createCollection({ id: 'c', ...SHAPE });
    await write(first.database, ['a']);
    first.service.cutOff();
    await cluster.leader();
    const second = await cluster.ownerOf('c');
    await write(second.database, ['b']);
    const late = write(first.database, ['lost']);
    first.service.reconnect();
    await assert.rejects(late, { code: 'no_leader' });
    await waitFor('the end of the leadership', () => !first.node.isLeader || undefined);
    await write(second.database, ['c']);
    await assertAlike(cluster);
    assert.deepEqual(await idsIn(first), ['a', 'b', 'c']);
    await cluster.stop();
  });

  it('refuses a change that waits for the log of a collection once it is deposed, and follows', async () => {
    const cluster = await MemoryCluster.start(['n1', 'n2', 'n3']);
    const first = await cluster.leader();
    // The random name of each collection decides its owner.
    const id = await waitFor('a collection of another owner', async () => {
      const id = randomUUID();
      await first.database.createCollection({ id, ...SHAPE });
      await cluster.settle();
      await first.node.release(first.database.incarnationOf(id)!);
      return (await cluster.ownerOf(id)) === first ? undefined : id;
    });
    const incarnation = first.database.incarnationOf(id)!;
    const log = cluster.network.streams.get(incarnation)!;
    const messageCount = messageCountOf(log);
    const release = first.service.hold(incarnation);
    const changing = first.database.collection(id).update({ schema: { i: 'integer' } });
    changing.catch(() => {});
    await waitFor('the take-over', () => messageCountOf(log) > messageCount || undefined);
    first.service.cutOff();
    const second = await cluster.leader();
    await second.database.createCollection({ id: 'd', ...SHAPE });
    first.service.reconnect();
    await assert.rejects(changing, { code: 'no_leader' });
    // The commits of the next leader have waited for the end of the change.
    await waitFor('d', () => first.database.incarnationOf('d'));
    release();
    await cluster.settle();
    await cluster.stop();
  });

  it('and the other nodes hold up strong reads while the logs do not answer', async () => {
    const cluster = await MemoryCluster.start(['n1', 'n2']);
    const first = await cluster.leader();
    await first.database.createCollection({ id: 'c', ...SHAPE });
    await write(first.database, ['a']);
    const second = await cluster.follower();
    second.service.cutOff();
    await write(first.database, ['b']);
    const { signal } = new AbortController();
    const current = second.node.progress.whenAllCurrent(signal);
    current.catch(() => {});
    // By now it has asked without an answer.
    await sleep(20);
    second.service.reconnect();
    await current;
    assert.deepEqual(await idsIn(second), ['a', 'b']);
    await cluster.stop();
  });

  it('follows another one that took over while it was idle, without writing', async () => {
    const cluster = await MemoryCluster.start(['n1', 'n2']);
    const first = await cluster.leader();
    await first.database.createCollection({ id: 'c', ...SHAPE });
    await cluster.settle();
    first.service.cutOff();
    await cluster.leader();
    const second = await cluster.ownerOf('c');
    await write(second.database, ['a']);
    first.service.reconnect();
    await waitFor('the row', async () => (await idsIn(first)).length === 1 || undefined);
    assert.equal(first.node.isLeader, false);
    await cluster.stop();
  });

  it('lets another one take over before it stops', async () => {
    const cluster = await MemoryCluster.start(['n1', 'n2', 'n3']);
    const first = await cluster.leader();
    await first.database.createCollection({ id: 'c', ...SHAPE });
    await write(first.database, ['a']);
    const left = first.node.leave(60_000);
    await waitFor('another leader', () => !first.node.isLeader || undefined);
    await left;
    const second = await cluster.ownerOf('c');
    assert.notEqual(second, first);
    await write(second.database, ['b']);
    await assertAlike(cluster);
    await cluster.stop();
  });

  it('starts although a collection whose log it was reading is deleted meanwhile', async () => {
    const cluster = await MemoryCluster.start(['n1', 'n2']);
    const leader = await cluster.leader();
    const { database, name } = leader;
    await database.createCollection({ id: 'c', ...SHAPE });
    await cluster.settle();
    const other = await cluster.follower();
    await other.kill();
    const held = database.incarnationOf('c')!;
    const connect = cluster.network.connect.bind(cluster.network);
    let onRead!: () => void;
    const isRead = new Promise<void>((resolve) => {
      onRead = resolve;
    });
    cluster.network.connect = () => {
      const service = connect();
      service.hold(held);
      const whenReleased = service.whenReleased.bind(service);
      service.whenReleased = (log, signal) => {
        if (log === held) onRead();
        return whenReleased(log, signal);
      };
      return service;
    };
    const starting = cluster.add(other.name);
    await isRead;
    await database.collection('c').drop();
    const started = await starting;
    assert.equal(started.database.incarnationOf('c'), undefined);
    assert.notEqual(started.name, name);
    await cluster.stop();
  });

  it('has everything after all nodes have stopped and started', async () => {
    const cluster = await MemoryCluster.start(['n1', 'n2', 'n3']);
    const { database } = await cluster.leader();
    await database.createCollection({ id: 'c', ...SHAPE });
    await write(database, ['a', 'b']);
    await cluster.settle();
    for (const { kill } of cluster.nodes) await kill();
    await Promise.all(['n1', 'n2', 'n3', 'n4'].map((name) => cluster.add(name)));
    const again = await cluster.ownerOf('c');
    await write(again.database, ['c']);
    await assertAlike(cluster);
    assert.deepEqual(await idsIn(again), ['a', 'b', 'c']);
    await cluster.stop();
  });
});
