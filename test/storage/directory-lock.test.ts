// One process per data directory: competing processes, crashes, stopped owners, other containers.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { lockDirectory } from '../../src/storage/directory-lock.js';
import { startCommitter } from './committer-process.js';
import { makeDirectory } from './directories.js';

/** Runs in other network and process namespaces with the same files, like a second container. */
const ELSEWHERE = ['unshare', '--net', '--pid', '--fork', '--kill-child'];
const mayUnshare = spawnSync('unshare', [...ELSEWHERE.slice(1), 'true']).status === 0;

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

  it('is acquired by exactly one of several processes that start at once', async () => {
    const directory = await makeDirectory();
    const children = Array.from({ length: 5 }, () => startCommitter(directory, { mode: 'idle' }));
    const areReady = await Promise.all(children.map((child) => child.isReady()));
    for (const child of children) await child.kill();
    assert.equal(areReady.filter(Boolean).length, 1);
    for (const [i, child] of children.entries()) {
      if (!areReady[i]) assert.match(child.errors(), /data_directory_locked/);
    }
  });

  it('is free immediately after its owner was killed', async () => {
    const directory = await makeDirectory();
    const child = startCommitter(directory);
    assert.ok(await child.isReady(), child.errors());
    await assert.rejects(lockDirectory(directory), { code: 'data_directory_locked' });
    await child.kill();
    const startedAt = Date.now();
    const lock = await lockDirectory(directory);
    assert.ok(Date.now() - startedAt < 1_000);
    assert.equal((await readdir(join(directory, 'lock'))).length, 1, 'what the dead left is gone');
    await lock.release();
  });

  it('stays with an owner that is stopped and cannot answer', async () => {
    const directory = await makeDirectory();
    const child = startCommitter(directory, { mode: 'idle' });
    assert.ok(await child.isReady(), child.errors());
    child.process.kill('SIGSTOP');
    try {
      await assert.rejects(lockDirectory(directory), /does not answer/);
    } finally {
      await child.kill();
    }
  });

  it('works across containers, and is free immediately after the owner was killed', async (t) => {
    if (!mayUnshare) return t.skip('namespaces cannot be made here');
    const directory = await makeDirectory();
    const child = startCommitter(directory, { mode: 'idle', before: ELSEWHERE });
    assert.ok(await child.isReady(), child.errors());
    await assert.rejects(lockDirectory(directory), { code: 'data_directory_locked' });
    const rivals = [0, 1].map(() => startCommitter(directory, { mode: 'idle', before: ELSEWHERE }));
    for (const rival of rivals) assert.equal(await rival.isReady(), false);
    await child.kill();
    const atOnce = [0, 1, 2].map(() =>
      startCommitter(directory, { mode: 'idle', before: ELSEWHERE }),
    );
    const areReady = await Promise.all(atOnce.map((one) => one.isReady()));
    for (const one of atOnce) await one.kill();
    assert.equal(areReady.filter(Boolean).length, 1);
    await (await lockDirectory(directory)).release();
    return undefined;
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
