// Backups of a service under constant writes, checkpoints and compactions: each backup opens, verifies, and contains a
// prefix of the submitted writes, including every write that was acknowledged before the backup began.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { silentLogger } from '../../../src/common/logger.js';
import { Backups } from '../../../src/database/admin/backup.js';
import type { Database } from '../../../src/database/database.js';
import { verifyDirectory } from '../../../src/offline.js';
import type { DiskStore } from '../../../src/storage/store.js';
import { makeDirectory, openIn, openRestored } from '../../storage/directories.js';
import { eventually } from '../../support/waiting.js';
import { batchOf, createRandom, createTestClock, openDatabase, testSeed } from '../harness.js';

const BACKUP_COUNT = 6;
const WRITES_BETWEEN = 40;
const ID_COUNT = 300;
const NO_VECTOR = { values: false, metadata: true };

const collection = (id: string) =>
  ({
    id,
    vectors: { '': { kind: 'dense', dimension: 4, metric: 'dot' } },
    description: null,
    labels: {},
  }) as const;

/** A model of the vectors after each write. */
interface Sent {
  readonly sequence: number;
  readonly ids: readonly string[];
  readonly isDelete: boolean;
}

describe('backups under writes', () => {
  it('contain a prefix of the submitted writes with all acknowledged ones', async (t) => {
    const seed = testSeed();
    t.diagnostic(`seed ${seed}`);
    const random = createRandom(seed);
    const store = (await openIn(await makeDirectory())) as DiskStore;
    const clock = createTestClock();
    const database = await openDatabase({ store, clock });
    const directory = await makeDirectory();
    const backups = new Backups({ store, directory, logger: silentLogger });
    await database.createCollection(collection('c'));

    const sent: Sent[] = [];
    const present = new Set<string>();
    let acknowledged = 0;
    let isDone = false;
    const write = async () => {
      const sequence = sent.length + 1;
      // A delete without effect would take no sequence. The writer keeps the order of the calls, so that the existing
      // ids are known at each call.
      const isDelete = present.size > 20 && random() < 0.2;
      const all = Array.from({ length: 1 + Math.floor(random() * 12) }, () => {
        return `v${Math.floor(random() * ID_COUNT)}`;
      });
      const ids = isDelete ? [...present].slice(0, 3) : [...new Set(all)];
      for (const id of ids) {
        if (isDelete) present.delete(id);
        else present.add(id);
      }
      const metadata = JSON.stringify({ n: sequence });
      const vectors = ids.map((id) => ({ id, values: [sequence, 1, 0, 0], metadata }));
      sent.push({ sequence, ids, isDelete });
      const result = isDelete
        ? await database.collection('c').delete({ kind: 'ids', ids }, { dryRun: false })
        : await database.collection('c').write(batchOf(vectors), { mode: 'upsert' });
      assert.equal(result.sequence, sequence);
      acknowledged = Math.max(acknowledged, sequence);
    };
    const writer = async () => {
      while (!isDone) {
        const burst = Array.from({ length: 4 }, write);
        await Promise.all(burst);
        // The retention passes repeatedly, so that compactions remove ended rows.
        clock.nowMs += 30_000;
      }
    };
    const writing = writer();
    const names: { name: string; acknowledgedBefore: number; sentAfter: number }[] = [];
    for (let i = 0; i < BACKUP_COUNT; i++) {
      const countBefore = sent.length;
      await eventually('more is written', () => sent.length >= countBefore + WRITES_BETWEEN);
      const acknowledgedBefore = acknowledged;
      const { name } = await backups.create(`b${i}`);
      names.push({ name, acknowledgedBefore, sentAfter: sent.length });
    }
    isDone = true;
    await writing;
    await database.close();
    await store.close();

    let deletionCount = 0;
    const kept: number[] = [];
    for (const { name, acknowledgedBefore, sentAfter } of names) {
      const folder = join(directory, name);
      const report = await verifyDirectory(folder);
      assert.deepEqual(report.findings, [], name);
      deletionCount += report.counts.deletions;
      const copyStore = await openRestored(folder);
      const copy = await openDatabase({ store: copyStore, clock });
      const { sequence } = copy.collection('c').record();
      assert.ok(sequence >= acknowledgedBefore, `${name}: ${sequence} of ${acknowledgedBefore}`);
      assert.ok(sequence <= sentAfter, `${name}: ${sequence} of ${sentAfter} sent`);
      await assertState(copy, stateAfter(sent, sequence), name);
      kept.push(sequence);
      await copy.close();
      await copyStore.close();
    }
    t.diagnostic(`${sent.length} writes; backups at ${kept}; ${deletionCount} deletions in files`);
    assert.ok(deletionCount > 0, 'no backup met deletions in files');
    assert.ok(kept.at(-1)! > kept[0]! + WRITES_BETWEEN, `backups at ${kept}`);
  });
});

function stateAfter(sent: readonly Sent[], sequence: number): Map<string, number> {
  const state = new Map<string, number>();
  for (const write of sent.slice(0, sequence)) {
    for (const id of write.ids) {
      if (write.isDelete) state.delete(id);
      else state.set(id, write.sequence);
    }
  }
  return state;
}

async function assertState(
  database: Database,
  expected: Map<string, number>,
  name: string,
): Promise<void> {
  assert.equal(database.collection('c').record().vectorCount, expected.size, name);
  const ids = Array.from({ length: ID_COUNT }, (_, i) => `v${i}`);
  const { vectors } = await database.collection('c').fetch(ids, NO_VECTOR);
  for (const { id, metadata } of vectors) {
    assert.equal(metadata, `{"n":${expected.get(id)}}`, `${name}, ${id}`);
  }
}
