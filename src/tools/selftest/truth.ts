// The expected answers of engines, computed by brute force that shares no code with them: plain loops and a sort.

import assert from 'node:assert/strict';
import type { RankKey } from '../../common/rank-key.js';
import { isDistance, type Metric } from '../../common/types.js';
import {
  type CountedQuery,
  publicScore,
  type SearchHits,
  type SearchQuery,
} from '../../engine/core/engine.js';
import { idOf, rowOf } from './blocks.js';

/** The canonical sum of products: eight lanes, whose upper half is added to the lower half three times. */
export function laneSum(left: ArrayLike<number>, right: ArrayLike<number>): number {
  const lanes = new Float64Array(8);
  for (let i = 0; i < left.length; i++) lanes[i % 8]! += left[i]! * right[i]!;
  for (let half = 4; half >= 1; half /= 2) {
    for (let lane = 0; lane < half; lane++) lanes[lane]! += lanes[lane + half]!;
  }
  return lanes[0]!;
}

export function trueScore(
  metric: Metric,
  query: Float32Array,
  row: Float32Array,
  querySquare = laneSum(query, query),
): number {
  const product = laneSum(query, row);
  if (metric === 'dot') return product;
  const rowSquare = laneSum(row, row);
  if (metric === 'jaccard') return product / (querySquare - product + rowSquare) || 0;
  if (isDistance(metric)) {
    const squaredDistance = Math.max(0, querySquare - 2 * product + rowSquare);
    return squaredDistance === 0 ? 0 : -squaredDistance;
  }
  const lengths = Math.sqrt(querySquare) * Math.sqrt(rowSquare);
  return lengths === 0 ? 0 : Math.max(-1, Math.min(1, product / lengths));
}

interface TrueHits {
  readonly viewIndexes: number[];
  readonly rows: number[];
  readonly scores: number[];
  readonly scannedCount: number;
}

/** The answer that every engine must give. */
export function bruteForce(query: SearchQuery): TrueHits {
  const { metric, after, scoreMin } = query;
  const querySquare = laneSum(query.vector, query.vector);
  let matches: { view: number; row: number; score: number; id: Buffer }[] = [];
  for (const [view, { block, rowCount, rows: bitmap }] of query.views.entries()) {
    for (let row = 0; row < rowCount; row++) {
      if (bitmap !== null && ((bitmap.words[row >> 5]! >> (row % 32)) & 1) === 0) continue;
      const score = trueScore(metric, query.vector, rowOf(block, row), querySquare);
      matches.push({ view, row, score, id: idOf(block, row) });
    }
  }
  const scannedCount = matches.length;
  matches.sort((a, b) => b.score - a.score || Buffer.compare(a.id, b.id));
  if (after !== null) {
    matches = matches.filter(
      ({ score, id }) =>
        score < after.score || (score === after.score && Buffer.compare(id, after.id) > 0),
    );
  }
  if (scoreMin !== null) {
    matches = matches.filter(({ score }) => Math.fround(publicScore(metric, score)) >= scoreMin);
  }
  matches = matches.slice(0, query.k);
  return {
    viewIndexes: matches.map(({ view }) => view),
    rows: matches.map(({ row }) => row),
    scores: matches.map(({ score }) => score),
    scannedCount,
  };
}

/** The number of rows that come before each rank key. */
export function bruteForceCounts(query: CountedQuery, rankKeys: readonly RankKey[]): number[] {
  const querySquare = laneSum(query.vector, query.vector);
  const rows = query.views.flatMap(({ block, rowCount, rows: bitmap }) =>
    Array.from({ length: rowCount }, (_, row) => row)
      .filter((row) => bitmap === null || ((bitmap.words[row >> 5]! >> (row % 32)) & 1) === 1)
      .map((row) => ({
        score: trueScore(query.metric, query.vector, rowOf(block, row), querySquare),
        id: idOf(block, row),
      })),
  );
  return rankKeys.map(
    (rankKey) =>
      rows.filter(
        ({ score, id }) =>
          score > rankKey.score || (score === rankKey.score && Buffer.compare(id, rankKey.id) < 0),
      ).length,
  );
}

/** Fails unless the hits are as expected, including the score bits. The message contains the first difference. */
export function assertTrueHits(actual: SearchHits, expected: TrueHits, message: string): void {
  const count = Math.max(actual.viewIndexes.length, actual.rows.length, actual.scores.length);
  const expectedBits = bitsOf(expected.scores);
  const actualBits = bitsOf(actual.scores);
  for (let rank = 0; rank < Math.max(count, expected.rows.length); rank++) {
    const isTrue =
      actual.viewIndexes[rank] === expected.viewIndexes[rank] &&
      actual.rows[rank] === expected.rows[rank] &&
      actualBits[rank] === expectedBits[rank];
    if (isTrue) continue;
    assert.fail(
      `hit ${rank} of ${expected.rows.length}: expected ${describe(expected, rank)}, ` +
        `found ${describe(actual, rank)}: ${message}`,
    );
  }
  assert.equal(actual.scannedCount, expected.scannedCount, `scannedCount: ${message}`);
  assert.ok(
    actual.rescoredCount >= actual.rows.length && actual.rescoredCount <= actual.scannedCount,
    `${actual.rescoredCount} rescored of ${actual.scannedCount} scanned: ${message}`,
  );
}

function describe(
  hits: Pick<SearchHits | TrueHits, 'viewIndexes' | 'rows' | 'scores'>,
  rank: number,
) {
  const score = hits.scores[rank];
  if (score === undefined) return `nothing (of ${hits.rows.length} hits)`;
  const [bits] = bitsOf([score]);
  return `view ${hits.viewIndexes[rank]} row ${hits.rows[rank]} score ${score} (0x${bits!.toString(16)})`;
}

function bitsOf(scores: Iterable<number>): BigUint64Array {
  return new BigUint64Array(Float64Array.from(scores).buffer);
}
