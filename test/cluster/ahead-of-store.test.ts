// Nodes whose memory is ahead of their store: a commit in the log is acknowledged and shown while it is being stored, and
// stored later if the store fails.

import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { field } from '../../src/common/errors.js';
import type { Store, StoreOperation } from '../../src/storage/store.js';
import { batchOf, overrideStore } from '../database/harness.js';
import { idsIn, MemoryCluster, SHAPE, type TestNode, waitFor } from './memory-cluster.js';

const NODES = ['n1', 'n2'] as const;

/** Stores that hold up or refuse some commits, by node. */
class Disks {
  readonly #before = new Map<string, (operation: StoreOperation) => Promise<void>>();

  change(name: string): (store: Store) => Store {
    return (store) =>
      overrideStore(store, {
        commit: async (operations) => {
          for (const operation of operations) await this.#before.get(name)?.(operation);
          await store.commit(operations);
        },
      });
  }

  /** Holds up commits with records until the returned function is called. */
  hold(name: string): () => void {
    let release!: () => void;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    this.#before.set(name, (operation) => (isRecord(operation) ? held : Promise.resolve()));
    return release;
  }

  /** Holds up all commits, like a disk that does not answer, until the returned function is called. */
  freeze(name: string): () => void {
    let thaw!: () => void;
    const frozen = new Promise<void>((resolve) => {
      thaw = resolve;
    });
    this.#before.set(name, () => frozen);
    return thaw;
  }

  /** Makes the next operations of a kind fail, this many times. */
  fail(name: string, count: number, isOfKind = isRecord): void {
    let left = count;
    this.#before.set(name, async (operation) => {
      if (isOfKind(operation) && left-- > 0) throw new Error('no space for the test');
    });
  }
}

function isRecord({ kind }: StoreOperation): boolean {
  return kind === 'append';
}

function isDefinition(operation: StoreOperation): boolean {
  return operation.kind === 'put' && operation.key[0] === 'collection';
}

function rowOf(id: string) {
  return batchOf([{ id, values: [1, 1], metadata: '{}' }]);
}

async function write({ database }: TestNode, ...ids: string[]): Promise<void> {
  for (const id of ids) await database.collection('c').write(rowOf(id), { mode: 'insert' });
}

describe('a node whose memory is ahead of its store', () => {
  let cluster: MemoryCluster;
  let disks: Disks;
  let owner: TestNode;
  let follower: TestNode;

  beforeEach(async () => {
    disks = new Disks();
    cluster = new MemoryCluster();
    await Promise.all(NODES.map((name) => cluster.add(name, { change: disks.change(name) })));
    await (await cluster.leader()).database.createCollection({ id: 'c', ...SHAPE });
    await cluster.settle();
    owner = await cluster.ownerOf('c');
    follower = cluster.nodes.find((node) => node !== owner)!;
    await write(owner, 'a');
    await cluster.settle();
  });
  afterEach(() => cluster.stop());

  it('acknowledges and shows a commit while it is stored, and the next write waits for the store', async () => {
    const release = disks.hold(owner.name);
    await write(owner, 'b');
    assert.deepEqual(await idsIn(owner), ['a', 'b']);
    let isWritten = false;
    const writing = write(owner, 'c').then(() => {
      isWritten = true;
    });
    await waitFor('both writes', async () => (await idsIn(follower)).length === 3 || undefined);
    assert.equal(isWritten, false);
    release();
    await writing;
    assert.deepEqual(await idsIn(owner), ['a', 'b', 'c']);
  });

  it('loses its logs to another node while its disk does not answer, and follows them afterwards', async () => {
    const thaw = disks.freeze(owner.name);
    const writing = write(owner, 'b', 'c');
    const incarnation = owner.database.incarnationOf('c')!;
    await waitFor('another owner', () => follower.node.owns(incarnation) || undefined);
    await write(follower, 'd');
    thaw();
    // The second write is in the log, or was refused.
    await writing.catch(({ code }: { code?: string }) => {
      assert.ok(code === 'no_leader' || code === 'outcome_unknown', code);
    });
    await waitFor('the write', async () => (await idsIn(owner)).includes('d') || undefined);
    await cluster.settle();
    assert.deepEqual(await idsIn(owner), await idsIn(follower));
  });

  it('answers writes, and releases the log, while the disk of the owner does not answer', async () => {
    const thaw = disks.freeze(owner.name);
    await write(owner, 'b');
    await assert.rejects(write(owner, 'c'), { code: 'outcome_unknown' });
    await waitFor('the writes', async () => (await idsIn(follower)).includes('c') || undefined);
    thaw();
    await waitFor('both', async () => (await idsIn(owner)).length === 3 || undefined);
  });

  it('answers changes of the catalogue while the disk of the leader does not answer, and shows them afterwards', async () => {
    const leader = await cluster.leader();
    const other = cluster.nodes.find((node) => node !== leader)!;
    const thaw = disks.freeze(leader.name);
    const setting = leader.database.setAliases([{ name: 'x', collection: 'c' }], {
      authorize: () => {},
      locate: () => field(),
    });
    await assert.rejects(setting, { code: 'outcome_unknown' });
    await waitFor('the alias', () => other.database.alias('x') !== undefined || undefined);
    await waitFor('another leader', () => other.node.isLeader || undefined);
    thaw();
    await waitFor('the alias', () => leader.database.alias('x') !== undefined || undefined);
  });

  it('shows the commits of others while they are stored', async () => {
    const release = disks.hold(follower.name);
    await write(owner, 'b');
    await waitFor('the write', async () => (await idsIn(follower)).length === 2 || undefined);
    release();
  });

  it('repeats a reply to several requests at once when its store has it', async () => {
    const release = disks.hold(owner.name);
    const request = {
      scope: 'test',
      key: 'k',
      payloadDigest: 'd',
      incarnation: owner.database.incarnationOf('c')!,
    };
    const perform = () =>
      owner.database.runIdempotent<{ sequence: number }>(request, async (attach) =>
        owner.database.collection('c').write(rowOf('once'), {
          mode: 'insert',
          attachedReply: attach(({ sequence }: { sequence: number }) => ({ sequence })),
        }),
      );
    const first = await perform();
    const repeated = [perform(), perform(), perform()];
    release();
    for (const { reply, isReplay } of await Promise.all(repeated)) {
      assert.equal(isReplay, true);
      assert.deepEqual(reply, { sequence: first.reply.sequence });
    }
  });

  it('continues a stream after the acknowledged rows', async () => {
    const release = disks.hold(owner.name);
    const idempotency = { scope: 'test', key: 'stream', payloadDigest: 'd' };
    const open = () =>
      owner.database.collection('c').openWriteStream({ mode: 'insert', idempotency });
    const first = await open();
    await first.write(rowOf('b'), { digest: '1' });
    first.close();
    const second = open();
    release();
    assert.equal((await second).resumed.rowCount, 1);
    (await second).close();
  });

  it('stores nothing after a record that could not be stored', async () => {
    const log = owner.node.logs.ofCollection(owner.database.incarnationOf('c')!);
    const deliver = follower.service.hold();
    await write(owner, 'b');
    // A commit without a record, which the store would accept.
    await log.commit([]);
    disks.fail(follower.name, 1);
    deliver();
    await cluster.settle();
    await follower.kill();
    follower = await cluster.add(follower.name);
    await cluster.settle();
    assert.deepEqual(await idsIn(follower), ['a', 'b']);
  });

  it('leaves the log to another node as long as its store fails', async () => {
    disks.fail(owner.name, Number.POSITIVE_INFINITY);
    await write(owner, 'b');
    const incarnation = follower.database.incarnationOf('c')!;
    await waitFor('the next owner', () => follower.node.owns(incarnation) || undefined);
    await write(follower, 'c');
    assert.deepEqual(await idsIn(follower), ['a', 'b', 'c']);
  });

  it('has a collection in the log although the store failed when it was created', async () => {
    const leader = await cluster.leader();
    disks.fail(leader.name, 1, isDefinition);
    await assert.rejects(leader.database.createCollection({ id: 'new', ...SHAPE }), {
      code: 'outcome_unknown',
    });
    await waitFor('the collection', () =>
      cluster.nodes.every(({ database }) => database.incarnationOf('new') !== undefined)
        ? true
        : undefined,
    );
    await waitFor('a write', async () => {
      // The owner whose store has failed is about to release the log.
      const { database } = await cluster.ownerOf('new');
      const written = database.collection('new').write(rowOf('x'), { mode: 'upsert' });
      return await written.catch(() => undefined);
    });
    await cluster.settle();
    for (const node of cluster.nodes) {
      const { vectors } = await node.database.collection('new').list({ limit: 10 });
      assert.deepEqual(
        vectors.map(({ id }) => id),
        ['x'],
      );
    }
  });

  for (const role of ['owner', 'follower'] as const) {
    it(`has everything after a restart although its store failed (${role})`, async () => {
      const failing = role === 'owner' ? owner : follower;
      disks.fail(failing.name, 2);
      await write(owner, 'b');
      await waitFor('a write after the failure', async () => {
        try {
          await write(await cluster.ownerOf('c'), 'c');
          return true;
        } catch (error) {
          assert.match((error as { code: string }).code, /^(no_leader|outcome_unknown)$/);
          return undefined;
        }
      }).catch((error: unknown) => {
        // The write may have taken effect before it failed.
        if ((error as { code?: string }).code !== 'conflict') throw error;
      });
      await cluster.settle();
      await failing.kill();
      const again = await cluster.add(failing.name);
      await cluster.settle();
      for (const node of cluster.nodes) assert.deepEqual(await idsIn(node), ['a', 'b', 'c']);
      assert.equal(again.database.collection('c').record().sequence, 3);
    });
  }
});
