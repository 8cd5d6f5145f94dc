import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { SagittaError } from '../../src/common/errors.js';
import { trimMemoryTask } from '../../src/platform/memory-release.js';
import { createThreadPool } from '../../src/platform/pool.js';
import { parseJsonTask } from '../../src/server/ingest/json-body.js';
import { withoutListenerWarnings } from '../support/warnings.js';

describe('the thread pool', () => {
  it('runs many tasks with one signal without a warning, and ends those that wait when it aborts', async () => {
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

  it('refuses tasks that may be refused when its queue is full, and no others', async () => {
    const pool = createThreadPool({
      threadCount: 1,
      waitingMax: 4,
    });
    try {
      const input = {
        body: Buffer.from('{"a":1}'),
        isKeyed: false,
        vectorsAt: null,
        dimensionMax: 4,
      };
      const run = (mayBeRefused: boolean) => pool.run(parseJsonTask, input, { mayBeRefused });
      await run(true);
      const outcomes = await Promise.allSettled([
        ...Array.from({ length: 20 }, () => run(true)),
        ...Array.from({ length: 20 }, () => run(false)),
      ]);
      const refused = outcomes.filter(({ status }) => status === 'rejected');
      assert.ok(refused.length >= 10 && refused.length < 20, `${refused.length} were refused`);
      for (const [index, outcome] of outcomes.entries()) {
        if (outcome.status === 'fulfilled') {
          assert.ok(outcome.value.outcome.ok);
          continue;
        }
        const { code, retryAfterSeconds } = outcome.reason as SagittaError;
        assert.deepEqual([code, retryAfterSeconds], ['overloaded', 1]);
        assert.ok(index < 20, 'one that must not be refused');
      }
      assert.ok((await run(true)).outcome.ok);
    } finally {
      await pool.close();
    }
  });
});
