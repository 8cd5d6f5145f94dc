// Backups of the disk store are complete or absent, contain the state of one moment, and do not disturb commits and
// removals.

import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { BACKUP_BASE } from '../../src/storage/backup.js';
import { digestOfFile, MARKER_FILE, readMarker } from '../../src/storage/backup-marker.js';
import { withResolvers } from '../support/waiting.js';
import { bytes, choose, nameBlobs, openDisk, text } from './backup-store.js';
import { makeDirectory } from './directories.js';

describe('a backup of a store', () => {
  it('contains the state of one moment and only the chosen blobs, and cannot be opened directly', async () => {
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
    assert.deepEqual(marker?.base, await digestOfFile(join(folder, BACKUP_BASE)));
    assert.equal(made.byteLength, marker!.base.byteLength + 'one'.length);
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
      // Like a compaction: the backup contains the earlier state, whose files have not been copied yet.
      await store.commit([nameBlobs('c/2', 'c/3')]);
      await store.removeBlob('c/1');
      assert.equal(await store.readBlob('c/1'), undefined);
      assert.deepEqual(await store.listBlobs(), ['c/2']);
      // A file whose name was reused must not be removed afterwards.
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
});
