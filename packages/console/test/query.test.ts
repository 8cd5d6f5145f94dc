import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type CollectionRecord, encodeValues, type JsonObject } from '@sagitta/client';
import { compareMatches, describeMove } from '../src/views/query/compare-matches.js';
import { hasValue, withToggled } from '../src/views/query/facet-filter.js';
import { groupsOf } from '../src/views/query/group-matches.js';
import { formatJson, lineOfPart } from '../src/views/query/json-text.js';
import { parseVector } from '../src/views/query/parse-vector.js';
import {
  decodeQuery,
  encodeQuery,
  type QueryDraft,
  type QueryPair,
  type Ranking,
} from '../src/views/query/query-draft.js';
import {
  describeQuery,
  type PastQuery,
  readHistory,
  withName,
  withRun,
} from '../src/views/query/query-history.js';
import { buildRequest, readRequest } from '../src/views/query/query-request.js';
import { recognizeInput, rowInput } from '../src/views/query/recognize-input.js';
import { scoreBuckets, scoreFormat } from '../src/views/query/score-buckets.js';
import { possibleRankings } from '../src/views/query/searchable.js';
import { timedParts } from '../src/views/query/timings.js';
import { wordsPath } from '../src/views/routes.js';

describe('a pasted vector', () => {
  const values = [0.5, -1.25, 3e-5];

  test('is a JSON array, base64, or numbers with any separators', () => {
    for (const text of [
      '[0.5, -1.25, 3e-5]',
      '[[0.5, -1.25, 3e-5]]',
      '{"id": "a", "values": [0.5, -1.25, 3e-5]}',
      '0.5 -1.25 3e-5',
      ' .5;\n-1.25;\t3.0E-05 ',
      'array([ 0.5, -1.25,  3.e-05], dtype=float)',
    ]) {
      assert.deepEqual(parseVector(text, 3).values, values, text);
    }
    const floats = Float32Array.from(values);
    assert.deepEqual(parseVector(encodeValues(floats), 3).values, Array.from(floats));
  });

  test('is rejected with a message if it has too few or too many numbers', () => {
    assert.equal(parseVector('1 2', 3).problem, 'Found 2 of 3 numbers.');
    assert.equal(parseVector('', 1_536).problem, 'Found 0 of 1,536 numbers.');
    assert.match(parseVector('1 1e39', 2).problem!, /number 2 is too large/);
    assert.match(parseVector('12345678', 2).problem!, /Found 1 of 2/);
  });
});

const record = (part: object) =>
  ({ id: 'c', labels: {}, dimension: 2, metric: 'cosine', ...part }) as unknown as CollectionRecord;
const TEXT = { text: { fields: ['title'] } };
const MEANING = { embed: { endpoint: 'local', model: 'm' } };

test('words have an address that searches for them, if the collection can be', () => {
  assert.equal(wordsPath(record({}), 'ice'), undefined);
  for (const part of [TEXT, MEANING, { ...TEXT, ...MEANING }]) {
    const collection = record({ ...part, id: 'a b' });
    const [, segment] = /^\/collections\/a%20b\/query\/(.*)$/.exec(wordsPath(collection, 'ice')!)!;
    const { request } = decodeQuery(segment!)!;
    assert.equal(
      readRequest(collection, request as unknown as JsonObject).rankings[0]!.input,
      'ice',
    );
  }
});

describe('the input of a query', () => {
  const kindsOf = (collection: CollectionRecord, inputs: readonly string[], isStored = false) =>
    inputs.map((input) => recognizeInput(collection, input, isStored));

  test('is words, which rank by what the collection has', () => {
    const words = ['small animals', '2', 'top 10 of 20', 'e-mail', '...'];
    const ranked = (kind: string) => words.map(() => kind);
    assert.deepEqual(kindsOf(record({ ...TEXT, ...MEANING }), words), ranked('hybrid'));
    assert.deepEqual(kindsOf(record(TEXT), words), ranked('text'));
    assert.deepEqual(kindsOf(record(MEANING), words), ranked('embed'));
    assert.deepEqual(kindsOf(record({}), words), ranked('id'));
  });

  test('is the id of a stored vector, whatever it looks like', () => {
    assert.deepEqual(kindsOf(record(TEXT), ['a b', '1 2', '[1, 2]'], true), ['id', 'id', 'id']);
    assert.deepEqual(kindsOf(record(TEXT), ['{"id": "a"}']), ['id']);
  });

  test('is a vector in any form, also a wrong one', () => {
    const base64 = encodeValues(Float32Array.from([0.5, 1]));
    const inputs = ['1, 2', '[1, 2]', '[1', '-.5;1e-3 ', '1 2 3', '{"values": [1, 2]}', base64];
    const printed = 'array([ 0.5,  1. ], dtype=float32)';
    for (const input of [...inputs.filter((one) => one !== '[1'), printed]) {
      assert.equal(recognizeInput(record(TEXT), input, false), 'vector', input);
    }
  });

  test('is a sparse vector or a list of vectors', () => {
    const vectors = { tokens: { dimension: 2, metric: 'dot', multi: true } };
    const collection = record({ vectors, sparse_vectors: { words: {} } });
    assert.deepEqual(
      kindsOf(collection, ['{"indices": [1], "values": [2]}', '[[1, 2], [3, 4]]', '[1, 2]']),
      ['sparse', 'multi_vector', 'vector'],
    );
  });

  test('becomes one line, and a row without numbers its id', () => {
    assert.equal(rowInput('1\n2\n'), '1 2');
    assert.equal(rowInput('{"id": "a b",\n "metadata": {"n": 1}}'), 'a b');
    assert.equal(rowInput('{"id": "a",\n "values": [1, 2]}'), '{"id": "a", "values": [1, 2]}');
  });
});

describe('the request of a draft', () => {
  const vectors = { title: { dimension: 3, metric: 'dot' } };
  const collection = record({ vectors, ...TEXT, ...MEANING });
  const draftOf = (ranking: Partial<Ranking>, part: Partial<QueryDraft> = {}): QueryDraft => ({
    rankings: [{ input: '', ...ranking }],
    fusion: {},
    options: {},
    ...part,
  });
  const requestOf = (ranking: Partial<Ranking>, part: Partial<QueryDraft> = {}) =>
    buildRequest(collection, draftOf(ranking, part)).request;

  test('contains the ranking and the options', () => {
    const options = { filter: { a: 1 }, score_threshold: 0.5, limit: 3, group_by: 'a' };
    assert.deepEqual(requestOf({ input: '1 2 3', using: 'title', metric: 'dot' }, { options }), {
      ...{ vector: [1, 2, 3], using: 'title', metric: 'dot' },
      ...options,
    });
    const recommend = { positive: ['a'], negative: ['b'] };
    assert.deepEqual(requestOf({ by: 'recommend', recommend }), { recommend });
    assert.deepEqual(requestOf({ by: 'id', input: '{"id": "x"}' }), { id: 'x' });
  });

  test('fuses words and meaning, and further rankings', () => {
    const parts = [{ text: { query: 'ice' } }, { embed: 'ice' }];
    assert.deepEqual(requestOf({ input: ' ice ' }), { fusion: { parts } });
    const rankings = [
      { input: 'ice', weight: 2, meaningWeight: 3 },
      { by: 'id', input: 'x', limit: 50 },
    ] as const;
    const fusion = { kind: 'weighted', normalize: 'max' } as const;
    assert.deepEqual(buildRequest(collection, draftOf({}, { rankings, fusion })).request, {
      fusion: {
        ...fusion,
        parts: [
          { text: { query: 'ice' }, weight: 2 },
          { embed: 'ice', weight: 3 },
          { id: 'x', limit: 50 },
        ],
      },
    });
  });

  test('has no metric and no vector for words', () => {
    const ranking = { by: 'text', input: 'a', metric: 'dot', using: 'title' } as const;
    assert.deepEqual(requestOf(ranking), { text: { query: 'a' } });
  });

  test('searches the first named vector if there is no unnamed one', () => {
    const named = record({ vectors, dimension: undefined });
    const { request } = buildRequest(named, draftOf({ by: 'vector', input: '1 2 3' }));
    assert.equal(request!.using, 'title');
    assert.deepEqual(possibleRankings(named), ['id', 'vector', 'recommend', 'discover']);
    const words = { id: 'w', text: { fields: ['a'] } } as unknown as CollectionRecord;
    assert.deepEqual(possibleRankings(words), ['text']);
  });

  test('says what is missing', () => {
    const problemOf = (ranking: Partial<Ranking>, part: Partial<QueryDraft> = {}) =>
      buildRequest(collection, draftOf(ranking, part)).problem;
    assert.match(problemOf({})!, /words/);
    assert.match(problemOf({ by: 'id' })!, /id/);
    assert.match(problemOf({ by: 'vector', input: '1' })!, /Found 1 of 2/);
    assert.match(problemOf({ by: 'sparse', input: '1' })!, /sparse/);
    assert.match(problemOf({ by: 'recommend', recommend: { negative: ['a'] } })!, /example/);
    const ofBest = { negative: ['a'], strategy: 'best_score' } as const;
    assert.equal(problemOf({ by: 'recommend', recommend: ofBest }), undefined);
    assert.match(problemOf({ input: 'a' }, { options: { limit: 0 } })!, /Found 0 .* from 1/);
    const prefetch = { by: 'id', input: '' } as const;
    assert.match(problemOf({ input: 'a' }, { prefetch })!, /First stage: .* id/);
  });

  describe('and the draft of a request', () => {
    const REQUESTS: Readonly<Record<string, JsonObject>> = {
      'by id': { id: 'a', using: 'title', limit: 5, include_metadata: true, explain: true },
      'by words': { text: { query: 'a  b', match: 'all' }, offset: 3 },
      'by meaning': { embed: 'a', metric: 'dot', score_threshold: 0.25 },
      'by both': { fusion: { parts: [{ text: { query: 'a' } }, { embed: 'a', weight: 2 }] } },
      'by a vector': { vector: [0.5, 1e-7], facets: [{ path: 'a' }], stats: [{ path: 'b' }] },
      'by examples': { recommend: { positive: ['a'], strategy: 'best_score' }, min_sequence: 9 },
      'by pairs': { discover: { target: 'a', context: [{ positive: 'b', negative: 'c' }] } },
      'with a fusion': {
        fusion: {
          kind: 'weighted',
          normalize: 'max',
          parts: [
            { id: 'a', weight: 2 },
            { text: { query: 'b' }, filter: { c: 1 }, limit: 9 },
          ],
        },
        sort: [{ field: 'a', order: 'desc' }],
        top_k: 50,
      },
      'with a first stage': {
        prefetch: { text: { query: 'b' }, filter: { c: 1 }, limit: 9 },
        id: 'a',
        mmr: { lambda: 0.3 },
      },
      'with members that the form does not show': { id: 'a', facets: [{ path: 'p', limit: 3 }] },
    };
    for (const [name, request] of Object.entries(REQUESTS)) {
      test(`are the same ${name}`, () => {
        const draft = readRequest(collection, request);
        assert.equal(draft.custom, undefined);
        assert.deepEqual(buildRequest(collection, draft).request, request);
      });
    }

    const CUSTOM: readonly JsonObject[] = [
      {},
      { cursor: 'abc' },
      { id: 'a', vector: [1, 2] },
      { vector: [1] },
      { vector: 'AAAAAA==' },
      { fusion: { parts: [{ id: 'a' }] } },
      { fusion: { parts: 3 } },
      { fusion: { parts: [] } },
      { recommend: { positive: [[1, 2]] } },
      { discover: { target: [1, 2] } },
      { prefetch: { fusion: { parts: [{ id: 'a' }, { id: 'b' }] }, limit: 3 }, id: 'c' },
      { text: { query: 'a', fuzzy: true } },
    ];
    test('are a custom request if the form cannot express it', () => {
      for (const request of CUSTOM) {
        const draft = readRequest(collection, request);
        assert.deepEqual(draft.custom, request, JSON.stringify(request));
        assert.equal(buildRequest(collection, draft).request, request);
      }
    });
  });
});

describe('a query in an address', () => {
  test('is unchanged, also integers that float64 cannot represent', () => {
    const filter = { n: { $gt: 1768907725507217523n } } as unknown as JsonObject;
    const pair = { request: { id: 'a/ü', filter }, other: { id: 'x' } };
    const segment = encodeQuery(pair);
    assert.ok(!segment.includes('/'));
    assert.deepEqual(decodeQuery(segment), pair);
    assert.equal(decodeURIComponent(encodeQuery({ request: { id: 'a' } })), '{"id":"a"}');
  });

  test('is kept out of it when it is long', () => {
    const pair = { request: { vector: Array.from({ length: 2_000 }, (_, i) => i / 7) } };
    const segment = encodeQuery(pair);
    assert.ok(segment.length < 20);
    assert.deepEqual(decodeQuery(segment), pair);
  });

  test('is read from any address without failing', () => {
    for (const segment of ['~99', '%', '[1]', '3', '[{},{},{}]', '"a"', '[]']) {
      assert.equal(decodeQuery(segment), undefined, segment);
    }
  });
});

describe('the history of queries', () => {
  const idQuery = (id: string) => ({ request: { id } });
  const at = (second: number) => new Date(second * 1_000).toISOString();
  const idsOf = (list: readonly PastQuery[]) => list.map(({ request }) => request.id);

  test('has the newest first, each query once, and a bounded number', () => {
    let list: readonly PastQuery[] = [];
    for (let i = 0; i < 40; i++) list = withRun(list, idQuery(`v${i}`), at(i));
    assert.equal(list.length, 30);
    list = withRun(list, idQuery('v20'), at(99));
    assert.equal(list.length, 30);
    assert.deepEqual(idsOf(list).slice(0, 3), ['v20', 'v39', 'v38']);
    assert.equal(list[0]!.ranAt, at(99));
    const long = { request: { vector: Array.from({ length: 4_000 }, () => 0.123456) } };
    assert.equal(withRun(list, long, at(100)), list);
  });

  test('keeps named queries, also when they are run again', () => {
    let list = withRun([], idQuery('a'), at(0));
    list = withName(list, list[0]!, '  mine ');
    for (let i = 0; i < 40; i++) list = withRun(list, idQuery(`v${i}`), at(i));
    assert.equal(list.length, 31);
    list = withRun(list, idQuery('a'), at(50));
    assert.equal(list[0]!.name, 'mine');
    assert.equal(withName(list, list[0]!, ' ')[0]!.name, undefined);
  });

  test('is read from any storage without failing', () => {
    assert.deepEqual(readHistory(null), []);
    assert.deepEqual(readHistory('{'), []);
    assert.deepEqual(readHistory('{"a":1}'), []);
    const good = { request: { id: 'a' }, ranAt: at(1) };
    const odd = [3, null, { request: 1, ranAt: at(1) }, { request: {}, ranAt: 'x' }, good];
    assert.deepEqual(readHistory(JSON.stringify(odd)), [good]);
  });

  test('describes queries', () => {
    const described = (request: object, other?: object) =>
      describeQuery({ request, other } as unknown as QueryPair);
    assert.equal(described({ id: 'a', filter: { b: 1 } }), 'a (Id, filter)');
    assert.equal(described({ vector: [1, 2], group_by: 'b' }), 'Vector, groups');
    const parts = [{ text: { query: 'ice' } }, { embed: 'ice' }];
    assert.equal(described({ fusion: { parts } }, {}), 'ice (Words and meaning, compared)');
    assert.equal(described({ cursor: 'a' }), 'A custom request');
    assert.match(described({ embed: 'word '.repeat(40) }), /^(word ){12}… \(Meaning\)$/);
  });
});

test('values of facets are added to a filter and removed', () => {
  const year = withToggled(undefined, 'year', 2020);
  assert.deepEqual(year, { year: 2020 });
  const both = withToggled(year, 'year', 2021)!;
  assert.deepEqual(both, { year: { $in: [2020, 2021] } });
  assert.ok(hasValue(both, 'year', 2021) && !hasValue(both, 'year', '2021'));
  assert.deepEqual(withToggled(both, 'year', 2020), { year: 2021 });
  assert.equal(withToggled({ year: 2021 }, 'year', 2021), undefined);
  assert.deepEqual(withToggled({ a: true }, 'year', 1), { a: true, year: 1 });
  const range = { year: { $gte: 1 } };
  assert.deepEqual(withToggled(range, 'year', 2), { $and: [range, { year: 2 }] });
});

test('matches are divided into the groups of the reply', () => {
  const match = (id: string, group: string | number) => ({ id, score: 1, group });
  const groups = groupsOf([match('a', 'x'), match('b', 'x'), match('b', 3), match('c', 3)]);
  assert.deepEqual(
    groups.map(({ value, matches }) => [value, matches.map(({ id }) => id).join('')]),
    [
      ['x', 'ab'],
      [3, 'bc'],
    ],
  );
});

describe('formatted JSON', () => {
  const long = 'x'.repeat(70);
  const value = { a: 1, b: [0.5, 1n << 60n], c: { d: [{ e: long }, 2] }, f: {} } as never;

  test('breaks what is long, but not numbers', () => {
    assert.equal(
      formatJson(value),
      `{\n  "a": 1,\n  "b": [0.5, 1152921504606846976],\n  "c": {\n    "d": [\n      {\n        "e": "${long}"\n      },\n      2\n    ]\n  },\n  "f": {}\n}`,
    );
    assert.equal(formatJson({ a: 'b' }), '{\n  "a": "b"\n}');
  });

  test('has a line for each JSON pointer, or for what contains the part', () => {
    const lines = ['', '/a', '/b/1', '/c/d', '/c/d/0/e', '/c/d/1', '/f/g', '/none'];
    assert.deepEqual(
      lines.map((pointer) => lineOfPart(value, pointer)),
      [1, 2, 3, 5, 7, 9, 12, 1],
    );
  });
});

test('two results are compared by the ranks of their matches', () => {
  const matches = (ids: string) => [...ids].map((id) => ({ id, score: 1 }));
  const compared = compareMatches(matches('abcd'), matches('acbe'));
  assert.equal(compared.commonCount, 3);
  assert.equal(compared.overlap, 3 / 5);
  assert.equal(compared.largestMove, 1);
  assert.deepEqual(compared.first.map(describeMove), [
    'same rank',
    '1 higher here',
    '1 lower here',
    'only here',
  ]);
  assert.deepEqual(
    compared.second.map(({ otherRank }) => otherRank),
    [1, 3, 2, undefined],
  );
  assert.equal(compareMatches([], []).overlap, 1);
});

test('scores are counted in buckets of equal width', () => {
  assert.deepEqual(scoreBuckets([0, 0.4, 0.5, 1], 2), [
    { from: 0, to: 0.5, count: 2 },
    { from: 0.5, to: 1, count: 2 },
  ]);
  assert.deepEqual(scoreBuckets([2, 2], 5), [{ from: 2, to: 2, count: 2 }]);
  assert.deepEqual(scoreBuckets([], 5), []);
});

test('scores have as many decimals as the largest allows', () => {
  assert.deepEqual([0.5, 0.6411].map(scoreFormat([0.5, 0.6411])), ['0.500000', '0.641100']);
  assert.equal(scoreFormat([1234.5, -3])(-3), '-3.000');
  assert.equal(scoreFormat([3e12])(3e12), '3000000000000');
});

test('time that the server does not explain counts as transfer', () => {
  const explain = { filter_ms: 1, search_ms: 5, assemble_ms: 2 } as Parameters<
    typeof timedParts
  >[0];
  assert.deepEqual(
    timedParts(explain, 10).map(({ name, ms, share }) => [name, ms, share]),
    [
      ['filter', 1, 0.1],
      ['search', 5, 0.5],
      ['assemble', 2, 0.2],
      ['transfer', 2, 0.2],
    ],
  );
  const [embedded] = timedParts({ ...explain, embed_ms: 2 }, 10);
  assert.deepEqual([embedded!.name, embedded!.ms, embedded!.share], ['embed', 2, 0.2]);
  const shares = timedParts(explain, 4).map(({ share }) => share);
  assert.equal(
    shares.reduce((sum, share) => sum + share, 0),
    1,
  );
});
