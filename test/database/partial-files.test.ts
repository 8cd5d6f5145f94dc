// A collection whose values are not on the disk answers as before, and is unavailable while they cannot be fetched.

import assert from 'node:assert/strict';
import { copyFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import type { Database } from '../../src/database/database.js';
import { verifyDirectory } from '../../src/offline.js';
import { BLOCK_BYTES, type BlockRange } from '../../src/platform/blocks.js';
import { blocksOf, loadNativeFiles } from '../../src/platform/native-files.js';
import { decodeSegment } from '../../src/segment/segment-file.js';
import { openStore } from '../../src/storage/open-store.js';
import type { DiskStore } from '../../src/storage/store.js';
import { makeDirectory } from '../storage/directories.js';
import type { FolderBlocks } from '../storage/folder-blocks.js';
import { SourceControl } from '../storage/made-blocks.js';
import { eventually } from '../support/waiting.js';
import { batchOf, openDatabase } from './harness.js';

const MODULE = new URL('../storage/folder-blocks.js', import.meta.url).href;
const DIMENSION = 4096;
const ROW_COUNT = 256;
const SHAPE = {
  vectors: { '': { kind: 'dense', dimension: DIMENSION, metric: 'dot' } },
  description: null,
  labels: {},
} as const;
const vectors = Array.from({ length: ROW_COUNT }, (_, i) => ({
  id: `v${i}`,
  values: Array.from({ length: DIMENSION }, (_, j) => ((i * 7919 + j * 104_729) % 1009) / 1009),
  metadata: `{"i":${i}}`,
}));
const query = { vector: Float32Array.from(vectors[150]!.values), topK: 5, includeValues: true };

const native = loadNativeFiles();
const reason = typeof native === 'string' ? native : blocksOf(native) === null && 'not Linux';

async function answersOf(database: Database): Promise<string> {
  const collection = database.collection('c');
  const { timings: _, ...found } = await collection.query(query);
  return JSON.stringify([found, await collection.fetch(['v7'], { values: true, metadata: true })]);
}

/** The blocks of a segment file that have anything but values. */
async function keptBlocks(path: string): Promise<BlockRange[]> {
  const bytes = new Uint8Array(new SharedArrayBuffer((await readFile(path)).byteLength));
  bytes.set(await readFile(path));
  const [column] = decodeSegment(bytes, { key: 'k', number: 1 }).toData().vectors;
  const { byteOffset, byteLength } = column!.values;
  const kept: BlockRange[] = [];
  for (let first = 0; first * BLOCK_BYTES < bytes.byteLength; first++) {
    const begin = first * BLOCK_BYTES;
    const isOfValues = begin >= byteOffset && begin + BLOCK_BYTES <= byteOffset + byteLength;
    if (!isOfValues) kept.push({ first, count: 1 });
  }
  return kept;
}

describe('a collection whose values are not on the disk', { skip: reason }, () => {
  const control = new SourceControl();
  let directory: string;
  let name: string;
  let expected: string;

  const open = async () => {
    const data: FolderBlocks = { folder: join(directory, 'segments'), shared: control.shared };
    const store = await openStore({
      directory,
      mapping: 'mapped',
      blocks: { module: MODULE, data },
      blockDeadlines: { retryMsMax: 0, answerMsMax: 60_000 },
    });
    const database = await openDatabase({ store, limits: { segmentRowsMax: ROW_COUNT } });
    return { store, database };
  };
  const close = async ({ store, database }: { store: DiskStore; database: Database }) => {
    await database.close();
    await store.close();
  };

  before(async () => {
    directory = await makeDirectory();
    const opened = await open();
    await opened.database.createCollection({ id: 'c', ...SHAPE });
    await opened.database.collection('c').write(batchOf(vectors), { mode: 'upsert' });
    await eventually(
      'the segment is mapped',
      () => opened.database.collection('c').record().memory.mappedBytes > 0,
    );
    expected = await answersOf(opened.database);
    const names = (await opened.store.listBlobs()).filter((each) => each.endsWith('.arrow'));
    assert.equal(names.length, 1);
    [name] = names as [string];
    await opened.database.close();
    const path = join(directory, 'segments', name);
    const whole = join(directory, 'whole.arrow');
    await copyFile(path, whole);
    const kept = await keptBlocks(whole);
    const bytes = await readFile(whole);
    assert.ok(kept.length * BLOCK_BYTES < bytes.byteLength - 2 * BLOCK_BYTES);
    await opened.store.writePartialBlob(name, {
      ...{ byteLength: bytes.byteLength, source: '../whole.arrow', kept },
      read: async (block) => bytes.subarray(block * BLOCK_BYTES, (block + 1) * BLOCK_BYTES),
    });
    await opened.store.close();
  });

  it('answers as before, and fetches only what it reads', async () => {
    const opened = await open();
    assert.equal(control.readCount, 0);
    assert.equal(await answersOf(opened.database), expected);
    assert.ok(control.readCount > 0);
    await close(opened);
  });

  it('is unavailable while they cannot be fetched, and then loaded again', async () => {
    const opened = await open();
    control.behave('fail');
    const unavailable = {
      code: 'collection_unavailable',
      message: /Parts of the file .+ are not on the disk of this node/,
    };
    await assert.rejects(answersOf(opened.database), unavailable);
    await assert.rejects(opened.database.collection('c').count({}), { code: 'starting' });
    control.behave('work');
    await eventually('it is loaded again', async () => {
      return answersOf(opened.database).then(
        (answers) => answers === expected,
        () => false,
      );
    });
    await close(opened);
  });

  it('is verified as far as it is on the disk', async () => {
    assert.deepEqual((await verifyDirectory(directory)).findings, []);
  });
});
