// Searches on several threads find what a search on one thread finds.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createBitmap, setBit } from '../../src/common/bitmap.js';
import { buildTextRun } from '../../src/inverted/text-run.js';
import { matchText, rankText, type SearchedText, termsOf } from '../../src/inverted/text-search.js';
import type { WorkerPool } from '../../src/platform/pool.js';
import { columnOf, createRandom, testSeed } from '../database/harness.js';
import { createCopyingPool } from './copying-pool.js';

const SEED = testSeed();
const SETTINGS = { fields: ['a'], language: null, stopWords: [], k1: 1.2, b: 0.75 };
const VIEWS = 5;
const ROWS = 16_000;

function createViews() {
  const random = createRandom(SEED);
  return Array.from({ length: VIEWS }, (_, view) => {
    const texts = Array.from({ length: ROWS }, () => {
      const words = Array.from({ length: 1 + Math.floor(random() * 4) }, () =>
        Math.floor(random() ** 2 * 9),
      );
      return JSON.stringify({ a: `all ${words.map((word) => `w${word}`).join(' ')}` });
    });
    const visible = createBitmap(ROWS);
    for (let row = 0; row < ROWS; row++) if (random() < 0.9) setBit(visible, row);
    const ids = columnOf(texts.map((_text, row) => `${(row * 7919) % ROWS}-${view}`));
    const run = buildTextRun(columnOf(texts), { from: 0, to: ROWS }, SETTINGS);
    const searched: SearchedText = { runs: [run], rowCount: ROWS, visible, passing: visible };
    return { searched, ids };
  });
}

test(`matches, statistics and the best rows do not depend on the number of threads (seed ${SEED})`, async () => {
  const views = createViews();
  const terms = termsOf('all w1 w5 w5', false, SETTINGS);
  const search = async (pool: WorkerPool) => {
    const searched = views.map((view) => view.searched);
    const { views: matched, statistics } = await matchText(pool, searched, terms);
    const ranked = await rankText(
      pool,
      views.map(({ searched: { runs }, ids }, i) => ({ runs, ids, rows: matched[i]!.rows })),
      {
        terms: terms.terms,
        weights: [1e-9, 1, 2],
        averageLength: statistics.totalLength / statistics.documentCount,
        k1: 1.2,
        b: 0.75,
        k: 700,
        after: null,
        scoreMin: null,
      },
    );
    return { counts: matched.map(({ visibleCount }) => visibleCount), statistics, ranked };
  };
  const { pool, names } = createCopyingPool(3);
  const shared = await search(pool);
  const { scoredCount, ...ranked } = shared.ranked;
  const alone = await search(createCopyingPool(1).pool);
  const { scoredCount: scoredAlone, ...rankedAlone } = alone.ranked;
  assert.deepEqual({ ...shared, ranked }, { ...alone, ranked: rankedAlone });
  assert.equal(ranked.rows.length, 700);
  assert.ok(scoredAlone <= scoredCount && scoredAlone < VIEWS * ROWS, String(scoredAlone));
  assert.deepEqual([...new Set(names)], ['text.match', 'text.rank']);
  assert.ok(names.length >= 4, names.join());
});
