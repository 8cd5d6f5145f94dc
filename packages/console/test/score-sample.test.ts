import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  histogramOf,
  NEIGHBORS_PER_ROW,
  predictPairs,
  sampleOf,
  sampleRowsOf,
  suggestThreshold,
} from '../src/views/duplicates/score-sample.js';

/** A sample in which each row has the given scores, from ten times as many vectors. */
function sample(...rows: readonly (readonly number[])[]) {
  const joined = rows.map((scores, row) => ({
    id: `row ${row}`,
    matches: scores.map((score, at) => ({ id: `match ${at}`, score })),
  }));
  return sampleOf(joined, 10 * rows.length);
}

/** One neighbour per row. */
function nearest(scores: readonly number[]) {
  return sample(...scores.map((score) => [score]));
}

/** Scores spread evenly from 0.7 to 0.9. */
const BULK = Array.from({ length: 96 }, (_, at) => 0.7 + (0.2 * at) / 95);

describe('the size of a sample', () => {
  test('is bounded, and smaller for many long vectors', () => {
    assert.equal(sampleRowsOf(1_000, 64), 1_000);
    assert.equal(sampleRowsOf(100_000, 1_000), 500);
    assert.equal(sampleRowsOf(100_000_000, 1_000), 100);
    assert.equal(sampleRowsOf(0, 1), 1_000);
  });
});

describe('the pairs that a sample predicts', () => {
  test('each pair is found from both sides, and rows stand for the others', () => {
    const scores = sample([0.9, 0.8], [0.9], [0.2], []);
    assert.deepEqual(predictPairs(scores, 0.85), { pairCount: 10, isAtLeast: false });
    assert.deepEqual(predictPairs(scores, 0.8), { pairCount: 15, isAtLeast: false });
    assert.deepEqual(predictPairs(scores, 0.95), { pairCount: 0, isAtLeast: false });
    assert.equal(predictPairs(sample(), 0.5).pairCount, 0);
  });

  test('are a lower bound if a row may have more neighbours than were asked for', () => {
    const full = Array.from({ length: NEIGHBORS_PER_ROW }, (_, at) => 0.99 - at / 100);
    const scores = sample(full, [0.5]);
    assert.equal(predictPairs(scores, full.at(-1)!).isAtLeast, true);
    assert.equal(predictPairs(scores, full.at(-2)!).isAtLeast, false);
  });
});

describe('the histogram of a sample', () => {
  test('ends at the highest score, and counts every vector with a neighbour', () => {
    const histogram = histogramOf(nearest([1, ...BULK]), 10)!;
    assert.equal(histogram.to, 1);
    assert.equal(histogram.counts.length, 10);
    assert.equal(
      histogram.counts.reduce((sum, count) => sum + count),
      97,
    );
    assert.equal(histogram.counts.at(-1), 1);
  });

  test('has a width even if all scores are equal, and does not exist without scores', () => {
    const { from, to, counts } = histogramOf(nearest([1, 1, 1]), 4)!;
    assert.ok(from < to);
    assert.deepEqual(counts, [0, 0, 0, 3]);
    assert.equal(histogramOf(sample([], []), 4), undefined);
  });
});

describe('the suggested threshold', () => {
  test('is in the gap between duplicates and other neighbours', () => {
    const suggested = suggestThreshold('cosine', nearest([...BULK, 1, 0.9999, 1, 0.9998]))!;
    assert.equal(suggested.reason, 'gap');
    assert.ok(suggested.threshold > 0.9 && suggested.threshold < 0.9998, `${suggested.threshold}`);
  });

  test('separates duplicates even if most vectors have one', () => {
    const equal = Array.from({ length: 300 }, () => 1);
    const suggested = suggestThreshold('euclidean', nearest([...BULK, ...equal]))!;
    assert.equal(suggested.reason, 'gap');
    assert.ok(suggested.threshold > 0.9 && suggested.threshold < 1, `${suggested.threshold}`);
  });

  test('admits the highest scores if there is no gap', () => {
    assert.deepEqual(suggestThreshold('cosine', nearest(BULK)), {
      threshold: 0.897,
      reason: 'top',
    });
    const products = Array.from({ length: 200 }, (_, at) => at);
    assert.deepEqual(suggestThreshold('dot', nearest(products)), { threshold: 195, reason: 'top' });
  });

  test('does not tell equal vectors from those that differ by rounding', () => {
    const equal = Array.from({ length: 200 }, (_, at) => 1 - (at % 2) * 6e-8);
    const steady = Array.from({ length: 40 }, (_, at) => 1 - 1e-5 * 1.4 ** at);
    const { threshold } = suggestThreshold('cosine', nearest([...equal, ...steady]))!;
    assert.ok(threshold < 1 - 6e-8, `${threshold}`);
  });

  test('does not separate a few isolated vectors from all others', () => {
    const { reason } = suggestThreshold('cosine', nearest([...BULK, -0.5, -0.6]))!;
    assert.equal(reason, 'top');
  });

  test('does not exist without scores', () => {
    assert.equal(suggestThreshold('cosine', sample([])), undefined);
  });
});
