// Waits for what must happen, on a machine that may be busy.

import assert from 'node:assert/strict';

/** Maximum time in ms that a test waits: longer than any delay of a busy machine. */
export const WAIT_MS_MAX = 180_000;

/** Waits until the condition holds; fails after {@link WAIT_MS_MAX}. */
export async function eventually(what: string, isSo: () => boolean | Promise<boolean>) {
  const deadlineMs = performance.now() + WAIT_MS_MAX;
  while (!(await isSo())) {
    assert.ok(performance.now() < deadlineMs, `not within ${WAIT_MS_MAX} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

export interface PromiseWithResolvers<Value> {
  readonly promise: Promise<Value>;
  resolve(value: Value): void;
  reject(reason: Error): void;
}

/** A promise with its two functions, like `Promise.withResolvers` of Node 22. */
export function withResolvers<Value = void>(): PromiseWithResolvers<Value> {
  let settle!: Pick<PromiseWithResolvers<Value>, 'resolve' | 'reject'>;
  const promise = new Promise<Value>((resolve, reject) => {
    settle = { resolve, reject };
  });
  return { promise, ...settle };
}
