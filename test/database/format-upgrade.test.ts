// A data directory of format version 1, made by the last version that wrote it, is upgraded at the start.
// storage/format-1 has its files, compressed: collection `c` with 230 written rows in segment files and the
// log, the remains of a log that was dropped, an idempotent reply and an API key.

import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { verifyDirectory } from '../../src/offline.js';
import { openLmdbStore } from '../../src/storage/lmdb-store.js';
import type { DiskStore } from '../../src/storage/store.js';
import { makeDirectory, openIn } from '../storage/directories.js';
import { batchOf, openDatabase } from './harness.js';

const FIXTURE = new URL('../../../test/storage/format-1/', import.meta.url);
const INCARNATION = 'd61d85c3-0e97-4b02-ab43-e19f57beaf20';

async function makeOldDirectory(): Promise<string> {
  const directory = await makeDirectory();
  const folder = join(directory, 'segments', INCARNATION);
  await mkdir(folder, { recursive: true });
  for (const name of await readdir(FIXTURE)) {
    const bytes = gunzipSync(await readFile(new URL(name, FIXTURE)));
    const path = name.startsWith('store') ? directory : folder;
    await writeFile(join(path, name.replace(/\.gz$/, '')), bytes);
  }
  return directory;
}

async function assertContent(store: DiskStore): Promise<void> {
  const database = await openDatabase({ store });
  const collection = database.collection('c');
  // 30 rows of each of four writes, the last with 50, less three; and 30 of the fifth.
  assert.equal(collection.record().vectorCount, 30 * 3 + 50 + 30 - 3);
  assert.deepEqual(collection.record().labels, { team: 'search' });
  assert.throws(() => database.collection('gone').record(), { code: 'collection_not_found' });
  await database.close();
}

describe('a data directory of format version 1', () => {
  it('is upgraded at the start, and everything in it is found again', async () => {
    const directory = await makeOldDirectory();
    const before = await verifyDirectory(directory);
    assert.equal(before.errorCount, 0, JSON.stringify(before.findings));
    assert.match(JSON.stringify(before.findings), /format version 1.*the next start upgrades it/);
    const warnings: string[] = [];
    const warn = (message: string) => warnings.push(message);
    let store = await openLmdbStore({ directory, warn });
    assert.deepEqual(
      warnings.map((message) => message.replace(directory, 'D')),
      ['The data directory D was upgraded from format version 1 to 2.'],
    );
    await assertContent(store);
    const database = await openDatabase({ store });
    const row = { id: 'new', values: [1, 2, 3], metadata: '{}' };
    await database.collection('c').write(batchOf([row]), { mode: 'upsert' });
    await database.collection('c').delete({ kind: 'ids', ids: ['new'] }, { dryRun: false });
    await database.close();
    await store.close();
    const after = await verifyDirectory(directory);
    assert.deepEqual(after.findings, []);
    assert.equal(after.counts.idempotentReplies, before.counts.idempotentReplies);
    assert.equal(after.counts.apiKeys, 1);
    store = await openLmdbStore({ directory, warn });
    await assertContent(store);
    await store.close();
    assert.equal(warnings.length, 1, 'upgraded once');
  });

  it('is upgraded anew when the process died during the upgrade', async () => {
    const directory = await makeOldDirectory();
    await writeFile(join(directory, 'store.lmdb.upgrade'), Buffer.alloc(100_000, 7));
    await writeFile(join(directory, 'store.lmdb.upgrade-lock'), Buffer.alloc(100, 7));
    const store = (await openIn(directory)) as DiskStore;
    await assertContent(store);
    await store.close();
    const names = await readdir(directory);
    assert.deepEqual(
      names.filter((name) => name.includes('upgrade')),
      [],
    );
  });

  it('stays as it is when its file is damaged', async () => {
    const directory = await makeOldDirectory();
    const path = join(directory, 'store.lmdb');
    const bytes = await readFile(path);
    // The numbers of all pages.
    for (let at = 2 * 4096; at < bytes.length; at += 4096) bytes[at]! ^= 1;
    await writeFile(path, bytes);
    await assert.rejects(openIn(directory), { code: 'data_corrupt' });
    assert.ok((await readFile(path)).equals(bytes));
  });
});
