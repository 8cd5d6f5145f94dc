// The log lines of a node: names of collections, and common lines once.

import assert from 'node:assert/strict';
import { describe, it, mock } from 'node:test';
import { NodeLogger } from '../../src/cluster/health/node-logger.js';
import { noLeaderError } from '../../src/common/errors.js';
import { type Logger, silentLogger } from '../../src/common/logger.js';

function recorder() {
  const lines: { readonly message: string; readonly [name: string]: unknown }[] = [];
  const logger: Logger = {
    ...silentLogger,
    warn: (details, message) => lines.push({ ...details, message }),
  };
  const named = new NodeLogger(logger, (log) => (log === 'gone' ? undefined : `id of ${log}`));
  return { lines, named };
}

describe('the log of a node', () => {
  it('names the collection of a log, unless it is gone', () => {
    const { lines, named } = recorder();
    named.warn({ log: 'x', position: 3 }, 'one');
    named.warn({ log: 'gone' }, 'two');
    named.warn({ log: 'catalogue' }, 'three');
    named.warn({}, 'four');
    assert.deepEqual(lines, [
      { collection: 'id of x', log: 'x', position: 3, message: 'one' },
      { log: 'gone', message: 'two' },
      { log: 'catalogue', message: 'three' },
      { message: 'four' },
    ]);
  });

  it('has the cause of an error whose text is for clients', () => {
    const { lines, named } = recorder();
    const cause = new Error('timeout');
    named.warn({ log: 'x', err: noLeaderError(cause) }, 'failed');
    assert.equal(lines[0]!.err, cause);
  });

  it('writes what many logs have in common twice, and then their number', () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    try {
      const { lines, named } = recorder();
      for (let i = 0; i < 10_000; i++) named.warn({ log: `log-${i}` }, 'cannot be followed');
      named.warn({ log: 'other' }, 'was trimmed');
      for (let i = 0; i < 5; i++) named.warn({ log: 'catalogue' }, 'cannot be followed');
      assert.equal(lines.length, 2 + 1 + 5);
      mock.timers.tick(60_000);
      assert.deepEqual(lines.slice(8), [{ other_logs: 9_998, message: 'cannot be followed' }]);
      named.warn({ log: 'x' }, 'cannot be followed');
      assert.equal(lines.length, 10);
    } finally {
      mock.timers.reset();
    }
  });
});
