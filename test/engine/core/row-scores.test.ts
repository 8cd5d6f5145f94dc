// Scores of chosen rows by the kernels, on every target of this processor, and by TypeScript, compared with
// brute force to the bit.

import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { METRICS } from '../../../src/common/types.js';
import {
  createRowScorer,
  type ScoringAddon,
  scoreSelected,
  scoringAddon,
} from '../../../src/engine/core/row-scores.js';
import { loadKernels } from '../../../src/engine/simd/simd-kernels.js';
import {
  createRandom,
  createRandomBitmap,
  createRandomBlock,
  createValues,
  laneSum,
  type Random,
  type RowKind,
  randomInt,
  rowOf,
  SEED,
  trueScore,
} from '../blocks.js';

const KINDS: readonly RowKind[] = [
  'random',
  'duplicates',
  'outlier',
  'scaled',
  'denormal',
  'huge',
  'zeros',
  'scattered',
];

const DIMENSIONS = [1, 7, 8, 9, 100, 768];

interface Way {
  readonly name: string;
  readonly addon: ScoringAddon | null;
  prepare(): void;
}

const ways: Way[] = [{ name: 'TypeScript', addon: null, prepare() {} }];
if (scoringAddon === null) {
  it('scores rows in the kernels', { skip: 'the kernels are not built: no C++ compiler' });
} else {
  const kernels = loadKernels();
  const selected = kernels.selectedTarget();
  after(() => kernels.selectTarget(selected));
  for (const target of kernels.targets()) {
    const prepare = () => kernels.selectTarget(target);
    ways.push({ name: target, addon: scoringAddon, prepare });
  }
}

/** Returns row numbers in any order, some of them twice. */
function randomRows(random: Random, rowCount: number): Uint32Array {
  return Uint32Array.from({ length: rowCount }, () => randomInt(random, rowCount));
}

function checkWay({ addon, prepare }: Way, kind: RowKind): void {
  prepare();
  const random = createRandom(SEED);
  for (const dimension of DIMENSIONS) {
    const block = createRandomBlock(random, kind, 70, dimension);
    const vectorCount = 1 + randomInt(random, 4);
    const vectors = createValues(random, kind, vectorCount, dimension);
    const rows = randomRows(random, block.rowCount);
    const squares = Float64Array.from(rows, (row) => {
      const values = rowOf(block, row);
      return laneSum(values, values);
    });
    for (const metric of METRICS) {
      const score = createRowScorer({ ...block, metric, vectors }, addon);
      const expected = Float64Array.from({ length: rows.length * vectorCount }, (_, i) => {
        const place = i % vectorCount;
        const vector = vectors.slice(place * dimension, (place + 1) * dimension);
        return trueScore(metric, vector, rowOf(block, rows[Math.floor(i / vectorCount)]!));
      });
      for (const known of [undefined, squares]) {
        const scores = new Float64Array(expected.length).fill(Number.NaN);
        score(rows, scores, known);
        assert.deepEqual(
          new BigUint64Array(scores.buffer),
          new BigUint64Array(expected.buffer),
          `${kind}, ${metric}, dimension ${dimension}, seed ${SEED}`,
        );
      }
    }
  }
}

describe('scores of chosen rows', () => {
  for (const way of ways) {
    for (const kind of KINDS) {
      it(`have the bits of brute force over ${kind} rows, by ${way.name}`, () =>
        checkWay(way, kind));
    }
  }

  it('come in order for the rows of a range that a bitmap selects', () => {
    const random = createRandom(SEED);
    const block = createRandomBlock(random, 'random', 3_000, 5);
    const vectors = createValues(random, 'random', 2, 5);
    for (const bitmap of [null, createRandomBitmap(random, 3_000, 0.3)]) {
      const expected: number[] = [];
      for (let row = 40; row < 2_900; row++) {
        if (bitmap === null || ((bitmap.words[row >> 5]! >> (row & 31)) & 1) === 1) {
          expected.push(row);
        }
      }
      const found: number[] = [];
      scoreSelected({ ...block, metric: 'dot', vectors }, { bitmap, from: 40, to: 2_900 }, take);
      assert.deepEqual(found, expected);

      function take(rows: Uint32Array, scores: Float64Array): void {
        assert.equal(scores.length, 2 * rows.length);
        for (const [i, row] of rows.entries()) {
          assert.equal(scores[2 * i + 1], laneSum(vectors.slice(5, 10), rowOf(block, row)));
        }
        found.push(...rows);
      }
    }
  });

  it('are refused for rows beyond the values', { skip: scoringAddon === null }, () => {
    const values = new Float32Array(8);
    const score = createRowScorer({ metric: 'dot', dimension: 4, values, vectors: values });
    const scores = new Float64Array(4);
    assert.throws(() => score(Uint32Array.of(0, 2), scores), /fewer values than rows/);
    assert.throws(() => score(Uint32Array.of(0, 1, 1), scores), /scores do not fit/);
    assert.throws(() => score(Uint32Array.of(1), scores, new Float64Array(0)), /fewer squares/);
  });
});
