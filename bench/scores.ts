// Rankings that score every row (by examples), diversification (mmr), and counts of the rows before rank keys,
// in turns with a plain search of the same rows, with a pool of two threads. Results are compared with brute
// force before anything is timed.
//
//   node dist/bench/scores.js              smoke parameters: a second, only checks the bench
//   node dist/bench/scores.js --full       the parameters of docs/performance.md
//   node dist/bench/scores.js --out FILE   also writes the table as Markdown

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { setImmediate as nextIteration } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { silentLogger } from '../src/common/logger.js';
import type { RankKey } from '../src/common/rank-key.js';
import { chooseDiverse } from '../src/database/query/diversify.js';
import { createEngine } from '../src/engine/choose-engine.js';
import { countBefore } from '../src/engine/core/count-before.js';
import type { BlockView, SearchHits, SearchQuery } from '../src/engine/core/engine.js';
import {
  combineScores,
  type Formula,
  searchByExamples,
} from '../src/engine/core/example-search.js';
import { createThreadPool } from '../src/platform/pool.js';
import { idOf, rowOf } from '../src/tools/selftest/blocks.js';
import { bruteForceCounts, trueScore } from '../src/tools/selftest/truth.js';
import { createDataSet, type DataSet, encodeData } from './engine/data.js';
import { describeMachine } from './engine/machine.js';
import { readOptions } from './engine/options.js';
import { quantile } from './engine/timing.js';
import type { Shape } from './engine/vectors.js';

const SMOKE = { rowCount: 3_000, dimensions: [48, 64], runCount: 3, candidateCount: 100 };
const FULL = { rowCount: 100_000, dimensions: [384, 768], runCount: 40, candidateCount: 1_000 };
/** Enough runs for every thread to compile its loops. */
const WARM_UP_RUNS = 4;
const THREADS = 2;
const K = 10;
const RANK_KEYS = 100;

interface Measured {
  readonly name: string;
  run(index: number): Promise<unknown>;
}

const { values: args } = parseArgs({
  options: { full: { type: 'boolean', default: false }, out: { type: 'string' } },
});
const { rowCount, dimensions, runCount, candidateCount } = args.full ? FULL : SMOKE;
const pool = createThreadPool({
  threadCount: THREADS,
});
const { engine } = await createEngine({ requested: 'auto', pool, logger: silentLogger });
const lines: string[] = [];
try {
  for (const dimension of dimensions) await runShape({ rowCount, dimension });
} finally {
  await engine.close();
  await pool.close();
}
const table = [
  `Scores bench, ${args.full ? 'full' : 'smoke'} parameters, engine ${engine.name}, pool of ${THREADS}`,
  describeMachine(),
  '',
  '| operation | p50 / p99 in ms | p50 by that of the search |',
  '| --- | --- | --- |',
  ...lines,
  '',
].join('\n');
console.log(table);
if (args.out !== undefined) await writeFile(args.out, table);

async function runShape(shape: Shape): Promise<void> {
  const { parameters } = readOptions([]);
  const generated = createDataSet('clusters', {
    ...parameters,
    data: { ...parameters.data, clusters: { kind: 'clusters', shape } },
    blockRowsMax: Number.POSITIVE_INFINITY,
  });
  const { data } = await encodeData(engine, generated);
  // Without coarse codes, a search and a count read the same codes.
  const views = data.views.map(({ block, ...view }) => {
    const { codes } = block;
    const tiles = codes === null ? null : { ...codes, coarse: null, refinement: null };
    return { ...view, block: { ...block, codes: tiles } };
  });
  const queryOf = (index: number) => data.queries[index % data.queries.length]!;
  const search: Measured = {
    name: `search, top ${K}`,
    run: (index) => engine.search([createQuery(queryOf(index), views, K)]),
  };
  await timeInTurns(shape, [
    search,
    await exampleCase(data, views, { kind: 'best_score', positiveCount: 2 }, 3),
    await exampleCase(data, views, { kind: 'discover', positiveCount: 2 }, 5),
    await diverseCase(views, queryOf(0)),
    await countCase(views, queryOf(0), 1),
    await countCase(views, queryOf(0), 10),
    await countCase(views, queryOf(0), rowCount / RANK_KEYS / 10),
  ]);
  for (const { block } of views) engine.unload(block.key);
}

function createQuery(vector: Float32Array, views: readonly BlockView[], k: number): SearchQuery {
  return { vector, metric: 'cosine', k, views, after: null, scoreMin: null };
}

/** The examples come from a set of queries that are similar to the data. */
async function exampleCase(
  data: DataSet,
  views: readonly BlockView[],
  formula: Formula,
  exampleCount: number,
): Promise<Measured> {
  const examples = data.queries.slice(0, exampleCount);
  const vector = new Float32Array(exampleCount * data.dimension);
  for (const [i, example] of examples.entries()) vector.set(example, i * data.dimension);
  const search = () => searchByExamples(pool, { ...createQuery(vector, views, K), formula }, {});
  const hits = await search();
  const scores = views.flatMap(({ block }) =>
    Array.from({ length: block.rowCount }, (_, row) =>
      combineScores(
        formula,
        Float64Array.from(examples, (example) => trueScore('cosine', example, rowOf(block, row))),
      ),
    ),
  );
  const best = Float64Array.from(scores).sort().reverse().slice(0, K);
  assert.deepEqual(hits.scores, best);
  return { name: `${formula.kind} of ${exampleCount} examples, top ${K}`, run: search };
}

/** Chooses ten of the candidates, which have been found before. */
async function diverseCase(views: readonly BlockView[], vector: Float32Array): Promise<Measured> {
  const [hits] = await engine.search([createQuery(vector, views, candidateCount)]);
  const rows = Array.from(hits!.rows, (row, i) => rowOf(views[hits!.viewIndexes[i]!]!.block, row));
  const values = new Float32Array(
    new SharedArrayBuffer(rows.length * vector.length * Float32Array.BYTES_PER_ELEMENT),
  );
  for (const [i, row] of rows.entries()) values.set(row, i * vector.length);
  const candidates = { metric: 'cosine', values, relevances: hits!.scores } as const;
  const choose = () => chooseDiverse(pool, candidates, { lambda: 0.5, chosenCount: K }, undefined);
  assert.deepEqual(await choose(), chooseByBruteForce(rows, hits!.scores));
  return { name: `mmr, ${K} of ${candidateCount} candidates`, run: choose };
}

function chooseByBruteForce(rows: readonly Float32Array[], relevances: Float64Array): Uint32Array {
  const chosen = [0];
  while (chosen.length < K) {
    const values = rows.map((row, i) => {
      if (chosen.includes(i)) return Number.NEGATIVE_INFINITY;
      const nearest = Math.max(...chosen.map((one) => trueScore('cosine', rows[one]!, row)));
      return 0.5 * relevances[i]! - 0.5 * nearest;
    });
    chosen.push(values.indexOf(Math.max(...values)));
  }
  return Uint32Array.from(chosen);
}

/** Counts the rows before the rank keys of every `step`-th of the best rows. */
async function countCase(
  views: readonly BlockView[],
  vector: Float32Array,
  step: number,
): Promise<Measured> {
  const [hits] = await engine.search([createQuery(vector, views, RANK_KEYS * step)]);
  const rankKeys = Array.from({ length: Math.floor(hits!.rows.length / step) }, (_, i) =>
    rankKeyAt(hits!, views, i * step),
  );
  const query = { vector, metric: 'cosine', views } as const;
  const count = () => countBefore({ engine, pool }, query, rankKeys);
  assert.deepEqual([...(await count())], bruteForceCounts(query, rankKeys));
  return { name: `rows before ${rankKeys.length} of the best ${RANK_KEYS * step}`, run: count };
}

function rankKeyAt(hits: SearchHits, views: readonly BlockView[], place: number): RankKey {
  const { block } = views[hits.viewIndexes[place]!]!;
  return { score: hits.scores[place]!, id: idOf(block, hits.rows[place]!) };
}

/** The machine is shared, so each case runs once before any of them runs again. */
async function timeInTurns({ dimension }: Shape, cases: readonly Measured[]): Promise<void> {
  const times = cases.map((): number[] => []);
  for (let run = 0; run < WARM_UP_RUNS + runCount; run++) {
    for (const [i, each] of cases.entries()) {
      await nextIteration();
      const startedAt = performance.now();
      await each.run(run);
      if (run >= WARM_UP_RUNS) times[i]!.push(performance.now() - startedAt);
    }
  }
  for (const [i, { name }] of cases.entries()) {
    const [p50, p99] = [0.5, 0.99].map((share) => quantile(times[i]!, share));
    const ratio = p50! / quantile(times[0]!, 0.5);
    const what = `${rowCount} × ${dimension}: ${name}`;
    lines.push(`| ${what} | ${p50!.toFixed(2)} / ${p99!.toFixed(2)} | ${ratio.toFixed(2)} |`);
    console.error(lines.at(-1));
  }
}
