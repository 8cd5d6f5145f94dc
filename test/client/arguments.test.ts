// Arguments that cannot be sent: errors that say what was found, where, and what is expected, before any request.

import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';
import {
  type Client,
  createClient,
  decodeValues,
  SagittaClientError,
} from '../../src/client/client.js';
import { type ScriptedServer, startScriptedServer } from './scripted-server.js';

let server: ScriptedServer;
let client: Client;

before(async () => {
  server = await startScriptedServer([{ body: { matches: [], results: [] } }]);
  client = createClient({ baseUrl: server.url });
});
after(() => server.close());

/** Arguments as programs in JavaScript may pass them. */
const any = (value: unknown) => value as never;

const REFUSED: readonly (readonly [what: string, call: () => unknown, message: RegExp])[] = [
  [
    'no options of a client',
    () => createClient(any(undefined)),
    /^createClient expects an object such as \{ baseUrl: 'http:.*' \}, found undefined$/,
  ],
  [
    'a URL in place of options',
    () => createClient(any('http://127.0.0.1:8484')),
    /createClient expects an object such as .* found "http:\/\/127\.0\.0\.1:8484"/,
  ],
  [
    'options without a URL',
    () => createClient(any({})),
    /^baseUrl must be a URL .* found undefined/,
  ],
  [
    'an object in place of vectors',
    () => docs().upsert(any({})),
    /^found an object with no members, expected an array of vectors such as/,
  ],
  [
    'one vector in place of vectors',
    () => docs().upsert(any({ id: 'a', values: [1] })),
    /^found an object with id, values, expected an array of vectors/,
  ],
  [
    'nothing in place of vectors',
    () => docs().upsert(any(undefined)),
    /^found undefined, expected/,
  ],
  [
    'null among vectors',
    () => docs().upsert([any(null)]),
    /^found null at vectors\[0\], expected a v/,
  ],
  [
    'an object in place of an iterable',
    () => docs().writeAll(any({})),
    /^found an object with no members, expected an iterable of vectors such as/,
  ],
  [
    'a function that returns no iterable',
    () => docs().writeAll(any(() => 5)),
    /^found 5, expected an iterable of vectors/,
  ],
  [
    'text in place of bytes',
    () => docs().writeStream(any('{}'), { format: 'ndjson' }),
    /^found "\{\}", expected an iterable of Uint8Arrays/,
  ],
  [
    'an object in place of queries',
    () => docs().queryBatch(any({})),
    /expected an array of queries/,
  ],
  [
    'NaN in a vector',
    () => docs().upsert([{ values: [1, 2] }, { values: [1, Number.NaN] }]),
    /^found NaN at vectors\[1\]\.values\[1\], expected a finite number of float32$/,
  ],
  [
    'an infinite number in an array',
    () => docs().query({ vector: new Float32Array([1, Number.NEGATIVE_INFINITY]) }),
    /^found -Infinity at the query\.vector\[1\], expected a finite number/,
  ],
  [
    'a number beyond float32 in an array',
    () => docs().query({ vector: new Float64Array([1, 1e39]) }),
    /^found 1e\+39 at the query\.vector\[1\], expected a finite number of float32/,
  ],
  [
    'null in a vector',
    () => docs().put({ id: 'a', values: any([0, null]) }),
    /^found null at the vector\.values\[1\]/,
  ],
  [
    'NaN in a named vector',
    () => docs().upsert([{ vectors: { title: [[1], [Number.NaN]] } }]),
    /^found NaN at vectors\[0\]\.vectors\.title\[1\]\[0\]/,
  ],
  [
    'NaN in a part of a fusion',
    () => docs().query({ fusion: any({ parts: [{ vector: [Number.NaN] }] }) }),
    /^found NaN at the query\.fusion\.parts\[0\]\.vector\[0\]/,
  ],
  [
    'NaN in a stream',
    () => docs().writeAll([{ values: [1] }, { values: [Number.NaN] }]),
    /^found NaN at vector 1\.values\[0\]/,
  ],
  [
    'integers of 64 bits',
    () => docs().query({ vector: any(new BigInt64Array(2)) }),
    /^found an object of BigInt64Array at the query\.vector, expected numbers, a Float32Array/,
  ],
  [
    'a BigInt in metadata',
    () => docs().upsert([{ values: [1] }, { values: [1], metadata: { a: [{ b: any(5n) }] } }]),
    /^found a BigInt at vectors\[1\]\.metadata\.a\[0\]\.b, which JSON does not have: use a number/,
  ],
  [
    'a BigInt in a stream',
    () => docs().writeAll([{ values: [1], metadata: { n: any(5n) } }]),
    /^found a BigInt at vector 0\.metadata\.n/,
  ],
  [
    'metadata that contains itself',
    () => docs().upsert([{ values: [1], metadata: circle() }]),
    /^the request cannot be written as JSON: .*circular/i,
  ],
];

const docs = () => client.collection('docs');

function circle(): never {
  const metadata: Record<string, unknown> = {};
  metadata.self = metadata;
  return any(metadata);
}

for (const [what, call, message] of REFUSED) {
  it(`${what}: nothing is sent, and the error says where`, async () => {
    await assert.rejects(
      async () => call(),
      (error: unknown) => {
        assert.ok(error instanceof SagittaClientError, String(error));
        assert.equal(error.code, 'invalid_argument');
        assert.match(error.message, message);
        return true;
      },
    );
    assert.equal(server.requests.length, 0);
  });
}

it('typed arrays are sent as float32', async () => {
  const sending = await startScriptedServer([{ body: { matches: [] } }]);
  const { query } = createClient({ baseUrl: sending.url }).collection('docs');
  await query({ vector: new Float64Array([0.1, -2]) });
  await query({ vector: any(new Int8Array([3, -4])) });
  const sent = sending.requests.map(({ body }) => [...decodeValues(JSON.parse(body).vector)]);
  assert.deepEqual(sent, [
    [Math.fround(0.1), -2],
    [3, -4],
  ]);
  await sending.close();
});
