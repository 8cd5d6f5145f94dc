import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { RankKey } from '../../../src/common/rank-key.js';
import { METRICS } from '../../../src/common/types.js';
import { publicScore } from '../../../src/engine/core/engine.js';
import { compareIds, compareIdWith, scoreFloor, TopRows } from '../../../src/engine/core/order.js';
import { createBlock, createIds, createRandom, idOf, randomInt, SEED } from '../blocks.js';

function createIdBlock(ids: readonly string[]) {
  return createBlock(new Float32Array(ids.length), 1, ids);
}

describe('the order of ids', () => {
  it('is the order of their bytes, prefixes first', () => {
    console.log(`SAGITTA_TEST_SEED=${SEED}`);
    const random = createRandom(SEED);
    const block = createIdBlock([
      'a',
      'ab',
      'a\u{7f}',
      'é',
      'z',
      '😀',
      '日',
      ...createIds(random, 60),
    ]);
    for (let left = 0; left < block.rowCount; left++) {
      for (let right = 0; right < block.rowCount; right++) {
        const expected = Math.sign(Buffer.compare(idOf(block, left), idOf(block, right)));
        assert.equal(Math.sign(compareIds(block.ids, left, right)), expected);
        assert.equal(Math.sign(compareIdWith(block.ids, left, idOf(block, right))), expected);
      }
    }
  });
});

describe('the selection of the best rows', () => {
  it('agrees with sorting, filtering and slicing', () => {
    const random = createRandom(SEED);
    for (let turn = 0; turn < 300; turn++) {
      const rowCount = randomInt(random, 80);
      const block = createIdBlock(createIds(random, rowCount));
      const scores = Array.from({ length: rowCount }, () => randomInt(random, 6) - 3);
      const k = 1 + randomInt(random, 40);
      const floor = random() < 0.5 ? Number.NEGATIVE_INFINITY : randomInt(random, 4) - 2;
      const row = randomInt(random, rowCount);
      const after: RankKey | null =
        rowCount === 0 || random() < 0.5 ? null : { score: scores[row]!, id: idOf(block, row) };
      const top = new TopRows(k, rowCount, block.ids, { floor, after });
      for (const [offered, score] of scores.entries()) top.offer(score, offered);
      const cutoff = top.cutoff;
      const { rows, scores: kept } = top.take();

      const sorted = scores
        .map((score, place) => ({ score, place, id: idOf(block, place) }))
        .sort((a, b) => b.score - a.score || Buffer.compare(a.id, b.id));
      const from = after === null ? 0 : sorted.findIndex(({ place }) => place === row) + 1;
      const expected = sorted
        .slice(from)
        .filter(({ score }) => score >= floor)
        .slice(0, k);
      assert.deepEqual(
        [...rows],
        expected.map(({ place }) => place),
        `seed ${SEED}`,
      );
      assert.deepEqual(
        [...kept],
        expected.map(({ score }) => score),
        `seed ${SEED}`,
      );
      const isFull = expected.length === Math.min(k, rowCount) && rowCount > 0;
      assert.equal(cutoff, isFull ? expected.at(-1)!.score : floor, `seed ${SEED}`);
    }
  });

  it('orders versions of an id by row', () => {
    const block = createIdBlock(['same', 'same', 'same', 'same']);
    const eligibility = { floor: Number.NEGATIVE_INFINITY, after: null };
    const top = new TopRows(2, 4, block.ids, eligibility);
    for (const row of [3, 1, 2, 0]) top.offer(1, row);
    assert.deepEqual([...top.take().rows], [0, 1]);
  });

  it('is empty when no row can be offered', () => {
    const block = createIdBlock([]);
    const eligibility = { floor: Number.NEGATIVE_INFINITY, after: null };
    assert.equal(new TopRows(10, 0, block.ids, eligibility).take().rows.length, 0);
  });
});

describe('the floor of scores', () => {
  it('is the least score whose rounded public score reaches the limit', () => {
    const random = createRandom(SEED);
    for (let turn = 0; turn < 300; turn++) {
      for (const metric of METRICS) {
        const sample = metric === 'euclidean' ? -(random() * 10) : random() * 2 - 1;
        const reached = Math.fround(publicScore(metric, sample));
        const scoreMin = [reached, reached + 1e-12, reached - 1e-12, random() * 2 - 0.5][turn % 4]!;
        const floor = scoreFloor(metric, scoreMin);
        const passes = (score: number) => Math.fround(publicScore(metric, score)) >= scoreMin;
        if (floor === Number.POSITIVE_INFINITY) {
          assert.ok(!passes(metric === 'euclidean' ? 0 : Number.MAX_VALUE));
        } else if (floor === Number.NEGATIVE_INFINITY) {
          assert.ok(passes(-Number.MAX_VALUE));
        } else {
          assert.ok(passes(floor), `${metric} ${scoreMin}, seed ${SEED}`);
          assert.ok(!passes(justBelow(floor)), `${metric} ${scoreMin}, seed ${SEED}`);
        }
      }
    }
  });

  it('is −Infinity without a limit and +Infinity for an unreachable one', () => {
    assert.equal(scoreFloor('cosine', null), Number.NEGATIVE_INFINITY);
    assert.equal(scoreFloor('euclidean', 0), Number.NEGATIVE_INFINITY);
    assert.equal(scoreFloor('euclidean', 1.5), Number.POSITIVE_INFINITY);
    // 1 / (1 + d) rounds to 1 up to a distance d of about 2^-25.
    assert.ok(Math.abs(scoreFloor('euclidean', 1) + 2 ** -50) < 2 ** -70);
  });
});

function justBelow(value: number): number {
  if (value === 0) return -Number.MIN_VALUE;
  const bits = new BigInt64Array(new Float64Array([value]).buffer);
  bits[0]! += value > 0 ? -1n : 1n;
  return new Float64Array(bits.buffer)[0]!;
}
