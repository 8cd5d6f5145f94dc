// One process per data directory: competing processes, crashes, stopped owners, other containers.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { lockDirectory } from '../../src/storage/directory-lock.js';
import { startCommitter } from './committer-process.js';
import { makeDirectory } from './directories.js';

/** Uses other network and process namespaces with the same files, like a second container. */
const ELSEWHERE = ['unshare', '--net', '--pid', '--fork', '--kill-child'];
const mayUnshare = spawnSync('unshare', [...ELSEWHERE.slice(1), 'true']).status === 0;

describe('the lock of a directory between processes', () => {
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
    const lock = await lockDirectory(directory);
    assert.equal((await readdir(join(directory, 'lock'))).length, 1, 'what the dead left is gone');
    await lock.release();
  });

  it('stays with an owner that is paused and cannot reply', async () => {
    const directory = await makeDirectory();
    const child = startCommitter(directory, { mode: 'idle' });
    assert.ok(await child.isReady(), child.errors());
    child.process.kill('SIGSTOP');
    try {
      await assert.rejects(lockDirectory(directory), /does not reply/);
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
});
