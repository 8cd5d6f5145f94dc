// Names in the Host header of a real server.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createService, expectProblem } from '../harness.js';

describe('a service', () => {
  const ask = (host: string) => ({ headers: { host } });

  it('without credentials answers no request under another name, which it shows', async () => {
    const service = await createService({ hostNames: ['sagitta'] });
    for (const path of ['/collections', '/v1/limits', '/livez', '/docs/']) {
      const asked = service.call('GET', path, ask('evil.example'));
      const { json } = await expectProblem(asked, 400, 'invalid_request');
      assert.match(json.detail, /The Host header is "evil\.example".*SAGITTA_HOST_NAMES/);
      assert.equal((await service.call('GET', path, ask('sagitta:8484'))).status, 200, path);
    }
    await service.close();
  });
});
