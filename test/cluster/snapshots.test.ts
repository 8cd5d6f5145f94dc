// Snapshots of logs, taken by their owners, from which new nodes and nodes that were away for too long start.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LogArchive } from '../../src/cluster/archive/log-archive.js';
import type { Blobs } from '../../src/cluster/blobs/blobs.js';
import { findAppliedPosition } from '../../src/cluster/logs/applied-position.js';
import { ChainedLog } from '../../src/cluster/logs/chained-log.js';
import { LOG_START } from '../../src/cluster/logs/collection-log.js';
import { decodeOperations } from '../../src/cluster/logs/operations.js';
import { FileFetcher } from '../../src/cluster/snapshots/file-fetcher.js';
import { removeState } from '../../src/cluster/snapshots/log-state.js';
import { SnapshotFiles, snapshotFolder } from '../../src/cluster/snapshots/snapshot-files.js';
import { StateLoader } from '../../src/cluster/snapshots/state-loader.js';
import { type Logger, silentLogger } from '../../src/common/logger.js';
import { Database } from '../../src/database/database.js';
import { createMemoryStore } from '../../src/storage/memory-store.js';
import { openStore } from '../../src/storage/open-store.js';
import { batchOf, overrideStore } from '../database/harness.js';
import { makeDirectory } from '../storage/directories.js';
import { withResolvers } from '../support/waiting.js';
import { idsIn, MemoryCluster, SHAPE, type TestNode, waitFor } from './memory-cluster.js';

const SNAPSHOT_BYTES = 2_000;

/** A cluster with one collection, whose ids are counted. */
class Written {
  readonly ids: string[] = [];
  #count = 0;
  readonly cluster: MemoryCluster;
  readonly collection: string;

  constructor(cluster: MemoryCluster, collection = 'c') {
    this.cluster = cluster;
    this.collection = collection;
  }

  /** Writes a row through the owner, which then archives it. */
  async write(): Promise<TestNode> {
    this.#count++;
    const id = `row-${String(this.#count).padStart(4, '0')}`;
    const row = {
      id,
      values: [1, this.#count],
      metadata: JSON.stringify({ text: 'x'.repeat(99) }),
    };
    return await waitFor('a write', async () => {
      const owner = await this.cluster.ownerOf(this.collection);
      try {
        await owner.database.collection(this.collection).write(batchOf([row]), { mode: 'upsert' });
      } catch (error) {
        // Another node may have become the owner in between.
        if ((error as { code?: string }).code === 'no_leader') return undefined;
        throw error;
      }
      this.ids.push(id);
      await owner.node.archive();
      return owner;
    });
  }

  async writeUntil(what: string, isDone: () => Promise<boolean> | boolean): Promise<void> {
    await waitFor(what, async () => {
      await this.write();
      return (await isDone()) || undefined;
    });
  }

  get incarnation(): string {
    return this.cluster.nodes[0]!.database.incarnationOf(this.collection)!;
  }

  get files(): SnapshotFiles {
    return new SnapshotFiles(this.cluster.files, this.incarnation);
  }

  /** Writes until neither the log nor the archive has the next record after a position. */
  async writeBeyond(position: number): Promise<void> {
    const { cluster, incarnation } = this;
    const archive = new LogArchive(incarnation, { blobs: cluster.files, logger: silentLogger });
    await this.writeUntil('a shorter log and archive', async () => {
      const first = await cluster.network.streams.get(incarnation)!.firstPosition();
      const [oldest] = await archive.list();
      return first! > position + 1 && oldest!.afterPosition > position;
    });
  }

  async assertIn(node: TestNode): Promise<void> {
    assert.deepEqual((await idsIn(node, this.collection)).sort(), [...this.ids].sort());
  }

  positionIn({ node }: TestNode): number {
    return node.progress.writtenSince(0, [this.incarnation])[this.incarnation]!;
  }
}

async function startWith(
  names: readonly string[],
  timing: ConstructorParameters<typeof MemoryCluster>[1] = {},
): Promise<Written> {
  const cluster = await MemoryCluster.start(names, {}, timing, SNAPSHOT_BYTES);
  const leader = await cluster.leader();
  await leader.database.createCollection({ id: 'c', ...SHAPE });
  return new Written(cluster);
}

/** Counts failed attempts, too. */
function recordingLogger(): { logger: Logger; messages: string[] } {
  const messages: string[] = [];
  const warn = (_: object, message: string) => void messages.push(message);
  return { logger: { ...silentLogger, warn }, messages };
}

/** Shared files that hold up writes under a prefix until `release` is called. */
function holding(blobs: Blobs, prefix: () => string) {
  const { promise: released, resolve: release } = withResolvers();
  let isHeld = false;
  const put: Blobs['put'] = async (name, parts, signal) => {
    if (name.startsWith(prefix())) {
      isHeld = true;
      await released;
    }
    await blobs.put(name, parts, signal);
  };
  const shared: Blobs = {
    put,
    get: (name, range, signal) => blobs.get(name, range, signal),
    list: (from, signal) => blobs.list(from, signal),
    remove: (name, signal) => blobs.remove(name, signal),
  };
  return { shared, isHeld: () => isHeld, release };
}

describe('a snapshot of a log', () => {
  it('is taken by the owner of the log, and new nodes start from those of all owners', async () => {
    const names = ['n1', 'n2', 'n3'];
    const { cluster } = await startWith(names, { balanceMs: 20 });
    const leader = await cluster.leader();
    const all = [new Written(cluster)];
    for (let i = 0; i < 11; i++) {
      await leader.database.createCollection({ id: `c${i}`, ...SHAPE });
      all.push(new Written(cluster, `c${i}`));
    }
    await waitFor('several owners', async () => {
      const owners = new Set<TestNode>();
      for (const { collection } of all) owners.add(await cluster.ownerOf(collection));
      return owners.size > 1 || undefined;
    });
    for (const written of all) {
      const stream = cluster.network.streams.get(written.incarnation)!;
      await written.writeUntil('a shorter log', async () => (await stream.firstPosition())! > 1);
    }
    const makers = cluster.nodes.filter(({ node }) => node.health.counts.snapshots > 0);
    assert.ok(makers.length > 1, `${makers.length} nodes have made snapshots`);
    const added = await cluster.add('n4');
    await cluster.settle();
    for (const written of all) await written.assertIn(added);
    await cluster.stop();
  });

  it('contains the replies under idempotency keys that came through its log', async () => {
    const written = await startWith(['n1', 'n2']);
    const { cluster } = written;
    const perform = async ({ database }: TestNode, key: string, collection: string) => {
      const incarnation = database.incarnationOf(collection);
      const request = { scope: 'all', key, payloadDigest: '1', incarnation };
      return await database.runIdempotent<{ sequence: number }>(request, async (attach) => {
        const attachedReply = attach(({ sequence }: { sequence: number }) => ({ sequence }));
        const row = { id: key, values: [1, 1], metadata: '{}' };
        return await database
          .collection(collection)
          .write(batchOf([row]), { mode: 'insert', attachedReply });
      });
    };
    const owner = await cluster.ownerOf('c');
    await owner.database.createCollection({ id: 'other', ...SHAPE });
    await perform(owner, 'key of c', 'c');
    await perform(owner, 'key of other', 'other');
    written.ids.push('key of c');
    await written.writeBeyond(1);
    const replies: string[] = [];
    const newest = (await written.files.list()).at(-1)!;
    const index = await written.files.read(newest.name);
    for await (const operations of written.files.readState(index)) {
      for (const operation of operations) {
        const { kind } = operation;
        if (kind === 'put' && operation.key[0] === 'idempotency') replies.push(operation.key[1]!);
      }
    }
    // It contains none that came through another log.
    assert.deepEqual(replies, ['expiry', 'reply']);
    const added = await cluster.add('n3');
    for (const node of cluster.nodes) if (node !== added) await node.stop();
    for (const [key, collection] of [
      ['key of c', 'c'],
      ['key of other', 'other'],
    ] as const) {
      assert.equal(await cluster.ownerOf(collection), added);
      assert.equal((await perform(added, key, collection)).isReplay, true);
    }
    await cluster.stop();
  });

  it('contains one state, whatever is written meanwhile', async () => {
    const written = await startWith(['n1']);
    const { cluster } = written;
    for (let i = 0; i < 3; i++) await written.write();
    await cluster.stop();
    const folder = () => `${snapshotFolder(incarnation)}/`;
    const { shared, isHeld, release } = holding(cluster.blobs, folder);
    let incarnation = 'none';
    const node = await cluster.add('n1', { share: () => shared });
    incarnation = written.incarnation;
    await written.writeUntil('the begin of a snapshot', isHeld);
    for (let i = 0; i < 100; i++) await written.write();
    assert.equal(node.node.health.counts.snapshots, 0);
    // The log is read now, since the next snapshot trims it.
    const appended: { readonly position: number; readonly sequence: number }[] = [];
    const log = new ChainedLog(cluster.network.streams.get(incarnation)!);
    const signal = new AbortController().signal;
    for await (const record of log.readToEnd(LOG_START, { signal })) {
      if (record.kind !== 'commit') continue;
      const { position } = record.link;
      for (const { bytes } of record.commit.fragments) {
        for (const operation of decodeOperations(bytes, 'the log')) {
          if (operation.kind !== 'append') continue;
          appended.push({ position, sequence: operation.sequence });
        }
      }
    }
    release();
    await written.writeUntil('a snapshot', () => node.node.health.counts.snapshots > 0);
    const [first] = await written.files.list();
    // The log up to the position of the snapshot, and no more.
    const contained = appended.filter(({ position }) => position <= first!.position);
    const expected = Math.max(...contained.map(({ sequence }) => sequence));
    let found = 0;
    for await (const operations of written.files.readState(await written.files.read(first!.name))) {
      for (const operation of operations) {
        if (operation.kind === 'append') found = operation.sequence;
      }
    }
    assert.ok(found > 0);
    assert.equal(found, expected);
    assert.ok(found < written.ids.length - 90);
    await cluster.stop();
  });

  it('keeps what a node needs that has started from the previous one', async () => {
    const written = await startWith(['n1', 'n2']);
    const { cluster } = written;
    await written.writeBeyond(1);
    const owner = await cluster.ownerOf('c');
    const count = owner.node.health.counts.snapshots;
    await written.writeUntil('more', () => owner.node.health.counts.snapshots > count);
    const [before, newest] = await written.files.list();
    assert.ok(before !== undefined && newest !== undefined);
    const { files: blobs } = cluster;
    const [oldest] = await new LogArchive(written.incarnation, {
      blobs,
      logger: silentLogger,
    }).list();
    assert.ok(oldest!.afterPosition < before.position);
    const older: Blobs = {
      put: (name, parts) => cluster.blobs.put(name, parts),
      get: (name, range) => cluster.blobs.get(name, range),
      async *list(prefix) {
        for await (const name of cluster.blobs.list(prefix)) {
          if (!name.includes(newest.name)) yield name;
        }
      },
      remove: (name) => cluster.blobs.remove(name),
    };
    const added = await cluster.add('n3', { share: () => older });
    await cluster.settle();
    await written.assertIn(added);
    await cluster.stop();
  });

  it('uploads only what the previous one does not contain', async () => {
    const written = await startWith(['n1']);
    const { cluster } = written;
    const { put } = cluster.blobs;
    const digests: string[] = [];
    cluster.blobs.put = async (name, parts) => {
      const [, digest] = /\/files\/([0-9a-f]{64})-/.exec(name) ?? [];
      if (digest !== undefined) digests.push(digest);
      await put.call(cluster.blobs, name, parts);
    };
    let shared: string[] = [];
    await written.writeUntil('a file of two snapshots', async () => {
      const [before, newest] = await Promise.all(
        (await written.files.list()).slice(-2).map(({ name }) => written.files.read(name)),
      );
      const blobs = new Set(before?.files.map(({ blob }) => blob));
      shared = (newest?.files ?? []).flatMap(({ blob, digest }) => (blobs.has(blob) ? digest : []));
      return shared.length > 0;
    });
    for (const digest of shared) assert.equal(digests.filter((one) => one === digest).length, 1);
    await cluster.stop();
  });

  it('leaves no blobs but its own and those of the previous one', async () => {
    const written = await startWith(['n1', 'n2']);
    const { cluster } = written;
    const owner = await cluster.ownerOf('c');
    const stray = `${snapshotFolder(written.incarnation)}/files/${'0'.repeat(64)}-stray`;
    await cluster.blobs.put(stray, [Buffer.from('of an upload that was never finished')]);
    await written.writeUntil('snapshots', () => owner.node.health.counts.snapshots > 3);
    await owner.node.leave(0);
    await owner.kill();
    const [kept] = [(await written.files.list()).map(({ name }) => name)];
    assert.equal(kept.length, 2);
    for (const name of kept) await written.files.verify(name, () => {});
    assert.deepEqual(await written.files.findUnreferenced(kept), []);
    await cluster.stop();
  });

  it('ends when another node takes over the log, and does not prevent the next ones', async () => {
    const written = await startWith(['n1', 'n2']);
    const { cluster } = written;
    const old = await cluster.ownerOf('c');
    await old.stop();
    const { incarnation } = written;
    const { shared, isHeld, release } = holding(cluster.blobs, () => snapshotFolder(incarnation));
    const back = await cluster.add(old.name, { share: () => shared });
    const other = cluster.nodes.find((node) => node !== back)!;
    await other.node.leave(60_000);
    await other.stop();
    const rest = await cluster.add(other.name);
    assert.equal(await cluster.ownerOf('c'), back);
    await written.writeUntil('the begin of a snapshot', isHeld);
    back.service.cutOff();
    await waitFor('another owner', async () => {
      const owner = await cluster.ownerOf('c');
      return owner === rest || undefined;
    });
    const added = await cluster.add('n3');
    await written.writeUntil('snapshots', () => rest.node.health.counts.snapshots > 1);
    back.service.reconnect();
    release();
    await cluster.settle();
    await written.assertIn(added);
    assert.equal(back.node.health.counts.snapshots, 0);
    const owner = await cluster.ownerOf('c');
    const count = owner.node.health.counts.snapshots;
    await written.writeUntil('more', () => owner.node.health.counts.snapshots > count + 1);
    await cluster.settle();
    await written.assertIn(back);
    await cluster.stop();
  });

  it('is verified, and skipped by new nodes if it is damaged', async () => {
    const written = await startWith(['n1', 'n2']);
    const { cluster } = written;
    await written.writeBeyond(1);
    const { node } = await cluster.ownerOf('c');
    const { signal } = new AbortController();
    const problems = async () =>
      (await node.verifyFiles(signal)).filter(({ problem }) => problem !== null);
    assert.deepEqual(await problems(), []);
    const newest = (await written.files.list()).at(-1)!;
    const { state } = await written.files.read(newest.name);
    const { blob } = state[0]!;
    const whole = (await cluster.blobs.get(blob))!;
    const damaged = Uint8Array.from(whole);
    damaged[damaged.length >> 1]! ^= 1;
    await cluster.blobs.put(blob, [damaged]);
    const [found, ...others] = await problems();
    assert.equal(others.length, 0);
    assert.equal(found?.kind, 'snapshot');
    assert.equal(found?.name, `${written.incarnation}/${newest.name}`);
    assert.ok(found?.problem?.includes(blob));
    const { logger, messages } = recordingLogger();
    const added = await cluster.add('n3', { logger });
    await cluster.settle();
    await written.assertIn(added);
    assert.ok(messages.some((message) => message.includes('a snapshot cannot be used')));
    await cluster.stop();
  });
});

describe('a node that was away for longer than the logs reach', () => {
  const REPLACED = /its state is replaced by a snapshot/;

  it('replaces a collection when it starts', async () => {
    const written = await startWith(['n1', 'n2', 'n3']);
    const { cluster } = written;
    for (let i = 0; i < 3; i++) await written.write();
    await cluster.settle();
    const owner = await cluster.ownerOf('c');
    const away = cluster.nodes.find((node) => node !== owner)!;
    const position = written.positionIn(away);
    await away.kill();
    await written.writeBeyond(position);
    const { logger, messages } = recordingLogger();
    const back = await cluster.add(away.name, { logger });
    await cluster.settle();
    await written.assertIn(back);
    assert.equal(messages.filter((message) => REPLACED.test(message)).length, 1);
    // The node can own the log and write to it.
    for (const node of cluster.nodes) if (node !== back) await node.stop();
    assert.equal(await cluster.ownerOf('c'), back);
    await written.write();
    await written.assertIn(back);
    await cluster.stop();
  });

  it('replaces a collection while it runs', async () => {
    const { logger, messages } = recordingLogger();
    const written = await startWith(['n1', 'n2']);
    const { cluster } = written;
    const away = await cluster.add('n3', { logger });
    for (let i = 0; i < 70; i++) await written.write();
    await cluster.settle();
    const position = written.positionIn(away);
    away.service.cutOff();
    await written.writeBeyond(position);
    away.service.reconnect();
    await cluster.settle();
    await written.assertIn(away);
    assert.ok(messages.some((message) => REPLACED.test(message)));
    const query = { vector: Float32Array.of(0, 1), topK: 5 };
    const owner = await cluster.ownerOf('c');
    const expected = await owner.database.collection('c').query(query);
    assert.deepEqual((await away.database.collection('c').query(query)).matches, expected.matches);
    await written.write();
    await cluster.settle();
    await written.assertIn(away);
    await cluster.stop();
  });

  it('replaces it in a store on disk, and takes snapshots of that', async () => {
    const directory = await makeDirectory();
    const open = () => openStore({ directory, mapping: 'memory' });
    const written = await startWith(['n1', 'n2']);
    const { cluster } = written;
    let store = await open();
    const { logger, messages } = recordingLogger();
    let away = await cluster.add('n3', { change: () => store, logger });
    for (let i = 0; i < 150; i++) await written.write();
    await cluster.settle();
    const position = written.positionIn(away);
    away.service.cutOff();
    await written.writeBeyond(position);
    away.service.reconnect();
    await cluster.settle();
    await written.assertIn(away);
    assert.ok(messages.some((message) => REPLACED.test(message)));
    await away.kill();
    await store.close();
    store = await open();
    away = await cluster.add('n3', { change: () => store });
    for (const node of cluster.nodes) if (node !== away) await node.stop();
    await written.writeUntil('a snapshot', () => away.node.health.counts.snapshots > 1);
    await written.assertIn(away);
    const added = await cluster.add('n4');
    await cluster.settle();
    await written.assertIn(added);
    await cluster.stop();
    await store.close();
  });

  for (const when of ['starts', 'runs'] as const) {
    it(`replaces the catalogue when it ${when}`, async () => {
      const written = await startWith(['n1', 'n2']);
      const { cluster } = written;
      const leader = await cluster.leader();
      await leader.database.createCollection({ id: 'gone', ...SHAPE });
      await leader.database.createCollection({ id: 'renamed', ...SHAPE });
      const gone = leader.database.incarnationOf('gone')!;
      const { logger, messages } = recordingLogger();
      let away = await cluster.add('n3', { logger });
      await written.write();
      await cluster.settle();
      if (when === 'starts') await away.kill();
      else away.service.cutOff();
      await leader.database.collection('gone').drop();
      await leader.database.collection('renamed').rename('gone');
      await leader.database.createCollection({ id: 'renamed', ...SHAPE });
      const stream = cluster.network.streams.get('catalogue')!;
      const archive = new LogArchive('catalogue', { blobs: cluster.files, logger: silentLogger });
      const position = (await stream.firstPosition())! + 40;
      let i = 0;
      await waitFor('a shorter log of the catalogue', async () => {
        const options = { authorize() {}, locate: () => ({ pointer: '' }) as never };
        await leader.database.setAliases([{ name: `a${i++ % 7}`, collection: 'c' }], options);
        await leader.node.archive();
        const [oldest] = await archive.list();
        const first = (await stream.firstPosition())!;
        return (first > position && oldest!.afterPosition > position) || undefined;
      });
      if (when === 'starts') away = await cluster.add('n3', { logger });
      else away.service.reconnect();
      await cluster.settle();
      if (when === 'starts') assert.equal(findAppliedPosition(away.store, gone), undefined);
      const described = ({ database }: TestNode) => ({
        collections: database
          .listCollections({ limit: 10 })
          .collections.map(({ id }) => [id, database.incarnationOf(id)]),
        aliases: database.listAliases({ limit: 10 }).aliases.map(({ name }) => name),
      });
      assert.deepEqual(described(away), described(leader));
      assert.equal(described(away).aliases.length, 7);
      assert.ok(messages.some((message) => REPLACED.test(message)));
      await written.write();
      await cluster.settle();
      await written.assertIn(away);
      await cluster.stop();
    });
  }

  it('is refused if no snapshot is left', async () => {
    const written = await startWith(['n1', 'n2']);
    const { cluster } = written;
    await written.writeBeyond(1);
    await written.files.removeAll();
    await assert.rejects(cluster.add('n3'), {
      code: 'data_corrupt',
      message: /no snapshot reaches farther/,
    });
    for (const { node } of cluster.nodes) await node.close();
  });
});

describe('the state of a collection', () => {
  it('is complete on a node that was killed while it removed it', async () => {
    const written = await startWith(['n1', 'n2']);
    const { cluster, incarnation } = written;
    const away = await cluster.add('n3');
    for (let i = 0; i < 3; i++) await written.write();
    await cluster.settle();
    await away.kill();
    const { log } = Database.storeLayout.collection(incarnation);
    const store = createMemoryStore({ state: cluster.stateOf('n3') });
    assert.ok([...store.readLog(log, 0)].length > 0);
    const killed = overrideStore(store, { eraseLog: () => Promise.reject(new Error('killed')) });
    await assert.rejects(removeState(killed, Database.storeLayout, incarnation), /killed/);
    // Without an applied position, nothing shows that the records exist, and they would stay among the new ones.
    assert.equal(findAppliedPosition(store, incarnation), undefined);
    assert.deepEqual([...store.readLog(log, 0)], []);
    const back = await cluster.add('n3');
    await cluster.settle();
    await written.assertIn(back);
    await cluster.stop();
  });

  it('is removed from a store, and loaded again, while the node serves others', async () => {
    const written = await startWith(['n1', 'n2']);
    const { cluster } = written;
    const node = await cluster.add('n3');
    const { store } = node;
    await written.writeBeyond(1);
    await cluster.settle();
    const { incarnation } = written;
    const loader = new StateLoader({
      store,
      blobs: cluster.files,
      layout: Database.storeLayout,
      fetcher: new FileFetcher({ store, blobs: cluster.files, isHome: () => true }),
      database: () => node.database,
      applyCatalogue: () => assert.fail('the catalogue stays'),
      logger: silentLogger,
    });
    await loader.remove(incarnation);
    assert.equal(findAppliedPosition(store, incarnation), undefined);
    const { prefixes, log, blobPrefix } = Database.storeLayout.collection(incarnation);
    for (const prefix of prefixes) assert.deepEqual([...store.list(prefix)], []);
    assert.deepEqual([...store.readLog(log, 0)], []);
    assert.deepEqual(await store.listBlobs(blobPrefix), []);
    await assert.rejects(node.database.collection('c').list({ limit: 1 }), { code: 'starting' });
    await loader.load(incarnation, new AbortController().signal);
    const newest = (await written.files.list()).at(-1)!;
    assert.equal(findAppliedPosition(store, incarnation)?.position, newest.position);
    const { vectors } = await node.database.collection('c').list({ limit: 1_000 });
    assert.ok(vectors.length > 0 && vectors.length <= written.ids.length);
    await cluster.stop();
  });
});
