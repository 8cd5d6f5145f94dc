// Requests that pages of other sites can make.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { openDatabase } from '../../database/harness.js';
import { createService, type Service } from '../harness.js';
import { addAlias, fillCollection } from '../requests.js';

const FOREIGN = { origin: 'http://evil.example', 'sec-fetch-site': 'cross-site' };

describe('a page of another site', () => {
  let service: Service;
  before(async () => {
    const database = await openDatabase({});
    await fillCollection(database);
    await addAlias(database);
    service = await createService({ database });
  });
  after(() => service.close());

  const send = (method: 'GET' | 'POST' | 'OPTIONS', url: string, rest = {}, headers = {}) =>
    service.app.inject({
      method,
      url,
      headers: { ...FOREIGN, host: 'localhost:8484', ...headers },
      ...rest,
    });

  it('can neither read, embed nor frame replies', async () => {
    for (const path of ['/', '/collections', '/metrics', '/docs/', '/openapi.json', '/none']) {
      const { headers } = await send('GET', path);
      assert.equal(headers['access-control-allow-origin'], undefined, path);
      assert.equal(headers['cross-origin-resource-policy'], 'same-origin', path);
      assert.equal(headers['x-content-type-options'], 'nosniff', path);
    }
    const { headers } = await send('GET', '/docs/');
    assert.match(String(headers['content-security-policy']), /frame-ancestors 'none'/);
    assert.equal(headers['cross-origin-opener-policy'], 'same-origin');
    assert.equal(headers['referrer-policy'], 'no-referrer');
  });
});
