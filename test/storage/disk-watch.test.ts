// Warnings about a disk that fills up.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { type Logger, silentLogger } from '../../src/common/logger.js';
import { DiskWatch } from '../../src/storage/disk-watch.js';

it('each threshold of a disk that fills up is reported once per crossing', () => {
  const lines: string[] = [];
  const note = (level: string) => (details: object, message: string) => {
    const percent = (details as { used_percent: number }).used_percent;
    lines.push(`${level} ${percent}: ${message.split(';')[0]}`);
  };
  const logger: Logger = { ...silentLogger, warn: note('warn'), info: note('info') };
  let used = 50;
  const read = () => ({ freeBytes: 100 - used, totalBytes: 100 });
  const watch = new DiskWatch('/', { logger, read });
  const at = (...percents: number[]) => {
    lines.length = 0;
    for (const percent of percents) {
      used = percent;
      watch.check();
    }
    return [...lines];
  };
  assert.deepEqual(at(50, 89), []);
  assert.deepEqual(at(90, 91, 89, 90, 94), ['warn 90: the disk is more than 90 % full']);
  assert.deepEqual(at(98, 99, 96, 97), ['warn 98: the disk is more than 97 % full']);
  // Usage falls clearly below the highest threshold and then exceeds it again.
  assert.deepEqual(at(94, 97), ['warn 97: the disk is more than 97 % full']);
  assert.deepEqual(at(87, 88), ['info 87: the disk has enough free space again']);
  assert.deepEqual(at(96), ['warn 96: the disk is more than 95 % full']);
  watch.close();
});

it('a failed check of the disk is ignored', () => {
  const read = () => {
    throw new Error('EIO');
  };
  new DiskWatch('/', { logger: silentLogger, read }).close();
});
