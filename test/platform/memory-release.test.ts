// Releases of memory: what runs on which thread, and one release for many calls.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { MemoryRelease } from '../../src/platform/memory-release.js';
import type { WorkerPool } from '../../src/platform/pool.js';
import { eventually } from '../support/waiting.js';

function recordingPool(names: string[], threadCount: number): WorkerPool {
  return {
    threadCount,
    async run(task, input) {
      names.push(task.name);
      return task.run(input);
    },
    async close() {},
  };
}

const RELEASE = [...Array(3).fill('platform.collectGarbage'), 'platform.trimMemory'];

it('drops kept buffers, collects the garbage of every thread, then trims, once for many calls', async () => {
  const names: string[] = [];
  const memory = new MemoryRelease(recordingPool(names, 3), { quietMs: 1 });
  let dropCount = 0;
  memory.onRelease(() => dropCount++);
  for (let i = 0; i < 10; i++) memory.soon();
  await eventually('the memory is trimmed', () => names.length === RELEASE.length);
  assert.deepEqual(names, RELEASE);
  assert.equal(dropCount, 1);
  memory.soon();
  await eventually('it is trimmed again', () => names.length === 2 * RELEASE.length);
  assert.equal(dropCount, 2);
});

it('frees unreferenced shared memory', async () => {
  const memory = new MemoryRelease(recordingPool([], 1), { quietMs: 1 });
  let kept: SharedArrayBuffer | null = new SharedArrayBuffer(1_000_000);
  const held = new WeakRef(kept);
  memory.onRelease(() => {
    kept = null;
  });
  assert.equal(kept.byteLength, 1_000_000);
  memory.soon();
  await eventually('the buffer is collected', () => held.deref() === undefined);
});

it('survives a pool that refuses its tasks', async () => {
  let runCount = 0;
  const pool: WorkerPool = {
    threadCount: 2,
    async run() {
      runCount++;
      throw new Error('closed');
    },
    async close() {},
  };
  const memory = new MemoryRelease(pool, { quietMs: 1 });
  memory.soon();
  await eventually('both threads were asked', () => runCount === 2);
  memory.close();
});
