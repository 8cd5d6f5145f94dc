import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { DEFAULT_LIMITS } from '../../../src/common/limits.js';
import { EventLoopMonitor } from '../../../src/server/limits/event-loop-monitor.js';
import { createFilledService, expectProblem } from '../harness.js';

/** A monitor with a clock and a timer that the test controls. */
function createMonitor() {
  let nowMs = 1_000;
  const timers: { readonly callback: () => void; readonly dueAtMs: number }[] = [];
  const monitor = new EventLoopMonitor({
    nowMs: () => nowMs,
    setTimer: (callback, delayMs) => {
      timers.push({ callback, dueAtMs: nowMs + delayMs });
    },
  });
  return {
    monitor,
    timers,
    /** Lets time pass without firing timers, as while a task blocks the event loop. */
    block(ms: number) {
      nowMs += ms;
    },
    /** Lets time pass and fires the timers that are due. */
    advance(ms: number) {
      nowMs += ms;
      for (const timer of timers.splice(0)) {
        if (timer.dueAtMs <= nowMs) timer.callback();
        else timers.push(timer);
      }
    },
  };
}

describe('the event loop monitor', () => {
  it('reports no delay while timers fire in time', () => {
    const { monitor, advance } = createMonitor();
    monitor.begin();
    for (let i = 0; i < 5; i++) {
      advance(50);
      assert.equal(monitor.delayMs, 0);
    }
  });

  it('reports the delay while a task blocks the event loop, before any timer fires', () => {
    const { monitor, block } = createMonitor();
    monitor.begin();
    block(350);
    assert.equal(monitor.delayMs, 300);
  });

  it('reports the delay of the last timer until the next one fires in time', () => {
    const { monitor, advance } = createMonitor();
    monitor.begin();
    advance(350);
    assert.equal(monitor.delayMs, 300);
    advance(50);
    assert.equal(monitor.delayMs, 0);
  });

  it('sets one timer for many short requests, and none while idle', () => {
    const { monitor, timers, advance } = createMonitor();
    assert.equal(monitor.delayMs, 0);
    for (let i = 0; i < 100; i++) {
      monitor.begin();
      monitor.end();
    }
    assert.equal(timers.length, 1);
    advance(50);
    assert.equal(timers.length, 0);
    advance(10_000);
    assert.equal(monitor.delayMs, 0);
  });
});

describe('admission by the delay of the event loop', () => {
  it('refuses requests above the limit, and still answers health checks', async () => {
    const eventLoop = { begin() {}, end() {}, delayMs: 0 };
    const service = await createFilledService({
      limits: { ...DEFAULT_LIMITS, eventLoopDelayMsMax: 50 },
      eventLoop,
    });
    eventLoop.delayMs = 51.4;
    const overloaded = await expectProblem(
      service.call('GET', '/collections/c'),
      503,
      'overloaded',
    );
    assert.equal(overloaded.headers['retry-after'], '1');
    assert.equal(
      overloaded.json.detail,
      'The event loop is 51 ms behind (limit 50 ms). Retry after 1 s.',
    );
    const query = service.call('POST', '/collections/c/query', { body: { vector: [1, 2, 3] } });
    await expectProblem(query, 503, 'overloaded');
    for (const path of ['/livez', '/readyz', '/limits', '/metrics']) {
      assert.equal((await service.call('GET', path)).status, 200, path);
    }
    const metrics = await service.call('GET', '/metrics');
    assert.match(metrics.text, /^sagitta_event_loop_delay_seconds 0\.0514$/m);
    eventLoop.delayMs = 50;
    assert.equal((await service.call('GET', '/collections/c')).status, 200);
    await service.close();
  });
});
