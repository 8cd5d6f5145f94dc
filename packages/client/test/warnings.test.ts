// Warnings in replies, which reach the program whatever its methods return.

import assert from 'node:assert/strict';
import { afterEach, it } from 'node:test';
import {
  type ScriptedReply,
  type ScriptedServer,
  startScriptedServer,
} from '../../../test/support/scripted-server.js';
import { type ClientOptions, createClient, type OnWarning } from '../src/client.js';

const WARNING = {
  code: 'unknown_path',
  in: 'filter',
  path: 'yaer',
  detail: 'No vector has metadata at "yaer"; did you mean "year"?',
} as const;
const FILTER = { yaer: 2024 };
const STREAMED = {
  headers: { 'sagitta-sequence': '1', 'sagitta-warnings': JSON.stringify([WARNING]) },
  chunks: ['{"id":"a"}\n'],
};

let server: ScriptedServer;
afterEach(() => server?.close());

async function start(reply: ScriptedReply, options: Partial<ClientOptions> = {}) {
  server = await startScriptedServer([reply]);
  return createClient({ baseUrl: server.url, ...options }).collection('docs');
}

/** Records the details of warnings and their requests. */
function recorder(): { readonly seen: string[]; readonly onWarning: OnWarning } {
  const seen: string[] = [];
  return {
    seen,
    onWarning: ({ detail }, { method, path }) => seen.push(`${method} ${path}: ${detail}`),
  };
}

const expected = (method: string, path: string) =>
  `${method} /collections/docs${path}: ${WARNING.detail}`;

it('onWarning gets the warnings of a method that returns a number, and its request', async () => {
  const { seen, onWarning } = recorder();
  const docs = await start({ body: { count: 0, warnings: [WARNING] } }, { onWarning });
  assert.equal(await docs.count({ filter: FILTER }), 0);
  assert.deepEqual(seen, [expected('POST', '/count')]);
});

it('onWarning gets the distinct warnings of writes and of batches, and is not called without any', async () => {
  const { seen, onWarning } = recorder();
  const docs = await start({ body: { deleted_count: 0, warnings: [WARNING] } }, { onWarning });
  await docs.deleteMany({ filter: FILTER });
  await server.close();
  const results = [1, 2].map(() => ({ matches: [], warnings: [WARNING] }));
  const batch = await start({ body: { results } }, { onWarning });
  await batch.queryBatch([
    { vector: [1], filter: FILTER },
    { vector: [2], filter: FILTER },
  ]);
  await server.close();
  await (await start({ body: { count: 1 } }, { onWarning })).count();
  assert.deepEqual(seen, [expected('POST', '/vectors/delete'), expected('POST', '/query/batch')]);
});

it('onWarning gets the warnings of a streamed reply before its first row', async () => {
  const { seen, onWarning } = recorder();
  const docs = await start(STREAMED, { onWarning });
  for await (const { id } of docs.exportAll({ filter: FILTER })) {
    assert.deepEqual([id, seen], ['a', [expected('GET', '/export')]]);
  }
});

it('an error in onWarning rejects the call without a retry, and ends a stream', async () => {
  const refusal = new Error('misspelt');
  const onWarning = () => {
    throw refusal;
  };
  const docs = await start({ body: { count: 0, warnings: [WARNING] } }, { onWarning });
  await assert.rejects(docs.count({ filter: FILTER }), refusal);
  assert.equal(server.requests.length, 1);
  await server.close();
  const streaming = await start({ ...STREAMED, isStalled: true }, { onWarning });
  await assert.rejects(streaming.exportStream({ format: 'ndjson', filter: FILTER }), refusal);
  await server.idle();
});

it('without onWarning each warning is logged once', async (context) => {
  const warn = context.mock.method(console, 'warn', () => {});
  const docs = await start({ body: { count: 0, warnings: [WARNING] } });
  for (let i = 0; i < 2; i++) await docs.count({ filter: FILTER });
  assert.deepEqual(
    warn.mock.calls.map(({ arguments: [text] }) => text),
    [`Sagitta: ${WARNING.detail} (filter of POST /collections/docs/count)`],
  );
});
