// Damaged files on which lmdb would crash the process give errors instead.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { openLmdbStore } from '../../src/storage/lmdb-store.js';
import { makeDirectory, openIn } from './directories.js';

async function makeFilledDirectory(): Promise<{ directory: string; path: string }> {
  const directory = await makeDirectory();
  const store = await openIn(directory);
  for (let i = 1; i <= 20; i++) {
    await store.commit([
      { kind: 'append', log: 'l', sequence: i, record: new Uint8Array(100_000).fill(i) },
      { kind: 'put', key: ['k', String(i)], value: new Uint8Array(1_000) },
    ]);
  }
  await store.close();
  return { directory, path: join(directory, 'store.lmdb') };
}

function assertCorrupt(path: string) {
  return (error: Error & { code: string }) => {
    assert.equal(error.code, 'data_corrupt', error.message);
    assert.ok(error.message.includes(path), error.message);
    return true;
  };
}

describe('lmdb file', () => {
  it('is not created beside segment files that belong to a lost one', async () => {
    for (const loss of ['missing', 'empty', 'zeros']) {
      const { directory, path } = await makeFilledDirectory();
      const store = await openIn(directory);
      await store.writeBlob('a/1.arrow', [new Uint8Array(10)]);
      await store.close();
      if (loss === 'missing') await rm(path);
      else await writeFile(path, Buffer.alloc(loss === 'empty' ? 0 : 8_192));
      await assert.rejects(openLmdbStore({ directory }), assertCorrupt(path));
      assert.equal((await stat(join(directory, 'segments/a/1.arrow'))).size, 10);
    }
  });

  it('is reported as damaged when it or one of its meta pages is not of lmdb', async () => {
    const { directory, path } = await makeFilledDirectory();
    const whole = await readFile(path);
    const damages: Buffer[] = [
      Buffer.from('something else'),
      randomBytes(100_000),
      Buffer.alloc(1_000_000),
      Buffer.concat([Buffer.alloc(4_096), whole.subarray(4_096)]),
      Buffer.concat([whole.subarray(0, 4_096), randomBytes(4_096), whole.subarray(8_192)]),
      whole.subarray(0, 4_096),
      whole.subarray(0, 100),
    ];
    for (const damaged of damages) {
      await writeFile(path, damaged);
      await assert.rejects(openLmdbStore({ directory }), assertCorrupt(path));
    }
    await writeFile(path, whole);
    const store = await openIn(directory);
    assert.equal([...store.readLog('l', 0)].length, 20);
    await store.close();
  });

  it('is reported as damaged, and not changed, when its end is missing', async () => {
    const { directory, path } = await makeFilledDirectory();
    const { size } = await stat(path);
    for (const byteLength of [size - 40_000, 8_192]) {
      await truncate(path, byteLength);
      await assert.rejects(openLmdbStore({ directory }), assertCorrupt(path));
      assert.equal((await stat(path)).size, byteLength);
    }
  });

  it('may lack free pages at its end', async () => {
    const { directory, path } = await makeFilledDirectory();
    const store = await openIn(directory);
    await store.commit([{ kind: 'dropLog', log: 'l' }]);
    for (let i = 0; i < 5; i++) {
      await store.commit([{ kind: 'put', key: ['k', '1'], value: new Uint8Array(i) }]);
    }
    await store.close();
    const { size } = await stat(path);
    await truncate(path, size - 40_000);
    const again = await openIn(directory);
    await again.commit([{ kind: 'append', log: 'm', sequence: 1, record: new Uint8Array(2e6) }]);
    await again.close();
    assert.ok((await stat(path)).size >= size);
    await (await openIn(directory)).close();
  });

  it('may have more pages for a value that one transaction wrote twice', async () => {
    const { directory } = await makeFilledDirectory();
    const store = await openIn(directory);
    const key = ['twice'];
    await Promise.all([
      store.commit([{ kind: 'put', key, value: new Uint8Array(20_000) }]),
      store.commit([{ kind: 'put', key, value: new Uint8Array(5_000).fill(1) }]),
    ]);
    await store.close();
    const again = await openIn(directory);
    assert.deepEqual(Buffer.from(again.get(key)!), Buffer.alloc(5_000, 1));
    await again.close();
  });

  it('is created when a first start left it empty or blank', async () => {
    for (const blank of [Buffer.alloc(0), Buffer.alloc(8_192)]) {
      const directory = await makeDirectory();
      await writeFile(join(directory, 'store.lmdb'), blank);
      const store = await openIn(directory);
      await store.commit([{ kind: 'put', key: ['k'], value: new Uint8Array(1) }]);
      await store.close();
    }
  });

  it('is named in the error when it cannot be opened', async () => {
    const directory = await makeDirectory();
    const path = join(directory, 'store.lmdb');
    await mkdir(path);
    await assert.rejects(openLmdbStore({ directory }), (error: Error & { code: string }) => {
      assert.equal(error.code, 'configuration_invalid');
      assert.ok(error.message.includes(path), error.message);
      return true;
    });
  });
});
