// The client in a real browser: the compiled modules, loaded by a page on the server's origin. Skipped
// without chromium.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { startTestServer } from '../support/server-in-process.js';
import { withResolvers } from '../support/waiting.js';

const MODULES = new URL('../../src/client/', import.meta.url);
const BROWSER = 'chromium';
const RUN_MS_MAX = 60_000;

const hasBrowser = spawnSync(BROWSER, ['--version']).status === 0;
const skip = hasBrowser ? false : `there is no ${BROWSER} on this machine`;

const PAGE = `<!doctype html><script type="module">
import { createClient } from '/client/client.js';
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

test('the client runs in a browser', { skip }, async () => {
  const server = await startTestServer();
  const profile = await mkdtemp(join(tmpdir(), 'sagitta-browser-'));
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
  const browser = spawn(
    BROWSER,
    [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-dev-shm-usage',
      `--user-data-dir=${profile}`,
      url,
    ],
    { stdio: 'ignore' },
  );
  try {
    assert.deepEqual(JSON.parse(await orEnd(reported, browser)), {
      written: 3_000,
      values: [2_999, 1],
      walked: 3_000,
      exported: 3_000,
      aborted: 'enough',
      code: 'vector_not_found',
    });
  } finally {
    const closed = new Promise((resolve) => browser.once('close', resolve));
    if (browser.exitCode === null && browser.kill()) await closed;
    site.close();
    site.closeAllConnections();
    await server.close();
    await rm(profile, { recursive: true, maxRetries: 5 });
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
  } else if (url.startsWith('/client/')) {
    const code = await readFile(new URL(url.slice('/client/'.length), MODULES));
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

function orEnd(reported: Promise<string>, browser: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('the page reported nothing')), RUN_MS_MAX);
    const fail = (what: string) => {
      clearTimeout(timer);
      reject(new Error(`the browser ended before the page reported: ${what}`));
    };
    browser.once('error', (error) => fail(error.message));
    browser.once('exit', (code) => fail(`code ${code}`));
    reported.then((text) => {
      clearTimeout(timer);
      resolve(text);
    }, reject);
  });
}
