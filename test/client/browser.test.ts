// The client in a real browser: the compiled modules, loaded by a page on the server's origin.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { launchBrowser, NO_BROWSER } from '../support/browser.js';
import { startTestServer } from '../support/server-in-process.js';
import { WAIT_MS_MAX, withResolvers } from '../support/waiting.js';

/** `client` imports modules of `common`. */
const MODULES = new URL('../../src/', import.meta.url);

const PAGE = `<!doctype html><script type="module">
import { createClient } from '/modules/client/client.js';
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
  const { promise: reported, resolve: report } = withResolvers<string>();
  const site = createServer((incoming, outgoing) => {
    serve(incoming, outgoing, { service: server.url, report }).catch((error: unknown) => {
      outgoing.writeHead(500).end(String(error));
    });
  });
  await new Promise<void>((resolve) => {
    site.listen(0, '127.0.0.1', resolve);
  });
  const url = `http://127.0.0.1:${(site.address() as AddressInfo).port}/`;
  const browser = await launchBrowser();
  try {
    const page = await browser.newPage();
    page.setDefaultTimeout(WAIT_MS_MAX);
    await page.goto(url);
    assert.deepEqual(JSON.parse(await reported), {
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
    site.closeAllConnections();
    await server.close();
  }
});

async function serve(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  { service, report }: { service: string; report: (text: string) => void },
): Promise<void> {
  const { url = '/', method = 'GET', headers } = incoming;
  if (url === '/') {
    outgoing.writeHead(200, { 'content-type': 'text/html' }).end(PAGE);
  } else if (url.startsWith('/modules/')) {
    const code = await readFile(new URL(url.slice('/modules/'.length), MODULES));
    outgoing.writeHead(200, { 'content-type': 'text/javascript' }).end(code);
  } else if (url === '/result') {
    let text = '';
    for await (const chunk of incoming) text += chunk;
    outgoing.end();
    report(text);
  } else if (url.startsWith('/v1/')) {
    const { host: _, ...others } = headers;
    const passed = request(service + url, { method, headers: others }, (reply) => {
      outgoing.writeHead(reply.statusCode!, reply.headers);
      reply.pipe(outgoing);
      reply.on('error', () => outgoing.destroy());
    });
    passed.on('error', () => outgoing.destroy());
    outgoing.on('close', () => passed.destroy());
    incoming.pipe(passed);
  } else {
    outgoing.writeHead(404).end();
  }
}
