// The client in a real browser on pages of other origins: everything works for an allowed origin, and other origins
// can read nothing.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Browser } from 'playwright-core';
import { launchBrowser, NO_BROWSER } from '../../support/browser.js';
import { type PageSite, startPageSite } from '../../support/page-site.js';
import { startTestServer, type TestServer } from '../../support/server-in-process.js';
import { WAIT_MS_MAX } from '../../support/waiting.js';

/** The URL of the page contains that of the service: `/#http://127.0.0.1:8484`. */
const PAGE = `<!doctype html><script type="module">
import { createClient } from '/modules/packages/client/src/client.js';
const result = {};
const codeOf = (promise) => promise.then(() => 'no error', (error) => error.code);
try {
  const client = createClient({ baseUrl: location.hash.slice(1), retry: { attemptsMax: 1 } });
  result.created = await codeOf(client.collections.create({ id: 'docs', dimension: 2, metric: 'dot' }));
  if (result.created === 'no error') {
    const docs = client.collection('docs');
    function* rows() {
      for (let n = 0; n < 1_000; n++) yield { id: 'n' + n, values: new Float32Array([n, 1]) };
    }
    result.streamed = (await docs.writeAll(rows)).inserted_count;
    result.upserted = (await docs.upsert([{ id: 'x', values: [5_000, 1] }])).inserted_count;
    result.best = (await docs.query({ vector: [1, 0], top_k: 1 })).matches[0].id;
    result.exported = 0;
    for await (const _ of docs.exportAll()) result.exported++;
    result.patched = await codeOf(docs.patch('x', { metadata: { a: 1 } }, { ifMatch: '"1"' }));
    result.missing = await codeOf(docs.get('nobody'));
    result.wrong = await codeOf(docs.query({ vector: [1] }));
    const created = await client.keys.create({ owner: 'me', scopes: ['admin'] });
    result.refused = await codeOf(docs.get('x'));
    const known = createClient({ baseUrl: location.hash.slice(1), apiKey: created.key });
    result.found = (await known.collection('docs').get('x')).id;
    const bound = async (allowed_origins) => {
      const { key } = await known.keys.create({ owner: 'page', scopes: ['vectors:read'], allowed_origins });
      const page = createClient({ baseUrl: location.hash.slice(1), apiKey: key });
      return codeOf(page.collection('docs').get('x'));
    };
    result.bound = [await bound([location.origin]), await bound(['https://other.example'])];
    const reply = await fetch(location.hash.slice(1) + '/v1/limits');
    result.headers = ['www-authenticate', 'x-request-id'].filter((name) => reply.headers.has(name));
  }
} catch (error) {
  result.error = String(error.stack ?? error);
}
await fetch('/result', { method: 'POST', body: JSON.stringify(result) });
</script>`;

describe('in a browser, a page of another origin', { skip: NO_BROWSER }, () => {
  let allowed: PageSite;
  let other: PageSite;
  let server: TestServer;
  let browser: Browser;
  before(async () => {
    allowed = await startPageSite(PAGE);
    other = await startPageSite(PAGE);
    server = await startTestServer({ SAGITTA_CORS_ORIGINS: allowed.origin });
    browser = await launchBrowser({ hasWebGl: false });
  });
  after(async () => {
    await browser.close();
    allowed.close();
    other.close();
    await server.close();
  });

  const open = async ({ origin, result }: PageSite): Promise<object> => {
    const page = await browser.newPage();
    page.setDefaultTimeout(WAIT_MS_MAX);
    await page.goto(`${origin}/#${server.url}`);
    return JSON.parse(await result);
  };

  it('that is not allowed reaches nothing', async () => {
    assert.deepEqual(await open(other), { created: 'network_error' });
  });

  it('that is allowed writes, queries, streams, and reads errors', async () => {
    assert.deepEqual(await open(allowed), {
      created: 'no error',
      streamed: 1_000,
      upserted: 1,
      best: 'x',
      exported: 1_001,
      patched: 'precondition_failed',
      missing: 'vector_not_found',
      wrong: 'dimension_mismatch',
      refused: 'credentials_missing',
      found: 'x',
      bound: ['no error', 'origin_not_allowed'],
      headers: ['www-authenticate', 'x-request-id'],
    });
  });
});
