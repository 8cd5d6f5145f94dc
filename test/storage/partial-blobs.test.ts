// Blobs that are kept in part: blocks are fetched when threads read them, and the cache is bounded. What the source does
// when it fails, and what a restart leaves.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import type { FileMapping } from '../../src/common/types.js';
import { blocksOf, loadNativeFiles } from '../../src/platform/native-files.js';
import { openStore } from '../../src/storage/open-store.js';
import { BLOCK_BYTES, type BlockRange, blocksIn } from '../../src/storage/partial-blob.js';
import type { DiskStore } from '../../src/storage/store.js';
import { testSeed } from '../support/random.js';
import type { ReaderData } from './block-reader.js';
import { makeDirectory } from './directories.js';
import { makeBlock, SourceControl, sourceName, wordAt } from './made-blocks.js';

const MODULE = new URL('./made-blocks.js', import.meta.url).href;
const READER = new URL('./block-reader.js', import.meta.url);
const NAME = 'c/1.arrow';
const SEED = 12345;

const native = loadNativeFiles();
const reason = typeof native === 'string' ? native : blocksOf(native) === null && 'not Linux';

/** A store with a source under the control of the test. */
async function open(
  options: { directory?: string; cacheBlocks?: number; retryMsMax?: number } = {},
) {
  const directory = options.directory ?? (await makeDirectory());
  const control = new SourceControl();
  const warnings: string[] = [];
  const store = await openStore({
    directory,
    blocks: { module: MODULE, data: control.shared },
    blockCacheBytes: (options.cacheBlocks ?? 16) * BLOCK_BYTES,
    blockRetryMsMax: options.retryMsMax ?? 60_000,
    warn: (message) => warnings.push(message),
  });
  assert.ok(store.canPartial);
  return { directory, control, store, warnings, path: join(directory, 'segments', NAME) };
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

const wordsOf = ({ bytes }: { bytes: Uint8Array }) =>
  new Int32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength >> 2);
const firstOf = (block: number) => (block * BLOCK_BYTES) / 4;
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

if (reason !== false) {
  test('partial blobs', { skip: reason }, () => {});
} else {
  describe('partial blobs', () => {
    it('fetch a block when the main thread reads it, once', async () => {
      const { store, control } = await open();
      const byteLength = 5 * BLOCK_BYTES + 1000;
      await write(store, byteLength, [{ first: 1, count: 2 }]);
      const mapping = await mapIn(store);
      const words = wordsOf(mapping);
      assert.equal(mapping.bytes.byteLength, byteLength);
      assert.equal(words[firstOf(1)], wordAt(SEED, firstOf(1)));
      assert.equal(control.readCount, 0);
      assert.equal(words[firstOf(4) + 7], wordAt(SEED, firstOf(4) + 7));
      assert.equal(words[firstOf(4) + 9], wordAt(SEED, firstOf(4) + 9));
      assert.equal(control.readCount, 1);
      assert.equal(words.at(-1), wordAt(SEED, words.length - 1));
      assert.equal(mapping.failure, null);
      assert.deepEqual(mapping.kept!.ranges, [{ begin: BLOCK_BYTES, end: 3 * BLOCK_BYTES }]);
      await store.close();
    });

    it('are read correctly by several threads, while the cache is far smaller', async () => {
      const { store, path } = await open();
      const byteLength = 60 * BLOCK_BYTES + 12;
      await write(store, byteLength, [
        { first: 3, count: 1 },
        { first: 20, count: 4 },
      ]);
      const mapping = await mapIn(store);
      const seed = testSeed();
      const wrong = await Promise.all(
        [null, seed, seed + 1, seed + 2, seed + 3].map((each) => readIn(mapping, each, 300)),
      );
      assert.deepEqual(wrong, [0, 0, 0, 0, 0]);
      assert.equal(mapping.failure, null);
      const blocks = await allocated(path);
      assert.ok(blocks <= 5 + 16 + 1, `${blocks} MiB`);
      await store.close();
    });
  });
}
void [readdir, blocksIn];
