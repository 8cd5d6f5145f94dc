// Many waits on one signal share a listener; otherwise Node would warn of a leak.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { whenAborted } from '../../src/common/when-aborted.js';
import { withoutListenerWarnings } from '../support/warnings.js';

it('runs every registered function once and in order', () => {
  const controller = new AbortController();
  const ran: number[] = [];
  const cancels = [0, 1, 2, 3].map((i) => whenAborted(controller.signal, () => ran.push(i)));
  cancels[1]!();
  controller.abort();
  cancels[2]!();
  assert.deepEqual(ran, [0, 2, 3]);
});

it('a running function may cancel another one', () => {
  const controller = new AbortController();
  const ran: string[] = [];
  const cancels: (() => void)[] = [];
  whenAborted(controller.signal, () => {
    ran.push('first');
    cancels[0]!();
  });
  cancels.push(whenAborted(controller.signal, () => ran.push('second')));
  controller.abort();
  assert.deepEqual(ran, ['first']);
});

it('a function registered twice is cancelled once', () => {
  const controller = new AbortController();
  let count = 0;
  const add = () => count++;
  whenAborted(controller.signal, add)();
  const cancel = whenAborted(controller.signal, add);
  whenAborted(controller.signal, add);
  cancel();
  controller.abort();
  assert.equal(count, 1);
});

it('hundreds of waits for one signal cause no warning', () =>
  withoutListenerWarnings(async () => {
    const { signal } = new AbortController();
    for (let i = 0; i < 300; i++) whenAborted(signal, () => {});
  }));
