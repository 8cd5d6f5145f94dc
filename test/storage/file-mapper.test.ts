// Files mapped into memory: which files are mapped, and what happens when one is truncated.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { crc32 } from 'node:zlib';
import { loadNativeFiles } from '../../src/platform/native-files.js';
import { FileMapper } from '../../src/storage/file-mapper.js';

const native = loadNativeFiles();
if (typeof native === 'string') {
  test('mapped files', { skip: native }, () => {});
} else {
  describe('mapped files', () => {
    let folder: string;
    before(() => {
      folder = mkdtempSync(join(tmpdir(), 'sagitta-mapped-'));
    });
    after(() => rmSync(folder, { recursive: true }));

    const PAGE_BYTES = 4096;
    let fileCount = 0;
    /** Creates a file of ones. */
    function createFile(byteLength: number): string {
      const path = join(folder, `${fileCount++}`);
      writeFileSync(path, new Uint8Array(byteLength).fill(1));
      return path;
    }

    it('are those of at least 1 MiB by default, all if requested, and none in memory', () => {
      const small = createFile(1000);
      const large = createFile(1024 * 1024);
      const auto = FileMapper.create('auto', folder)!;
      assert.equal(auto.map(small, 1000), null);
      assert.ok(auto.map(large, 1024 * 1024)!.bytes.every((byte) => byte === 1));
      assert.equal(FileMapper.create('mapped', folder)!.map(small, 1000)!.bytes.length, 1000);
      assert.equal(FileMapper.create('memory', folder), null);
    });

    it('are never files of a different length, folders, empty or missing files', () => {
      const mapper = FileMapper.create('mapped', folder)!;
      const path = createFile(1000);
      assert.equal(mapper.map(path, 999), null);
      assert.equal(mapper.map(path, 1001), null);
      assert.equal(mapper.map(createFile(0), 0), null);
      assert.equal(mapper.map(join(folder, 'missing'), 1000), null);
      const inside = join(folder, 'folder');
      mkdirSync(inside);
      assert.equal(mapper.map(inside, 4096), null);
      assert.throws(() => native.map(path, 999), /cannot be mapped: it does not have the expected/);
    });

    it('stay readable after their removal', () => {
      const path = createFile(PAGE_BYTES);
      const mapping = FileMapper.create('mapped', folder)!.map(path, PAGE_BYTES)!;
      rmSync(path);
      assert.ok(mapping.bytes.every((byte) => byte === 1));
      assert.equal(mapping.failure, null);
    });

    it('are damaged when they are truncated, and read as zeros from there on', () => {
      const mapper = FileMapper.create('mapped', folder)!;
      // Truncates within the last page, at its start, within the first page, and to nothing.
      for (const length of [5 * PAGE_BYTES - 1, 4 * PAGE_BYTES, 10, 0]) {
        const path = createFile(5 * PAGE_BYTES);
        const cut = mapper.map(path, 5 * PAGE_BYTES)!;
        const whole = mapper.map(createFile(PAGE_BYTES), PAGE_BYTES)!;
        truncateSync(path, length);
        const found = cut.bytes.map((byte) => byte);
        assert.ok(
          found.every((byte, at) => byte === (at < length ? 1 : 0)),
          `cut to ${length}`,
        );
        assert.equal(cut.failure, 'damaged', `cut to ${length}`);
        assert.equal(whole.failure, null);
      }
    });

    it('are damaged for all threads when one of them reads beyond the new end', async () => {
      const path = createFile(PAGE_BYTES * 100);
      const mapping = FileMapper.create('mapped', folder)!.map(path, PAGE_BYTES * 100)!;
      truncateSync(path, PAGE_BYTES);
      const worker = new Worker(
        `const { workerData, parentPort } = require('node:worker_threads');
         parentPort.postMessage(new Uint8Array(workerData).reduce((sum, byte) => sum + byte, 0));`,
        { eval: true, workerData: mapping.bytes.buffer },
      );
      const [sum] = (await once(worker, 'message')) as [number];
      assert.equal(sum, PAGE_BYTES);
      assert.equal(mapping.failure, 'damaged');
      await worker.terminate();
    });
  });

  test('the native checksum is that of zlib, at every length and alignment', () => {
    if (native.crc32 === undefined) return;
    const bytes = Uint8Array.from({ length: 400 }, (_, i) => (i * 2_654_435_761) >>> 13);
    for (let from = 0; from < 70; from++) {
      for (let to = from; to <= bytes.length; to++) {
        const part = bytes.subarray(from, to);
        assert.equal(native.crc32(part, from * 0x1234567), crc32(part, (from * 0x1234567) >>> 0));
      }
    }
  });
}
