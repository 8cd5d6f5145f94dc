// What an attacker can do who can read and write the shared files of a cluster, but does not have the secret of the nodes:
// a node that starts empty gets what the nodes have written, or says what is damaged.

import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { encodeChunk } from '../../src/cluster/archive/chunk.js';
import { LogArchive } from '../../src/cluster/archive/log-archive.js';
import { putPinned } from '../../src/cluster/blobs/pinned-blobs.js';
import { SealedBlobs } from '../../src/cluster/blobs/sealed-blobs.js';
import { readAppliedPosition } from '../../src/cluster/logs/applied-position.js';
import { commitRecord, encodeChainRecord } from '../../src/cluster/logs/chain-record.js';
import { encodeOperations } from '../../src/cluster/logs/operations.js';
import { verifyShared } from '../../src/cluster/nodes/verification.js';
import { SnapshotFiles } from '../../src/cluster/snapshots/snapshot-files.js';
import { type Logger, silentLogger } from '../../src/common/logger.js';
import { Database } from '../../src/database/database.js';
import { blockDigests, digestOfBlocks } from '../../src/platform/blocks.js';
import { NodeKeys } from '../../src/platform/node-keys.js';
import type { StoreOperation } from '../../src/storage/store.js';
import { batchOf } from '../database/harness.js';
import { idsIn, MemoryCluster, SHAPE, type TestNode, waitFor } from './memory-cluster.js';

const KEYS = new NodeKeys(['a secret of some nodes, and of nobody else'], 'test');
const STRANGER = new NodeKeys(['the secret of a stranger, which no node has'], 'test');
const SNAPSHOT_BYTES = 2_000;
const SEAL_BYTES = 64;
/** Comes after the random texts at the ends of names. */
const UNIQUE = 'zzzzzzzz';
const CATALOGUE = 'catalogue';
const NEVER = new AbortController().signal;

type Files = ReadonlyMap<string, Uint8Array>;

async function filesOf({ blobs }: MemoryCluster): Promise<Map<string, Uint8Array>> {
  const files = new Map<string, Uint8Array>();
  for await (const name of blobs.list('')) files.set(name, (await blobs.get(name))!);
  return files;
}

async function restore({ blobs }: MemoryCluster, files: Files): Promise<void> {
  for await (const name of blobs.list('')) if (!files.has(name)) await blobs.remove(name);
  for (const [name, bytes] of files) await blobs.put(name, [bytes]);
}

async function createKey({ database }: TestNode, owner: string) {
  return await database.apiKeys.create({ owner, scopes: ['admin'], expiresAt: null });
}

/** Writes to the catalogue until its log lacks the first records. */
async function trimCatalogue(cluster: MemoryCluster): Promise<void> {
  const stream = cluster.network.streams.get(CATALOGUE)!;
  const position = (await stream.firstPosition())! + 40;
  let i = 0;
  await waitFor('a shorter log of the catalogue', async () => {
    const { database, node } = await cluster.leader();
    const options = { authorize() {}, locate: () => ({ pointer: '' }) as never };
    await database.setAliases([{ name: `a${i++ % 7}`, collection: 'c' }], options);
    await node.archive();
    return (await stream.firstPosition())! > position || undefined;
  });
}

async function write({ database }: TestNode, from: number, to: number): Promise<void> {
  for (let i = from; i <= to; i++) {
    const row = { id: `row-${i}`, values: [1, i], metadata: '{}' };
    await database.collection('c').write(batchOf([row]), { mode: 'upsert' });
  }
}

describe('a stranger with the shared files', () => {
  let cluster: MemoryCluster;
  let files: SnapshotFiles;
  let archive: LogArchive;
  /** The files before an attack. */
  let whole: Files;
  /** Every file that a node has ever written. */
  const seen = new Map<string, Uint8Array>();
  let mine: string;
  let revoked: string;
  let planted: { readonly key: string; readonly operation: StoreOperation };
  let nodeCount = 2;
  const messages: string[] = [];
  const record = (details: object, message: string) => {
    messages.push(`${message}: ${(details as { err?: Error }).err?.message}`);
  };
  const logger: Logger = { ...silentLogger, warn: record, error: record };

  before(async () => {
    const other = await MemoryCluster.start(['e1']);
    const leaderOfOther = await other.leader();
    const made = await createKey(leaderOfOther, 'stranger');
    const [entry] = leaderOfOther.store.list(['key']);
    planted = { key: made.key, operation: { kind: 'put', ...entry! } };
    await other.stop();

    cluster = new MemoryCluster({}, {}, SNAPSHOT_BYTES);
    const { put } = cluster.blobs;
    cluster.blobs.put = async (name, parts) => {
      seen.set(name, Buffer.concat(parts));
      await put.call(cluster.blobs, name, parts);
    };
    await Promise.all(['n1', 'n2'].map((name) => cluster.add(name, { keys: KEYS })));
    const leader = await cluster.leader();
    await leader.database.createCollection({ id: 'c', ...SHAPE });
    const owner = await cluster.ownerOf('c');
    await write(owner, 1, 3);
    await cluster.settle();
    await leader.database.collection('c').clone({ id: 'copy' });
    mine = (await createKey(leader, 'me')).key;
    const { key, record: revocable } = await createKey(leader, 'somebody');
    await trimCatalogue(cluster);
    await leader.database.apiKeys.revoke(revocable.id);
    revoked = key;
    await trimCatalogue(cluster);
    await cluster.settle();
    await leader.node.archive();
    const blobs = new SealedBlobs(cluster.blobs, KEYS);
    files = new SnapshotFiles(blobs, CATALOGUE);
    archive = new LogArchive(CATALOGUE, { blobs, logger: silentLogger });
    await waitFor('two snapshots', async () => (await files.list()).length === 2 || undefined);
    cluster.blobs.put = put;
    whole = await filesOf(cluster);
  });
  beforeEach(async () => {
    await restore(cluster, whole);
    messages.length = 0;
  });
  after(() => cluster.stop());

  const start = () => cluster.add(`n${++nodeCount}`, { keys: KEYS, logger });

  async function assertHonest(node: TestNode): Promise<void> {
    await cluster.settle();
    const { apiKeys } = node.database;
    assert.equal(apiKeys.verify(mine).grants[0]!.scope, 'admin');
    for (const key of [planted.key, revoked]) assert.throws(() => apiKeys.verify(key));
    for (const id of ['c', 'copy']) {
      assert.deepEqual((await idsIn(node, id)).sort(), ['row-1', 'row-2', 'row-3']);
    }
    await node.kill();
  }

  /** The index of a snapshot at the position of the newest one, with an API key besides. */
  async function forgedIndex(): Promise<{ readonly name: string; readonly bytes: Uint8Array }> {
    const { name } = (await files.list()).at(-1)!;
    const sealed = (await cluster.blobs.get(files.indexOf(name)))!;
    const index = JSON.parse(Buffer.from(sealed.subarray(SEAL_BYTES)).toString());
    const bytes = encodeOperations([planted.operation]);
    const digest = digestOfBlocks(blockDigests([bytes]));
    const blob = `snapshots/${CATALOGUE}/files/${digest}-${UNIQUE}`;
    await putPinned(cluster.blobs, blob, [bytes]);
    index.state.unshift({ blob, byteCount: bytes.length, digest });
    return {
      name: files.indexOf(`${name.split('-')[0]}-${UNIQUE}`),
      bytes: Buffer.from(JSON.stringify(index)),
    };
  }

  it('would plant an API key with the secret', async () => {
    const { name, bytes } = await forgedIndex();
    await new SealedBlobs(cluster.blobs, KEYS).put(name, [bytes]);
    const node = await start();
    assert.equal(node.database.apiKeys.verify(planted.key).grants[0]!.scope, 'admin');
    await node.kill();
  });

  it('cannot plant an API key with the index of a snapshot', async () => {
    const { name, bytes } = await forgedIndex();
    const newest = files.indexOf((await files.list()).at(-1)!.name);
    const seal = whole.get(newest)!.subarray(0, SEAL_BYTES);
    const attacks = {
      'without a signature': () => cluster.blobs.put(name, [bytes]),
      'with another secret': () => new SealedBlobs(cluster.blobs, STRANGER).put(name, [bytes]),
      'without a secret': () =>
        new SealedBlobs(cluster.blobs, new NodeKeys([], 'test')).put(name, [bytes]),
      'with the signature of another file': () => cluster.blobs.put(name, [seal, bytes]),
      'with the signature of the file that it replaces': () =>
        cluster.blobs.put(newest, [seal, bytes]),
    };
    for (const [what, attack] of Object.entries(attacks)) {
      messages.length = 0;
      await attack();
      await assertHonest(await start());
      const expected =
        /a snapshot cannot be used; .* as a node of this cluster has written it; found/;
      assert.ok(
        messages.some((message) => expected.test(message)),
        `${what}: ${messages}`,
      );
      await restore(cluster, new Map([...whole, ...(await pinnedFiles())]));
    }
  });

  /** The files that the forged index names. */
  async function pinnedFiles(): Promise<Files> {
    return new Map([...(await filesOf(cluster))].filter(([name]) => name.includes('/files/')));
  }

  it('cannot add records with a chunk of the archive', async () => {
    const applied = readAppliedPosition((await cluster.leader()).store, CATALOGUE);
    const fragment = { shard: 0, bytes: encodeOperations([planted.operation]) };
    const commit = {
      firstSequence: 0,
      lastSequence: 0,
      fragments: [fragment],
      summary: new Uint8Array(),
    };
    const place = { epoch: applied.epoch, id: 'forged', previous: applied };
    const bytes = encodeChainRecord(commitRecord(commit, [[fragment.bytes]], place));
    const { position } = applied;
    const chunk = encodeChunk({
      log: CATALOGUE,
      after: applied,
      end: { position: position + 2, digest: 'any', epoch: applied.epoch },
      messages: [
        { channel: 0, position: position + 1, bytes: fragment.bytes },
        { channel: 'chain', position: position + 2, bytes },
      ],
    });
    const read = async () => {
      const records: string[] = [];
      for await (const { kind } of archive.read(applied, { signal: NEVER })) records.push(kind);
      return records;
    };
    const end = await archive.endPosition();
    for (const keys of [null, STRANGER, new NodeKeys([], 'test')]) {
      if (keys === null) await cluster.blobs.put(chunk.name, [chunk.bytes]);
      else await new SealedBlobs(cluster.blobs, keys).put(chunk.name, [chunk.bytes]);
      assert.deepEqual(await read(), []);
      assert.equal(await archive.endPosition(), end);
      await assertHonest(await start());
    }
    await new SealedBlobs(cluster.blobs, KEYS).put(chunk.name, [chunk.bytes]);
    assert.deepEqual(await read(), ['commit']);
    assert.equal(await archive.endPosition(), position + 2);
  });

  it('cannot give files the names of others, nor cut them off', async () => {
    const [before, newest] = (await files.list()).map(({ name }) => files.indexOf(name));
    await cluster.blobs.put(newest!, [whole.get(newest!)!.subarray(0, 10)]);
    await assertHonest(await start());
    await cluster.blobs.put(newest!, [whole.get(newest!)!.subarray(0, -10)]);
    await assertHonest(await start());
    await cluster.blobs.put(newest!, [whole.get(before!)!]);
    await assertHonest(await start());
    await cluster.blobs.put(before!, [whole.get(newest!)!]);
    await assert.rejects(start(), {
      code: 'data_corrupt',
      message:
        /^This node needs the log catalogue from its beginning, but its snapshots cannot be used: .* not signed with SAGITTA_CLUSTER_SECRET under this name/,
    });
    await restore(cluster, whole);
    const [first, second] = await archive.list();
    await cluster.blobs.put(first!.name, [whole.get(second!.name)!]);
    await assert.rejects(archive.load(first!), { code: 'data_corrupt' });
    await assertHonest(await start());
  });

  it('cannot undo what was committed by putting old files back', async () => {
    await restore(cluster, new Map([...seen, ...whole]));
    const [oldest, ...rest] = await files.list();
    for (const { name } of rest) await cluster.blobs.remove(files.indexOf(name));
    // The oldest snapshot has the revoked key.
    assert.ok(rest.length > 2);
    await assertHonest(await start());
    assert.ok(messages.every((message) => !message.includes('cannot be used')));
    // Without the chunks in between, the node cannot go on from there.
    for (const { name } of await archive.list()) await cluster.blobs.remove(name);
    assert.deepEqual(await files.list(), [oldest]);
    await assert.rejects(start(), { code: 'data_corrupt', message: /no snapshot reaches farther/ });
  });

  it('cannot hide by removing files that a node misses them', async () => {
    for (const { name } of await archive.list()) await cluster.blobs.remove(name);
    await assertHonest(await start());
    const { database, node } = await cluster.leader();
    const copy = database.incarnationOf('copy')!;
    // The log of the clone is whole, but its first rows are only in its first snapshot.
    for (const log of [copy, CATALOGUE]) {
      await restore(cluster, whole);
      for (const name of whole.keys()) {
        if (name.startsWith(`snapshots/${log}/`)) await cluster.blobs.remove(name);
      }
      await assert.rejects(start(), {
        code: 'data_corrupt',
        message: new RegExp(`^This node needs the log ${log} .* Restore SAGITTA_BLOBS`),
      });
      const checked = await node.verifyFiles(NEVER);
      const found = checked.filter(({ kind, problem }) => kind === 'snapshot' && problem !== null);
      assert.deepEqual(
        found.map(({ name }) => name),
        [log],
      );
      assert.match(found[0]!.problem!, /^Expected the s.*; found none\. Nodes that start empty/);
    }
  });

  it('cannot keep nodes from taking logs over with the name of a chunk', async () => {
    const leader = await cluster.leader();
    const added = await start();
    for (const log of [CATALOGUE, leader.database.incarnationOf('c')!]) {
      const end = '9'.repeat(16);
      const name = `archive/${log}/${'0'.repeat(16)}-${end}-${'0'.repeat(64)}`;
      await cluster.blobs.put(name, [Buffer.from('nothing')]);
    }
    await leader.stop();
    const owner = await cluster.ownerOf('c');
    assert.notEqual(owner, leader);
    await write(owner, 3, 3);
    await assertHonest(added);
  });
});

describe('a change of the secret of the nodes', () => {
  const OLD = 'the secret of the nodes before the change';
  const NEW = 'the secret of the nodes after the change';

  it('leaves files that nodes with the new secret alone can read', async () => {
    const cluster = new MemoryCluster({}, {}, SNAPSHOT_BYTES);
    const restart = async (...secrets: string[]) => {
      const keys = new NodeKeys(secrets, 'test');
      for (const name of ['n1', 'n2']) {
        await cluster.nodes.find((node) => node.name === name)?.stop();
        await cluster.add(name, { keys });
      }
      await cluster.leader();
    };
    await restart(OLD);
    const { database } = await cluster.leader();
    await database.createCollection({ id: 'c', ...SHAPE });
    await write(await cluster.ownerOf('c'), 1, 3);
    const { key } = await createKey(await cluster.leader(), 'me');
    await trimCatalogue(cluster);
    const changing = new NodeKeys([NEW, OLD], 'test');
    const found = async () => {
      const checked = await verifyShared({
        store: cluster.nodes[0]!.store,
        blobs: new SealedBlobs(cluster.blobs, changing),
        layout: Database.storeLayout,
        service: cluster.nodes[0]!.service,
        logs: [CATALOGUE, cluster.nodes[0]!.database.incarnationOf('c')!],
        logger: silentLogger,
        signal: NEVER,
      });
      return checked.filter(({ kind, problem }) => kind !== 'log' && problem !== null);
    };
    await restart(OLD, NEW);
    const old = await found();
    assert.ok(old.some(({ kind }) => kind === 'snapshot'));
    assert.ok(old.some(({ kind }) => kind === 'archive'));
    for (const { problem } of old) {
      assert.match(
        problem!,
        /^Expected files that are signed with the first secret in SAGITTA_CLUSTER_SECRET; found \d+ signed with another one\. Keep/,
      );
    }
    await restart(NEW, OLD);
    await waitFor('new signatures', async () => (await found()).length === 0 || undefined);
    // Records with an old signature are then read from there.
    for (const { node } of cluster.nodes) await node.archive();
    await restart(NEW);
    const added = await cluster.add('n3', { keys: new NodeKeys([NEW], 'test') });
    await cluster.settle();
    assert.deepEqual((await idsIn(added)).sort(), ['row-1', 'row-2', 'row-3']);
    assert.equal(added.database.apiKeys.verify(key).grants[0]!.scope, 'admin');
    assert.deepEqual(await found(), []);
    await cluster.stop();
  });
});
