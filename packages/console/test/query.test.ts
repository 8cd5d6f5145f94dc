import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type CollectionRecord, encodeValues } from '@sagitta/client';
import { compareMatches, describeMove } from '../src/views/query/compare-matches.js';
import { parseVector } from '../src/views/query/parse-vector.js';
import { decodeDraft, encodeDraft, type QueryDraft } from '../src/views/query/query-draft.js';
import { buildRequest, possibleRankings } from '../src/views/query/query-request.js';
import { scoreBuckets, scoreFormat } from '../src/views/query/score-buckets.js';
import { timedParts } from '../src/views/query/timings.js';

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

describe('the request of a draft', () => {
  const collection = {
    id: 'c',
    dimension: 2,
    metric: 'cosine',
    vectors: { title: { dimension: 3, metric: 'dot' } },
  } as unknown as CollectionRecord;

  test('contains the chosen settings', () => {
    const draft = {
      vector: '1 2 3',
      using: 'title',
      metric: 'dot',
      filter: { a: 1 },
      threshold: 0.5,
      k: 3,
    } as const;
    assert.deepEqual(buildRequest(collection, draft).request, {
      vector: [1, 2, 3],
      using: 'title',
      metric: 'dot',
      filter: { a: 1 },
      score_threshold: 0.5,
      limit: 3,
      include_metadata: true,
    });
    assert.deepEqual(buildRequest(collection, { positive: ['a'], negative: ['b'] }).request, {
      recommend: { positive: ['a'], negative: ['b'] },
      limit: 10,
      include_metadata: true,
    });
  });

  test('has no metric for words', () => {
    const { request } = buildRequest(collection, { by: 'text', words: 'a', metric: 'dot' });
    assert.deepEqual(request, { text: { query: 'a' }, limit: 10, include_metadata: true });
  });

  test('searches the first named vector if there is no unnamed one', () => {
    const named = { ...collection, dimension: undefined } as unknown as CollectionRecord;
    const { request } = buildRequest(named, { by: 'vector', vector: '1 2 3' });
    assert.equal(request!.using, 'title');
    assert.deepEqual(possibleRankings(named), ['id', 'vector', 'examples']);
    const words = { id: 'w', text: { fields: ['a'] } } as unknown as CollectionRecord;
    assert.deepEqual(possibleRankings(words), ['text']);
  });

  test('says what is missing', () => {
    const problemOf = (draft: object) => buildRequest(collection, draft).problem;
    assert.match(problemOf({})!, /id/);
    assert.match(problemOf({ by: 'vector', vector: '1' })!, /Found 1 of 2/);
    assert.match(problemOf({ by: 'text', words: ' ' })!, /words/);
    assert.match(problemOf({ by: 'examples', negative: ['a'] })!, /example/);
    assert.equal(problemOf({ by: 'examples', negative: ['a'], strategy: 'best_score' }), undefined);
    assert.match(problemOf({ id: 'a', k: 0 })!, /Found 0 .* from 1/);
  });
});

test('a draft in an address keeps integers that float64 cannot represent', () => {
  const filter = { n: { $gt: 1768907725507217523n } };
  assert.deepEqual(decodeDraft(encodeDraft({ filter } as unknown as QueryDraft))?.filter, filter);
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
  const shares = timedParts(explain, 4).map(({ share }) => share);
  assert.equal(
    shares.reduce((sum, share) => sum + share, 0),
    1,
  );
});
