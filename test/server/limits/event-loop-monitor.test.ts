import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { EventLoopMonitor } from '../../../src/server/limits/event-loop-monitor.js';

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
