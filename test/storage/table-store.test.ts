// The store over tables that fail as those on a disk do.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { it } from 'node:test';
import { SagittaError } from '../../src/common/errors.js';
import { BlobFiles } from '../../src/storage/blob-files.js';
import type { StoreOperation } from '../../src/storage/store.js';
import { firstHead, HEAD_KEY, writeOfHead } from '../../src/storage/store-head.js';
import { MarkFile, readMark } from '../../src/storage/store-mark.js';
import { TableStore, type Tables } from '../../src/storage/table-store.js';
import { makeDirectory } from './directories.js';

const PUT: StoreOperation = { kind: 'put', key: ['k'], value: new Uint8Array([1]) };

/** Tables with no entries but the head. `write` decides what becomes of the writes. */
async function openOver(write: (fail: (error: SagittaError) => void) => Promise<void>) {
  const directory = await makeDirectory();
  const head = writeOfHead(firstHead(Buffer.alloc(16))).value!.bytes;
  let failure: SagittaError | undefined;
  let writeCount = 0;
  const tables: Tables = {
    write: () => {
      writeCount++;
      return write((error) => {
        failure = error;
      });
    },
    get failure() {
      return failure;
    },
    get: (_, key) => (key.equals(HEAD_KEY) ? head : undefined),
    readPage: () => [],
    openReader: () => ({ readPage: () => [], close() {} }),
    readKeys: () => [],
    startRelease: () => {},
    releasePart: async () => false,
    copyTo: async () => {},
    close: async () => {},
  };
  const failures: SagittaError[] = [];
  const store = new TableStore({
    directory,
    tables,
    blobs: await BlobFiles.open(join(directory, 'blobs'), { mapping: 'memory', isNew: true }),
    lock: { release: async () => {} },
    mark: await MarkFile.open(directory, () => {}),
    newDirectory: null,
    onFailure: (error) => failures.push(error),
  });
  return { store, directory, failures, writeCount: () => writeCount };
}

it('a store whose disk has failed refuses all later commits, and says so once', async () => {
  const error = new SagittaError('stopping', 'the disk failed');
  const { store, directory, failures, writeCount } = await openOver(async (fail) => {
    fail(error);
    throw error;
  });
  const first = store.commit([PUT]);
  // Not in the batch of the first one: it waits while that is written.
  await Promise.resolve();
  await Promise.resolve();
  const second = store.commit([PUT]);
  await assert.rejects(first, error);
  await assert.rejects(second, error);
  await assert.rejects(store.commit([PUT]), error);
  assert.equal(writeCount(), 1, 'nothing is written after the failure');
  assert.deepEqual(failures, [error]);
  await store.close();
  assert.equal(await readMark(directory), undefined, 'no mark of a commit that failed');
});

it('a store goes on after a write that has left nothing', async () => {
  let isFull = true;
  const { store, failures } = await openOver(async () => {
    if (isFull) throw new SagittaError('storage_full', 'full');
  });
  await assert.rejects(store.commit([PUT]), { code: 'storage_full' });
  isFull = false;
  await store.commit([PUT]);
  assert.deepEqual(failures, []);
  await store.close();
});
