// The guard of the files of a collection, when one of them is found to be damaged.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SagittaError } from '../../../src/common/errors.js';
import { FileGuard, VerificationQueue } from '../../../src/database/collection/file-guard.js';
import type { WorkerPool } from '../../../src/platform/pool.js';
import type { Segment } from '../../../src/segment/segment.js';

/** A pool of one thread, whose tasks fail. */
const failingPool = {
  threadCount: 1,
  run: () => Promise.reject(new SagittaError('data_corrupt', 'the checksum differs')),
} as unknown as WorkerPool;

/** Large enough to be verified in the pool. */
const bytes = new Uint8Array(2 ** 17);
const intact = { key: 's', failure: null } as Segment;

describe('a guard of several files', () => {
  it('answers its readers when the first file is damaged, though others were not verified', async () => {
    const damaged: string[] = [];
    const guard = new FileGuard({
      queue: new VerificationQueue(failingPool),
      onDamaged: ({ message }) => damaged.push(message),
    });
    for (const name of ['1', '2', '3']) {
      guard.add({ name, segment: intact, bytes, checksum: '' });
    }
    await guard.whenVerified();
    assert.deepEqual(damaged, [
      'Segment file 1 is damaged: the checksum differs Run "sagitta verify" to find other damage, and restore a backup.',
    ]);
    assert.throws(() => guard.requireIntact([intact]), { code: 'data_corrupt' });
    assert.equal(guard.whenVerified(), undefined);
  });
});

it('a closed queue of verifications waits for the file in progress and begins no other', async () => {
  const ends: (() => void)[] = [];
  const pool = {
    threadCount: 1,
    run: () => new Promise<void>((resolve) => ends.push(resolve)),
  } as unknown as WorkerPool;
  const queue = new VerificationQueue(pool);
  const guard = new FileGuard({ queue, onDamaged: assert.ifError });
  for (const name of ['1', '2']) {
    guard.add({ name, segment: intact, bytes, checksum: '' });
  }
  let isClosed = false;
  const closed = queue.close().then(() => {
    isClosed = true;
  });
  await new Promise(setImmediate);
  assert.equal(isClosed, false);
  ends[0]!();
  await closed;
  assert.equal(ends.length, 1);
  guard.requireIntact([intact]);
});

it('a small file is verified at once, so that its damage is known before any reader waits', () => {
  const damaged: string[] = [];
  const guard = new FileGuard({
    queue: new VerificationQueue({ threadCount: 1, run: assert.fail } as unknown as WorkerPool),
    onDamaged: ({ message }) => damaged.push(message),
  });
  const small = { segment: intact, bytes: Uint8Array.of(1, 2, 3) };
  guard.add({ ...small, name: 'sound', checksum: 'crc32:55bc801d' });
  assert.deepEqual([damaged, guard.whenVerified()], [[], undefined]);
  guard.add({ ...small, name: 'torn', checksum: 'crc32:00000000' });
  assert.match(damaged.join(), /^Segment file torn is damaged: .*crc32:55bc801d/);
  assert.equal(guard.whenVerified(), undefined);
  assert.throws(() => guard.requireIntact([intact]), { code: 'data_corrupt' });
});
