// The signal of a request behaves like an AbortSignal, and signals of any class can be combined.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { anySignal, CancelSignal } from '../../src/common/cancel-signal.js';
import { whenAborted } from '../../src/common/when-aborted.js';

const REASON = new Error('cancelled');

it('keeps the first reason and runs functions once', () => {
  const signal = new CancelSignal();
  let count = 0;
  whenAborted(signal, () => count++);
  signal.throwIfAborted();
  signal.abort(REASON);
  signal.abort(new Error('again'));
  assert.equal(count, 1);
  assert.equal(signal.reason, REASON);
  assert.throws(() => signal.throwIfAborted(), REASON);
});

it('ends a timer of Node', async () => {
  const signal = new CancelSignal();
  const waiting = wait(60_000, undefined, { signal });
  signal.abort(REASON);
  await assert.rejects(waiting, { name: 'AbortError', cause: REASON });
});

it('a combined signal aborts with the reason of the first one that does', () => {
  const [first, second] = [new CancelSignal(), new AbortController()];
  const either = anySignal([first, second.signal]);
  assert.equal(either.aborted, false);
  second.abort(REASON);
  first.abort(new Error('later'));
  assert.equal(either.reason, REASON);
});

it('signals let go of a combined one when one of them aborts', () => {
  const [lasting, ended] = [new CancelSignal(), new AbortController()];
  let listeners = 0;
  const { addEventListener: add, removeEventListener: remove } = lasting;
  lasting.addEventListener = (...args: Parameters<typeof add>) => {
    listeners++;
    add.apply(lasting, args);
  };
  lasting.removeEventListener = (...args: Parameters<typeof remove>) => {
    listeners--;
    remove.apply(lasting, args);
  };
  const either = anySignal([lasting, ended.signal]);
  assert.equal(listeners, 1);
  ended.abort(REASON);
  assert.equal(listeners, 0);
  assert.equal(either.reason, REASON);
});

it('a combined signal of an aborted one is aborted', () => {
  assert.equal(anySignal([AbortSignal.abort(REASON), new CancelSignal()]).reason, REASON);
});
