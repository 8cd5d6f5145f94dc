// Blobs that are kept in part: blocks are fetched when threads read them, and the cache is bounded. What the source does
// when it fails, and what a restart leaves.

import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { closeSync } from 'node:fs';
import { open as openFile, readdir, rename, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { describe, it, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import type { FileMapping } from '../../src/common/types.js';
import { BLOCK_BYTES, type BlockRange } from '../../src/platform/blocks.js';
import { checksumOf } from '../../src/platform/crc32.js';
import {
  blocksOf,
  loadNativeFiles,
  type NativeFiles,
  UNAVAILABLE_FLAG,
} from '../../src/platform/native-files.js';
import { CACHED_BLOCKS_MIN } from '../../src/storage/block-cache.js';
import type { BlockDeadlines, FetchedBlock } from '../../src/storage/block-source.js';
import { openStore } from '../../src/storage/open-store.js';
import { ReadAhead } from '../../src/storage/read-ahead.js';
import type { DiskStore } from '../../src/storage/store.js';
import { StoreInspection } from '../../src/storage/store-inspection.js';
import { IS_NIGHTLY } from '../support/nightly.js';
import { testSeed } from '../support/random.js';
import { eventually } from '../support/waiting.js';
import { choose, nameBlobs } from './backup-store.js';
import type { ReaderData } from './block-reader.js';
import { makeDirectory, openRestored } from './directories.js';
import { makeBlock, SourceControl, sourceName } from './made-blocks.js';

const MODULE = new URL('./made-blocks.js', import.meta.url).href;
const OWNER = new URL('./partial-owner.js', import.meta.url);
const READER = new URL('./block-reader.js', import.meta.url);
const NAME = 'c/1.arrow';
const SEED = 12345;

const native = loadNativeFiles();
const reason = typeof native === 'string' ? native : blocksOf(native) === null && 'not Linux';

/** A store with a source under the control of the test. */
async function open(options: { directory?: string; deadlines?: Partial<BlockDeadlines> } = {}) {
  const directory = options.directory ?? (await makeDirectory());
  const control = new SourceControl();
  const warnings: string[] = [];
  const fetched: FetchedBlock[] = [];
  const store = await openStore({
    directory,
    blocks: { module: MODULE, data: control.shared },
    blockCacheBytes: CACHED_BLOCKS_MIN * BLOCK_BYTES,
    blockDeadlines: { retryMsMax: 60_000, answerMsMax: 60_000, ...options.deadlines },
    onFetched: (block) => fetched.push(block),
    warn: (message) => warnings.push(message),
  });
  assert.ok(store.canPartial);
  return { directory, control, store, warnings, fetched, path: join(directory, 'segments', NAME) };
}

async function write(store: DiskStore, byteLength: number, kept: readonly BlockRange[] = []) {
  const source = sourceName(SEED, byteLength);
  const read = async (block: number) => makeBlock(source, block);
  await store.writePartialBlob(NAME, { byteLength, source, kept, read });
}

async function mapIn(store: DiskStore): Promise<FileMapping> {
  const mapping = await store.mapBlob(NAME);
  assert.ok(mapping !== null);
  return mapping;
}

const allocated = async (path: string) => ((await stat(path)).blocks * 512) / BLOCK_BYTES;

async function readIn(mapping: FileMapping, placeSeed: number | null, readCount = 0) {
  const workerData: ReaderData = {
    buffer: mapping.bytes.buffer as SharedArrayBuffer,
    wordCount: mapping.bytes.byteLength >> 2,
    ...{ seed: SEED, placeSeed, readCount },
  };
  const [wrongCount] = (await once(new Worker(READER, { workerData }), 'message')) as [number];
  return wrongCount;
}

/** Whether all numbers of these blocks are those of the blob. */
function isRight(bytes: Uint8Array, ...blocks: number[]): boolean {
  const source = sourceName(SEED, bytes.byteLength);
  return blocks.every((block) => {
    const offset = block * BLOCK_BYTES;
    return Buffer.from(makeBlock(source, block)).equals(
      bytes.subarray(offset, Math.min(offset + BLOCK_BYTES, bytes.byteLength)),
    );
  });
}

const isZero = (bytes: Uint8Array, block: number) =>
  bytes.subarray(block * BLOCK_BYTES, (block + 1) * BLOCK_BYTES).every((byte) => byte === 0);

describe('partial blobs', { skip: reason }, () => {
  it('fetch a block when the main thread reads it, once', async () => {
    const { store, control } = await open();
    const byteLength = 5 * BLOCK_BYTES + 1000;
    await write(store, byteLength, [{ first: 1, count: 2 }]);
    const mapping = await mapIn(store);
    assert.equal(mapping.bytes.byteLength, byteLength);
    assert.ok(isRight(mapping.bytes, 1, 2));
    assert.equal(control.readCount, 0);
    assert.ok(isRight(mapping.bytes, 4));
    assert.ok(isRight(mapping.bytes, 4));
    assert.equal(control.readCount, 1);
    assert.ok(isRight(mapping.bytes, 5, 0, 3));
    assert.equal(mapping.failure, null);
    assert.deepEqual(mapping.kept!.ranges, [{ begin: BLOCK_BYTES, end: 3 * BLOCK_BYTES }]);
    const whole = makeBlock(sourceName(SEED, byteLength), 1);
    assert.equal(
      mapping.kept!.checksum,
      checksumOf([whole, makeBlock(sourceName(SEED, byteLength), 2)]),
    );
    await store.close();
  });

  it('report what is fetched, cached and kept', async () => {
    const { store, control, fetched } = await open();
    const cacheBytesMax = CACHED_BLOCKS_MIN * BLOCK_BYTES;
    const nothing = { keptBytes: 0, cachedBytes: 0, cacheBytesMax };
    assert.deepEqual(store.partialUse, nothing);
    await write(store, 20 * BLOCK_BYTES + 1000, [
      { first: 1, count: 2 },
      { first: 20, count: 1 },
    ]);
    // A blob that is read as a whole is fetched, but not cached.
    control.behave('fail', 2);
    assert.ok(isRight((await store.readBlob(NAME))!, 0, 20));
    assert.equal(fetched.length, 18);
    assert.deepEqual(store.partialUse, nothing);

    fetched.length = 0;
    const mapping = await mapIn(store);
    const keptBytes = 2 * BLOCK_BYTES + 1000;
    assert.deepEqual(store.partialUse, { ...nothing, keptBytes });
    assert.ok(isRight(mapping.bytes, 1, 4));
    await eventually('a report', () => store.partialUse!.cachedBytes > 0);
    assert.deepEqual(store.partialUse, { keptBytes, cachedBytes: BLOCK_BYTES, cacheBytesMax });
    assert.deepEqual(
      fetched.map(({ byteLength }) => byteLength),
      [BLOCK_BYTES],
    );
    assert.ok(fetched[0]!.seconds >= 0);

    // More than the cache has room for.
    for (let block = 3; block < 20; block++) assert.ok(isRight(mapping.bytes, block));
    await eventually('all reports', () => fetched.length >= 17);
    await eventually('a full cache', () => store.partialUse!.cachedBytes === cacheBytesMax);
    await store.close();
    assert.deepEqual(store.partialUse, nothing);
  });

  it('are read correctly by several threads, while the cache is far smaller', async () => {
    const { store, path } = await open();
    await write(store, 40 * BLOCK_BYTES + 12, [
      { first: 3, count: 1 },
      { first: 20, count: 4 },
    ]);
    // Mappings of one file share what is in it.
    const mappings = [await mapIn(store), await mapIn(store)] as const;
    const seed = testSeed();
    const rounds = IS_NIGHTLY ? 3_000 : 30;
    const wrong = await Promise.all(
      [null, seed, seed + 1].map((each, i) => readIn(mappings[i % 2]!, each, rounds)),
    );
    assert.deepEqual(wrong, [0, 0, 0]);
    for (const { failure } of mappings) assert.equal(failure, null);
    const blocks = await allocated(path);
    assert.ok(blocks <= 5 + 16 + 1, `${blocks} MiB`);
    await store.close();
  });

  it('are fetched once by a thread that reads them in sequence, and ahead of it', async () => {
    const { store, control } = await open();
    await write(store, 50 * BLOCK_BYTES);
    const { bytes } = await mapIn(store);
    let sum = 0;
    for (let at = 0; at < bytes.byteLength; at += 4096) sum += bytes[at]!;
    assert.ok(sum > 0);
    assert.equal(control.readCount, 50);
    await store.close();
  });

  it('keep a block in the cache that is read between all others', async () => {
    const { store, control } = await open();
    await write(store, 60 * BLOCK_BYTES);
    const { bytes } = await mapIn(store);
    for (let i = 1; i < 59; i++) {
      assert.equal(typeof bytes[i], 'number');
      // Not in sequence, and no neighbour of the nine before.
      assert.equal(typeof bytes[(1 + ((i * 25) % 59)) * BLOCK_BYTES], 'number');
    }
    assert.equal(control.readCount, 59);
    await store.close();
  });

  it('are fetched again until the source answers with whole blocks', async () => {
    const { store, control } = await open();
    await write(store, 4 * BLOCK_BYTES);
    const mapping = await mapIn(store);
    control.behave('fail', 2);
    assert.ok(isRight(mapping.bytes, 0));
    control.behave('short', 2);
    assert.ok(isRight(mapping.bytes, 2));
    assert.equal(control.readCount, 6);
    assert.equal(mapping.failure, null);
    await store.close();
  });

  for (const behaviour of ['fail', 'short'] as const) {
    it(`are unavailable if the source does not answer (${behaviour}), until they are mapped anew`, async () => {
      const { store, control, warnings } = await open({ deadlines: { retryMsMax: 100 } });
      await write(store, 4 * BLOCK_BYTES, [{ first: 0, count: 1 }]);
      const mapping = await mapIn(store);
      control.behave(behaviour);
      assert.ok(isZero(mapping.bytes, 1));
      assert.equal(mapping.failure, 'unavailable');
      const { readCount } = control;
      assert.ok(isZero(mapping.bytes, 2));
      assert.equal(control.readCount, readCount, 'nothing more is fetched for this mapping');
      assert.ok(isRight(mapping.bytes, 0));
      await eventually('a warning', () => warnings.length > 0);
      assert.match(warnings[0]!, /^Blocks of 12345:4194304 could not be fetched: .+/);

      control.behave('work');
      const again = await mapIn(store);
      assert.ok(isRight(again.bytes, 0, 1, 2, 3));
      assert.equal(again.failure, null);
      assert.equal(mapping.failure, 'unavailable');
      assert.ok(isZero(mapping.bytes, 1));
      await store.close();
    });
  }

  it('are unavailable if the source never answers', async () => {
    const { store, control } = await open({ deadlines: { retryMsMax: 0, answerMsMax: 1 } });
    await write(store, 4 * BLOCK_BYTES);
    const mapping = await mapIn(store);
    control.behave('hang');
    const wrongCounts = await Promise.all([readIn(mapping, null), readIn(mapping, 1, 100)]);
    assert.ok(wrongCounts.every((count) => count > 0));
    assert.equal(mapping.failure, 'unavailable');
    await store.close();
  });

  it('end all waiting when the store is closed', async () => {
    const { store, control } = await open();
    await write(store, 4 * BLOCK_BYTES);
    const mapping = await mapIn(store);
    control.behave('hang');
    const reading = readIn(mapping, null);
    await eventually('a fetch', () => control.readCount > 0);
    await store.close();
    assert.ok((await reading) > 0);
    assert.equal(mapping.failure, 'unavailable');
    assert.ok(isZero(mapping.bytes, 3), 'later reads do not wait either');
  });

  it('are damaged when their file is cut', async () => {
    const { store, path } = await open();
    await write(store, 8 * BLOCK_BYTES, [{ first: 0, count: 5 }]);
    const mapping = await mapIn(store);
    assert.ok(isRight(mapping.bytes, 1, 6));
    await truncate(path, 2 * BLOCK_BYTES);
    assert.equal(mapping.failure, 'damaged', 'the end of the file has changed');
    assert.ok(isZero(mapping.bytes, 3));
    assert.ok(isRight(mapping.bytes, 1));
    assert.ok(isZero(mapping.bytes, 7), 'nothing more is fetched');
    await store.close();
  });

  it('are read whole, by snapshots too, and copied without what was fetched', async () => {
    const { store, directory, control } = await open();
    const byteLength = 5 * BLOCK_BYTES + 1;
    await write(store, byteLength, [{ first: 2, count: 1 }]);
    const mapping = await mapIn(store);
    assert.ok(isRight(mapping.bytes, 0, 1));
    await store.copyBlob(NAME, 'd/7');
    assert.ok((await allocated(join(directory, 'segments/d/7'))) < 1.1);
    const all = [0, 1, 2, 3, 4, 5];
    assert.ok(isRight((await store.readBlob('d/7'))!, ...all));
    const copy = await store.mapBlob('d/7');
    assert.ok(isRight(copy!.bytes, ...all));
    await store.withSnapshot(async (snapshot) => {
      await store.removeBlob(NAME);
      assert.equal(await store.mapBlob(NAME), null);
      assert.ok(isRight((await snapshot.readBlob(NAME))!, ...all));
    });
    assert.ok(isRight(mapping.bytes, ...all), 'the mapping outlives the blob');
    assert.deepEqual(await store.listBlobs(), ['d/7']);
    control.behave('fail');
    await store.close();
  });

  it('are replaced by whole blobs, and replace them', async () => {
    const { store } = await open();
    await store.writeBlob(NAME, [Buffer.from('whole')]);
    await write(store, BLOCK_BYTES);
    assert.ok(isRight((await store.readBlob(NAME))!, 0));
    await store.writeBlob(NAME, [Buffer.from('whole')]);
    assert.equal(Buffer.from((await store.readBlob(NAME))!).toString(), 'whole');
    await store.close();
  });

  it('can be written to other blobs from their mapping', async () => {
    const { store } = await open();
    await write(store, 5 * BLOCK_BYTES + 1, [{ first: 2, count: 1 }]);
    const { bytes } = await mapIn(store);
    await store.writeBlob('d/1', [bytes.subarray(0, 10), bytes.subarray(10)]);
    const written = await store.readBlob('d/1');
    assert.ok(isRight(written!, 0, 1, 2, 3, 4, 5));
    await store.close();
  });

  it('are whole in backups', async () => {
    const { store, directory, control } = await open({ deadlines: { retryMsMax: 0 } });
    await write(store, 3 * BLOCK_BYTES, [{ first: 2, count: 1 }]);
    await store.commit([nameBlobs(NAME)]);
    const backup = join(directory, '../', `${basename(directory)}-backup`);
    control.behave('fail');
    await assert.rejects(store.backup(backup, choose), { code: 'collection_unavailable' });
    await assert.rejects(stat(backup), { code: 'ENOENT' });
    control.behave('work');
    await store.backup(backup, choose);
    const restored = await openRestored(backup);
    assert.ok(isRight((await restored.readBlob(NAME))!, 0, 1, 2));
    await restored.close();
    await rm(backup, { recursive: true });
    await store.close();
  });

  it('cannot be read without their source, except for what is kept', async () => {
    const { store, directory } = await open();
    await write(store, 3 * BLOCK_BYTES, [{ first: 2, count: 1 }]);
    await store.close();
    const without = await openStore({ directory });
    assert.equal(without.canPartial, false);
    assert.equal(await without.mapBlob(NAME), null);
    await assert.rejects(without.readBlob(NAME), { code: 'collection_unavailable' });
    await without.close();
    const inspection = await StoreInspection.open(directory, () => {});
    assert.equal(inspection.blobs.get(NAME), 3 * BLOCK_BYTES);
    const bytes = await inspection.readBlob(NAME);
    assert.ok(isRight(bytes, 2));
    assert.ok(isZero(bytes, 0));
    assert.deepEqual((await inspection.keptParts(NAME))!.ranges, [
      { begin: 2 * BLOCK_BYTES, end: 3 * BLOCK_BYTES },
    ]);
    await inspection.close();
  });

  it('are read into memory where files are not mapped', async () => {
    const { store, directory } = await open();
    await write(store, 3 * BLOCK_BYTES, [{ first: 2, count: 1 }]);
    await store.close();
    const { shared } = new SourceControl();
    const blocks = { module: MODULE, data: shared };
    const again = await openStore({ directory, blocks, mapping: 'memory' });
    assert.equal(again.canPartial, false);
    assert.equal(await again.mapBlob(NAME), null);
    assert.ok(isRight((await again.readBlob(NAME))!, 0, 1, 2));
    await again.close();
  });

  it('report a module that cannot be loaded', async () => {
    const { store, directory } = await open();
    await write(store, 3 * BLOCK_BYTES);
    await store.close();
    const blocks = { module: new URL('./none.js', import.meta.url).href, data: null };
    const again = await openStore({ directory, blocks, blockDeadlines: { retryMsMax: 0 } });
    await assert.rejects(again.mapBlob(NAME), /none\.js/);
    await assert.rejects(again.readBlob(NAME), { code: 'collection_unavailable' });
    await again.close();
  });

  it('are damaged where their description is', async () => {
    const { store, path } = await open();
    await write(store, BLOCK_BYTES);
    const { size } = await stat(path);
    const file = await openFile(path, 'r+');
    await file.write(Buffer.from('x'), 0, 1, size - 20);
    await file.close();
    await assert.rejects(store.readBlob(NAME), { code: 'data_corrupt', message: /description/ });
    await assert.rejects(store.mapBlob(NAME), { code: 'data_corrupt' });
    await store.close();
  });
});

describe('partial blobs after a restart', { skip: reason }, () => {
  it('have only what was kept; what was fetched before is not trusted', async () => {
    const { store, directory, path } = await open();
    await write(store, 6 * BLOCK_BYTES, [{ first: 2, count: 1 }]);
    const { bytes } = await mapIn(store);
    assert.ok(isRight(bytes, 0, 1, 2, 3, 4, 5));
    assert.ok((await allocated(path)) > 5);
    await store.close();
    // As after a crash that left half of a block.
    const file = await openFile(path, 'r+');
    await file.write(Buffer.alloc(5_000, 7), 0, 5_000, BLOCK_BYTES);
    await file.close();
    const again = await open({ directory });
    const mapping = await mapIn(again.store);
    assert.ok((await allocated(path)) < 1.1);
    assert.ok(isRight(mapping.bytes, 0, 1, 2, 3, 4, 5));
    await again.store.close();
  });

  it('are whole when the process is killed while blocks are fetched', async () => {
    const { store, directory, path } = await open();
    await write(store, 40 * BLOCK_BYTES, [{ first: 10, count: 2 }]);
    await store.close();
    const child = fork(OWNER, [directory, NAME, 'read'], { stdio: 'inherit' });
    await once(child, 'message');
    child.kill('SIGKILL');
    await once(child, 'exit');
    const again = await open({ directory });
    const mapping = await mapIn(again.store);
    assert.ok((await allocated(path)) < 2.1);
    assert.ok(isRight(mapping.bytes, 0, 9, 10, 11, 39));
    await again.store.close();
  });

  it('do not keep a process from ending while a thread waits for a block', async () => {
    const { store, directory } = await open();
    await write(store, 4 * BLOCK_BYTES);
    await store.close();
    for (const ending of ['exit', 'throw']) {
      const child = fork(OWNER, [directory, NAME, ending], {
        stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      });
      const [code] = (await once(child, 'exit')) as [number];
      assert.equal(code, ending === 'exit' ? 7 : 1);
    }
  });

  it('are not there if their file was not finished', async () => {
    const { store, directory } = await open();
    await write(store, 4 * BLOCK_BYTES);
    await store.close();
    const folder = join(directory, 'segments/c');
    await rename(join(folder, '1.arrow'), join(folder, '1.arrow.1.unfinished'));
    const again = await open({ directory });
    assert.deepEqual(await again.store.listBlobs(), []);
    assert.deepEqual(await readdir(join(directory, 'segments')), []);
    await again.store.close();
  });
});

test('no more blocks are mapped than the kernel allows', { skip: reason }, async () => {
  const blocks = blocksOf(loadNativeFiles() as NativeFiles)!;
  const pageBytes = 65_536;
  const blockCount = 8_200;
  const path = join(await makeDirectory(), 'file');
  await writeFile(path, '');
  await truncate(path, blockCount * pageBytes);
  const { queue, descriptor } = blocks.openQueue();
  const file = await openFile(path, 'r');
  const { index, generation, buffer } = blocks.mapPartial(
    ...([file.fd, blockCount * pageBytes, pageBytes, new Uint32Array([0, 1]), queue] as const),
  );
  let mappedCount = 0;
  // Every second one, so that the kernel cannot join them.
  while (blocks.mapBlock(index, generation, mappedCount + 1) && mappedCount < blockCount)
    mappedCount++;
  assert.ok(mappedCount >= 8_000 && mappedCount <= 8_192, String(mappedCount));
  assert.equal(blocks.dropBlock(index, generation, 5), false);
  blocks.restBlock(index, generation, 5);
  assert.equal(blocks.dropBlock(index, generation, 5), true);
  assert.ok(blocks.mapBlock(index, generation, mappedCount + 1));
  blocks.closeQueue(queue);
  assert.equal(new Uint8Array(buffer)[5 * pageBytes], 0);
  assert.equal((loadNativeFiles() as NativeFiles).flags()[index], UNAVAILABLE_FLAG);
  for (let block = 1; block < blockCount; block++) blocks.restBlock(index, generation, block);
  await file.close();
  closeSync(descriptor);
});

test('a sequence is fetched ahead in windows that double; other reads are not', () => {
  const ahead = new ReadAhead(8);
  assert.equal(ahead.next(10), null);
  assert.equal(ahead.next(500), null);
  assert.deepEqual(ahead.next(11), { from: 12, to: 14, marker: 12 });
  assert.deepEqual(ahead.next(12), { from: 14, to: 17, marker: 14 });
  assert.deepEqual(ahead.next(14), { from: 17, to: 23, marker: 18 });
  assert.deepEqual(ahead.next(18), { from: 23, to: 27, marker: 22 });
  assert.equal(ahead.next(13), null);
  assert.deepEqual(ahead.next(501), { from: 502, to: 504, marker: 502 });
});
