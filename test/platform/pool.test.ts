import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { SagittaError } from '../../src/common/errors.js';
import { createThreadPool } from '../../src/platform/pool.js';
import { parseJsonTask } from '../../src/server/bodies/json-body.js';

describe('the thread pool', () => {
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
