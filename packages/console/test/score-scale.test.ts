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

test('the initial threshold is in the range of the slider, if any', () => {
  for (const metric of ['cosine', 'euclidean'] as const) {
    const { range, initial } = scoreScale(metric);
    assert.ok(range !== undefined && initial >= range.min && initial <= range.max);
  }
  assert.equal(scoreScale('dot').range, undefined);
});
