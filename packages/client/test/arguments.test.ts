// Invalid arguments: before any request, an error says what was found, where, and what is expected.

import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';
import { type ScriptedServer, startScriptedServer } from '../../../test/support/scripted-server.js';
import { writeBatches } from '../src/arrow.js';
import { type Client, createClient, decodeValues, SagittaClientError } from '../src/client.js';

let server: ScriptedServer;
let client: Client;

before(async () => {
  server = await startScriptedServer([{ body: { matches: [], results: [] } }]);
  client = createClient({ baseUrl: server.url });
});
after(() => server.close());

/** An argument as a JavaScript program may pass it. */
const any = (value: unknown) => value as never;

/** Values that JSON.stringify drops or changes. */
const UNFIT: readonly (readonly [what: string, value: unknown, message: RegExp])[] = [
  ['undefined', undefined, /^found undefined at .*: use null, or leave it out$/],
  ['a function', () => 1, /^found a function at /],
  ['a symbol', Symbol('s'), /^found Symbol\(s\) at .*: use a string$/],
  ['NaN', Number.NaN, /^found NaN at .*: use a finite number, or null$/],
  ['an infinite number', -1 / 0, /^found -Infinity at /],
  ['an invalid Date', new Date(Number.NaN), /^found an invalid Date at .*: use a valid Date, or/],
  ['a Map', new Map([['a', 1]]), /^found an object of Map at .*: use Object\.fromEntries\(…\)$/],
  ['a Set', new Set([1]), /^found an object of Set at .*: use Array\.from\(…\)$/],
  ['a regular expression', /a/, /^found an object of RegExp at .*: use its source as a string$/],
  ['a typed array', Float32Array.of(1), /^found an object of Float32Array at .*: use Array\.from/],
  ['bytes', Buffer.of(1), /^found an object of Buffer at .*: use Array\.from/],
  ['an error', new Error('a'), /^found an object of Error at .*: use its message as a string$/],
  ['a promise', Promise.resolve(1), /^found an object of Promise at .*: use await$/],
  [
    'an object of a class that has no members',
    new (class Condition {
      #value = 1;
      get value() {
        return this.#value;
      }
    })(),
    /^found an object of Condition at .*: use a plain object, or an object with toJSON$/,
  ],
  ['inherited members', Object.create({ a: 1 }), /: use a plain object, or an object with toJSON$/],
  ['a member named by a symbol', { [Symbol('s')]: 1 }, /^found a member with the name Symbol\(s\)/],
];

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
    'a URL with a password',
    () => createClient({ baseUrl: 'http://user:secret@127.0.0.1:8484/v1' }),
    /^baseUrl must be an address alone, found http:\/\/127\.0\.0\.1:8484\/v1 with a user name or a password, .*: use an API key$/,
  ],
  [
    'a URL with a fragment',
    () => createClient({ baseUrl: 'http://127.0.0.1:8484#secret' }),
    /^baseUrl must be an address alone, found http:\/\/127\.0\.0\.1:8484 with a query or a fragment/,
  ],
  [
    'a URL with a query',
    () => createClient({ baseUrl: 'http://127.0.0.1:8484/?key=secret' }),
    /^baseUrl must be an address alone, found http:\/\/127\.0\.0\.1:8484\/ with a query or a fragment/,
  ],
  [
    'a password in what is no URL',
    () => createClient({ baseUrl: 'user:secret@127.0.0.1:8484' }),
    /^baseUrl must be a URL such as .* found "127\.0\.0\.1:8484"$/,
  ],
  [
    'a password in a URL in place of options',
    () => createClient(any('http://user:secret@127.0.0.1')),
    /found "http:\/\/127\.0\.0\.1"$/,
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
    /^found null at \/vectors\/0, expected a v/,
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
    /^found NaN at \/vectors\/1\/values\/1, expected a finite number of float32$/,
  ],
  [
    'an infinite number in an array',
    () => docs().query({ vector: new Float32Array([1, Number.NEGATIVE_INFINITY]) }),
    /^found -Infinity at \/vector\/1, expected a finite number/,
  ],
  [
    'a number beyond float32 in an array',
    () => docs().query({ vector: new Float64Array([1, 1e39]) }),
    /^found 1e\+39 at \/vector\/1, expected a finite number of float32/,
  ],
  [
    'null in a vector',
    () => docs().put({ id: 'a', values: any([0, null]) }),
    /^found null at \/values\/1/,
  ],
  [
    'NaN in a named vector',
    () => docs().upsert([{ vectors: { title: [[1], [Number.NaN]] } }]),
    /^found NaN at \/vectors\/0\/vectors\/title\/1\/0/,
  ],
  [
    'NaN in a part of a fusion',
    () => docs().query({ fusion: any({ parts: [{ vector: [Number.NaN] }] }) }),
    /^found NaN at \/fusion\/parts\/0\/vector\/0/,
  ],
  [
    'NaN in a stream',
    () => docs().writeAll([{ values: [1] }, { values: [Number.NaN] }]),
    /^found NaN at \/1\/values\/0/,
  ],
  [
    'integers of 64 bits',
    () => docs().query({ vector: any(new BigInt64Array(2)) }),
    /^found an object of BigInt64Array at \/vector, expected numbers, a Float32Array/,
  ],
  [
    'a BigInt in metadata that is longer than 64 bits',
    () => docs().upsert([{ values: [1] }, { values: [1], metadata: { a: [{ b: 2n ** 64n }] } }]),
    /^found a BigInt at \/vectors\/1\/metadata\/a\/0\/b, expected a value that JSON has: use a bigint of 64 bits/,
  ],
  [
    'a BigInt in an option',
    () => docs().query({ vector: [1], top_k: any(5n) }),
    /^found a BigInt at \/top_k, expected a value that JSON has: use a number/,
  ],
  [
    'metadata that contains itself',
    () => docs().upsert([{ values: [1], metadata: circle() }]),
    /^the value at \/vectors\/0\/metadata\/self\/self.*… contains itself/,
  ],
  ...[
    ['query', (filter: never) => docs().query({ vector: [1], filter })],
    ['queryAll', (filter: never) => firstOf(docs().queryAll({ vector: [1], filter }))],
    ['queryStream', (filter: never) => docs().queryStream([], { filter })],
    ['list', (filter: never) => docs().list({ filter })],
    ['listAll', (filter: never) => firstOf(docs().listAll({ filter }))],
    ['count', (filter: never) => docs().count({ filter })],
    ['aggregate', (filter: never) => docs().aggregate({ filter })],
    ['schema', (filter: never) => docs().schema({ filter })],
    ['recall', (filter: never) => docs().recall({ vectors: [], ids: [], filter })],
    ['deleteMany', (filter: never) => docs().deleteMany({ filter })],
    ['updateMany', (filter: never) => docs().updateMany({ filter }, { patch: {} })],
    ['join', (filter: never) => firstOf(docs().join({ filter }))],
    ['exportStream', (filter: never) => docs().exportStream({ filter, format: 'arrow' })],
    ['project', (filter: never) => docs().project({ filter })],
  ].map(
    ([method, call]) =>
      [
        `an undefined condition in ${method}`,
        () => (call as (filter: never) => unknown)(any({ user: undefined })),
        /^found undefined at \/filter\/user, expected a value that JSON has: use null, or leave it out$/,
      ] as const,
  ),
  [
    'an undefined condition deep in a filter',
    () => docs().count({ filter: { $or: [{ a: 1 }, { 'b/c': { $in: any([1, undefined]) } }] } }),
    /^found undefined at \/filter\/\$or\/1\/b~1c\/\$in\/1,/,
  ],
  [
    'an undefined condition in a part of a fusion',
    () =>
      docs().query({
        fusion: { parts: [{ vector: [1], filter: { user: any(undefined) } }] },
      }),
    /^found undefined at \/fusion\/parts\/0\/filter\/user,/,
  ],
  [
    'an undefined condition for the rows that a join searches',
    () => firstOf(docs().join({ withFilter: { user: any(undefined) } })),
    /^found undefined at \/with_filter\/user,/,
  ],
  [
    'an undefined filter that selects what is deleted',
    () => docs().deleteMany({ filter: any(undefined) }),
    /^found undefined at \/filter, expected one of \{ ids: \[…\] \}, \{ filter: \{…\} \} and \{ all: true \}$/,
  ],
  [
    'undefined ids beside a filter that selects what is deleted',
    () => docs().deleteMany(any({ ids: undefined, filter: { a: 1 } })),
    /^found undefined at \/ids, expected one of/,
  ],
  [
    'an undefined filter that selects what is changed',
    () => docs().updateMany({ filter: any(undefined) }, { patch: { a: 1 } }),
    /^found undefined at \/filter, expected one of/,
  ],
  [
    'nothing that selects what is deleted',
    () => docs().deleteMany(any(undefined)),
    /^found undefined, expected one of/,
  ],
  ...[
    ['a deletion', () => docs().deleteMany({ ids: ['a'] }, any({ dry_run: true })), 'dryRun'],
    [
      'an update',
      () => docs().updateMany({ all: true }, { patch: {} }, any({ limits: 1 })),
      'limit',
    ],
    ['a write', () => docs().upsert([], any({ modes: 'insert' })), 'mode'],
    [
      'a write of texts',
      () => docs().upsertText([], any({ idempotency_key: 'a' })),
      'idempotencyKey',
    ],
    ['a change of a vector', () => docs().patch('a', {}, any({ if_match: 'a' })), 'ifMatch'],
    [
      'a creation',
      () => client.collections.create({}, any({ if_not_exists: true })),
      'ifNotExists',
    ],
    [
      'an upload',
      () => docs().writeStream([], any({ format: 'ndjson', id_column: 'a' })),
      'idColumn',
    ],
    ['a stream of queries', () => docs().queryStream([], any({ top_k: 1 })), 'topK'],
    ['a join', () => firstOf(docs().join(any({ topK: 1, with_filter: {} }))), 'withFilter'],
    ['an export', () => docs().exportStream(any({ format: 'arrow', filters: {} })), 'filter'],
    ['a read', () => docs().get('a', {}, any({ timeout_ms: 1 })), 'timeoutMs'],
    ['a client', () => createClient(any({ baseUrl: server.url, api_key: 'a' })), 'apiKey'],
    [
      'retries',
      () => createClient({ baseUrl: server.url, retry: any({ attempts: 1 }) }),
      'attemptsMax',
    ],
  ].map(
    ([what, call, meant]) =>
      [
        `an unknown option of ${what}`,
        call as () => unknown,
        new RegExp(
          `^among the options: There is nothing named .*(did you mean "${meant}"|expected .*${meant})`,
        ),
      ] as const,
  ),
  ...UNFIT.flatMap(([what, value, message]) =>
    [
      ['metadata', () => docs().upsert([{ values: [1], metadata: { a: any([{ b: value }]) } }])],
      [
        'metadata of a stream',
        () => docs().writeAll([{ values: [1], metadata: { a: any(value) } }]),
      ],
      ['metadata of columns', () => writeBatches(docs(), columnsWith({ a: value }))],
      ['a patch', () => docs().updateMany({ ids: ['a'] }, { patch: { a: any(value) } })],
      ['a changed vector', () => docs().patch('a', { metadata: { a: any(value) } })],
      ['a filter', () => docs().query({ vector: [1], filter: { a: any(value) } })],
      ['a filter in a query string', () => docs().list({ filter: { a: any(value) } })],
      ['labels', () => client.collections.update('docs', { labels: { a: any(value) } })],
    ].map(([where, call]) => [`${what} in ${where}`, call as () => unknown, message] as const),
  ),
];

const docs = () => client.collection('docs');

function columnsWith(metadata: unknown) {
  return { values: Float32Array.of(1), dimension: 1, metadata: [any(metadata)] };
}

async function firstOf(items: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of items) return;
}

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

it('optional members that are undefined are absent, and values that become JSON are sent', async () => {
  const sending = await startScriptedServer([{ body: { matches: [] } }]);
  const { query, upsert } = createClient({ baseUrl: sending.url }).collection('docs');
  await query(any({ vector: [1], top_k: undefined, filter: undefined }));
  class Point {
    x = 1;
  }
  const metadata = any({
    at: new Date(0),
    url: new URL('http://a/'),
    point: new Point(),
    none: null,
  });
  await upsert([any({ id: undefined, values: [1], metadata })]);
  assert.deepEqual(
    sending.requests.map(({ body }) => JSON.parse(body)),
    [
      { vector: [1] },
      {
        vectors: [
          {
            values: [1],
            metadata: {
              at: '1970-01-01T00:00:00.000Z',
              url: 'http://a/',
              point: { x: 1 },
              none: null,
            },
          },
        ],
      },
    ],
  );
  await sending.close();
});
