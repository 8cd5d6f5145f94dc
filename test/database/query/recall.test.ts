// Compares recall with brute force, where ties count as right and unknown ids as wrong.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { batchOf, createRandom, openDatabase, type TestVector, testSeed } from '../harness.js';

const DIMENSION = 4;
const COUNT = 300;

/** Higher is better. Small integers make sums and products exact. */
function scoreOf(metric: 'dot' | 'euclidean', a: readonly number[], b: readonly number[]): number {
  return metric === 'dot'
    ? a.reduce((sum, x, i) => sum + x * b[i]!, 0)
    : -a.reduce((sum, x, i) => sum + (x - b[i]!) ** 2, 0);
}

async function createFilled(vectors: readonly TestVector[]) {
  const database = await openDatabase({});
  const input = {
    vectors: { '': { kind: 'dense', dimension: DIMENSION, metric: 'dot' } },
    description: null,
    labels: {},
  } as const;
  await database.createCollection({ id: 'c', ...input });
  await database.collection('c').write(batchOf(vectors), { mode: 'upsert' });
  return database;
}

describe('recall', () => {
  for (const metric of ['dot', 'euclidean'] as const) {
    it(`grades as brute force does (${metric})`, async () => {
      const seed = testSeed();
      const random = createRandom(seed);
      const below = (n: number) => Math.floor(random() * n);
      const vectors = Array.from({ length: COUNT }, (_, i) => ({
        id: `v${i}`,
        values: Array.from({ length: DIMENSION }, () => below(4) + 1),
        metadata: JSON.stringify({ group: i % 3 }),
      }));
      const database = await createFilled(vectors);
      for (const isFiltered of [false, true]) {
        const rows = vectors.filter((_, i) => !isFiltered || i % 3 === 1);
        const queries = Array.from({ length: 200 }, () =>
          Array.from({ length: DIMENSION }, () => below(4) + 1),
        );
        const truths = queries.map((query) =>
          rows
            .map(({ id, values }) => ({ id, score: scoreOf(metric, query, values) }))
            .sort((a, b) => b.score - a.score),
        );
        const ids = truths.map((truth) => {
          const list = truth.slice(0, 1 + below(30)).map(({ id }) => id);
          // Some of them are replaced by other, unknown or repeated ids.
          return list.map((id) =>
            random() < 0.6 ? id : [`v${below(COUNT)}`, 'unknown', list[0]!][below(3)]!,
          );
        });
        const { recalls, sequence } = await database.collection('c').recall({
          vectors: queries.map((query) => Float32Array.from(query)),
          ids,
          metric,
          filter: isFiltered ? { group: 1 } : undefined,
        });
        const expected = ids.map((list, i) => {
          const truth = truths[i]!;
          const least = truth[Math.min(list.length, truth.length) - 1]!.score;
          const right = truth.filter(({ score }) => score >= least).map(({ id }) => id);
          return [...new Set(list)].filter((id) => right.includes(id)).length / list.length;
        });
        assert.deepEqual(recalls, expected, `seed ${seed}`);
        assert.ok(expected.some((recall) => recall < 1) && expected.some((recall) => recall > 0));
        assert.equal(sequence, 1);
      }
      await database.close();
    });
  }

  it('counts a tie with the k-th nearest as right, and a lower score as wrong', async () => {
    const database = await createFilled(
      [
        ['a', 3],
        ['b', 2],
        ['c', 2],
        ['d', 2],
        ['e', 1],
      ].map(([id, x]) => ({
        id: String(id),
        values: [Number(x), 0, 0, 0],
        metadata: '{}',
      })),
    );
    const vector = Float32Array.of(1, 0, 0, 0);
    const recallOf = async (...ids: string[]) =>
      (await database.collection('c').recall({ vectors: [vector], ids: [ids] })).recalls[0];
    assert.equal(await recallOf('a', 'b'), 1);
    assert.equal(await recallOf('a', 'd'), 1);
    assert.equal(await recallOf('c', 'd'), 1);
    assert.equal(await recallOf('a', 'e'), 0.5);
    assert.equal(await recallOf('a', 'a'), 0.5, 'repeated');
    assert.equal(await recallOf('a', 'x'), 0.5, 'unknown');
    assert.equal(await recallOf('e', 'd', 'c', 'b', 'a', 'x'), 5 / 6, 'more than there are');
    await assert.rejects(
      database.collection('c').recall({ vectors: [vector.slice(1)], ids: [['a']] }),
      {
        code: 'dimension_mismatch',
      },
    );
    await database.collection('c').delete({ kind: 'all' }, { dryRun: false });
    assert.equal(await recallOf('a'), 0, 'of an empty collection');
    await database.close();
  });
});
