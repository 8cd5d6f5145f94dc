// A mocked clock for tests that share a process with others.

import type { TestContext } from 'node:test';

/**
 * Mocks `setTimeout` until the test ends. Unlike with Node's mock alone, `clearTimeout` still clears older timers:
 * connections of earlier tests end during this one, and timers that fetch had meant to clear would otherwise fire and
 * fail whatever test is running.
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
