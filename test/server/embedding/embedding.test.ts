// Texts in place of vectors over HTTP, with an endpoint that replies correctly, slowly, incorrectly or not at all.

import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { Table, tableToIPC, Utf8, vectorFromArray } from 'apache-arrow';
import type { EmbeddingOptions } from '../../../src/server/embedding/embedder.js';
import { createService, type Reply, type Service } from '../harness.js';
import { answerWell, type ScriptedEndpoint, sendJson, startEndpoint } from './scripted-endpoint.js';

const EMBEDDING = { endpoint: 'local', model: 'letters' };

let endpoint: ScriptedEndpoint;
const services: Service[] = [];

beforeEach(async () => {
  endpoint = await startEndpoint();
});
afterEach(async () => {
  for (const service of services.splice(0)) await service.close();
  await endpoint.close();
});

/** A service with the collection `c` of two dimensions. */
async function open(options: Partial<EmbeddingOptions> = {}, collection: object = {}) {
  const service = await createService({
    embedding: {
      embedding: [{ name: 'local', url: endpoint.url, key: 'secret' }],
      embeddingTimeoutMs: 60_000,
      embeddingAttempts: 2,
      embeddingBatchTexts: 3,
      ...options,
    },
  });
  services.push(service);
  const body = { id: 'c', dimension: 2, metric: 'dot', embed: EMBEDDING, ...collection };
  assert.equal((await service.call('POST', '/v1/collections', { body })).status, 200);
  return service;
}

const write = (service: Service, body: object, headers: Record<string, string> = {}) =>
  service.call('POST', '/v1/collections/c/vectors', { body, headers });
const query = (service: Service, body: object) =>
  service.call('POST', '/v1/collections/c/query', { body });

async function valuesOf(service: Service, id: string): Promise<unknown> {
  const reply = await service.call('GET', `/v1/collections/c/vectors/${id}`);
  return reply.json.values;
}

describe('texts in place of vectors', () => {
  it('become vectors in batches, beside vectors that are sent', async () => {
    const service = await open();
    const texts = ['a', 'be', 'sea', 'idea', 'queue'];
    const vectors = [
      ...texts.map((embed) => ({ id: embed, embed, metadata: { text: embed } })),
      { id: 'sent', values: [7, 8] },
    ];
    const reply = await write(service, { vectors });
    assert.equal(reply.status, 200);
    assert.deepEqual(await valuesOf(service, 'idea'), [4, 3]);
    assert.deepEqual(await valuesOf(service, 'queue'), [5, 4]);
    assert.deepEqual(await valuesOf(service, 'sent'), [7, 8]);
    assert.deepEqual(endpoint.calls.map(({ body }) => body.input.length).sort(), [2, 3]);
    const [{ body, headers }] = endpoint.calls as [(typeof endpoint.calls)[number]];
    assert.equal(body.model, 'letters');
    assert.equal(body.dimensions, undefined);
    assert.equal(headers.authorization, 'Bearer secret');
  });

  it('are taken by every route that writes or searches', async () => {
    const service = await open({}, { embed: { ...EMBEDDING, sends_dimension: true } });
    assert.equal((await write(service, { id: 'one', embed: 'aeiou' })).status, 200);
    const put = await service.call('PUT', '/v1/collections/c/vectors/two', {
      body: { embed: 'hmm' },
    });
    assert.equal(put.status, 200);
    const lines = '{"id":"three","embed":"ooo"}\n{"id":"four","values":[1,1]}\n';
    const stream = await service.call('POST', '/v1/collections/c/vectors', {
      body: lines,
      headers: { 'content-type': 'application/x-ndjson' },
    });
    assert.equal(stream.status, 200);
    assert.deepEqual(await valuesOf(service, 'one'), [5, 5]);
    assert.deepEqual(await valuesOf(service, 'two'), [3, 0]);
    assert.deepEqual(await valuesOf(service, 'three'), [3, 3]);
    const patch = await service.call('PATCH', '/v1/collections/c/vectors/four', {
      body: { embed: 'x', metadata: { n: 1 } },
    });
    assert.equal(patch.status, 200);
    assert.deepEqual(await valuesOf(service, 'four'), [1, 0]);
    assert.equal(endpoint.calls[0]!.body.dimensions, 2);
    const found = await query(service, { embed: 'bbb', top_k: 2 });
    const matches = [
      { id: 'one', score: 15 },
      { id: 'three', score: 9 },
    ];
    assert.deepEqual(found.json.matches, matches);
    const batch = await service.call('POST', '/v1/collections/c/query/batch', {
      body: {
        queries: [
          { vector: [0, 1], top_k: 1 },
          { embed: 'bbb', top_k: 2 },
        ],
      },
    });
    assert.deepEqual(batch.json.results[1].matches, matches);
  });

  it('are a column of queries in Arrow', async () => {
    const service = await open();
    const vectors = [
      { id: 'one', embed: 'aeiou' },
      { id: 'two', embed: 'hmm' },
    ];
    assert.equal((await write(service, { vectors })).status, 200);
    const send = (texts: readonly (string | null)[], columns: object = {}) => {
      const embed = vectorFromArray([...texts], new Utf8());
      return service.call('POST', '/v1/collections/c/query/batch?top_k=1', {
        body: Buffer.from(tableToIPC(new Table({ embed, ...columns }), 'stream')),
        headers: {
          'content-type': 'application/vnd.apache.arrow.stream',
          accept: 'application/x-ndjson',
        },
      });
    };
    const id = vectorFromArray(['x', 'y'], new Utf8());
    const { status, text } = await send(['bbb', 'eeee'], { id });
    assert.equal(status, 200, text);
    const replies = text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    assert.deepEqual(
      replies.map(({ query_id, matches }) => [query_id, matches]),
      [
        ['x', [{ id: 'one', score: 15 }]],
        ['y', [{ id: 'one', score: 40 }]],
      ],
    );
    const refused = await send(['a', null, '']);
    assert.deepEqual(
      refused.json.errors.map(({ pointer }: { pointer: string }) => pointer),
      ['/rows/1/embed', '/rows/2/embed'],
    );
  });

  it('are not sent again for a request that is repeated with its idempotency key', async () => {
    const service = await open();
    const headers = { 'idempotency-key': 'k' };
    const first = await write(service, { id: 'a', embed: 'text' }, headers);
    const again = await write(service, { id: 'a', embed: 'text' }, headers);
    assert.deepEqual(again.json, first.json);
    assert.equal(endpoint.calls.length, 1);
    const other = await write(service, { id: 'a', embed: 'other' }, headers);
    assert.equal(other.json.code, 'idempotency_key_reused');
  });

  it('are shown with the collection, changed and removed', async () => {
    const service = await open();
    const shown = await service.call('GET', '/v1/collections/c');
    const expected = { ...EMBEDDING, sends_dimension: false };
    assert.deepEqual(shown.json.embed, expected);
    const change = { embed: null };
    await service.call('PATCH', '/v1/collections/c', { body: change });
    const reply = await query(service, { embed: 'text' });
    assert.equal(reply.status, 400);
    assert.equal(reply.json.code, 'embedding_not_configured');
  });

  const pointersOf = ({ json }: Reply): string[] =>
    json.errors.map(({ pointer, code }: { pointer: string; code: string }) => `${code} ${pointer}`);

  it('that are wrong are named, and nothing is sent', async () => {
    const service = await open();
    const cases: [Promise<Reply>, string][] = [
      [write(service, { vectors: [{ embed: '' }] }), 'invalid_request /vectors/0/embed'],
      [write(service, { vectors: [{ embed: 3 }] }), 'invalid_request /vectors/0/embed'],
      [write(service, { embed: 'x', values: [1, 2] }), 'invalid_request /embed'],
      [write(service, { embed: 'x'.repeat(40_000) }), 'limit_exceeded /embed'],
      [query(service, { embed: 'x', vector: [1, 2] }), 'invalid_request /embed'],
      [query(service, { embed: 'x', cursor: 'c' }), 'invalid_request /embed'],
      [query(service, { embed: 'x', using: 'title' }), 'invalid_request /using'],
    ];
    for (const [reply, expected] of cases) {
      const found = await reply;
      assert.equal(found.status, 400);
      assert.deepEqual(pointersOf(found), [expected]);
    }
    assert.equal(endpoint.calls.length, 0);
  });

  it('need an endpoint that the configuration has', async () => {
    const service = await open({}, { embed: { endpoint: 'other', model: 'm' } });
    const reply = await write(service, { vectors: [{ values: [1, 2] }, { embed: 'x' }] });
    assert.deepEqual(pointersOf(reply), ['embedding_not_configured /vectors/1/embed']);
    assert.equal(await valuesOf(service, 'x'), undefined);
  });

  it('have a direction under cosine', async () => {
    const service = await open({}, { metric: 'cosine' });
    endpoint.answer = ({ body }, response) =>
      sendJson(response, 200, { data: body.input.map(() => ({ embedding: [0, 0] })) });
    const reply = await write(service, { vectors: [{ embed: 'x' }] });
    assert.deepEqual(pointersOf(reply), ['invalid_vector /vectors/0/embed']);
  });
});

describe('an embedding endpoint', () => {
  const code = ({ json }: Reply): string => json.code;
  const detail = ({ json }: Reply): string => json.detail;

  it('is called again after 429 and 500', async () => {
    const service = await open({ embeddingAttempts: 3 });
    const statuses = [429, 500];
    endpoint.answer = (call, response) => {
      const status = statuses.shift();
      if (status === undefined) answerWell(call, response);
      else sendJson(response, status, { error: 'later' });
    };
    assert.equal((await write(service, { id: 'a', embed: 'be' })).status, 200);
    assert.deepEqual(await valuesOf(service, 'a'), [2, 1]);
    assert.equal(endpoint.calls.length, 3);
  });

  it('that keeps failing is reported, and left alone for a while', async () => {
    const service = await open({ embeddingAttempts: 1 });
    endpoint.answer = (_call, response) => sendJson(response, 503, {});
    for (let i = 0; i < 5; i++) {
      const reply = await query(service, { embed: 'x' });
      assert.equal(reply.status, 503);
      assert.match(detail(reply), /replied 503/);
    }
    const reply = await query(service, { embed: 'x' });
    assert.equal(code(reply), 'embedding_unavailable');
    assert.match(detail(reply), /failed repeatedly/);
    assert.ok(Number(reply.headers['retry-after']) >= 1);
    assert.equal(endpoint.calls.length, 5);
    const { text } = await service.call('GET', '/metrics');
    assert.match(text, /sagitta_embedding_calls_total\{outcome="rejected"\} 1/);
    assert.match(text, /sagitta_embedding_calls_total\{outcome="failure"\} 5/);
  });

  it('whose Retry-After is long is left to the client', async () => {
    const service = await open();
    endpoint.answer = (_call, response) => {
      response.setHeader('retry-after', '120');
      sendJson(response, 429, {});
    };
    const reply = await query(service, { embed: 'x' });
    assert.equal(reply.headers['retry-after'], '120');
    assert.equal(endpoint.calls.length, 1);
  });

  it('that does not reply in time is unavailable', async () => {
    const service = await open({ embeddingTimeoutMs: 50, embeddingAttempts: 1 });
    endpoint.answer = () => {};
    const hanging = await query(service, { embed: 'x' });
    assert.equal(code(hanging), 'embedding_unavailable');
    assert.match(detail(hanging), /did not reply within 50 ms/);
  });

  it('that is closed is unavailable, and its address is not told', async () => {
    const service = await open({ embeddingAttempts: 1 });
    await endpoint.close();
    const closed = await query(service, { embed: 'x' });
    assert.equal(code(closed), 'embedding_unavailable');
    assert.match(detail(closed), /cannot be reached/);
    assert.ok(!detail(closed).includes('127.0.0.1'));
    endpoint = await startEndpoint();
  });

  it('that replies what is no vector for each text is an error without a second call', async () => {
    const service = await open({ embeddingAttempts: 3 });
    const of = (data: unknown) => ({ data });
    const cases: [number, unknown, RegExp][] = [
      [401, {}, /replied 401/],
      [200, of([]), /0 vectors for 1 texts/],
      [200, of([{ embedding: [1, 2, 3] }]), /3 elements; the collection's dimension is 2/],
      [200, of([{ embedding: [1, null] }]), /Element 1 is null/],
      [200, of([{ embedding: [1, 1e39] }]), /beyond the range of float32/],
      [200, of([{ index: 4, embedding: [1, 2] }]), /has the index 4/],
      [200, { vectors: [] }, /no array "data"/],
      [200, of('x'.repeat(100_000)), /not JSON, or too long/],
    ];
    for (const [status, body, expected] of cases) {
      endpoint.answer = (_call, response) => sendJson(response, status, body);
      const callCount = endpoint.calls.length;
      const reply = await query(service, { embed: 'x' });
      assert.equal(reply.status, 502);
      assert.equal(code(reply), 'embedding_failed');
      assert.match(detail(reply), expected);
      assert.equal(endpoint.calls.length, callCount + 1);
    }
  });

  it('that redirects is not followed', async () => {
    const service = await open({ embeddingAttempts: 1 });
    endpoint.answer = (_call, response) => {
      response.writeHead(307, { location: endpoint.url });
      response.end();
    };
    const reply = await query(service, { embed: 'x' });
    assert.equal(code(reply), 'embedding_unavailable');
    assert.equal(endpoint.calls.length, 1);
  });

  it('that fails for a part of a body leaves nothing written', async () => {
    const service = await open({ embeddingAttempts: 1, embeddingBatchTexts: 1 });
    endpoint.answer = (call, response) => {
      if (call.body.input[0] === 'bad') sendJson(response, 400, {});
      else answerWell(call, response);
    };
    const texts = ['a', 'b', 'bad', 'c', 'd'];
    const reply = await write(service, { vectors: texts.map((embed) => ({ id: embed, embed })) });
    assert.equal(code(reply), 'embedding_failed');
    assert.equal(await valuesOf(service, 'a'), undefined);
  });
});
