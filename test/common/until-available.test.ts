// Waiting at the start for services that are not there yet.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { noLeaderError, SagittaError } from '../../src/common/errors.js';
import { type Logger, silentLogger } from '../../src/common/logger.js';
import { untilAvailable } from '../../src/common/until-available.js';

describe('a start that needs other services', () => {
  it('repeats its step until they answer, and says why it waits', async () => {
    const lines: object[] = [];
    const logger: Logger = { ...silentLogger, info: (details) => lines.push(details) };
    let attempts = 0;
    const step = async () => {
      if (++attempts < 3) throw new SagittaError('no_leader', 'Nobody answers.');
      return 'found';
    };
    assert.equal(await untilAvailable(step, { logger, stopping: undefined }), 'found');
    assert.equal(attempts, 3);
    assert.match(JSON.stringify(lines[0]), /"reason":"Nobody answers\."/);
  });

  it('ends with any other error', async () => {
    const wrong = new SagittaError('configuration_invalid', 'The password is wrong.');
    const step = () => Promise.reject(wrong);
    await assert.rejects(
      untilAvailable(step, { logger: silentLogger, stopping: undefined }),
      wrong,
    );
  });

  it('ends with the reason of the signal', async () => {
    const stopping = new AbortController();
    const reason = new Error('told to stop');
    const step = () => {
      stopping.abort(reason);
      return Promise.reject(noLeaderError());
    };
    const waiting = untilAvailable(step, { logger: silentLogger, stopping: stopping.signal });
    await assert.rejects(waiting, reason);
  });
});
