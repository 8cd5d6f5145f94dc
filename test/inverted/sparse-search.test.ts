// Sparse search agrees with the dot product of every row, for any division into runs and threads.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createBitmap, hasBit, setBit } from '../../src/common/bitmap.js';
import type { SparseVector } from '../../src/common/vectors.js';
import { buildSparseRun, findIndex, mergeSparseRuns } from '../../src/inverted/sparse-run.js';
import { countSparseBefore, matchSparse, rankSparse } from '../../src/inverted/sparse-search.js';
import { createInlinePool, type WorkerPool } from '../../src/platform/pool.js';
import { columnOf, createRandom, testSeed } from '../database/harness.js';
import { IS_NIGHTLY } from '../support/nightly.js';
import { sparse, columnOf as vectorColumnOf } from '../vector-columns.js';
import { createCopyingPool } from './copying-pool.js';

const SEED = testSeed();

type Random = () => number;

/** At most `lengthMax` elements; undefined for none. Signs and magnitudes vary, so that sums cancel. */
function randomVector(random: Random, indexCount: number, lengthMax: number) {
  const length = Math.floor(random() * (lengthMax + 1));
  const distinct = new Set(
    Array.from({ length }, () => (Math.floor(random() ** 3 * indexCount) * 0x0101_0101) >>> 0),
  );
  const indices = Uint32Array.from(distinct).sort();
  if (indices.length === 0) return undefined;
  const values = Float32Array.from(indices, () => (random() - 0.3) * 10 ** (random() * 6 - 3));
  return { indices, values };
}

/** Returns null for vectors without a common index. */
function dot(a: SparseVector, b: SparseVector): number | null {
  let score: number | null = null;
  for (const [i, index] of a.indices.entries()) {
    const at = b.indices.indexOf(index);
    if (at >= 0) score = (score ?? 0) + a.values[i]! * b.values[at]!;
  }
  return score;
}

test(`merging runs gives the same run as building all of their rows (seed ${SEED})`, () => {
  const random = createRandom(SEED);
  const vectors = Array.from({ length: 1_500 }, () => randomVector(random, 60, 5));
  const column = vectorColumnOf('', sparse, vectors);
  const whole = buildSparseRun(column, { from: 0, to: 1_500 });
  const cuts = [0, 1, 700, 700, 1_100, 1_500];
  const runs = cuts.slice(1).map((to, i) => buildSparseRun(column, { from: cuts[i]!, to }));
  assert.deepEqual(mergeSparseRuns(runs), whole);
  assert.deepEqual(mergeSparseRuns([mergeSparseRuns(runs.slice(0, 3)), ...runs.slice(3)]), whole);
  assert.deepEqual(
    [...whole.indices],
    [...whole.indices].sort((a, b) => a - b),
  );
  for (const [list, index] of whole.indices.entries()) {
    assert.equal(findIndex(whole, index), list);
    assert.equal(findIndex(whole, index + 1), -1);
  }
});

test(`every page holds the rows and the score bits of a brute-force search (seed ${SEED})`, async () => {
  const random = createRandom(SEED + 1);
  for (let round = 0; round < (IS_NIGHTLY ? 60 : 12); round++) {
    const rowCount = 1 + Math.floor(random() * 3_000);
    const vectors = Array.from({ length: rowCount }, () => randomVector(random, 40, 6));
    const column = vectorColumnOf('', sparse, vectors);
    const cut = Math.floor(random() * rowCount);
    const runs = [
      buildSparseRun(column, { from: 0, to: cut }),
      buildSparseRun(column, { from: cut, to: rowCount }),
    ];
    // Some rows of the index were added after the snapshot.
    const visibleCount = Math.ceil(rowCount * (0.5 + random() / 2));
    const passing = createBitmap(visibleCount);
    for (let row = 0; row < visibleCount; row++) if (random() < 0.7) setBit(passing, row);
    const ids = columnOf(vectors.map((_, row) => `${(row * 7919) % rowCount}`));
    const query = randomVector(random, 40, 12);
    if (query === undefined) continue;
    const pool = createInlinePool();
    const matches = await matchSparse(pool, [{ runs, rowCount: visibleCount, passing }], query);
    const expected = vectors
      .flatMap((vector, row) => {
        if (row >= visibleCount || !hasBit(passing, row) || vector === undefined) return [];
        const score = dot(query, vector);
        return score === null ? [] : [{ row, score }];
      })
      .sort((a, b) => b.score - a.score || compareIds(a.row, b.row, rowCount));
    assert.equal(matches[0]!.visibleCount, expected.length, `round ${round}`);
    const k = 1 + Math.floor(random() * 20);
    const views = [{ runs, rows: matches[0]!.rows, ids }];
    const found: { row: number; score: number }[] = [];
    let after: { score: number; id: Uint8Array } | null = null;
    for (let page = 0; page < 3; page++) {
      const ranking = { vector: query, k, after, scoreMin: null };
      const { rows, scores } = await rankSparse(pool, views, ranking);
      for (const [i, row] of rows.entries()) found.push({ row, score: scores[i]! });
      const last = found.at(-1);
      if (last === undefined) break;
      after = { score: last.score, id: idOf(last.row, rowCount) };
    }
    assert.deepEqual(found, expected.slice(0, 3 * k), `round ${round}`);
    const rankKeys = expected
      .filter((_, i) => i % 7 === 3)
      .map(({ row, score }) => ({ score, id: idOf(row, rowCount) }))
      .reverse();
    const counts = await countSparseBefore(pool, views, query, rankKeys);
    const wanted = [...expected.keys()].filter((i) => i % 7 === 3).reverse();
    assert.deepEqual([...counts], wanted, `round ${round}`);
    const scoreMin = Math.fround(expected[Math.floor(expected.length / 2)]?.score ?? 0);
    const ranking = { vector: query, k: rowCount, after: null, scoreMin };
    const { rows } = await rankSparse(pool, views, ranking);
    const reaching = expected.filter(({ score }) => Math.fround(score) >= scoreMin);
    assert.deepEqual(
      [...rows],
      reaching.map(({ row }) => row),
      `round ${round}`,
    );
  }
});

function idOf(row: number, rowCount: number): Buffer {
  return Buffer.from(`${(row * 7919) % rowCount}`);
}

function compareIds(a: number, b: number, rowCount: number): number {
  return Buffer.compare(idOf(a, rowCount), idOf(b, rowCount));
}

test(`windows that cannot hold one of the best rows are not scored (seed ${SEED})`, async () => {
  const random = createRandom(SEED + 2);
  const rowCount = 20_000;
  const vectors = Array.from({ length: rowCount }, (_, row) => ({
    indices: Uint32Array.of(3, 9),
    values: Float32Array.of(row === 12_345 ? 5 : random(), -random()),
  }));
  const column = vectorColumnOf('', sparse, vectors);
  const runs = [buildSparseRun(column, { from: 0, to: rowCount })];
  const rows = createBitmap(rowCount);
  for (let row = 0; row < rowCount; row++) setBit(rows, row);
  const ids = columnOf(vectors.map((_, row) => `${row}`));
  const vector = { indices: Uint32Array.of(3, 9), values: Float32Array.of(1, 0.01) };
  const ranking = { vector, k: 1, after: null, scoreMin: null };
  const pool = createInlinePool();
  const hits = await rankSparse(pool, [{ runs, rows, ids }], ranking);
  assert.deepEqual([...hits.rows], [12_345]);
  assert.ok(hits.scoredCount <= 512, String(hits.scoredCount));
});

test(`the result does not depend on the number of threads (seed ${SEED})`, async () => {
  const random = createRandom(SEED + 3);
  const rowCount = 16_000;
  const views = Array.from({ length: 5 }, (_, view) => {
    const vectors = Array.from({ length: rowCount }, () => randomVector(random, 9, 4));
    const column = vectorColumnOf('', sparse, vectors);
    const ids = columnOf(vectors.map((_, row) => `${(row * 7919) % rowCount}-${view}`));
    return {
      runs: [buildSparseRun(column, { from: 0, to: rowCount })],
      rowCount,
      ids,
      passing: null,
    };
  });
  const indices = Uint32Array.from({ length: 9 }, (_, i) => i * 0x0101_0101);
  const vector = { indices, values: Float32Array.from(indices, (_, i) => i - 3.5) };
  const search = async (pool: WorkerPool) => {
    const matched = await matchSparse(pool, views, vector);
    const ranked = views.map((view, i) => ({ ...view, rows: matched[i]!.rows }));
    const { scoredCount: _, ...hits } = await rankSparse(pool, ranked, {
      vector,
      k: 500,
      after: null,
      scoreMin: null,
    });
    return { counts: matched.map(({ visibleCount }) => visibleCount), hits };
  };
  const { pool, names } = createCopyingPool(3);
  const shared = await search(pool);
  assert.deepEqual(shared, await search(createCopyingPool(1).pool));
  assert.equal(shared.hits.rows.length, 500);
  assert.deepEqual([...new Set(names)], ['sparse.match', 'sparse.rank']);
  assert.ok(names.length >= 4, names.join());
});
