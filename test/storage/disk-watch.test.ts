// Warnings about a disk that fills up, and the state of a disk that is full, does not respond or fails.

import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { it, type TestContext } from 'node:test';
import { type Logger, silentLogger } from '../../src/common/logger.js';
import { REMOVAL_SPACE_BYTES } from '../../src/storage/disk.js';
import { type DiskProbe, DiskWatch } from '../../src/storage/disk-watch.js';
import { withResolvers } from '../support/waiting.js';
import { makeDirectory } from './directories.js';

const TOTAL_BYTES = 100 * 1024 * REMOVAL_SPACE_BYTES;

/** A disk that answers as the test says, and a log of what the watch reports. */
async function watchDisk(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'] });
  const lines: string[] = [];
  const note = (level: string) => (_details: object, message: string) => {
    lines.push(`${level}: ${message.split(/[;,]| since/)[0]}`);
  };
  const logger: Logger = { ...silentLogger, warn: note('warn'), info: note('info') };
  const disk = {
    freeBytes: TOTAL_BYTES / 2,
    writeCount: 0,
    write: (): Promise<void> => Promise.resolve(),
  };
  const probe: DiskProbe = {
    readSpace: async () => ({ freeBytes: disk.freeBytes, totalBytes: TOTAL_BYTES }),
    write() {
      disk.writeCount++;
      return disk.write();
    },
    close: async () => {},
  };
  const watch = await DiskWatch.open('/', { logger, probe });
  t.after(() => watch.close());
  const taken = () => lines.splice(0);
  return { disk, watch, taken };
}

it('each threshold of a disk that fills up is reported once per crossing', async (t) => {
  const { disk, watch, taken } = await watchDisk(t);
  const at = async (...percents: number[]) => {
    for (const percent of percents) {
      disk.freeBytes = (TOTAL_BYTES * (100 - percent)) / 100;
      await watch.check();
    }
    return taken();
  };
  assert.deepEqual(await at(50, 89), []);
  assert.deepEqual(await at(90, 91, 89, 90, 94), ['warn: the disk is more than 90 % full']);
  assert.deepEqual(await at(98, 99, 96, 97), ['warn: the disk is more than 97 % full']);
  // Usage falls clearly below the highest threshold and then exceeds it again.
  assert.deepEqual(await at(94, 97), ['warn: the disk is more than 97 % full']);
  assert.deepEqual(await at(87, 88), ['info: the disk has enough free space again']);
  assert.deepEqual(await at(96), ['warn: the disk is more than 95 % full']);
});

it('a disk is full when a write of a small record would be refused', async (t) => {
  const { disk, watch } = await watchDisk(t);
  for (const [freeBytes, kind] of [
    [REMOVAL_SPACE_BYTES + 4096, 'ok'],
    [REMOVAL_SPACE_BYTES + 4095, 'full'],
    [TOTAL_BYTES, 'ok'],
  ] as const) {
    disk.freeBytes = freeBytes;
    await watch.check();
    assert.equal(watch.state.kind, kind);
    assert.deepEqual(watch.space, { freeBytes, totalBytes: TOTAL_BYTES });
  }
});

it('a disk that does not answer is stalled until it does, and is asked once only', async (t) => {
  const { disk, watch, taken } = await watchDisk(t);
  const { promise, resolve } = withResolvers();
  disk.write = () => promise;
  const checking = watch.check();
  // The free space has been read once the write begins.
  while (disk.writeCount === 0) await Promise.resolve();
  t.mock.timers.tick(4_999);
  assert.equal(watch.state.kind, 'ok');
  t.mock.timers.tick(1);
  assert.deepEqual([watch.state.kind, watch.state.sinceMs], ['stalled', 0]);
  assert.match(watch.state.detail, /since 1970-01-01T00:00:00.000Z, so writes wait/);
  t.mock.timers.tick(60_000);
  assert.equal(watch.silentMs, 65_000);
  assert.equal(watch.check(), checking, 'a second probe would occupy another thread');
  assert.equal(disk.writeCount, 1);
  assert.deepEqual(taken(), ['warn: The disk has not answered a write of a few bytes']);
  resolve();
  await checking;
  assert.deepEqual([watch.state.kind, watch.silentMs], ['ok', 0]);
  await watch.check();
  assert.deepEqual(taken(), ['warn: the disk answers again']);
});

it('a disk that refuses the write of a probe has failed, or is full', async (t) => {
  const { disk, watch, taken } = await watchDisk(t);
  disk.write = () => Promise.reject(Object.assign(new Error('read-only'), { code: 'EROFS' }));
  await watch.check();
  await watch.check();
  assert.equal(watch.state.kind, 'failed');
  assert.match(watch.state.detail, /failed \(EROFS\)/);
  assert.deepEqual(taken(), ['warn: A write of a few bytes to the disk failed (EROFS)']);
  disk.write = () => Promise.reject(Object.assign(new Error('full'), { code: 'ENOSPC' }));
  await watch.check();
  assert.equal(watch.state.kind, 'full');
});

it('the probe of a directory writes to its disk and leaves no file', async () => {
  const directory = await makeDirectory();
  const watch = await DiskWatch.open(directory, { logger: silentLogger });
  await watch.check();
  assert.equal(watch.state.kind, 'ok');
  assert.ok(watch.space.freeBytes > 0 && watch.space.totalBytes >= watch.space.freeBytes);
  assert.deepEqual(await readdir(directory), []);
  watch.close();
});
