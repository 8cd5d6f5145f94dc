// The client in a real browser: the compiled modules, loaded by a page on the server's origin.

import assert from 'node:assert/strict';
import { type IncomingMessage, request, type ServerResponse } from 'node:http';
import { test } from 'node:test';
import { launchBrowser, NO_BROWSER } from '../../../test/support/browser.js';
import { startPageSite } from '../../../test/support/page-site.js';
import { startTestServer } from '../../../test/support/server-in-process.js';
import { WAIT_MS_MAX } from '../../../test/support/waiting.js';

const PAGE = `<!doctype html><script type="module">
import { createClient } from '/modules/packages/client/src/client.js';
const result = {};
try {
  const client = createClient({ baseUrl: location.origin });
  await client.collections.create({ id: 'docs', dimension: 2, metric: 'dot' });
  const docs = client.collection('docs');
  function* rows() {
    for (let n = 0; n < 3_000; n++) yield { id: 'n' + n, values: new Float32Array([n, 1]) };
  }
  result.written = (await docs.writeAll(rows)).inserted_count;
  const { matches } = await docs.query({ vector: [1, 0], top_k: 1, include_values: 'float32' });
  result.values = [...matches[0].values];
  result.walked = 0;
  for await (const _ of docs.listAll({ limit: 1_000 })) result.walked++;
  result.exported = 0;
  for await (const _ of docs.exportAll()) result.exported++;
  const controller = new AbortController();
  const { body } = await docs.exportStream({ format: 'arrow', signal: controller.signal });
  controller.abort(new Error('enough'));
  result.aborted = await (async () => { for await (const _ of body); })().catch((e) => e.message);
  result.code = await docs.get('nobody').catch((error) => error.code);
} catch (error) {
  result.error = String(error.stack ?? error);
}
await fetch('/result', { method: 'POST', body: JSON.stringify(result) });
</script>`;

test('the client runs in a browser', { skip: NO_BROWSER }, async () => {
  const server = await startTestServer();
  const site = await startPageSite(PAGE, (incoming, outgoing) =>
    forward(server.url, incoming, outgoing),
  );
  const browser = await launchBrowser();
  try {
    const page = await browser.newPage();
    page.setDefaultTimeout(WAIT_MS_MAX);
    await page.goto(site.origin);
    assert.deepEqual(JSON.parse(await site.result), {
      written: 3_000,
      values: [2_999, 1],
      walked: 3_000,
      exported: 3_000,
      aborted: 'enough',
      code: 'vector_not_found',
    });
  } finally {
    await browser.close();
    site.close();
    await server.close();
  }
});

/** Forwards a request to the server, like a proxy on the page's origin. */
function forward(service: string, incoming: IncomingMessage, outgoing: ServerResponse): void {
  const { url = '/', method = 'GET' } = incoming;
  const { host: _, ...headers } = incoming.headers;
  const passed = request(service + url, { method, headers }, (reply) => {
    outgoing.writeHead(reply.statusCode!, reply.headers);
    reply.pipe(outgoing);
    reply.on('error', () => outgoing.destroy());
  });
  passed.on('error', () => outgoing.destroy());
  outgoing.on('close', () => passed.destroy());
  incoming.pipe(passed);
}
