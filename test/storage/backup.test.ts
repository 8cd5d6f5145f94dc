// Backups of the embedded store are complete or absent, have the state of one moment, and do not disturb
// commits and removals.

import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, open, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { digestOfFile, MARKER_FILE, readMarker } from '../../src/storage/backup-marker.js';
import type { DiskStore, ListEntries } from '../../src/storage/store.js';
import { withResolvers } from '../support/waiting.js';
import { makeDirectory, onSmallDisk, openIn, openRestored } from './directories.js';

const bytes = (text: string) => new Uint8Array(Buffer.from(text));
const text = (value: Uint8Array | undefined) => value && Buffer.from(value).toString();

/** The stored value `blobs` lists the blobs that belong to the backup. */
const choose = async (list: ListEntries) => {
  const [entry] = [...list(['blobs'])];
  return { blobNames: text(entry?.value)?.split(' ') ?? [], collectionCount: 1 };
};
const nameBlobs = (...names: string[]) =>
  ({ kind: 'put', key: ['blobs'], value: bytes(names.join(' ')) }) as const;

async function openDisk(directory: string): Promise<DiskStore> {
  return (await openIn(directory)) as DiskStore;
}

describe('a backup of a store', () => {
  it('has the state of one moment and only the blobs that were chosen, and is not opened as it is', async () => {
    const store = await openDisk(await makeDirectory());
    await store.writeBlob('c/1', [bytes('one')]);
    await store.writeBlob('c/stray', [bytes('stray')]);
    await store.commit([
      nameBlobs('c/1'),
      { kind: 'append', log: 'l', sequence: 1, record: bytes('first') },
    ]);
    const folder = join(await makeDirectory(), 'deep', 'backup');
    const made = await store.backup(folder, choose);
    const marker = await readMarker(folder);
    assert.deepEqual(made, marker);
    assert.deepEqual(marker?.storeFile, await digestOfFile(join(folder, 'store.lmdb')));
    assert.equal(made.byteLength, marker!.storeFile.byteLength + 'one'.length);
    assert.equal((await stat(folder)).mode & 0o777, 0o700);
    await store.commit([{ kind: 'append', log: 'l', sequence: 2, record: bytes('second') }]);
    await store.close();

    const before = (await readdir(folder, { recursive: true })).sort();
    await assert.rejects(openDisk(folder), {
      code: 'configuration_invalid',
      message: /is a backup.*sagitta restore .*delete backup\.json/,
    });
    assert.deepEqual((await readdir(folder, { recursive: true })).sort(), before);
    assert.deepEqual(await readMarker(folder), marker);

    await rm(join(folder, MARKER_FILE));
    const copy = await openDisk(folder);
    assert.deepEqual(
      [...copy.readLog('l', 0)].map(({ record }) => text(record)),
      ['first'],
    );
    assert.deepEqual(await copy.listBlobs(), ['c/1']);
    assert.equal(text(await copy.readBlob('c/1')), 'one');
    await copy.commit([{ kind: 'append', log: 'l', sequence: 2, record: bytes('other') }]);
    await copy.close();
  });

  it('includes blobs that are removed meanwhile, which readers no longer see', async () => {
    const directory = await makeDirectory();
    const store = await openDisk(directory);
    await store.writeBlob('c/1', [bytes('one')]);
    await store.writeBlob('c/2', [bytes('two')]);
    await store.commit([nameBlobs('c/1', 'c/2')]);
    const folder = join(await makeDirectory(), 'backup');
    await store.backup(folder, async (list) => {
      // As a compaction does it: the tables have been copied, the files have not.
      await store.commit([nameBlobs('c/2', 'c/3')]);
      await store.removeBlob('c/1');
      assert.equal(await store.readBlob('c/1'), undefined);
      assert.deepEqual(await store.listBlobs(), ['c/2']);
      // A name that is used again is not removed afterwards.
      await store.removeBlob('c/2');
      await store.writeBlob('c/2', [bytes('two')]);
      return choose(list);
    });
    assert.deepEqual(await readdir(join(directory, 'segments', 'c')), ['2']);
    assert.equal(text(await store.readBlob('c/2')), 'two');
    await store.close();
    assert.deepEqual((await readdir(join(folder, 'segments', 'c'))).sort(), ['1', '2']);
  });

  it('changes nothing that exists and leaves nothing behind when it fails', async () => {
    const directory = await makeDirectory();
    const store = await openDisk(directory);
    const parent = await makeDirectory();
    const occupied = join(parent, 'occupied');
    await mkdir(occupied);
    await writeFile(join(occupied, 'mine'), 'x');
    await assert.rejects(store.backup(occupied, choose), { code: 'backup_exists' });
    await assert.rejects(store.backup(join(occupied, 'mine'), choose), { code: 'backup_exists' });
    assert.equal(await readFile(join(occupied, 'mine'), 'utf8'), 'x');
    for (const inside of [directory, join(directory, 'x')]) {
      await assert.rejects(store.backup(inside, choose), { code: 'invalid_request' });
    }
    const failing = async () => {
      throw new Error('no more');
    };
    await assert.rejects(store.backup(join(parent, 'a'), failing), /no more/);
    await store.commit([nameBlobs('c/none')]);
    await assert.rejects(store.backup(join(parent, 'a'), choose), {
      code: 'collection_unavailable',
      message: /c\/none/,
    });
    assert.deepEqual(await readdir(parent), ['occupied']);
    await store.commit([{ kind: 'remove', key: ['blobs'] }]);
    await mkdir(join(parent, 'empty'));
    await mkdir(join(parent, '.empty.unfinished'));
    await writeFile(join(parent, '.empty.unfinished', 'half'), 'x');
    await store.backup(join(parent, 'empty'), choose);
    assert.deepEqual(await readdir(parent), ['empty', 'occupied']);
    await store.close();
  });

  it('is made one at a time and is cancelled when the store is closed', async () => {
    const store = await openDisk(await makeDirectory());
    const parent = await makeDirectory();
    await store.writeBlob('c/1', [bytes('one')]);
    await store.commit([nameBlobs('c/1')]);
    const listed = withResolvers();
    const closed = withResolvers();
    const making = store.backup(join(parent, 'a'), async (list) => {
      await assert.rejects(store.backup(join(parent, 'b'), choose), { code: 'overloaded' });
      listed.resolve();
      await closed.promise;
      return choose(list);
    });
    const refused = assert.rejects(making, { code: 'stopping' });
    await Promise.race([listed.promise, refused]);
    const closing = store.close();
    closed.resolve();
    await closing;
    await refused;
    assert.deepEqual(await readdir(parent), []);
  });

  it('copies tables that have an unreferenced page', async () => {
    const directory = await makeDirectory();
    const store = await openDisk(directory);
    await store.commit([nameBlobs('c/1'), { kind: 'put', key: ['k'], value: bytes('v') }]);
    await store.close();
    const path = join(directory, 'store.lmdb');
    const { size } = await stat(path);
    await truncate(path, size + 4096);
    const file = await open(path, 'r+');
    for (const page of [0, 4096]) {
      const last = Buffer.alloc(8);
      await file.read(last, 0, 8, page + 144);
      last.writeBigUInt64LE(last.readBigUInt64LE() + 1n);
      await file.write(last, 0, 8, page + 144);
    }
    await file.close();
    const again = await openDisk(directory);
    await again.commit([{ kind: 'remove', key: ['blobs'] }]);
    const folder = join(await makeDirectory(), 'backup');
    await again.backup(folder, choose);
    await again.close();
    const copy = await openRestored(folder);
    assert.equal(text(copy.get(['k'])), 'v');
    await copy.close();
  });

  it('does not delay commits', async (t) => {
    const store = await openDisk(await makeDirectory());
    const record = new Uint8Array(400_000).fill(7);
    for (let sequence = 1; sequence <= 120; sequence++) {
      await store.commit([{ kind: 'append', log: 'l', sequence, record }]);
    }
    let isMade = false;
    const folder = join(await makeDirectory(), 'backup');
    const startedAt = performance.now();
    const making = store.backup(folder, choose).then(() => {
      isMade = true;
    });
    let count = 0;
    let slowestMs = 0;
    while (!isMade) {
      const commitAt = performance.now();
      await store.commit([{ kind: 'put', key: ['count'], value: bytes(String(++count)) }]);
      slowestMs = Math.max(slowestMs, performance.now() - commitAt);
    }
    await making;
    const tookMs = performance.now() - startedAt;
    t.diagnostic(
      `48 MB in ${tookMs.toFixed()} ms, ${count} commits, slowest ${slowestMs.toFixed()} ms`,
    );
    assert.ok(count > 5, `${count} commits in ${tookMs} ms`);
    await store.close();
  });

  it('does not exist under its name when the process is killed', async () => {
    const directory = await makeDirectory();
    const parent = await makeDirectory();
    const store = await openDisk(directory);
    for (let i = 0; i < 40; i++) await store.writeBlob(`c/${i}`, [new Uint8Array(1_000_000)]);
    await store.commit([nameBlobs(...Array.from({ length: 40 }, (_, i) => `c/${i}`))]);
    await store.close();
    for (let round = 0; round < 3; round++) {
      const child = fork(fileURLToPath(new URL('./backup-process.js', import.meta.url)), [
        directory,
        join(parent, 'b'),
      ]);
      await once(child, 'message');
      await sleep(round * 15);
      child.kill('SIGKILL');
      await once(child, 'exit');
      const made = await readMarker(join(parent, 'b'));
      if (made === undefined) {
        assert.ok(!(await readdir(parent)).includes('b'), 'half a backup has the name of a whole');
        continue;
      }
      // It was done before the signal came.
      assert.equal(made.byteLength, made.storeFile.byteLength + 40_000_000);
      assert.equal((await readdir(join(parent, 'b', 'segments', 'c'))).length, 40);
      await rm(join(parent, 'b'), { recursive: true });
    }
    const again = await openDisk(directory);
    await again.backup(join(parent, 'b'), choose);
    await again.close();
    assert.deepEqual(await readdir(parent), ['b']);
    assert.ok((await readdir(join(parent, 'b'))).includes(MARKER_FILE));
  });

  it('fails with storage_full on a full disk and leaves nothing behind', async (t) => {
    const store = await openDisk(await makeDirectory());
    await store.writeBlob('c/1', [new Uint8Array(6_000_000)]);
    await store.commit([nameBlobs('c/1')]);
    const isDone = await onSmallDisk(4, async (disk, resize) => {
      // For the files, then for the tables.
      await assert.rejects(store.backup(join(disk, 'b'), choose), { code: 'storage_full' });
      const record = new Uint8Array(8_000_000);
      await store.commit([{ kind: 'append', log: 'l', sequence: 1, record }]);
      await assert.rejects(store.backup(join(disk, 'b'), choose), { code: 'storage_full' });
      assert.deepEqual(await readdir(disk), []);
      resize(32);
      // A disk is mounted here: entries are moved in one by one.
      await store.backup(disk, choose);
      assert.deepEqual((await readdir(disk)).sort(), [
        MARKER_FILE,
        'segments',
        'store.lmdb',
        'store.mark',
      ]);
    });
    await store.close();
    if (!isDone) t.skip('mounting a small tmpfs is not permitted here');
  });
});
