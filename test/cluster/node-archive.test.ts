// Nodes whose logs are damaged or trimmed: acknowledged commits come from the archive, and a node that cannot get them
// stops where it is.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LogArchive } from '../../src/cluster/archive/log-archive.js';
import { silentLogger } from '../../src/common/logger.js';
import type { Database } from '../../src/database/database.js';
import { batchOf } from '../database/harness.js';
import { changed } from './log-damage.js';
import { idsIn, MemoryCluster, SHAPE, waitFor } from './memory-cluster.js';

async function write(database: Database, from: number, to: number): Promise<string[]> {
  const ids: string[] = [];
  for (let i = from; i <= to; i++) {
    const id = `row-${String(i).padStart(4, '0')}`;
    const row = { id, values: [1, i], metadata: JSON.stringify({ i }) };
    await database.collection('c').write(batchOf([row]), { mode: 'upsert' });
    ids.push(id);
  }
  return ids;
}

function streamOf(cluster: MemoryCluster, database: Database) {
  return cluster.network.streams.get(database.incarnationOf('c')!)!;
}

/** The position of the fragment of the nth commit of rows. */
function positionOfPart(cluster: MemoryCluster, database: Database, n: number): number {
  const parts: number[] = [];
  streamOf(cluster, database).change((messages) => {
    for (const { channel, position } of messages) if (channel === 0) parts.push(position);
    return messages;
  });
  return parts[n - 1]!;
}

/** Flips a bit in the fragment of the nth commit, and restores it when called again. */
function flipPart(cluster: MemoryCluster, database: Database, n: number): void {
  const chosen = positionOfPart(cluster, database, n);
  streamOf(cluster, database).change((messages) =>
    changed(messages, ({ position }) => position === chosen),
  );
}

describe('a node of a cluster whose log is damaged', () => {
  it('reads lost records from the archive, and follows the log again', async () => {
    const cluster = await MemoryCluster.start(['n1', 'n2', 'n3']);
    const leader = await cluster.leader();
    const follower = await cluster.follower();
    const { database } = leader;
    await database.createCollection({ id: 'c', ...SHAPE });
    const ids = await write(database, 1, 3);
    await cluster.settle();
    follower.service.cutOff();
    ids.push(...(await write(database, 4, 8)));
    await leader.node.archive();
    ids.push(...(await write(database, 9, 10)));
    flipPart(cluster, database, 5);
    follower.service.reconnect();
    await cluster.settle();
    assert.deepEqual(await idsIn(follower), ids);
    assert.ok(follower.node.health.counts.repairedRecords > 0);
    assert.equal(follower.node.health.failedLogCount, 0);
    // A new node gets the same, and the next leader goes on with it.
    const added = await cluster.add('n4');
    assert.deepEqual(await idsIn(added), ids);
    await leader.kill();
    const next = await cluster.ownerOf('c');
    ids.push(...(await write(next.database, 11, 12)));
    await cluster.settle();
    for (const node of cluster.nodes) assert.deepEqual(await idsIn(node), ids);
    await cluster.stop();
  });

  it('stops where both log and archive end, and goes on when the log is whole', async () => {
    const cluster = await MemoryCluster.start(['n1', 'n2']);
    const leader = await cluster.leader();
    const follower = await cluster.follower();
    const { database } = leader;
    await database.createCollection({ id: 'c', ...SHAPE });
    const before = await write(database, 1, 3);
    await cluster.settle();
    await leader.node.archive();
    follower.service.cutOff();
    const after = await write(database, 4, 6);
    flipPart(cluster, database, 4);
    follower.service.reconnect();
    await waitFor('the failure', () => follower.node.health.failedLogCount === 1 || undefined);
    assert.deepEqual(await idsIn(follower), before);
    assert.equal(follower.node.health.counts.repairedRecords, 0);
    flipPart(cluster, database, 4);
    await cluster.settle();
    assert.deepEqual(await idsIn(follower), [...before, ...after]);
    await cluster.stop();
  });

  it('leads with all records when the others are gone', async () => {
    const cluster = await MemoryCluster.start(['n1', 'n2']);
    const leader = await cluster.leader();
    const follower = await cluster.follower();
    const { database } = leader;
    await database.createCollection({ id: 'c', ...SHAPE });
    const ids = await write(database, 1, 2);
    await cluster.settle();
    await follower.kill();
    ids.push(...(await write(database, 3, 6)));
    await leader.node.archive();
    flipPart(cluster, database, 4);
    await leader.kill();
    const back = await cluster.add(follower.name);
    assert.equal(await cluster.ownerOf('c'), back);
    ids.push(...(await write(back.database, 7, 7)));
    assert.deepEqual(await idsIn(back), ids);
    assert.ok(back.node.health.counts.repairedRecords > 0);
    await cluster.stop();
  });
});

describe('the archive of a cluster', () => {
  it('keeps records that the logs have lost until the snapshot after the next', async () => {
    const cluster = await MemoryCluster.start(['n1', 'n2', 'n3'], {}, {}, 2_000);
    const leader = await cluster.leader();
    const away = await cluster.follower();
    const { database } = leader;
    await database.createCollection({ id: 'c', ...SHAPE });
    const ids = await write(database, 1, 3);
    await cluster.settle();
    const placeAway = away.node.progress.writtenSince(0, [database.incarnationOf('c')!]);
    const incarnation = database.incarnationOf('c')!;
    const position = placeAway[incarnation]!;
    await away.kill();
    const stream = streamOf(cluster, database);
    let i = 4;
    await waitFor('a shorter log', async () => {
      ids.push(...(await write(database, i, i)));
      await leader.node.archive();
      i++;
      return (await stream.firstPosition())! > position + 1 || undefined;
    });
    const back = await cluster.add(away.name);
    await cluster.settle();
    assert.deepEqual(await idsIn(back), ids);
    assert.ok(back.node.health.counts.repairedRecords > 0);
    // Later snapshots remove the oldest chunks, and leave no gap.
    const archive = new LogArchive(incarnation, { blobs: cluster.files, logger: silentLogger });
    const [oldest] = await archive.list();
    await waitFor('the removal', async () => {
      ids.push(...(await write(database, i, i)));
      await leader.node.archive();
      i++;
      return (await archive.list()).every(({ name }) => name !== oldest!.name) || undefined;
    });
    const chunks = await archive.list();
    assert.ok(chunks[0]!.afterPosition < (await stream.firstPosition())!);
    for (const [at, chunk] of chunks.slice(1).entries()) {
      assert.equal(chunk.afterPosition, chunks[at]!.endPosition);
    }
    await cluster.stop();
  });

  it('keeps the logs while it cannot be written', async () => {
    const cluster = await MemoryCluster.start(['n1', 'n2'], {}, {}, 2_000);
    const leader = await cluster.leader();
    const { database } = leader;
    await database.createCollection({ id: 'c', ...SHAPE });
    const { blobs } = cluster;
    const { put } = blobs;
    let snapshotCount = 0;
    blobs.put = async (name, parts) => {
      if (name.startsWith('archive/')) throw new Error('no archive for the test');
      if (name.startsWith('snapshots/')) snapshotCount++;
      await put.call(blobs, name, parts);
    };
    await write(database, 1, 3);
    await assert.rejects(leader.node.archive(), /no archive for the test/);
    let i = 4;
    await waitFor('snapshots', async () => {
      await write(database, i, i);
      i++;
      return snapshotCount >= 4 || undefined;
    });
    assert.equal(await streamOf(cluster, database).firstPosition(), 1);
    assert.ok(leader.node.health.archiveLagSeconds > 0);
    blobs.put = put;
    await leader.node.archive();
    // A running snapshot may commit its record in between.
    await waitFor('the archive', () => leader.node.health.archiveLagSeconds === 0 || undefined);
    await waitFor('a shorter log', async () => {
      await write(database, i, i);
      i++;
      await leader.node.archive();
      return (await streamOf(cluster, database).firstPosition())! > 1 || undefined;
    });
    await cluster.stop();
  });

  it('is removed with the collection', async () => {
    const cluster = await MemoryCluster.start(['n1', 'n2']);
    const leader = await cluster.leader();
    const { database } = leader;
    await database.createCollection({ id: 'c', ...SHAPE });
    await write(database, 1, 3);
    await leader.node.archive();
    const incarnation = database.incarnationOf('c')!;
    const archive = new LogArchive(incarnation, { blobs: cluster.files, logger: silentLogger });
    assert.equal((await archive.list()).length, 1);
    await database.collection('c').drop();
    await waitFor('the removal', async () => (await archive.list()).length === 0 || undefined);
    await leader.node.archive();
    assert.equal((await archive.list()).length, 0);
    await cluster.stop();
  });
});
