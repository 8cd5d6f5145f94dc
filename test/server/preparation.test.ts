// A service that loads sample data before it answers requests.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { PREPARATION_HEADER } from '../../src/common/preparation.js';
import { createService, expectProblem } from './harness.js';

it('until a service is prepared, it serves only who prepares it', async () => {
  const preparation = { isDone: false, token: 'secret' };
  const service = await createService({ preparation });
  const ask = (token?: string) =>
    service.call('GET', '/collections', {
      headers: token === undefined ? {} : { [PREPARATION_HEADER]: token },
    });
  for (const token of [undefined, 'other']) {
    const refused = await expectProblem(ask(token), 503, 'starting');
    assert.equal(refused.headers['retry-after'], '1');
  }
  assert.equal((await ask('secret')).status, 200);
  assert.equal((await service.call('GET', '/livez')).status, 200);
  const waiting = await service.call('GET', '/readyz');
  assert.deepEqual([waiting.status, waiting.json.status], [503, 'starting']);
  assert.match(waiting.json.reason, /sample data/);
  preparation.isDone = true;
  assert.equal((await ask()).status, 200);
  assert.equal((await service.call('GET', '/readyz')).status, 200);
  await service.close();
});
