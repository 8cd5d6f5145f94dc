// Backups of the disk store whose process is killed or whose disk is full.

import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { MARKER_FILE, readMarker } from '../../src/storage/backup-marker.js';
import { choose, nameBlobs, openDisk } from './backup-store.js';
import { makeDirectory, onSmallDisk } from './directories.js';

describe('a backup that cannot be completed', () => {
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
      // The backup was finished before the signal arrived.
      assert.equal(made.byteLength, made.base.byteLength + 40_000_000);
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
      // First there is no space for the blobs, then none for the base.
      await assert.rejects(store.backup(join(disk, 'b'), choose), { code: 'storage_full' });
      const record = new Uint8Array(8_000_000);
      await store.commit([{ kind: 'append', log: 'l', sequence: 1, record }]);
      await assert.rejects(store.backup(join(disk, 'b'), choose), { code: 'storage_full' });
      assert.deepEqual(await readdir(disk), []);
      resize(32);
      // The folder is a mount point, so entries are moved into it one by one.
      await store.backup(disk, choose);
      assert.deepEqual((await readdir(disk)).sort(), [
        MARKER_FILE,
        'journal',
        'segments',
        'store.mark',
      ]);
    });
    await store.close();
    if (!isDone) t.skip('mounting a small tmpfs is not permitted here');
  });
});
