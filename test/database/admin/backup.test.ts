// Backups of a service: their names, their folder and races between them. backup-writes.ci.test.ts tests backups under
// writes.

import assert from 'node:assert/strict';
import { mkdirSync, rmdirSync } from 'node:fs';
import { readdir, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { describe, it } from 'node:test';
import { SagittaError } from '../../../src/common/errors.js';
import { silentLogger } from '../../../src/common/logger.js';
import { Backups } from '../../../src/database/admin/backup.js';
import type { DiskStore } from '../../../src/storage/store.js';
import { makeDirectory, openIn } from '../../storage/directories.js';
import { eventually, withResolvers } from '../../support/waiting.js';
import { openDatabase } from '../harness.js';

const collection = (id: string) =>
  ({
    id,
    vectors: { '': { kind: 'dense', dimension: 4, metric: 'dot' } },
    description: null,
    labels: {},
  }) as const;

describe('backups', () => {
  it('that race succeed or are refused, and do not remove the folders of each other', async () => {
    const directory = await makeDirectory();
    // Many names, so that some calls still read them when another call has created its folder.
    for (let i = 0; i < 2_000; i++) mkdirSync(join(directory, `made-${i}`));
    const staged = withResolvers();
    const store = {
      async backup(folder: string) {
        const staging = join(directory, `.${basename(folder)}.unfinished`);
        mkdirSync(staging);
        await staged.promise;
        rmdirSync(staging);
        return { createdAt: new Date(0).toISOString(), byteLength: 0, collectionCount: 0 };
      },
    } as unknown as DiskStore;
    const backups = new Backups({ store, directory, logger: silentLogger });
    const calls = Array.from({ length: 32 }, (_, i) => backups.create(`b${i}`));
    const codes: string[] = [];
    for (const call of calls) call.catch((error) => codes.push(error.code));
    await eventually('all but one are refused', () => codes.length === calls.length - 1);
    staged.resolve();
    const outcomes = await Promise.allSettled(calls);
    assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1);
    assert.deepEqual([...new Set(codes)], ['overloaded']);
  });

  it('fail with what the operating system reported, which clients may see', async () => {
    const backUp = async (cause: Error) => {
      const store = { backup: async () => Promise.reject(cause) } as unknown as DiskStore;
      const directory = await makeDirectory();
      return new Backups({ store, directory, logger: silentLogger }).create('b');
    };
    const eio = { code: 'EIO', syscall: 'write' };
    const cause = Object.assign(new Error('EIO: i/o error, write /secret'), eio);
    await assert.rejects(backUp(cause), (error: Error) => {
      assert.ok(error instanceof SagittaError);
      assert.deepEqual([error.code, error.cause], ['backup_failed', cause]);
      assert.match(error.message, /reported EIO .* Check the disks/);
      assert.doesNotMatch(error.message, /secret/);
      return true;
    });
    const other = new Error('a fault of ours');
    await assert.rejects(backUp(other), other);
  });

  it('are listed in the order of their names, without folders that are not backups', async () => {
    const store = (await openIn(await makeDirectory())) as DiskStore;
    const directory = await makeDirectory();
    const backups = new Backups({ store, directory, logger: silentLogger });
    const database = await openDatabase({ store });
    assert.deepEqual(await backups.list(), []);
    await database.createCollection(collection('c'));
    const unnamed = await backups.create();
    assert.match(unnamed.name, /^\d{4}-\d\d-\d\dT[\d-]+Z$/);
    assert.equal(unnamed.collectionCount, 1);
    await database.createCollection(collection('d'));
    await backups.create('a.b-c_d');
    for (const name of ['', '.', '..', '.x', 'a/b', '../x', '-x', 'x'.repeat(129), 'ä']) {
      await assert.rejects(backups.create(name), { code: 'invalid_request' }, name);
    }
    await assert.rejects(backups.create('a.b-c_d'), {
      code: 'backup_exists',
      message: 'There is a backup with the name "a.b-c_d".',
    });
    await writeFile(join(directory, 'file'), 'x');
    await rm(join(directory, 'a.b-c_d', 'store.mark'));
    const listed = await backups.list();
    assert.deepEqual(
      listed.map(({ name, collectionCount }) => [name, collectionCount]),
      [
        [unnamed.name, 1],
        ['a.b-c_d', 2],
      ].sort(),
    );
    await rm(join(directory, 'a.b-c_d', 'backup.json'));
    assert.deepEqual(await backups.list(), [unnamed]);
    assert.ok(!(await readdir(directory)).some((name) => name.endsWith('.unfinished')));
    await database.close();
    await store.close();
  });

  it("need a configured directory, except for a backup into a folder of the caller's choice", async () => {
    const store = (await openIn(await makeDirectory())) as DiskStore;
    const backups = new Backups({ store, directory: null, logger: silentLogger });
    assert.equal(backups.isConfigured, false);
    await assert.rejects(backups.create('x'), { code: 'backups_not_configured' });
    await assert.rejects(backups.list(), { code: 'backups_not_configured' });
    const folder = join(await makeDirectory(), 'x');
    assert.equal((await backups.createAt(folder)).collectionCount, 0);
    await store.close();
  });
});
