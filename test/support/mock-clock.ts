// A mocked clock for tests in a process that other tests share.

import type { TestContext } from 'node:test';

/**
 * Mocks `setTimeout` until the test ends. Unlike with the mock of Node alone, `clearTimeout` still clears timers that
 * are older: connections of earlier tests end during this one, and the timers of those that fetch has given up would
 * otherwise go off without them, as an error of whatever test runs then.
 */
export function mockClock(t: TestContext): void {
  const clearReal = globalThis.clearTimeout;
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const clearMocked = globalThis.clearTimeout;
  globalThis.clearTimeout = (timer) => {
    clearReal(timer);
    clearMocked(timer);
  };
}
