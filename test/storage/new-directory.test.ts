// What remains of a data directory whose first use failed: everything that others created, and nothing else.

import assert from 'node:assert/strict';
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { openStore } from '../../src/storage/open-store.js';
import { makeDirectory } from './directories.js';

async function entriesOf(directory: string): Promise<string[]> {
  return (await readdir(directory, { recursive: true })).sort();
}

describe('a new data directory whose first use failed', () => {
  it('is removed if it was created, and emptied if it was empty', async () => {
    const parent = await makeDirectory();
    await mkdir(join(parent, 'empty'));
    for (const name of ['missing', 'empty']) {
      const store = await openStore({ directory: join(parent, name) });
      await store.commit([{ kind: 'put', key: ['k'], value: new Uint8Array([1]) }]);
      await store.closeAndRemoveIfNew();
    }
    assert.deepEqual(await entriesOf(parent), ['empty']);
  });

  it('keeps the files and folders of others', async () => {
    const directory = await makeDirectory();
    await mkdir(join(directory, 'segments', 'left'), { recursive: true });
    await writeFile(join(directory, 'segments', 'notes.txt'), 'mine');
    await writeFile(join(directory, 'report.txt'), 'mine');
    await mkdir(join(directory, 'lock'));
    const before = await entriesOf(directory);
    const store = await openStore({ directory });
    await store.closeAndRemoveIfNew();
    assert.deepEqual(await entriesOf(directory), before);
  });

  it('keeps what others add while it is open', async () => {
    const directory = join(await makeDirectory(), 'data');
    const store = await openStore({ directory });
    await mkdir(join(directory, 'segments', 'photos'));
    await writeFile(join(directory, 'segments', 'photos', 'a.jpg'), 'mine');
    await store.closeAndRemoveIfNew();
    assert.deepEqual(await entriesOf(directory), [
      'segments',
      join('segments', 'photos'),
      join('segments', 'photos', 'a.jpg'),
    ]);
  });

  it('is left unchanged if opening fails because of files from others', async () => {
    const directory = await makeDirectory();
    const folder = join(directory, 'segments', 'c');
    await mkdir(folder, { recursive: true });
    await mkdir(join(directory, 'segments', 'd'));
    await writeFile(join(folder, 'thesis.unfinished'), 'mine');
    const before = await entriesOf(directory);
    await assert.rejects(openStore({ directory }), { code: 'data_corrupt' });
    assert.deepEqual(await entriesOf(directory), before);

    await rm(folder, { recursive: true });
    await (await openStore({ directory })).close();
    assert.ok((await entriesOf(directory)).includes('journal'));
  });
});
