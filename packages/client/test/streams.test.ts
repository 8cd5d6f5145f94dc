// Streams to and from a server that rejects requests, fails, stalls or sends invalid replies.

import assert from 'node:assert/strict';
import { afterEach, it } from 'node:test';
import { mockClock } from '../../../test/support/mock-clock.js';
import {
  problem,
  type ScriptedReply,
  type ScriptedServer,
  startScriptedServer,
} from '../../../test/support/scripted-server.js';
import { withResolvers } from '../../../test/support/waiting.js';
import {
  type ClientOptions,
  createClient,
  SagittaClientError,
  type Vectors,
} from '../src/client.js';

let server: ScriptedServer;

async function start(
  replies: readonly ScriptedReply[],
  options: Partial<ClientOptions> = {},
): Promise<Vectors> {
  server = await startScriptedServer(replies);
  return createClient({
    baseUrl: server.url,
    retry: { delayMsBase: 2, delayMsMax: 20 },
    random: () => 0,
    ...options,
  }).collection('docs');
}

afterEach(() => server?.close());

const LOST = { isLost: true };
const OK = {
  body: {
    upserted_count: 2,
    inserted_count: 2,
    updated_count: 0,
    batch_count: 1,
    resumed_count: 0,
    sequence: 1,
  },
};
const bytes = (text: string) => new TextEncoder().encode(text);

async function* chunksOf(...texts: string[]) {
  for (const text of texts) yield bytes(text);
}

async function failureOf(work: Promise<unknown>): Promise<SagittaClientError> {
  const error: unknown = await work.then(
    () => assert.fail('expected a failure'),
    (found: unknown) => found,
  );
  assert.ok(error instanceof SagittaClientError, String(error));
  return error;
}

async function textOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of body) text += decoder.decode(chunk, { stream: true });
  return text;
}

it('a stream given as a function is retried with one idempotency key', async () => {
  const vectors = await start([LOST, problem(503, 'overloaded', { committed_count: 1 }), OK]);
  let openedCount = 0;
  const open = () => {
    openedCount++;
    return chunksOf('one', '', 'two');
  };
  const reply = await vectors.writeStream(open, {
    format: 'arrow',
    mode: 'insert',
    idColumn: 'key',
    vectorColumn: 'v',
  });
  assert.deepEqual(reply, OK.body);
  assert.equal(openedCount, 3);
  const [first] = server.requests;
  assert.equal(
    first!.url,
    '/v1/collections/docs/vectors?mode=insert&id_column=key&vector_column=v',
  );
  assert.equal(first!.headers['content-type'], 'application/vnd.apache.arrow.stream');
  assert.equal(first!.headers['transfer-encoding'], 'chunked');
  assert.equal(new Set(server.requests.map(({ headers }) => headers['idempotency-key'])).size, 1);
  assert.ok(first!.headers['idempotency-key'] !== undefined);
  assert.deepEqual(
    server.requests.map(({ body }) => body),
    ['onetwo', 'onetwo', 'onetwo'],
  );
});

it('a bulk stream has no idempotency key and is sent again from its beginning', async () => {
  const failed = problem(503, 'overloaded', { committed_count: 1 });
  const vectors = await start([failed, LOST]);
  const source = () => chunksOf('one', 'two');
  const error = await failureOf(vectors.writeStream(source, { format: 'arrow', bulk: true }));
  assert.deepEqual([error.committedCount, error.committedCountAtLeast], [undefined, 1]);
  // Without a key, the server cannot be asked which rows are durable.
  for (const { url, headers, body } of server.requests) {
    assert.equal(url, '/v1/collections/docs/vectors?bulk=true');
    assert.equal(headers['idempotency-key'], undefined);
    assert.equal(body, 'onetwo');
  }
});

it('a stream given as an iterable is not retried', async () => {
  const vectors = await start([LOST, problem(503, 'overloaded')]);
  const lost = await failureOf(vectors.writeStream(chunksOf('a'), { format: 'ndjson' }));
  assert.equal(lost.code, 'network_error');
  const refused = vectors.writeStream(chunksOf('a'), { format: 'ndjson', idempotencyKey: 'k' });
  assert.equal((await failureOf(refused)).code, 'overloaded');
  // All other requests only asked which rows are durable.
  const streams = server.requests.filter(({ body }) => body === 'a');
  assert.equal(streams.length, 2);
  assert.match(String(streams[0]!.headers['idempotency-key']), /^[0-9a-f-]{36}$/);
  assert.equal(streams[1]!.headers['idempotency-key'], 'k');
});

it('an error counts the durable rows, and the source is closed', async () => {
  const refusal = problem(400, 'invalid_vector', {
    committed_count: 2_000,
    sequence: 9,
    errors: [{ pointer: '/rows/2345/values', code: 'invalid_vector', detail: 'a hole' }],
  });
  const vectors = await start([{ ...refusal, afterBytes: 10 }]);
  let isEnded = false;
  async function* endless() {
    try {
      while (true) yield bytes('more and more'.repeat(1_000));
    } finally {
      isEnded = true;
    }
  }
  const error = await failureOf(vectors.writeStream(endless, { format: 'ndjson' }));
  assert.equal(error.code, 'invalid_vector');
  assert.equal(error.committedCount, 2_000);
  assert.equal(error.sequence, 9);
  assert.equal(error.items[0]!.pointer, '/rows/2345/values');
  assert.ok(isEnded);
  assert.equal(server.requests.length, 1);
});

it('an error of the source is rethrown and nothing is retried', async () => {
  const vectors = await start([OK]);
  async function* broken() {
    yield bytes('one');
    throw new RangeError('no such file');
  }
  for (const uploads of ['stream', 'blob'] as const) {
    const { writeStream } = createClient({ baseUrl: server.url, uploads }).collection('docs');
    const writing = writeStream(broken, { format: 'ndjson' });
    await assert.rejects(writing, { name: 'RangeError', message: 'no such file' });
  }
  async function* brokenVectors() {
    yield { values: [1] };
    throw new RangeError('no such file');
  }
  await assert.rejects(vectors.writeAll(brokenVectors), RangeError);
  assert.equal(server.requests.length, 0);
});

it('vectors are sent as NDJSON, Float32Arrays as base64', async () => {
  const vectors = await start([OK]);
  const rows = [
    { id: 'a', values: new Float32Array([1, 2]), metadata: { n: 1 } },
    { values: [0.5, 1] },
  ];
  assert.deepEqual(await vectors.writeAll(rows, { mode: 'update' }), OK.body);
  const [request] = server.requests;
  assert.equal(request!.url, '/v1/collections/docs/vectors?mode=update');
  assert.equal(request!.headers['content-type'], 'application/x-ndjson');
  assert.equal(
    request!.body,
    '{"id":"a","values":"AACAPwAAAEA=","metadata":{"n":1}}\n{"values":[0.5,1]}\n',
  );
});

it('uploads are collected into a Blob if streams are not supported', async () => {
  const vectors = await start([LOST, OK], { uploads: 'blob' });
  await vectors.writeStream(() => chunksOf('one', 'two'), { format: 'ndjson' });
  const [, request] = server.requests;
  assert.equal(request!.body, 'onetwo');
  assert.equal(request!.headers['content-length'], '6');
  assert.equal(request!.headers['content-type'], 'application/x-ndjson');
});

/** A fetch without a network, for tests on a mocked clock; `reply` may read the request body. */
function createFakeClient(
  reply: (init: RequestInit, signal: AbortSignal) => Promise<Response>,
  options: Partial<ClientOptions> = {},
): Vectors {
  return createClient({
    baseUrl: 'http://localhost',
    timeoutMs: 60,
    retry: { attemptsMax: 1 },
    fetch: (_, init) => reply(init!, init!.signal!),
    ...options,
  }).collection('docs');
}

const textOfRequest = ({ body }: RequestInit) => new Response(body as ReadableStream).text();
const untilAborted = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason));
  });

it('the timeout excludes the time that the source takes', async (t) => {
  mockClock(t);
  async function* slow() {
    yield bytes('one');
    t.mock.timers.tick(120);
    yield bytes('two');
  }
  const fast = createFakeClient(async (init) => {
    assert.equal(await textOfRequest(init), 'onetwo');
    return Response.json(OK.body);
  });
  await fast.writeStream(slow(), { format: 'ndjson' });
  const silent = createFakeClient(async (init, signal) => {
    await textOfRequest(init);
    queueMicrotask(() => t.mock.timers.tick(60));
    return await untilAborted(signal);
  });
  const error = await failureOf(silent.writeStream(slow(), { format: 'ndjson' }));
  assert.equal(error.code, 'timeout');
});

it('a signal aborts a stream that is being sent and closes its source', async () => {
  const vectors = await start([{ isSilent: true }]);
  const controller = new AbortController();
  const { promise: isClosed, resolve: close } = withResolvers();
  async function* endless() {
    try {
      for (let at = 0; ; at++) {
        if (at === 3) controller.abort(new Error('enough'));
        yield bytes('more');
      }
    } finally {
      close();
    }
  }
  const writing = vectors.writeStream(endless, { format: 'ndjson', signal: controller.signal });
  await assert.rejects(writing, { message: 'enough' });
  await isClosed;
});

it('a streamed reply is retried until it begins', async () => {
  const headers = { 'sagitta-sequence': '12' };
  const vectors = await start([
    LOST,
    problem(503, 'starting'),
    { headers, chunks: ['one', 'two'] },
  ]);
  const { body, sequence } = await vectors.exportStream({
    format: 'parquet',
    filter: { year: 2024 },
    includeMetadata: false,
  });
  assert.equal(sequence, 12);
  assert.equal(await textOf(body), 'onetwo');
  assert.equal(await textOf(body), '');
  const [, , request] = server.requests;
  assert.equal(
    request!.url,
    '/v1/collections/docs/export?format=parquet&filter=%7B%22year%22%3A2024%7D&include_metadata=false',
  );
  assert.equal(request!.headers.accept, 'application/vnd.apache.parquet');
});

it('a truncated reply is an error', async () => {
  const vectors = await start([
    { headers: { 'sagitta-sequence': '1' }, chunks: ['one'], isCut: true },
  ]);
  const { body } = await vectors.exportStream({ format: 'arrow' });
  const error = await failureOf(textOf(body));
  assert.equal(error.code, 'network_error');
  assert.match(error.message, /was cut off after 3 bytes/);
  assert.equal(server.requests.length, 1);
});

it('the timeout of a reply counts only while the consumer waits', async (t) => {
  mockClock(t);
  const vectors = createFakeClient(async (_, signal) => {
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(bytes('one'));
        signal.addEventListener('abort', () => controller.error(signal.reason));
      },
    });
    return new Response(body, { headers: { 'sagitta-sequence': '1' } });
  });
  const { body } = await vectors.exportStream({ format: 'arrow' });
  const chunks = body[Symbol.asyncIterator]();
  t.mock.timers.tick(120);
  assert.equal((await chunks.next()).value?.byteLength, 3);
  t.mock.timers.tick(120);
  const waiting = failureOf(chunks.next());
  t.mock.timers.tick(60);
  assert.equal((await waiting).code, 'timeout');
});

it('a signal aborts a reply that is being read', async () => {
  const headers = { 'sagitta-sequence': '1' };
  const vectors = await start([{ headers, chunks: ['one'], isStalled: true }]);
  const controller = new AbortController();
  const { body } = await vectors.exportStream({ format: 'arrow', signal: controller.signal });
  const chunks = body[Symbol.asyncIterator]();
  assert.equal((await chunks.next()).value?.byteLength, 3);
  const waiting = chunks.next();
  controller.abort(new Error('enough'));
  await assert.rejects(waiting, { message: 'enough' });
});

it('leaving the loop aborts the request', async () => {
  const vectors = await start([{ chunks: ['{"id":"a","matches":[]}\n'], isStalled: true }]);
  for await (const row of vectors.join({ topK: 3 })) {
    assert.deepEqual(row, { id: 'a', matches: [] });
    break;
  }
  await server.idle();
  const { body } = await vectors.joinStream({ topK: 3 }, { format: 'arrow' });
  await body.cancel();
  await body.cancel();
  await server.idle();
  assert.equal(await textOf(body), '');
});

it('a projection without its head or with missing rows is an unexpected reply', async () => {
  const head = '{"sequence":1,"row_count":2,"variance_ratios":[1,0]}\n';
  const row = '{"id":"a","coordinates":[1,2]}\n';
  const vectors = await start([{ chunks: [head, row] }, { chunks: [row] }, { chunks: [''] }]);
  for (const detail of ['expected 2 rows, found 1', 'found none', 'found none']) {
    const error = await failureOf(vectors.project());
    assert.equal(error.code, 'unexpected_reply');
    assert.ok(error.message.includes(detail), error.message);
  }
});

it('joins and projections report the rows read so far and the number of all rows', async () => {
  const vectors = await start([
    { headers: { 'sagitta-row-count': '2' }, chunks: ['{"id":"a","matches":[]}\n'.repeat(2)] },
    {
      chunks: [
        '{"sequence":1,"row_count":1,"variance_ratios":[1,0]}\n',
        '{"id":"a","coordinates":[1,2]}\n',
      ],
    },
  ]);
  const reports: string[] = [];
  const onProgress = (readCount: number, rowCount: number) =>
    reports.push(`${readCount} of ${rowCount}`);
  for await (const { id } of vectors.join({ topK: 1 }, { onProgress })) reports.push(id);
  await vectors.project({}, { onProgress });
  assert.deepEqual(reports, ['0 of 2', '1 of 2', 'a', '2 of 2', 'a', '0 of 1', '1 of 1']);
});

it('lines may be split anywhere, and the last one may be an error', async () => {
  const matches = [{ id: 'ü🐬', score: 0.5 }];
  const lines = bytes(
    `{"id":"a","matches":${JSON.stringify(matches)}}\n\n{"id":"b","matches":[]}\n`,
  );
  const whole = Array.from(lines, (_, at) => lines.subarray(at, at + 1));
  const failed = `{"error":${JSON.stringify(problem(500, 'internal').body)}}\n`;
  const vectors = await start([
    { chunks: whole },
    { chunks: [lines, failed] },
    { chunks: [lines, '<html>'] },
  ]);
  const request = { with: 'others', topK: 2, withFilter: { n: 1 }, excludeSelf: false };
  const found: unknown[] = [];
  for await (const row of vectors.join(request)) found.push(row);
  assert.deepEqual(found, [
    { id: 'a', matches },
    { id: 'b', matches: [] },
  ]);
  assert.equal(
    server.requests[0]!.body,
    '{"with":"others","top_k":2,"with_filter":{"n":1},"exclude_self":false}',
  );
  assert.equal(server.requests[0]!.headers.accept, 'application/x-ndjson');
  for (const code of ['internal', 'unexpected_reply']) {
    let rowCount = 0;
    const reading = (async () => {
      for await (const _ of vectors.join(request)) rowCount++;
    })();
    assert.equal((await failureOf(reading)).code, code);
    assert.equal(rowCount, 2);
  }
});

it('queries are streamed, with their options in the query string', async () => {
  const vectors = await start([LOST, { chunks: ['answers'] }]);
  const { body } = await vectors.queryStream(() => chunksOf('queries'), {
    topK: 3,
    filter: { a: 1 },
    scoreThreshold: 0.5,
    metric: 'dot',
    includeMetadata: true,
    includeValues: false,
    minSequence: 4,
    vectorColumn: 'v',
    format: 'ndjson',
  });
  assert.equal(await textOf(body), 'answers');
  const [, request] = server.requests;
  assert.equal(
    request!.url,
    '/v1/collections/docs/query/batch?top_k=3&filter=%7B%22a%22%3A1%7D&score_threshold=0.5&metric=dot' +
      '&include_metadata=true&include_values=false&min_sequence=4&vector_column=v',
  );
  assert.equal(request!.headers.accept, 'application/x-ndjson');
  assert.equal(request!.body, 'queries');
});

it('a slow consumer does not time out while queries are being sent', async (t) => {
  mockClock(t);
  async function* queries() {
    for (let at = 0; at < 5; at++) {
      yield bytes('query');
      t.mock.timers.tick(5);
    }
  }
  const vectors = createFakeClient(async (init) => {
    const text = textOfRequest(init);
    const body = new ReadableStream<Uint8Array>({
      async start(controller) {
        await text;
        controller.enqueue(bytes('first'));
      },
    });
    return new Response(body);
  });
  const { body } = await vectors.queryStream(queries());
  t.mock.timers.tick(150);
  const { value } = await body[Symbol.asyncIterator]().next();
  assert.equal(new TextDecoder().decode(value), 'first');
  await body.cancel();
});

it('replies arrive while queries are still being sent', async () => {
  const vectors = await start([{ afterBytes: 5, chunks: ['first'], isStalled: true }]);
  const { promise: isOpen, resolve: open } = withResolvers();
  async function* queries() {
    yield bytes('query');
    await isOpen;
    yield bytes('another');
  }
  const { body } = await vectors.queryStream(queries());
  const chunks = body[Symbol.asyncIterator]();
  assert.equal(new TextDecoder().decode((await chunks.next()).value), 'first');
  open();
  await body.cancel();
});

it('after a lost reply the client asks which rows are durable, even if the source cannot be reopened', async () => {
  const counted = problem(400, 'invalid_request', { committed_count: 7, sequence: 3 });
  const vectors = await start([LOST, counted]);
  const error = await failureOf(
    vectors.writeStream(chunksOf('{"id":"a"}\n'), { format: 'ndjson' }),
  );
  const { code, committedCount, committedCountAtLeast, sequence } = error;
  assert.deepEqual(
    [code, committedCount, committedCountAtLeast, sequence],
    ['network_error', 7, 7, 3],
  );
  const [stream, question] = server.requests;
  assert.equal(question!.headers['idempotency-key'], stream!.headers['idempotency-key']);
  assert.deepEqual([question!.body, server.requests.length], ['{', 2]);
});

it('committedCountAtLeast keeps the count of earlier attempts when the server becomes unreachable', async () => {
  const stopping = problem(503, 'stopping', { retryable: true, committed_count: 4 });
  const vectors = await start([stopping, LOST]);
  const error = await failureOf(
    vectors.writeStream(() => chunksOf('{"id":"a"}\n'), { format: 'ndjson' }),
  );
  assert.equal(error.code, 'network_error');
  assert.deepEqual([error.committedCount, error.committedCountAtLeast], [undefined, 4]);
});
