// Many tasks in the threads of the pool.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { trimMemoryTask } from '../../src/platform/memory-release.js';
import { createThreadPool } from '../../src/platform/pool.js';
import { withoutListenerWarnings } from '../support/warnings.js';

describe('the thread pool', () => {
  it('runs many tasks with one signal without a warning, and cancels waiting ones when it aborts', async () => {
    const pool = createThreadPool({
      threadCount: 1,
    });
    try {
      const { signal } = new AbortController();
      const run = (each: AbortSignal) => pool.run(trimMemoryTask, null, { signal: each });
      await withoutListenerWarnings(() =>
        Promise.all(Array.from({ length: 20 }, () => run(signal))),
      );
      const controller = new AbortController();
      const runs = Array.from({ length: 20 }, () => run(controller.signal));
      controller.abort();
      const outcomes = await Promise.allSettled(runs);
      assert.equal(outcomes.at(-1)!.status, 'rejected');
      await assert.rejects(run(controller.signal));
      await run(signal);
    } finally {
      await pool.close();
    }
  });
});
