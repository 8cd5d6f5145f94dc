import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { METRICS } from '../../../src/common/types.js';
import {
  canonicalScore,
  createCanonicalQuery,
  sumOfProducts,
  sumOfSquares,
} from '../../../src/engine/core/canonical.js';
import { createRandom, createValues, laneSum, randomInt, SEED, trueScore } from '../blocks.js';

describe('the canonical score', () => {
  it('sums in eight lanes folded by halves for every dimension', () => {
    console.log(`SAGITTA_TEST_SEED=${SEED}`);
    const random = createRandom(SEED);
    const dimensions = [...Array.from({ length: 34 }, (_, i) => i + 1), 767, 768, 16_384];
    for (const dimension of dimensions) {
      for (const kind of ['random', 'huge', 'scattered', 'denormal'] as const) {
        const [left, right] = [0, 1].map(() => createValues(random, kind, 1, dimension));
        const query = createCanonicalQuery('dot', left!);
        const padded = new Float32Array(dimension + 3);
        padded.set(right!, 2);
        const what = `${kind}, dimension ${dimension}, seed ${SEED}`;
        assert.equal(sumOfProducts(query.values, padded, 2), laneSum(left!, right!), what);
        assert.equal(sumOfSquares(padded, 2, dimension), laneSum(right!, right!), what);
      }
    }
  });

  it('depends on the order of additions, which is therefore fixed', () => {
    // 1 in lane 0, 2^-53 in lanes 1 and 5: summed sequentially, both would be rounded away.
    const tiny = 2 ** -53;
    const row = Float32Array.from([1, tiny, 0, 0, 0, tiny, 0, 0]);
    const ones = createCanonicalQuery('dot', new Float32Array(8).fill(1));
    assert.equal(sumOfProducts(ones.values, row, 0), 1 + 2 ** -52);
    const unlucky = Float32Array.from([1, 0, tiny, 0, tiny, 0, 0, 0]);
    assert.equal(sumOfProducts(ones.values, unlucky, 0), 1);
  });

  it('does not mix up alternating queries', () => {
    const first = createCanonicalQuery('dot', Float32Array.of(1, 2, 3));
    const second = createCanonicalQuery('dot', Float32Array.of(5, 7));
    const row = Float32Array.of(1, 10, 100);
    for (let turn = 0; turn < 3; turn++) {
      assert.equal(sumOfProducts(first.values, row, 0), 321);
      assert.equal(sumOfProducts(second.values, row, 0), 75);
    }
  });

  it('follows the documented formula of each metric', () => {
    const random = createRandom(SEED);
    for (let turn = 0; turn < 300; turn++) {
      const dimension = 1 + randomInt(random, 40);
      const kind = (['random', 'zeros', 'scattered', 'huge', 'denormal'] as const)[turn % 5]!;
      const vector = createValues(random, kind, 1, dimension);
      const row = turn % 3 === 0 ? vector : createValues(random, kind, 1, dimension);
      for (const metric of METRICS) {
        const query = createCanonicalQuery(metric, vector);
        const product = sumOfProducts(query.values, row, 0);
        const score = canonicalScore(
          metric,
          product,
          query.square,
          sumOfSquares(row, 0, dimension),
        );
        assert.ok(Object.is(score, trueScore(metric, vector, row)), `${metric}, seed ${SEED}`);
        assert.ok(!Object.is(score, -0));
      }
    }
  });

  it('is exactly 0 for the distance of a vector to itself', () => {
    const random = createRandom(SEED);
    for (const kind of ['random', 'huge', 'scattered', 'denormal'] as const) {
      const vector = createValues(random, kind, 1, 100);
      const { values, square } = createCanonicalQuery('euclidean', vector);
      const product = sumOfProducts(values, vector, 0);
      assert.ok(Object.is(canonicalScore('euclidean', product, square, square), 0));
    }
  });

  it('keeps cosines between −1 and 1', () => {
    assert.equal(canonicalScore('cosine', 1.0000000000000002, 1, 1), 1);
    assert.equal(canonicalScore('cosine', -1.0000000000000002, 1, 1), -1);
    assert.equal(canonicalScore('cosine', 0, 0, 1), 0);
    assert.equal(canonicalScore('cosine', 0, 1, 0), 0);
  });
});
