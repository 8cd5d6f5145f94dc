// Traces as a local OTLP collector receives them from a tracer.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createTracer } from '../../src/platform/tracing.js';
import { captureLog } from '../server/log.js';
import { startCollector } from '../support/trace-collector.js';

describe('traces', () => {
  it('are dropped with one log line per minute when the collector is unreachable', async (t) => {
    const refusing = await startCollector(400);
    t.after(() => refusing.close());
    const log = captureLog('info');
    const tracer = createTracer({
      url: `${refusing.url}/v1/traces`,
      version: '1.2.3',
      logger: log.logger,
    });
    const startOne = () =>
      tracer.startRequest({
        method: 'GET',
        route: '/x',
        scheme: 'http',
        startMs: performance.now(),
        parent: null,
      });
    for (let i = 0; i < 5_000; i++) {
      const span = startOne();
      assert.match(span.traceId, /^[\da-f]{32}$/);
      span.end({ status: 500, errorCode: 'internal', endMs: performance.now() });
    }
    await tracer.close();
    const lines = log.lines('traces could not be sent');
    assert.equal(lines.length, 1, log.text);
    assert.ok(Number(lines[0]!.lost_spans) > 0);
    assert.ok(refusing.paths.length >= 2, 'more than one batch was tried');
  });
});
