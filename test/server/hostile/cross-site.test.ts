// Pages of other sites in the browser of a user who can reach a service without credentials: they can send requests
// that need no preflight and embed replies, and nothing else.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { routesOf } from '../../../src/server/app.js';
import { openDatabase } from '../../database/harness.js';
import { createService, type Service } from '../harness.js';
import { addAlias, fillCollection, SAMPLE_REQUESTS } from '../requests.js';

const FOREIGN = { origin: 'http://evil.example', 'sec-fetch-site': 'cross-site' };

/** The content types that browsers send without a preflight; null for none. */
const SIMPLE_TYPES = [
  'text/plain',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'text/plain; application/json',
  'text/plain;charset=application/json',
  null,
];

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

  it('has no POST executed that browsers send without asking', async () => {
    const posts = routesOf(service.app).filter(({ method }) => method === 'POST');
    assert.ok(posts.length > 10);
    for (const { operationId } of posts) {
      const { url, body } = SAMPLE_REQUESTS[operationId]!;
      for (const type of SIMPLE_TYPES) {
        const headers = type === null ? {} : { 'content-type': type };
        const reply = await send('POST', url, { payload: JSON.stringify(body ?? {}) }, headers);
        const place = `${operationId} with ${type}`;
        // Another code would mean that the body had been read.
        assert.equal(reply.json().code, 'unsupported_media_type', place);
      }
      const empty = await send('POST', url);
      assert.ok(empty.statusCode >= 400, `${operationId} without a body`);
    }
  });

  it('is not allowed what browsers ask for', async () => {
    for (const { path } of routesOf(service.app)) {
      const reply = await send('OPTIONS', path.replace(/\{\w+\}/g, 'x'));
      const names = Object.keys(reply.headers);
      assert.deepEqual(
        names.filter((name) => name.startsWith('access-control-')),
        [],
        path,
      );
      assert.ok(reply.statusCode >= 400, path);
    }
  });
});
