import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { JoinMatches, matchesAsCsv, matchesAsNdjson } from '../src/views/join/join-matches.js';

function sample(): JoinMatches {
  const found = new JoinMatches();
  found.addRow({
    id: 'a',
    matches: [
      { id: 'x', score: 0.9 },
      { id: 'y', score: 0.8 },
    ],
  });
  found.addRow({ id: 'b', matches: [] });
  return found;
}

const metadata = {
  left: new Map([['a', { title: 'A' }]]),
  right: new Map([['x', { title: 'X' }]]),
};

describe('matches of a join', () => {
  test('matches are ranked, and vectors without any are counted', () => {
    const found = sample();
    assert.deepEqual(found.matches, [
      { id: 'a', rank: 1, matchId: 'x', score: 0.9 },
      { id: 'a', rank: 2, matchId: 'y', score: 0.8 },
    ]);
    assert.equal(found.rowCount, 2);
    assert.equal(found.unmatchedCount, 1);
  });

  test('exports contain the metadata of both sides, if any', () => {
    const [first, second] = matchesAsNdjson(sample().matches, metadata).map((line) =>
      JSON.parse(line),
    );
    assert.deepEqual(first, {
      id: 'a',
      rank: 1,
      match_id: 'x',
      score: 0.9,
      metadata: { title: 'A' },
      match_metadata: { title: 'X' },
    });
    assert.deepEqual(second.match_metadata, {});
    assert.deepEqual(matchesAsCsv(sample().matches, metadata), [
      'id,rank,match_id,score,metadata,match_metadata\r\n',
      'a,1,x,0.9,"{""title"":""A""}","{""title"":""X""}"\r\n',
      'a,2,y,0.8,"{""title"":""A""}",\r\n',
    ]);
  });
});

test('exports of matches keep all digits of integers beyond 2^53', () => {
  const posts = {
    left: new Map([['a', { post: 1768907725507217523n }]]),
    right: new Map([['x', { post: 2n ** 64n - 1n }]]),
  };
  const lines = [matchesAsNdjson, matchesAsCsv].map((write) =>
    write(sample().matches, posts).join(''),
  );
  for (const text of lines) assert.match(text, /1768907725507217523\b.*18446744073709551615\b/);
});
