// Compressed request bodies, and replies for clients that accept compression.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import * as zlib from 'node:zlib';
import { DEFAULT_LIMITS } from '../../../src/common/limits.js';
import {
  ChunkCompressor,
  ENCODINGS,
  type Encoding,
} from '../../../src/server/wire/content-encodings.js';
import { ARROW_STREAM, NDJSON } from '../../../src/server/wire/media-types.js';
import { createFilledService, expectProblem, type Service } from '../harness.js';

const { brotliCompressSync, gunzipSync, gzipSync } = zlib;
/** Missing in the type declarations. */
const { zstdCompressSync } = zlib as typeof zlib & {
  zstdCompressSync: (bytes: string | Uint8Array) => Buffer;
};
const compressors = { gzip: gzipSync, zstd: zstdCompressSync } satisfies Record<Encoding, unknown>;

const VECTORS = '/collections/c/vectors';
const GZIP = { 'content-encoding': 'gzip' };
const ACCEPT = { 'accept-encoding': 'gzip' };
const vectorOf = (id: string) => ({ id, values: [1, 2, 3] });
const lines = (count: number) =>
  Array.from({ length: count }, (_, i) => `${JSON.stringify(vectorOf(`n${i}`))}\n`).join('');

let service: Service;
before(async () => {
  service = await createFilledService({ limits: { ...DEFAULT_LIMITS, bodyBytesMax: 1_000_000 } });
});
after(() => service.close());

const post = (body: Uint8Array, headers: Readonly<Record<string, string>> = GZIP) =>
  service.call('POST', VECTORS, { body, headers });

const REMOTE = '192.0.2.7';

async function get(
  url: string,
  headers: Readonly<Record<string, string>> = ACCEPT,
  remoteAddress = REMOTE,
) {
  const request = { url, headers, remoteAddress };
  const { statusCode, headers: found, rawPayload } = await service.app.inject(request);
  return { status: statusCode, headers: found, bytes: rawPayload };
}

describe('a compressed body', () => {
  it('is taken as gzip, whole and as a stream', async () => {
    const one = await post(gzipSync(JSON.stringify(vectorOf('z'))));
    assert.equal(one.json.upserted_count, 1);
    const named = await post(gzipSync('{"id":"y","values":[1,2,3]}'), {
      'content-encoding': 'X-GZIP',
    });
    assert.equal(named.status, 200);
    const many = await post(gzipSync(lines(2_500)), { ...GZIP, 'content-type': NDJSON });
    assert.equal(many.json.upserted_count, 2_500);
  });

  for (const encoding of ENCODINGS) {
    const compress = compressors[encoding];
    const headers = { 'content-encoding': encoding, 'content-type': NDJSON };
    const parts = (name: string, count: number) =>
      Array.from({ length: count }, (_, i) =>
        compress(`${JSON.stringify(vectorOf(`${encoding}-${name}-${i}`))}\n`),
      );

    it(`may be several files of ${encoding}, one after another`, async () => {
      const metadata = { text: 'long '.repeat(2_000) };
      const first = compress(JSON.stringify({ ...vectorOf('first'), metadata }));
      const body = Buffer.concat([first, compress('\n'), ...parts('many', 300)]);
      const stream = await post(body, headers);
      assert.deepEqual([stream.status, stream.json.upserted_count], [200, 301]);
      const text = JSON.stringify(vectorOf('whole'));
      const whole = Buffer.concat([compress(text.slice(0, 9)), compress(text.slice(9))]);
      const one = await post(whole, { 'content-encoding': encoding });
      assert.deepEqual([one.status, one.json.upserted_count], [200, 1]);
    });

    it(`is refused when something else follows ${encoding}`, async () => {
      const body = Buffer.concat([...parts('odd', 2), Buffer.from('something else')]);
      await expectProblem(post(body, headers), 400, 'invalid_request');
    });
  }

  if (ENCODINGS.includes('zstd')) {
    it('is refused when it has very many short frames of zstd', async () => {
      const body = Buffer.concat(new Array(2_000).fill(zstdCompressSync('')));
      const reply = await expectProblem(
        post(body, { 'content-encoding': 'zstd' }),
        400,
        'invalid_request',
      );
      assert.match(reply.json.detail, /more than 1000 zstd frames/);
    });
  }

  it('is refused when it becomes longer than a body may be, and a short one is not read on', async () => {
    const bomb = gzipSync(Buffer.alloc(60_000_000, ' '));
    assert.ok(bomb.length < 100_000);
    const reply = await expectProblem(post(bomb), 413, 'payload_too_large');
    assert.equal(reply.json.errors[0].actual, 'more than 1000000');
  });

  it('is refused when it is damaged, cut off or not encoded', async () => {
    const text = '{"id":"q","values":[1,2,3]}';
    for (const encoding of ENCODINGS) {
      const whole = compressors[encoding](text);
      for (const type of ['application/json', NDJSON]) {
        const headers = { 'content-encoding': encoding, 'content-type': type };
        for (const bytes of [whole.subarray(0, -9), whole.subarray(0, -1), Buffer.from(text)]) {
          const reply = await expectProblem(post(bytes, headers), 400, 'invalid_request');
          assert.match(reply.json.detail, new RegExp(`not valid ${encoding}`));
        }
      }
    }
    await expectProblem(service.call('GET', `${VECTORS}/q`), 404, 'vector_not_found');
  });

  it('is refused in any other encoding, and the reply names those that are taken', async () => {
    const body = brotliCompressSync(JSON.stringify(vectorOf('q')));
    for (const encoding of ['br', 'deflate', 'gzip, gzip', 'x']) {
      for (const type of ['application/json', NDJSON]) {
        const headers = { 'content-encoding': encoding, 'content-type': type };
        const reply = await expectProblem(post(body, headers), 415, 'unsupported_media_type');
        assert.match(reply.headers['accept-encoding']!, /\bgzip$/);
      }
    }
    const other = await expectProblem(
      post(body, { 'content-type': 'text/plain' }),
      415,
      'unsupported_media_type',
    );
    assert.equal(other.headers['accept-encoding'], undefined);
  });
});

describe('a reply', () => {
  before(async () => {
    assert.equal((await post(Buffer.from(lines(2_500)), { 'content-type': NDJSON })).status, 200);
    const metadata = { text: 'long '.repeat(4_000) };
    const body = Buffer.from(JSON.stringify({ ...vectorOf('long'), metadata }));
    assert.equal((await post(body, {})).status, 200);
  });

  it('is compressed if the client asks for it and it is long', async () => {
    const url = `${VECTORS}?limit=500&include_values=true`;
    const plain = await get(url, {});
    const { headers, bytes } = await get(url);
    assert.equal(headers['content-encoding'], 'gzip');
    assert.equal(Number(headers['content-length']), bytes.length);
    assert.ok(bytes.length < plain.bytes.length / 2);
    // The cursors differ.
    const rowsIn = (json: Buffer) => JSON.parse(json.toString()).vectors;
    assert.deepEqual(rowsIn(gunzipSync(bytes)), rowsIn(plain.bytes));
    for (const found of [headers, plain.headers]) assert.equal(found.vary, 'accept-encoding');
    for (const accept of ['identity', 'gzip;q=0', 'br']) {
      const other = await get(url, { 'accept-encoding': accept });
      assert.equal(other.headers['content-encoding'], undefined, accept);
      assert.deepEqual(rowsIn(other.bytes), rowsIn(plain.bytes));
    }
    const short = await get(`${VECTORS}/n1`);
    assert.deepEqual(
      [short.headers['content-encoding'], short.headers.vary],
      [undefined, undefined],
    );
  });

  it('is compressed for a client on this machine only if it takes no other form, or is a proxy', async () => {
    const url = `${VECTORS}?limit=500&include_values=true`;
    const encodingFor = async (headers: Readonly<Record<string, string>>, address: string) => {
      const found = await get(url, headers, address);
      assert.equal(found.headers.vary, 'accept-encoding');
      return found.headers['content-encoding'];
    };
    for (const address of ['127.0.0.1', '127.8.9.1', '::1', '::ffff:127.0.0.1']) {
      for (const accept of ['gzip', 'gzip, deflate', 'gzip, identity;q=0.5', '*']) {
        assert.equal(await encodingFor({ 'accept-encoding': accept }, address), undefined, accept);
      }
      for (const accept of ['gzip, identity;q=0', 'gzip, *;q=0']) {
        assert.equal(await encodingFor({ 'accept-encoding': accept }, address), 'gzip', accept);
      }
    }
    for (const name of ['x-forwarded-for', 'forwarded', 'via']) {
      assert.equal(await encodingFor({ ...ACCEPT, [name]: 'a' }, '127.0.0.1'), 'gzip', name);
    }
    assert.equal(await encodingFor(ACCEPT, '10.0.0.1'), 'gzip');
    const exported = await get('/collections/c/export', { ...ACCEPT, accept: NDJSON }, '::1');
    assert.equal(exported.headers['content-encoding'], undefined);
  });

  it('that is streamed can be read piece by piece, and Arrow is sent as it is', async () => {
    const url = '/collections/c/export';
    const plain = await get(url, { accept: NDJSON });
    const { headers, bytes } = await get(url, { ...ACCEPT, accept: NDJSON });
    assert.equal(headers['content-encoding'], 'gzip');
    assert.deepEqual(gunzipSync(bytes), plain.bytes);
    const arrow = await get(url, { ...ACCEPT, accept: ARROW_STREAM });
    assert.deepEqual([arrow.status, arrow.headers['content-encoding']], [200, undefined]);
  });

  it('that is streamed for long leaves no listeners behind', async () => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error) => warnings.push(warning);
    process.on('warning', onWarning);
    const compressor = new ChunkCompressor('gzip');
    const parts: Uint8Array[] = [];
    for (let i = 0; i < 20; i++) parts.push(await compressor.add(Buffer.from(`${i},`)));
    parts.push(await compressor.end());
    await nextTurn();
    process.off('warning', onWarning);
    assert.deepEqual(warnings, []);
    assert.match(gunzipSync(Buffer.concat(parts)).toString(), /^0,1,.*,19,$/);
  });

  it('has an entity tag for each form, and each is good for conditions', async () => {
    const url = `${VECTORS}/long`;
    const plain = String((await get(url, {})).headers.etag);
    const encoded = String((await get(url)).headers.etag);
    assert.notEqual(encoded, plain);
    for (const tag of [plain, encoded, `W/${encoded}`]) {
      const { status, headers } = await get(url, { ...ACCEPT, 'if-none-match': tag });
      assert.deepEqual([status, headers.etag], [304, tag.replace('W/', '')]);
      assert.equal(headers.vary, 'accept-encoding');
    }
    const patch = (tag: string) =>
      service.call('PATCH', url, { body: { metadata: { n: 1 } }, headers: { 'if-match': tag } });
    assert.equal((await patch(encoded)).status, 200);
    assert.equal((await patch(encoded)).status, 412);
  });

  it('of the API description is compressed, and the same for all', async () => {
    const { bytes, headers } = await get('/openapi.json');
    assert.equal(headers['content-encoding'], 'gzip');
    assert.deepEqual(gunzipSync(bytes), (await get('/openapi.json', {})).bytes);
  });
});
