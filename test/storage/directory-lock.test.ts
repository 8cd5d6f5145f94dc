// One owner per data directory within a process; directory-lock-processes.ci.test.ts tests several processes.

import assert from 'node:assert/strict';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { lockDirectory } from '../../src/storage/directory-lock.js';
import { makeDirectory } from './directories.js';

describe('directory lock', () => {
  it('rejects a directory that this process has open, until it is released', async () => {
    const directory = await makeDirectory();
    const lock = await lockDirectory(directory);
    await assert.rejects(lockDirectory(directory), (error: Error & { code: string }) => {
      assert.equal(error.code, 'data_directory_locked');
      assert.ok(error.message.includes(directory), error.message);
      assert.ok(error.message.includes(`process ${process.pid}`), error.message);
      return true;
    });
    await lock.release();
    await lock.release();
    await (await lockDirectory(directory)).release();
    assert.deepEqual(await readdir(join(directory, 'lock')), [], 'nothing is left');
  });

  it('is acquired by exactly one of many concurrent attempts, again and again', async () => {
    const directory = await makeDirectory();
    for (let round = 0; round < 20; round++) {
      const outcomes = await Promise.allSettled(
        Array.from({ length: 8 }, () => lockDirectory(directory)),
      );
      const locks = outcomes.filter((outcome) => outcome.status === 'fulfilled');
      assert.equal(locks.length, 1, `round ${round}`);
      await locks[0]!.value.release();
    }
  });

  it('works in a directory whose path is too long for a socket', async () => {
    const directory = join(await makeDirectory(), 'a'.repeat(100), 'b'.repeat(100));
    const lock = await lockDirectory(directory);
    await assert.rejects(lockDirectory(directory), { code: 'data_directory_locked' });
    await lock.release();
  });

  it('reports why a directory cannot be used', async () => {
    const directory = await makeDirectory();
    const file = join(directory, 'file');
    await writeFile(file, '');
    await assert.rejects(lockDirectory(file), (error: Error & { code: string }) => {
      assert.equal(error.code, 'configuration_invalid');
      assert.ok(error.message.includes(file), error.message);
      return true;
    });
  });

  it('ignores files in its folder on which no process listens', async () => {
    const directory = await makeDirectory();
    await mkdir(join(directory, 'lock'));
    await writeFile(join(directory, 'lock', '0-not-a-socket'), '');
    await writeFile(join(directory, 'lock', 'unnamed.new'), '');
    const lock = await lockDirectory(directory);
    assert.equal((await readdir(join(directory, 'lock'))).length, 1);
    await lock.release();
  });
});
