import assert from 'node:assert/strict';
import { test } from 'node:test';
import { scoreScale } from '../src/views/duplicates/score-scale.js';

test('a threshold is explained as an angle or a distance', () => {
  assert.match(scoreScale('cosine').explain(0.5), /at most 60°/);
  assert.match(scoreScale('cosine').explain(1), /at most 0°/);
  assert.match(scoreScale('euclidean').explain(0.5), /distance is at most 1\./);
  assert.match(scoreScale('euclidean').explain(0), /Every pair/);
  assert.match(scoreScale('dot').explain(3), /no upper limit/);
});

test('scores and distances are converted into each other', () => {
  for (const metric of ['cosine', 'euclidean', 'jaccard', 'hamming'] as const) {
    const { distanceAt, scoreAt } = scoreScale(metric).distances!;
    assert.equal(distanceAt(1), 0);
    assert.equal(scoreAt(distanceAt(0.25)), 0.25);
  }
  assert.equal(scoreScale('dot').distances, undefined);
});

test('an explanation names the metric as requests do, also without a threshold', () => {
  assert.match(scoreScale('cosine').explain(Number.NaN), /^cosine: 1 for the same direction\.$/);
});
