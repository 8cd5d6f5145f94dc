// Blobs that are kept in part, while threads read them, mappings come and go, and the source fails now and then.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';
import { Worker } from 'node:worker_threads';
import { collectGarbage } from '../../src/common/garbage.js';
import { BLOCK_BYTES } from '../../src/platform/blocks.js';
import { blocksOf, loadNativeFiles } from '../../src/platform/native-files.js';
import { CACHED_BLOCKS_MIN } from '../../src/storage/block-cache.js';
import { openStore } from '../../src/storage/open-store.js';
import { IS_NIGHTLY } from '../support/nightly.js';
import { createRandom, testSeed } from '../support/random.js';
import { eventually } from '../support/waiting.js';
import type { ReaderData } from './block-reader.js';
import { makeDirectory } from './directories.js';
import { makeBlock, SourceControl, sourceName } from './made-blocks.js';

const READER = new URL('./block-reader.js', import.meta.url);
/** A little more in all than the cache, so that blocks are read while they are about to be removed. */
const FILE_COUNT = 2;
const BLOCK_COUNT = 14;
const KEPT_COUNT = 2;
const ROUNDS = IS_NIGHTLY ? 100 : 5;

const native = loadNativeFiles();
const skip = typeof native === 'string' ? native : blocksOf(native) === null && 'not Linux';

it('partial blobs are read correctly while mappings come and go', { skip }, async () => {
  const random = createRandom(testSeed());
  const below = (count: number) => Math.floor(random() * count);
  const directory = await makeDirectory();
  const control = new SourceControl();
  const store = await openStore({
    directory,
    blocks: {
      module: new URL('./made-blocks.js', import.meta.url).href,
      data: control.shared,
    },
    blockCacheBytes: CACHED_BLOCKS_MIN * BLOCK_BYTES,
    blockDeadlines: { retryMsMax: 60_000, answerMsMax: 60_000 },
  });
  const byteLength = BLOCK_COUNT * BLOCK_BYTES - 4;
  const names = Array.from({ length: FILE_COUNT }, (_, i) => `c/${i}`);
  for (const [seed, name] of names.entries()) {
    const source = sourceName(seed, byteLength);
    const kept = [{ first: below(BLOCK_COUNT - KEPT_COUNT), count: KEPT_COUNT }];
    const read = async (block: number) => makeBlock(source, block);
    await store.writePartialBlob(name, { byteLength, source, kept, read });
  }

  /** Maps a file and reads it in a thread; the mapping ends with the thread and a collection of garbage. */
  const readSome = async () => {
    const seed = below(FILE_COUNT);
    const mapping = (await store.mapBlob(names[seed]!))!;
    const workerData: ReaderData = {
      buffer: mapping.bytes.buffer as SharedArrayBuffer,
      wordCount: byteLength >> 2,
      ...{ seed, placeSeed: random() < 0.2 ? null : below(1_000_000), readCount: 200 },
    };
    const reader = new Worker(READER, { workerData });
    const [wrongCount] = (await once(reader, 'message')) as [number];
    assert.equal(wrongCount, 0);
    assert.equal(mapping.failure, null);
  };
  for (let round = 0; round < ROUNDS; round++) {
    control.behave(random() < 0.5 ? 'fail' : 'short', below(8));
    await Promise.all(Array.from({ length: 4 }, readSome));
    collectGarbage();
  }

  await eventually('what was fetched is removed with the last mapping', async () => {
    collectGarbage();
    let allocatedBytes = 0;
    for (const name of names) {
      allocatedBytes += (await stat(join(directory, 'segments', name))).blocks * 512;
    }
    return allocatedBytes <= FILE_COUNT * (KEPT_COUNT + 1) * BLOCK_BYTES;
  });
  await store.close();
});
