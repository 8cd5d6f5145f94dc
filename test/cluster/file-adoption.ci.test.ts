// Nodes that follow a log use the files that its owner has written.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Blobs } from '../../src/cluster/blobs/blobs.js';
import { stringAt } from '../../src/common/utf8-column.js';
import type { Manifest } from '../../src/database/layout/manifest.js';
import type { Store } from '../../src/storage/store.js';
import { batchOf, openDatabase, overrideStore } from '../database/harness.js';
import { Random, seedOf } from '../segment/sample.js';
import { MemoryCluster, SHAPE, type TestNode, waitFor } from './memory-cluster.js';

const RETENTION_MS = 2_000;

function manifestOf({ store, database }: TestNode): Manifest {
  const bytes = store.get(['manifest', database.incarnationOf('c')!]);
  return bytes === undefined
    ? ({ segments: [] } as unknown as Manifest)
    : (JSON.parse(Buffer.from(bytes).toString()) as Manifest);
}

const digestsOf = (node: TestNode) => manifestOf(node).segments.map(({ digest }) => digest);

async function rowsIn({ database }: Pick<TestNode, 'database'>) {
  return (await database.collection('c').list({ limit: 1_000, includeValues: true })).vectors;
}

/** Shared files that are read slowly, so that rows are written and deleted while a node fetches files. */
function slow(blobs: Blobs): Blobs {
  return {
    put: (name, parts, signal) => blobs.put(name, parts, signal),
    async get(name, range, signal) {
      await sleep(5);
      return blobs.get(name, range, signal);
    },
    list: (prefix, signal) => blobs.list(prefix, signal),
    remove: (name, signal) => blobs.remove(name, signal),
  };
}

/** A store that is slow to accept manifests, so that rows are deleted while files are replaced. */
function slowManifests(store: Store): Store {
  return overrideStore(store, {
    async commit(operations) {
      const hasManifest = operations.some(
        (operation) => operation.kind === 'put' && operation.key[0] === 'manifest',
      );
      if (hasManifest) await sleep(20);
      await store.commit(operations);
    },
  });
}

/** Random upserts and deletions through the owner of the log. */
class Writer {
  readonly #cluster: MemoryCluster;
  readonly #random: Random;
  #count = 0;

  constructor(cluster: MemoryCluster, random: Random) {
    this.#cluster = cluster;
    this.#random = random;
  }

  async write(): Promise<void> {
    const random = this.#random;
    this.#cluster.clock.nowMs += random.below(300);
    await waitFor('a write', async () => {
      const owner = await this.#cluster.ownerOf('c');
      const collection = owner.database.collection('c');
      const ids = Array.from({ length: 1 + random.below(30) }, () => random.below(400));
      const rows = [...new Set(ids)].map((id) => ({
        id: `v${id}`,
        values: [id, ++this.#count],
        metadata: JSON.stringify({ count: this.#count }),
      }));
      try {
        if (random.below(4) > 0) await collection.write(batchOf(rows), { mode: 'upsert' });
        else
          await collection.delete(
            { kind: 'ids', ids: rows.map(({ id }) => id) },
            { dryRun: false },
          );
      } catch (error) {
        if ((error as { code?: string }).code === 'no_leader') return undefined;
        throw error;
      }
      return true;
    });
  }
}

/** Writes until all nodes have the files of the owner. */
async function sameFiles(cluster: MemoryCluster, writer: Writer): Promise<void> {
  await waitFor('the same files on all nodes', async () => {
    await writer.write();
    await cluster.settle();
    // The nodes fetch files more slowly than the owner writes them.
    for (let i = 0; i < 20; i++) {
      const [first, ...others] = cluster.nodes.map((node) => digestsOf(node).join());
      if (first !== '' && others.every((digests) => digests === first)) return true;
      await sleep(10);
    }
    return undefined;
  });
}

async function assertSameRows(cluster: MemoryCluster): Promise<void> {
  await cluster.settle();
  const [first, ...others] = await Promise.all(cluster.nodes.map(rowsIn));
  for (const rows of others) assert.deepEqual(rows, first);
}

describe('file adoption', () => {
  for (let round = 0; round < 2; round++) {
    it(`leaves the rows of all nodes as they are, whoever owns the log (${round})`, async () => {
      const random = new Random(seedOf('file adoption') + round);
      const limits = { retentionMs: RETENTION_MS, segmentRowsMax: 64 };
      const cluster = await MemoryCluster.start(['n1', 'n2', 'n3'], limits, {}, 4_000);
      const leader = await cluster.leader();
      await leader.database.createCollection({ id: 'c', ...SHAPE });
      const writer = new Writer(cluster, random);
      for (let i = 0; i < 3; i++) {
        for (let j = 5 + random.below(56); j > 0; j--) await writer.write();
        await assertSameRows(cluster);
        const name = random.pick(['n1', 'n2', 'n3']);
        if (random.below(2) === 0) await cluster.find(name).stop();
        else await cluster.find(name).kill();
        for (let j = random.below(21); j > 0; j--) await writer.write();
        await cluster.add(name, { share: slow, change: slowManifests });
      }
      await sameFiles(cluster, writer);
      await assertSameRows(cluster);
      const rows = await rowsIn(cluster.nodes[0]!);
      for (const node of cluster.nodes) {
        // What a node would load after its end.
        const database = await openDatabase({ state: cluster.stateOf(node.name), limits });
        assert.deepEqual(await rowsIn({ database }), rows);
        await database.close();
      }
      await cluster.stop();
    });
  }

  it('does not change what an export reads', async () => {
    const limits = { retentionMs: RETENTION_MS, segmentRowsMax: 64 };
    const cluster = await MemoryCluster.start(['n1', 'n2'], limits, {}, 4_000);
    try {
      const leader = await cluster.leader();
      await leader.database.createCollection({ id: 'c', ...SHAPE });
      const writer = new Writer(cluster, new Random(seedOf('readers of old snapshots')));
      for (let i = 0; i < 30; i++) await writer.write();
      await cluster.settle();
      const owner = await cluster.ownerOf('c');
      const follower = cluster.nodes.find((node) => node !== owner)!;
      const expected = (await rowsIn(follower)).map(({ id }) => id);
      const request = { includeValues: true, includeMetadata: true, chunkBytesMax: 2_000 };
      const scan = await follower.database.collection('c').scan(request);
      const ids: string[] = [];
      for (const chunk of scan.chunks()) {
        for (let row = 0; row < chunk.count; row++) ids.push(stringAt(chunk.ids, row));
        const before = digestsOf(follower).join();
        await waitFor('other files', async () => {
          for (let i = 0; i < 20; i++) await writer.write();
          await cluster.settle();
          return digestsOf(follower).join() !== before || undefined;
        });
      }
      assert.deepEqual(ids, expected);
    } finally {
      await cluster.stop();
    }
  });

  it('writes files of its own while there are none of the owner', async () => {
    const limits = { segmentRowsMax: 64 };
    const cluster = await MemoryCluster.start(['n1', 'n2'], limits);
    const leader = await cluster.leader();
    await leader.database.createCollection({ id: 'c', ...SHAPE });
    const writer = new Writer(cluster, new Random(seedOf('own files')));
    await waitFor('files on all nodes', async () => {
      await writer.write();
      return cluster.nodes.every((node) => digestsOf(node).length > 0) || undefined;
    });
    await assertSameRows(cluster);
    await cluster.stop();
  });
});
