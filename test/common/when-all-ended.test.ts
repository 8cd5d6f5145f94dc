import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { whenAllEnded } from '../../src/common/when-all-ended.js';
import { withResolvers } from '../support/waiting.js';

describe('waiting for all promises to end', () => {
  it('rejects after a failure only when the others have ended', async () => {
    const other = withResolvers();
    let hasEnded = false;
    const waiting = whenAllEnded([Promise.reject(new Error('broken')), other.promise]);
    const ended = waiting.catch((error: Error) => {
      hasEnded = true;
      return error.message;
    });
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(hasEnded, false);
    other.resolve();
    assert.equal(await ended, 'broken');
  });
});
