// `sagitta import` into a cluster of two nodes, which two proxies in front of one server pretend to be: what is sent to
// which node, what the command reports when one of them fails, and how the next run resumes.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, beforeEach, it } from 'node:test';
import { createClient } from '@sagitta/client';
import { startTestServer, type TestServer } from '../support/server-in-process.js';
import { makeFolder, start } from './command.js';

/** 82 MB: a full upload, and a smaller one of the rest. */
const ROWS = 20_000;
const DIMENSION = 1_024;

interface Upload {
  readonly node: number;
  readonly isBulk: boolean;
}

let server: TestServer;
let folder: Awaited<ReturnType<typeof makeFolder>>;
let proxies: Server[];
let urls: string[];
let uploads: Upload[];
/** Decides what happens to an upload before it is forwarded; a reply that it sends is the only one. */
let intercept: ((upload: Upload, response: ServerResponse) => Promise<void>) | undefined;
/** Resolves when the server has replied to an upload through the second node. */
let secondReplied: Promise<void>;
let onSecondReplied: () => void;

async function startProxy(node: number): Promise<Server> {
  const proxy = createServer((request, response) => void forward(node, request, response));
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  return proxy;
}

async function forward(node: number, request: IncomingMessage, response: ServerResponse) {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const path = request.url!;
  if (path === '/v1/cluster') return reply(response, 200, cluster(node));
  const isUpload = request.headers['content-type']?.includes('arrow') === true;
  const upload = { node, isBulk: path.includes('bulk=true') };
  if (isUpload) {
    uploads.push(upload);
    await intercept?.(upload, response);
    if (response.writableEnded) return;
  }
  const { accept, 'content-type': type, 'idempotency-key': key } = request.headers;
  const headers = { accept: accept!, ...(type && { 'content-type': type }) };
  const found = await fetch(server.url + path, {
    method: request.method!,
    headers: { ...headers, ...(key && { 'idempotency-key': String(key) }) },
    ...(chunks.length > 0 && { body: Buffer.concat(chunks) }),
  });
  reply(response, found.status, await found.json());
  if (isUpload && node === 1) onSecondReplied();
}

function reply(response: ServerResponse, status: number, body: unknown): void {
  const type = status < 400 ? 'application/json' : 'application/problem+json';
  response.writeHead(status, { 'content-type': type }).end(JSON.stringify(body));
}

function cluster(node: number): object {
  const nodes = urls.map((url, at) => ({ name: `n${at}`, url, state: 'serving', drain: 'none' }));
  return { node: `n${node}`, nodes };
}

before(async () => {
  server = await startTestServer();
  folder = await makeFolder();
  proxies = [await startProxy(0), await startProxy(1)];
  const values = new Float32Array(ROWS * DIMENSION);
  for (let row = 0; row < ROWS; row++) values[row * DIMENSION] = row + 1;
  const header = new Uint8Array(Int32Array.of(ROWS, DIMENSION).buffer);
  await writeFile(
    join(folder.path, 'rows.fbin'),
    Buffer.concat([header, new Uint8Array(values.buffer)]),
  );
});
after(async () => {
  for (const proxy of proxies) {
    proxy.closeAllConnections();
    proxy.close();
  }
  await server.close();
  await folder.remove();
});
beforeEach(() => {
  urls = proxies.map((each) => `http://127.0.0.1:${(each.address() as AddressInfo).port}`);
  uploads = [];
  intercept = undefined;
  secondReplied = new Promise((resolve) => {
    onSecondReplied = resolve;
  });
});

function runImport(collection: string) {
  return start(['import', 'rows.fbin', '-c', collection, '--metric', 'dot', '--row-ids'], {
    cwd: folder.path,
    env: { SAGITTA_URL: urls[0]!, XDG_STATE_HOME: folder.path },
  }).ended;
}

async function countOf(collection: string): Promise<number> {
  return (await createClient({ baseUrl: server.url }).collections.get(collection)).vector_count;
}

it('both nodes receive rows at the same time, a full upload in bulk', async () => {
  // The first upload ends only after the second one.
  intercept = async ({ node }) => (node === 0 ? await secondReplied : undefined);
  const { code, stdout, stderr } = await runImport('both');
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^Imported 20,000 rows into both in .* \(20,000 new, 0 replaced\)\.$/m);
  assert.deepEqual(uploads, [
    { node: 0, isBulk: true },
    { node: 1, isBulk: false },
  ]);
  assert.equal(await countOf('both'), ROWS);
});

it('after a failure the next run resumes at the first row that is missing', async () => {
  intercept = async ({ node }, response) => {
    if (node !== 0) return;
    await secondReplied;
    const detail = 'The disk is full.';
    reply(response, 507, { code: 'storage_full', detail, status: 507, committed_count: 0 });
  };
  const { code, stderr } = await runImport('failed');
  assert.equal(code, 1, stderr);
  const written = await countOf('failed');
  assert.ok(written > 0 && written < ROWS / 2, `${written}`);
  const rows = written.toLocaleString('en-US');
  assert.ok(
    stderr.includes(
      `The disk is full.\n  ${rows} rows were written before the error; make room and run the same command again to resume at the first row that is missing.`,
    ),
    stderr,
  );
  intercept = undefined;
  const second = await runImport('failed');
  assert.equal(second.code, 0, second.stderr);
  const [fresh, replaced] = [ROWS - written, written].map((each) => each.toLocaleString('en-US'));
  assert.ok(second.stdout.includes(`(${fresh} new, ${replaced} replaced)`), second.stdout);
  assert.equal(await countOf('failed'), ROWS);
});

it('a node at an address that does not answer is left out', async () => {
  // The discard port, on which nothing listens.
  urls[1] = 'http://127.0.0.1:9';
  const { code, stdout, stderr } = await runImport('alone');
  assert.equal(code, 0, stderr);
  assert.ok(stderr.includes('alone: continuing without the node http://127.0.0.1:9: '), stderr);
  assert.match(stdout, /^Imported 20,000 rows into alone/);
  assert.deepEqual(
    uploads.map(({ node }) => node),
    [0, 0],
  );
  assert.equal(await countOf('alone'), ROWS);
});
