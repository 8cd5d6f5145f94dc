// The built-in model: its vectors, compared with those of the package that publishes it, and collections that use it.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import * as tensorflow from '@tensorflow/tfjs-core';
import { Table, tableToIPC, Utf8, vectorFromArray } from 'apache-arrow';
import { startWasmBackend } from '../../../src/platform/wasm-backend.js';
import { BuiltinModel, TextError } from '../../../src/server/embedding/builtin-model.js';
import { readVocabulary, readWeights } from '../../../src/server/embedding/model-files.js';
import {
  SENTENCE_DIMENSION,
  SentenceEncoder,
} from '../../../src/server/embedding/sentence-encoder.js';
import { SentenceModel } from '../../../src/server/embedding/sentence-model.js';
import { WordPieces } from '../../../src/server/embedding/word-pieces.js';
import { createService, type Reply, type Service } from '../harness.js';

/** Texts and the first elements of their vectors in the reference implementation. */
const KNOWN: readonly (readonly [text: string, first: readonly number[]])[] = [
  ['a dog chased the cat', [0.0365263, -0.0015795, -0.0557988, -0.0141428, 0.0101034, 0.0610799]],
  [
    'stock prices fell on tuesday',
    [0.0127889, -0.0400431, 0.0025603, -0.0323266, 0.006044, -0.0360578],
  ],
  ['Hello, world!', [-0.0424865, -0.0508337, -0.0060226, -0.0474382, -0.0490024, -0.0536995]],
];
const TOLERANCE = 1e-6;

function productOf(a: Float32Array, b: Float32Array): number {
  return a.reduce((sum, value, i) => sum + value * b[i]!, 0);
}

describe('the built-in model', () => {
  const model = new BuiltinModel();
  const { signal } = new AbortController();
  after(() => model.close());

  const vectorsOf = async (texts: readonly string[]): Promise<Float32Array[]> => {
    const found = await model.embed(texts, model.requireInstalled(), signal);
    return texts.map((_, i) =>
      found.subarray(i * SENTENCE_DIMENSION, (i + 1) * SENTENCE_DIMENSION),
    );
  };
  const issueOf = (texts: readonly string[]) =>
    model.embed(texts, model.requireInstalled(), signal).then(
      () => null,
      (error: unknown) => (error instanceof TextError ? error.issue : error),
    );

  it('makes the vectors of the reference implementation', async () => {
    const vectors = await vectorsOf(KNOWN.map(([text]) => text));
    for (const [i, [text, first]] of KNOWN.entries()) {
      const error = Math.max(...first.map((value, j) => Math.abs(value - vectors[i]![j]!)));
      assert.ok(error < TOLERANCE, `${text}: ${error}`);
      assert.ok(Math.abs(productOf(vectors[i]!, vectors[i]!) - 1) < TOLERANCE, text);
    }
  });

  it('makes the same vectors where there are no kernels for the processor', async () => {
    await startWasmBackend({ isSingleThreaded: true });
    const wordPieces = new WordPieces(readVocabulary());
    const plain = new SentenceModel(wordPieces, new SentenceEncoder(tensorflow, readWeights()));
    const found = plain.embed(KNOWN.map(([text]) => text));
    assert.ok(found instanceof Float32Array);
    for (const [i, [text, first]] of KNOWN.entries()) {
      const vector = found.subarray(i * SENTENCE_DIMENSION);
      const error = Math.max(...first.map((value, j) => Math.abs(value - vector[j]!)));
      assert.ok(error < TOLERANCE, `${text}: ${error}`);
    }
  });

  it('gives a text the same vector alone and among texts of other lengths', async () => {
    const texts = Array.from({ length: 24 }, (_, i) =>
      'a striped cat sat on the old mat and slept '.repeat(1 + (i % 7)).slice(0, 9 + 5 * i),
    );
    const together = await vectorsOf(texts);
    for (const i of [0, 11, 23]) {
      const [alone] = await vectorsOf([texts[i]!]);
      const error = Math.max(...alone!.map((value, j) => Math.abs(value - together[i]![j]!)));
      assert.ok(error < TOLERANCE, `text ${i}: ${error}`);
    }
  });

  it('reads all of a long text', async () => {
    const filler = 'The committee met again to discuss the agenda of the next meeting. ';
    const end = 'Whales sleep upright in the warm sea, and their calves drink fat milk. ';
    const [long, changed, whales] = await vectorsOf([
      filler.repeat(15),
      filler.repeat(10) + end.repeat(6),
      end,
    ]);
    assert.ok(Math.abs(productOf(long!, long!) - 1) < TOLERANCE);
    assert.ok(productOf(changed!, whales!) > productOf(long!, whales!) + 0.1);
  });

  it('says which text it cannot read, and why', async () => {
    assert.deepEqual(await issueOf(['a cat', '  \n', '日本語']), {
      index: 1,
      detail: 'Expected a text with visible characters; found none.',
    });
    assert.deepEqual(await issueOf(['a cat', '日本語です', 'a dog']), {
      index: 1,
      detail:
        'Expected a text that the built-in model can read, which knows English; it does not know 5 of the 5 characters of this text.',
    });
    assert.equal(await issueOf(['The word 日本 is Japanese for Japan.']), null);
  });

  it('stops when the request is aborted, and works afterwards', async () => {
    const texts = Array.from(
      { length: 200 },
      (_, i) => `the ${i} cats of the ${i % 9} old sailors`,
    );
    const controller = new AbortController();
    const whole = model.embed(texts, model.requireInstalled(), controller.signal);
    controller.abort(new Error('the client has gone'));
    await assert.rejects(whole, /the client has gone/);
    assert.equal((await vectorsOf(['a cat'])).length, 1);
  });

  it('refuses vectors of another version', async () => {
    const other = model.embed(['a'], 'universal-sentence-encoder-lite@0.1.0', signal);
    await assert.rejects(other, { code: 'embedding_not_configured' });
  });
});

describe('a collection with the built-in model', () => {
  let service: Service;
  before(async () => {
    service = await createService({});
    const created = await create({ id: 'notes', embed: 'builtin', text: { fields: ['text'] } });
    assert.equal(created.status, 200);
  });
  after(() => service.close());

  const create = (body: object, query = '') =>
    service.call('POST', `/v1/collections${query}`, { body });
  const change = (body: object) => service.call('PATCH', '/v1/collections/notes', { body });
  const issuesOf = ({ json }: Reply): string[] =>
    json.errors.map(({ pointer, code }: { pointer: string; code: string }) => `${code} ${pointer}`);

  it('has its dimension, and shows its name and version', async () => {
    const { json } = await service.call('GET', '/v1/collections/notes');
    assert.equal(json.dimension, SENTENCE_DIMENSION);
    assert.equal(json.metric, 'cosine');
    assert.deepEqual(json.embed, {
      endpoint: 'builtin',
      model: new BuiltinModel().requireInstalled(),
      sends_dimension: false,
    });
    const again = await create({ id: 'copy', dimension: SENTENCE_DIMENSION, embed: json.embed });
    assert.deepEqual(again.json.embed, json.embed);
  });

  it('finds texts by meaning, and by meaning and words', async () => {
    const texts = ['Kittens chase mice.', 'Shares fell on Tuesday.', 'It will rain in Porto.'];
    const vectors = texts.map((text, i) => ({ id: `n${i}`, embed: text, metadata: { text } }));
    const written = await service.call('POST', '/v1/collections/notes/vectors', {
      body: { vectors },
    });
    assert.equal(written.status, 200);
    const first = async (body: object) => {
      const reply = await service.call('POST', '/v1/collections/notes/query', { body });
      assert.equal(reply.status, 200, reply.text);
      return reply.json.matches[0].id;
    };
    assert.equal(await first({ embed: 'a young cat hunts' }), 'n0');
    assert.equal(await first({ embed: 'the stock market lost value' }), 'n1');
    const parts = [{ embed: 'tomorrow it is going to be wet' }, { text: { query: 'Porto' } }];
    assert.equal(await first({ fusion: { kind: 'rrf', parts } }), 'n2');
  });

  it('says how long a text took to become a vector', async () => {
    const query = (body: object) =>
      service.call('POST', '/v1/collections/notes/query', { body: { ...body, explain: true } });
    await service.call('PUT', '/v1/collections/notes/vectors/kept', { body: { embed: 'a text' } });
    const { json, headers } = await query({ embed: 'a young cat hunts' });
    assert.ok(json.explain.embed_ms > 0);
    assert.match(headers['server-timing'] ?? '', /^embed;dur=\d+(\.\d+)?, filter;/);
    const traffic = await service.call('GET', '/v1/traffic');
    assert.ok(traffic.json.slow_queries.some((one: { embed_ms?: number }) => one.embed_ms! > 0));
    const without = await query({ id: 'kept' });
    assert.equal(without.json.explain.embed_ms, undefined);
    assert.match(without.headers['server-timing'] ?? '', /^filter;/);
  });

  it('cannot be given another model while it has vectors', async () => {
    await service.call('PUT', '/v1/collections/notes/vectors/kept', { body: { embed: 'a text' } });
    const other = { endpoint: 'local', model: 'bge' };
    const refused = await change({ embed: other });
    assert.deepEqual(issuesOf(refused), ['invalid_request /embed']);
    assert.match(refused.json.detail, /universal-sentence-encoder-lite@.*made the vectors.*"bge"/);
    assert.equal((await change({ embed: 'builtin' })).status, 200);
    assert.equal((await create({ id: 'empty', dimension: 4, embed: other })).status, 200);
    const replaced = { ...other, model: 'gte' };
    const changed = await service.call('PATCH', '/v1/collections/empty', {
      body: { embed: replaced },
    });
    assert.equal(changed.json.embed.model, 'gte');
  });

  it('is not taken for one with another model', async () => {
    const other = { id: 'notes', dimension: SENTENCE_DIMENSION, text: { fields: ['text'] } };
    const reply = await create(other, '?if_not_exists=true');
    assert.equal(reply.json.code, 'collection_exists');
    assert.match(reply.json.detail, /other settings of "embed"/);
  });

  it('takes a column of texts in Arrow, which only a patch may leave out', async () => {
    const send = (texts: readonly (string | null)[], query: string) => {
      const table = new Table({
        id: vectorFromArray(texts.map((_, i) => `a${i}`)),
        embed: vectorFromArray(texts, new Utf8()),
        part: vectorFromArray(texts.map((_, i) => i)),
      });
      return service.call('POST', `/v1/collections/notes/vectors${query}`, {
        body: Buffer.from(tableToIPC(table, 'stream')),
        headers: { 'content-type': 'application/vnd.apache.arrow.stream' },
      });
    };
    const written = await send(['a young cat', 'the stock market'], '');
    assert.equal(written.status, 200, written.text);
    const valuesOf = async (id: string): Promise<number[]> =>
      (await service.call('GET', `/v1/collections/notes/vectors/${id}`)).json.values;
    const before = [await valuesOf('a0'), await valuesOf('a1')];
    assert.deepEqual(issuesOf(await send(['rain', null], '')), ['invalid_request /rows/1/embed']);
    const patched = await send([null, 'rain in Porto'], '?mode=patch');
    assert.equal(patched.status, 200, patched.text);
    assert.deepEqual(await valuesOf('a0'), before[0]);
    assert.notDeepEqual(await valuesOf('a1'), before[1]);
  });

  it('names the row whose text it cannot read', async () => {
    const lines = ['{"id":"a","embed":"fine"}', '{"id":"b","embed":"日本語"}', ''].join('\n');
    const reply = await service.call('POST', '/v1/collections/notes/vectors', {
      body: lines,
      headers: { 'content-type': 'application/x-ndjson' },
    });
    assert.deepEqual(issuesOf(reply), ['invalid_request /rows/1/embed']);
    const missing = await service.call('GET', '/v1/collections/notes/vectors/a');
    assert.equal(missing.status, 404);
  });
});
