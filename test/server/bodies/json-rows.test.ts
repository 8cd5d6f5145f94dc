import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { fromErrorMessage, rowField, type SagittaError } from '../../../src/common/errors.js';
import { DEFAULT_LIMITS } from '../../../src/common/limits.js';
import type { FieldShapes, Metric, Utf8Column, VectorBatch } from '../../../src/common/types.js';
import { UNNAMED } from '../../../src/common/vectors.js';
import type { ParsedBody } from '../../../src/server/bodies/json-body.js';
import { type ParsedVectors, parseVectorsInput } from '../../../src/server/bodies/json-rows.js';
import { parseBothWays, withoutGeneratedIds } from '../../support/both-readers.js';
import { placeOf } from '../../support/issues.js';

const seed = Number(process.env.SAGITTA_TEST_SEED ?? Date.now() % 2 ** 31);
console.log(`SAGITTA_TEST_SEED=${seed}`);

const unnamed = (dimension: number, metric: Metric = 'dot') =>
  ({ [UNNAMED]: { kind: 'dense', dimension, metric } }) as const;

interface Options {
  shapes?: FieldShapes | null;
  pathId?: string | null;
}

function parse(body: unknown, options: Options = {}): ParsedBody<ParsedVectors> {
  const isText = typeof body === 'string' || body instanceof Uint8Array;
  const input = {
    body: isText ? Buffer.from(body) : Buffer.from(JSON.stringify(body)),
    isKeyed: false,
    room: null,
    pathId: null,
    shapes: unnamed(2),
    limits: DEFAULT_LIMITS,
    ...options,
  } as const;
  return parseBothWays((cut) => parseVectorsInput(input, cut), withoutGeneratedIds);
}

function accept(body: unknown, options: Options = {}): ParsedVectors {
  const { outcome } = parse(body, options);
  if (!outcome.ok) throw fromErrorMessage(outcome.error);
  return outcome.value;
}

function refuse(body: unknown, options: Options = {}): SagittaError {
  const { outcome } = parse(body, options);
  assert.ok(!outcome.ok, `accepted: ${JSON.stringify(body)?.slice(0, 200)}`);
  return fromErrorMessage(outcome.error);
}

/** `place code` of each issue. */
const issuesOf = (error: SagittaError) =>
  error.issues.map((issue) => `${placeOf(issue)} ${issue.code}`);

/** The values of all rows. */
function valuesOf({ vectors }: VectorBatch, name = UNNAMED): Float32Array | undefined {
  return vectors.find((column) => column.name === name)?.values;
}

function texts({ offsets, bytes }: Utf8Column): string[] {
  const buffer = Buffer.from(bytes);
  return Array.from(offsets.subarray(1), (end, i) => buffer.toString('utf8', offsets[i], end));
}

describe('a body of vectors', () => {
  it('has conditions and expiries by row, and no column where none is stated', () => {
    const { batch } = accept({
      vectors: [
        { id: 'a', values: [1, 2], if_sequence: 7 },
        { id: 'b', values: [1, 2], expires_at: '2027-01-31T12:00:00+02:00' },
        { id: 'c', values: [1, 2], if_sequence: 0, expires_at: null },
      ],
    });
    assert.deepEqual(batch.ifSequences, Float64Array.of(7, Number.NaN, 0));
    const timeMs = Date.UTC(2027, 0, 31, 10);
    assert.deepEqual(batch.expiresAtMs, Float64Array.of(Number.NaN, timeMs, Infinity));
    const plain = accept({ vectors: [{ id: 'a', values: [1, 2] }] }).batch;
    assert.deepEqual([plain.ifSequences, plain.expiresAtMs], [undefined, undefined]);
    const wrong = { id: 'a', values: [1, 2], if_sequence: 2 ** 53, expires_at: '2027-13-01' };
    assert.deepEqual(issuesOf(refuse({ vectors: [wrong] })).sort(), [
      '/0/expires_at invalid_request',
      '/0/if_sequence invalid_request',
    ]);
  });

  it('becomes columns, with metadata as sent', () => {
    const { batch, mode, ids } = accept(
      '{"mode":"insert","vectors":[{"id":"é","values":[1,-0.1],"metadata":{ "n":1.0,"b":12345678901234567890 }},{"values":[0,1e-3],"id":"b"}]}',
    );
    assert.equal(batch.count, 2);
    assert.deepEqual(texts(batch.ids), ['é', 'b']);
    assert.deepEqual(texts(batch.metadata), ['{ "n":1.0,"b":12345678901234567890 }', '{}']);
    assert.deepEqual(valuesOf(batch), Float32Array.of(1, -0.1, 0, 1e-3));
    // Few buffers can be transferred to another thread quickly.
    for (const array of [batch.ids.bytes, batch.ids.offsets, batch.metadata.bytes]) {
      assert.equal(array.buffer, batch.metadata.offsets.buffer);
    }
    assert.equal(mode, 'insert');
    assert.equal(ids, null);
  });

  it('may be one vector, with mode and key beside its members', () => {
    const parsed = parse({ id: 'a', values: [1, 2], mode: 'update', idempotency_key: 'k' });
    assert.equal(parsed.idempotencyKey, 'k');
    assert.match(parsed.digest ?? '', /^[0-9a-f]{64}$/);
    assert.ok(parsed.outcome.ok);
    assert.equal(parsed.outcome.value.mode, 'update');
    assert.equal(parse({ id: 'a', values: [1, 2] }).digest, undefined);
  });

  it('gets distinct ids, in order, where they are missing, and reports all of them', () => {
    const { ids, batch } = accept({
      vectors: [{ values: [1, 2] }, { id: 'x', values: [1, 2] }, { values: [3, 4] }],
    });
    assert.deepEqual(texts(batch.ids), ids);
    assert.equal(ids?.[1], 'x');
    assert.match(ids?.[0] ?? '', /^[0-9A-HJKMNP-TV-Z]{26}$/);
    assert.ok(ids![0]! < ids![2]!);
  });

  it('accepts base64 of little-endian float32 bit for bit', () => {
    const vector = Float32Array.of(-0, 1.5);
    const text = Buffer.from(vector.buffer).toString('base64');
    assert.deepEqual(valuesOf(accept({ values: text }).batch), vector);
    for (const wrong of [
      text.slice(0, -1),
      `${text.slice(0, -3)}-_=`,
      `${text} `,
      text.replace('=', ''),
      'AAAA',
      '',
    ]) {
      const { code } = refuse({ values: wrong });
      assert.ok(code === 'invalid_vector' || code === 'dimension_mismatch', wrong);
    }
    const nan = Buffer.from(Float32Array.of(1, Number.NaN).buffer).toString('base64');
    assert.match(refuse({ values: nan }).message, /Element 1 is NaN/);
  });

  it('is rejected for values that are not a vector', () => {
    for (const values of [
      ['1', 2],
      [1, null],
      [1, true],
      [1, [2]],
      [1, {}],
      [[1], 2],
      { 0: 1, 1: 2, length: 2 },
      null,
      7,
    ]) {
      assert.deepEqual(issuesOf(refuse({ values })), ['/values invalid_vector']);
    }
    for (const number of ['1e39', '-1e39', '1e999', '3.4028236e38']) {
      assert.equal(refuse(`{"values":[1,${number}]}`).code, 'invalid_vector', number);
    }
    assert.equal(valuesOf(accept('{"values":[1,3.4028235e38]}').batch)![1], 3.4028234663852886e38);
    assert.deepEqual(issuesOf(refuse({ id: 'a' })), ['/values invalid_vector']);
    assert.equal(refuse('{"values":[1,NaN]}').code, 'invalid_json');
  });

  it('is refused for a wrong length, with both lengths', () => {
    const [item] = refuse({ vectors: [{ values: [1, 2] }, { values: [1, 2, 3] }] }).issues;
    assert.deepEqual(
      { ...item, detail: '' },
      {
        location: rowField(1, 'values'),
        code: 'dimension_mismatch',
        detail: '',
        expected: 2,
        actual: 3,
      },
    );
  });

  it('is refused for a zero vector under cosine only, after narrowing', () => {
    const cosine: Options = { shapes: unnamed(2, 'cosine') };
    assert.equal(refuse({ values: [0, -0] }, cosine).code, 'invalid_vector');
    assert.equal(refuse('{"values":[1e-60,0]}', cosine).code, 'invalid_vector');
    accept('{"values":[1e-45,0]}', cosine);
    accept({ values: [0, 0] });
    accept({ values: [0, 0] }, { shapes: unnamed(2, 'euclidean') });
  });

  it('is rejected for invalid ids', () => {
    const wrong = [
      '',
      'a\nb',
      '\u0000',
      '\u007f',
      '\u0085',
      'x'.repeat(513),
      'é'.repeat(257),
      7,
      null,
    ];
    for (const id of wrong) {
      const error = refuse({ id, values: [1, 2] });
      assert.equal(placeOf(error.issues[0]!), '/id', String(id));
    }
    for (const id of ['\\ud800', '\\udc00\\ud800', 'a\\udfff', '\\udc00\\udc00']) {
      assert.equal(placeOf(refuse(`{"id":"${id}","values":[1,2]}`).issues[0]!), '/id', id);
    }
    for (const id of [
      'a/b %é😀',
      'x'.repeat(512),
      'é'.repeat(256),
      ' ',
      '\u00a0',
      '😀'.repeat(128),
    ]) {
      assert.deepEqual(texts(accept({ id, values: [1, 2] }).batch.ids), [id]);
    }
  });

  it('is refused when two rows have one id, however it is spelled', () => {
    const error = refuse(
      String.raw`{"vectors":[{"id":"ab","values":[1,2]},{"id":"c","values":[1,2]},{"id":"a\u0062","values":[1,2]}]}`,
    );
    assert.deepEqual(issuesOf(error), ['/2/id duplicate_id']);
    assert.match(error.message, /Row 0/);
  });

  it('is rejected for invalid metadata', () => {
    const nested = (depth: number): unknown => (depth === 1 ? {} : { a: nested(depth - 1) });
    const lists = (depth: number): unknown => (depth === 1 ? [] : [lists(depth - 1)]);
    for (const metadata of [
      null,
      [],
      'text',
      1,
      { $a: 1 },
      { a: { $b: 1 } },
      { a: [{ b: [{ $c: 1 }] }] },
      nested(9),
      { a: lists(8) },
      { a: 'x'.repeat(40_953) },
    ]) {
      const error = refuse({ values: [1, 2], metadata });
      assert.deepEqual(issuesOf(error), ['/metadata invalid_metadata']);
    }
    for (const metadata of [
      {},
      { a: '$', b$: 1, '': 2 },
      nested(8),
      { a: lists(7) },
      { a: 'x'.repeat(40_952) },
    ]) {
      accept({ values: [1, 2], metadata });
    }
    const padded = `{"values":[1,2],"metadata":{${' '.repeat(40_960)}}}`;
    assert.equal(refuse(padded).code, 'invalid_metadata', 'counted as sent');
  });

  it('keeps a member named __proto__ in metadata and rejects it elsewhere', () => {
    const text = '{"__proto__":{"polluted":true}}';
    const { batch } = accept(`{"values":[1,2],"metadata":${text}}`);
    assert.deepEqual(texts(batch.metadata), [text]);
    assert.deepEqual(issuesOf(refuse('{"values":[1,2],"__proto__":{"mode":"insert"}}')), [
      '/__proto__ unknown_parameter',
    ]);
    assert.deepEqual(issuesOf(refuse('{"vectors":[{"values":[1,2],"__proto__":{"id":"x"}}]}')), [
      '/0/__proto__ unknown_parameter',
    ]);
    assert.equal(({} as { polluted?: unknown }).polluted, undefined);
  });

  it('is refused for unknown members, with their names as they are', () => {
    assert.deepEqual(issuesOf(refuse({ vectors: [{ values: [1, 2], 'a/b~c': 1 }], values: [1] })), [
      '/values unknown_parameter',
      '/0/a/b~c unknown_parameter',
    ]);
    assert.equal(placeOf(refuse({ values: [1, 2], mode: 'replace' }).issues[0]!), '/mode');
    assert.equal(placeOf(refuse({ values: [1, 2], collection: 'c' }).issues[0]!), '/collection');
  });

  it('is rejected when it is empty, too long or not an array', () => {
    for (const vectors of [[], {}, null, 'x', 7]) {
      assert.deepEqual(issuesOf(refuse({ vectors })), ['/vectors invalid_request']);
    }
    const vectors = new Array(10_001).fill({ values: [1, 2] });
    const error = refuse({ vectors });
    assert.deepEqual(issuesOf(error), ['/vectors limit_exceeded']);
    assert.deepEqual([error.issues[0]?.expected, error.issues[0]?.actual], [10_000, 10_001]);
    assert.equal(accept({ vectors: vectors.slice(1) }).batch.count, 10_000);
    assert.deepEqual(issuesOf(refuse({ vectors: [7, null, []] })), [
      '/0 invalid_request',
      '/1 invalid_request',
      '/2 invalid_request',
    ]);
    const good = { id: 'a', values: [1, 2], metadata: { a: 1 } };
    assert.deepEqual(issuesOf(refuse({ vectors: ['{"', good] })), ['/0 invalid_request']);
  });

  it('reports the first hundred issues of many', () => {
    const vectors = Array.from({ length: 500 }, (_, i) => ({
      id: `${i}`,
      values: i < 3 ? [1, 2] : [1],
    }));
    const { issues: items, code, message } = refuse({ vectors });
    assert.equal(items.length, 100);
    assert.equal(placeOf(items[0]!), '/3/values');
    assert.equal(code, 'dimension_mismatch');
    assert.match(message, /the first of 100 or more issues/);
  });

  it('is one vector where `vectors` is an object beside values or text to embed', () => {
    const title = { kind: 'dense', dimension: 2, metric: 'dot' } as const;
    const options: Options = { shapes: { ...unnamed(1), title } };
    for (const body of [{ values: [1] }, { embed: 'words' }]) {
      const { batch, isArray } = accept({ ...body, vectors: { title: [3, 4] } }, options);
      assert.equal(isArray, false);
      assert.deepEqual(valuesOf(batch, 'title'), Float32Array.of(3, 4));
    }
  });

  it('with the id in the path is one vector, of any length while no collection is known', () => {
    const options: Options = { pathId: 'p', shapes: null };
    const { batch, collection, ids, sent } = accept(
      { values: [1, 2, 3, 4], collection: 'c' },
      options,
    );
    assert.deepEqual([texts(batch.ids), collection, ids], [['p'], 'c', null]);
    assert.deepEqual([batch.vectors, sent?.values], [[], [1, 2, 3, 4]]);
    accept({ id: 'p', values: [1] }, options);
    assert.deepEqual(issuesOf(refuse({ id: 'q', values: [1] }, options)), ['/id invalid_request']);
    assert.deepEqual(issuesOf(refuse({ id: null, values: [1] }, options)), ['/id invalid_request']);
    const many = new Array(1_000_001).fill(1);
    assert.equal(refuse({ values: many }, options).code, 'limit_exceeded');
  });

  it('has named vectors only where the collection has no unnamed one', () => {
    const shapes = { title: { kind: 'dense', dimension: 2, metric: 'dot' } } as const;
    const { batch, isArray } = accept({ id: 'a', vectors: { title: [1, 2] } }, { shapes });
    assert.deepEqual([isArray, batch.vectors.length], [false, 1]);
    assert.deepEqual(valuesOf(batch, 'title'), Float32Array.of(1, 2));
    const rows = accept({ vectors: [{ id: 'a' }, { id: 'b', metadata: { n: 1 } }] }, { shapes });
    assert.deepEqual([rows.batch.count, rows.batch.vectors], [2, []]);
    const error = refuse({ vectors: [{ id: 'a' }, { id: 'b', values: [1, 2] }] }, { shapes });
    assert.deepEqual(issuesOf(error), ['/1/values invalid_request']);
    assert.match(error.message, /no unnamed vector; expected vectors with any of title/);
  });

  it('is rejected when it is not JSON, with a message that quotes nothing of it', () => {
    for (const [body, expected] of [
      ['', /empty/],
      ['{"values":[1,secret]}', /unexpected "s"/],
      ['{"values":[1,2]', /position 15/],
      [Buffer.from([0x7b, 0xff, 0x7d]), /not UTF-8/],
      [Buffer.from('\ufeff{}'), /unexpected/],
    ] as const) {
      const error = refuse(body);
      assert.equal(error.code, 'invalid_json');
      assert.match(error.message, expected);
      assert.doesNotMatch(error.message, /secret/);
    }
    for (const body of ['[]', 'null', '7', '"x"'])
      assert.equal(refuse(body).code, 'invalid_request');
  });

  it('may nest to any depth without harm', () => {
    assert.match(refuse('['.repeat(5_000_000)).message, /more than 1000000 objects and arrays/);
    assert.match(refuse('['.repeat(900_000)).message, /nests deeper than 128 levels at byte 128/);
    const deep = `${'['.repeat(400_000)}${']'.repeat(400_000)}`;
    assert.match(refuse(`{"values":[1,2],"metadata":{"a":${deep}}}`).message, /nests deeper/);
    const below = `${'{"a":'.repeat(90_000)}1${'}'.repeat(90_000)}`;
    assert.equal(refuse(`{"values":[1,2],"metadata":${below}}`).code, 'invalid_metadata');
    // Many brackets side by side do not nest.
    const wide = `{"a":[${new Array(9000).fill('[]').join(',')}]}`;
    const rows = new Array(20).fill(`{"values":[1,2],"metadata":${wide}}`).join(',');
    assert.equal(accept(`{"vectors":[${rows}]}`).batch.count, 20);
  });

  it('returns any metadata as sent and any float32 bit for bit', () => {
    const float = fc.float({ noNaN: true, noDefaultInfinity: true });
    const object = fc.dictionary(
      fc.string().filter((key) => !key.startsWith('$')),
      fc.jsonValue({ maxDepth: 2 }),
    );
    const plain = object.filter((value) => !JSON.stringify(value).includes('"$'));
    const vector = fc.record({ values: fc.tuple(float, float), metadata: plain });
    fc.assert(
      fc.property(fc.array(vector, { minLength: 1, maxLength: 8 }), (vectors) => {
        const sent = vectors.map(({ metadata }, i) => JSON.stringify(metadata, null, i % 3));
        const rows = vectors.map(
          ({ values }, i) =>
            `{"metadata":${sent[i]},"values":[${values.map((x) => (Object.is(x, -0) ? '-0' : x))}]}`,
        );
        const { batch } = accept(`{"vectors":[${rows.join(',')}]}`);
        assert.deepEqual(texts(batch.metadata), sent);
        assert.deepEqual(
          valuesOf(batch),
          Float32Array.from(vectors.flatMap(({ values }) => values)),
        );
      }),
      { seed, numRuns: 500 },
    );
  });
});
