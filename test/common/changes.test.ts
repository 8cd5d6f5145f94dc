// Waiting for a condition that other code changes.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Changes } from '../../src/common/changes.js';

describe('waiting for a change', () => {
  it('ends at once for a condition that holds, even with an aborted signal', async () => {
    const changes = new Changes();
    assert.equal(await changes.until(() => 1, AbortSignal.abort()), 1);
  });

  it('looks again after each change, for all that wait', async () => {
    const changes = new Changes();
    let value = 0;
    let looks = 0;
    const waiting = [2, 3].map((wanted) =>
      changes.until(() => {
        looks++;
        return value >= wanted ? value : null;
      }),
    );
    for (value = 1; value < 3; value++) {
      changes.notify();
      await new Promise(setImmediate);
    }
    assert.equal(await waiting[0], 2);
    changes.notify();
    assert.equal(await waiting[1], 3);
    assert.equal(looks, 3 + 4);
  });

  it('rejects with the reason of the signal and with what the condition throws', async () => {
    const changes = new Changes();
    const stop = new AbortController();
    const stopped = changes.until(() => null, stop.signal);
    stop.abort(new Error('stopped'));
    await assert.rejects(stopped, { message: 'stopped' });
    let isBroken = false;
    const broken = changes.until(() => {
      if (isBroken) throw new Error('broken');
      return null;
    });
    isBroken = true;
    changes.notify();
    await assert.rejects(broken, { message: 'broken' });
  });
});
