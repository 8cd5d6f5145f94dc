// Shared files that are pinned by a digest, read as a whole and block by block, also by the thread that fetches blocks.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { openBlockSource } from '../../src/cluster/blobs/block-source.js';
import { FolderBlobs } from '../../src/cluster/blobs/folder-blobs.js';
import { MemoryBlobs } from '../../src/cluster/blobs/memory-blobs.js';
import { getPinned, openPinned, putPinned } from '../../src/cluster/blobs/pinned-blobs.js';
import { BLOCK_BYTES, blockDigests, digestOfBlocks } from '../../src/platform/blocks.js';
import { makeDirectory } from '../storage/directories.js';

const BYTES = Uint8Array.from({ length: 2 * BLOCK_BYTES + 100 }, (_, i) => (i * 31) % 251);
const EXPECTED = { byteCount: BYTES.length, digest: digestOfBlocks(blockDigests([BYTES])) };
const NAME = `snapshots/log/files/${EXPECTED.digest}-a`;
const blockOf = (block: number) =>
  Buffer.from(BYTES.subarray(block * BLOCK_BYTES, (block + 1) * BLOCK_BYTES));
const corrupt = { code: 'data_corrupt' };

describe('pinned blobs', () => {
  it('have one digest, however their bytes are cut into parts', () => {
    for (const cuts of [[1], [BLOCK_BYTES], [BLOCK_BYTES - 1, BLOCK_BYTES + 1, 2 * BLOCK_BYTES]]) {
      const parts = [0, ...cuts].map((from, i) => BYTES.subarray(from, cuts[i]));
      assert.equal(digestOfBlocks(blockDigests(parts)), EXPECTED.digest);
    }
  });

  it('are read as a whole and block by block', async () => {
    for (const bytes of [BYTES, BYTES.subarray(0, BLOCK_BYTES), new Uint8Array()]) {
      const blobs = new MemoryBlobs();
      const expected = { byteCount: bytes.length, digest: digestOfBlocks(blockDigests([bytes])) };
      await putPinned(blobs, NAME, [bytes]);
      assert.deepEqual(Buffer.from(await getPinned(blobs, NAME, expected)), Buffer.from(bytes));
      const blocks = await openPinned(blobs, NAME, expected);
      for (let block = 0; block * BLOCK_BYTES < bytes.length; block++) {
        const wanted = bytes.subarray(block * BLOCK_BYTES, (block + 1) * BLOCK_BYTES);
        assert.deepEqual(Buffer.from(await blocks.read(block)), Buffer.from(wanted));
      }
    }
  });

  it('are refused where they are damaged, cut, exchanged or missing', async () => {
    const blobs = new MemoryBlobs();
    await putPinned(blobs, NAME, [BYTES]);
    const written = (await blobs.get(NAME))!;
    const change = async (bytes: Uint8Array) => blobs.put(NAME, [bytes]);
    const flipped = (at: number) => written.map((byte, i) => (i === at ? byte ^ 1 : byte));
    for (const at of [0, BLOCK_BYTES + 5, BYTES.length - 1]) {
      await change(flipped(at));
      await assert.rejects(getPinned(blobs, NAME, EXPECTED), corrupt);
      const blocks = await openPinned(blobs, NAME, EXPECTED);
      for (let block = 0; block < 3; block++) {
        if (block === Math.floor(at / BLOCK_BYTES))
          await assert.rejects(blocks.read(block), corrupt);
        else assert.deepEqual(Buffer.from(await blocks.read(block)), blockOf(block));
      }
    }
    // The digests, and a file that is too long.
    for (const bytes of [flipped(BYTES.length), Buffer.concat([written, Buffer.of(0)])]) {
      await change(bytes);
      await assert.rejects(getPinned(blobs, NAME, EXPECTED), corrupt);
    }
    await change(flipped(BYTES.length));
    await assert.rejects(openPinned(blobs, NAME, EXPECTED), corrupt);
    await change(written.subarray(0, BYTES.length));
    await assert.rejects(openPinned(blobs, NAME, EXPECTED));
    await blobs.remove(NAME);
    await assert.rejects(getPinned(blobs, NAME, EXPECTED), corrupt);
    await assert.rejects(openPinned(blobs, NAME, EXPECTED), corrupt);
  });

  it('are found by the thread that fetches blocks, also under the name of a later upload', async () => {
    const folder = await makeDirectory();
    const blobs = new FolderBlobs(folder);
    const source = await openBlockSource({ kind: 'folder', folder });
    const wanted = JSON.stringify({ blob: NAME, ...EXPECTED });
    await assert.rejects(source.read(wanted, 0), corrupt);
    await putPinned(blobs, NAME, [BYTES]);
    assert.deepEqual(Buffer.from(await source.read(wanted, 1)), blockOf(1));
    await putPinned(blobs, NAME.replace(/a$/, 'b'), [BYTES]);
    await blobs.remove(NAME);
    // The first read finds that the known name is gone.
    await assert.rejects(source.read(wanted, 2), corrupt);
    assert.deepEqual(Buffer.from(await source.read(wanted, 2)), blockOf(2));
    // The collection was deleted, but not its clone.
    await putPinned(blobs, NAME.replace('/log/', '/clone/'), [BYTES]);
    await blobs.remove(NAME.replace(/a$/, 'b'));
    await assert.rejects(source.read(wanted, 0), corrupt);
    assert.deepEqual(Buffer.from(await source.read(wanted, 0)), blockOf(0));
  });
});
