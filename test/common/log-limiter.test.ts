// Limits for log lines about repeated events.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LogLimiter } from '../../src/common/log-limiter.js';

describe('a limit of log lines', () => {
  it('allows a number of lines per interval, and counts the events of the next one', () => {
    let nowMs = 5;
    const limiter = new LogLimiter({ intervalMs: 10, linesMax: 2, nowMs: () => nowMs });
    assert.deepEqual(
      [limiter.next(), limiter.next(3), limiter.next(), limiter.next(4)],
      [1, 3, 0, 0],
    );
    nowMs = 14;
    assert.equal(limiter.next(), 0);
    nowMs = 15;
    assert.deepEqual([limiter.next(), limiter.next(), limiter.next()], [7, 1, 0]);
  });
});
