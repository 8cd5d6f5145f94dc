// Free pages of the lmdb file are given back to the file system in small parts, between commits, after copies,
// and only once.

import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { open } from 'lmdb';
import { loadNativeFiles, type NativeFiles } from '../../src/platform/native-files.js';
import { FreePageRelease } from '../../src/storage/free-pages.js';
import type { DiskStore } from '../../src/storage/store.js';
import { eventually, withResolvers } from '../support/waiting.js';
import { makeDirectory, openIn } from './directories.js';

const MIB = 1024 * 1024;
/** Of the log that is dropped. */
const RECORD_COUNT = 64;
const RECORD_BYTES = MIB;

type Holes = Required<Pick<NativeFiles, 'makeHole' | 'dataFrom'>>;

function holes(t: TestContext): Holes | undefined {
  const native = loadNativeFiles();
  if (typeof native === 'object' && native.makeHole !== undefined) return native as Holes;
  t.skip('no addon that makes holes in files');
  return undefined;
}

async function openFilled(directory: string): Promise<DiskStore> {
  const store = (await openIn(directory)) as DiskStore;
  const record = new Uint8Array(RECORD_BYTES).fill(7);
  for (let sequence = 1; sequence <= RECORD_COUNT; sequence++) {
    await store.commit([
      { kind: 'append', log: 'dropped', sequence, record },
      { kind: 'append', log: 'kept', sequence, record: record.subarray(0, 10_000) },
    ]);
  }
  return store;
}

const fileIn = (directory: string) => join(directory, 'store.lmdb');
const bytesOnDisk = (directory: string) => 512 * statSync(fileIn(directory)).blocks;
const isReleased = (directory: string) => bytesOnDisk(directory) < 8 * MIB;

/** Adds up the bytes of the holes made from now on, and keeps the largest. */
function countHoles(t: TestContext, native: Holes) {
  const counted = { byteCount: 0, largestBytes: 0 };
  const makeHole = native.makeHole;
  t.mock.method(native, 'makeHole', (descriptor: number, offset: number, byteLength: number) => {
    makeHole(descriptor, offset, byteLength);
    counted.byteCount += byteLength;
    counted.largestBytes = Math.max(counted.largestBytes, byteLength);
  });
  return counted;
}

describe('free pages of the lmdb file', () => {
  it('are released in parts of at most 4 MiB, between which commits are written', async (t) => {
    const native = holes(t);
    if (native === undefined) return;
    const directory = await makeDirectory();
    const store = await openFilled(directory);
    assert.ok(bytesOnDisk(directory) > RECORD_COUNT * RECORD_BYTES);
    const counted = countHoles(t, native);
    await store.commit([{ kind: 'dropLog', log: 'dropped' }]);
    let commitCount = 0;
    while (!isReleased(directory)) {
      const before = counted.byteCount;
      commitCount++;
      const value = Buffer.from(String(commitCount));
      await store.commit([{ kind: 'put', key: ['count'], value }]);
      const partBytes = counted.byteCount - before;
      assert.ok(partBytes <= 4 * MIB, `${partBytes} bytes released before one commit`);
      assert.ok(commitCount < 10_000, 'the pages are not released');
    }
    assert.ok(commitCount >= 10, `${commitCount} commits while 64 MiB were released`);
    assert.ok(counted.byteCount < 1.1 * RECORD_COUNT * RECORD_BYTES);
    await store.close();
    await assertWhole(directory, commitCount);
  });

  it('are released after a backup during which a log was dropped', async (t) => {
    if (holes(t) === undefined) return;
    const directory = await makeDirectory();
    const store = await openFilled(directory);
    const isDone = await holdCopies(t);
    const backup = store.backup(join(await makeDirectory(), 'backup'), async () => ({
      blobNames: [],
      collectionCount: 0,
    }));
    await store.commit([{ kind: 'dropLog', log: 'dropped' }]);
    // Each waits for the batch before it: the log is swept meanwhile.
    for (let i = 1; i <= 10; i++) {
      await store.commit([{ kind: 'put', key: ['count'], value: Buffer.from(String(i)) }]);
    }
    assert.ok(!isReleased(directory), 'pages that a copy reads are kept');
    isDone.resolve();
    await backup;
    await eventually('the pages are released', () => isReleased(directory));
    await store.close();
    await assertWhole(directory, 10);
  });

  it('are not released again', async (t) => {
    const native = holes(t);
    if (native === undefined) return;
    const directory = await makeDirectory();
    const store = await openFilled(directory);
    await store.commit([{ kind: 'dropLog', log: 'dropped' }]);
    await eventually('the pages are released', () => isReleased(directory));
    await store.close();
    const counted = countHoles(t, native);
    const release = new FreePageRelease(fileIn(directory));
    let partCount = 1;
    while (release.releasePart()) partCount++;
    // Pages that the last transactions freed were not holes yet.
    assert.ok(counted.byteCount < MIB, `${counted.byteCount} bytes`);
    assert.ok(partCount <= 2, `${partCount} parts to skip the holes`);
  });

  it('are released one by one where the disk takes long for each', async (t) => {
    const native = holes(t);
    if (native === undefined) return;
    const directory = await makeDirectory();
    // The store makes no holes.
    let holeCount = 0;
    let nowMs = 0;
    let isSlow = false;
    t.mock.method(native, 'makeHole', () => {
      holeCount++;
      if (isSlow) nowMs += 100;
    });
    const store = await openFilled(directory);
    await store.commit([{ kind: 'dropLog', log: 'dropped' }]);
    await store.commit([{ kind: 'put', key: ['count'], value: Buffer.from('1') }]);
    await store.close();
    holeCount = 0;
    const release = new FreePageRelease(fileIn(directory), () => nowMs);
    const holesOfPart = () => {
      const before = holeCount;
      release.releasePart();
      return holeCount - before;
    };
    isSlow = true;
    assert.equal(holesOfPart(), 1);
    isSlow = false;
    assert.ok(holesOfPart() > 1, 'a fast disk makes several holes in a part');
  });
});

/** Copies of lmdb begin when the promise is resolved. */
async function holdCopies(t: TestContext) {
  const isDone = withResolvers();
  const root = open({ path: await makeDirectory() });
  await root.close();
  let prototype = root as object;
  while (!Object.hasOwn(prototype, 'backup')) prototype = Object.getPrototypeOf(prototype);
  const { backup } = prototype as typeof root;
  async function copyLater(this: typeof root, ...words: Parameters<typeof backup>) {
    await isDone.promise;
    return backup.apply(this, words);
  }
  t.mock.method(prototype as typeof root, 'backup', copyLater);
  return isDone;
}

async function assertWhole(directory: string, count: number): Promise<void> {
  const store = await openIn(directory);
  assert.equal(Buffer.from(store.get(['count'])!).toString(), String(count));
  assert.deepEqual([...store.readLog('dropped', 0)], []);
  const kept = [...store.readLog('kept', 0)];
  assert.equal(kept.length, RECORD_COUNT);
  for (const { record } of kept) assert.ok(record.every((byte) => byte === 7));
  await store.close();
}
