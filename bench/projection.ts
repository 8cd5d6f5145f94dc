// Projections of a collection in this process, with a pool of two threads: principal components, without and
// with neighbours. Before timing, the variances of the coordinates are compared with those in the head.
//
//   node dist/bench/projection.js              smoke parameters: a second, only checks the bench
//   node dist/bench/projection.js --full       the parameters of docs/performance.md
//   node dist/bench/projection.js --out FILE   also writes the table as Markdown

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import type { CollectionHandle } from '../src/database/collection-handle.js';
import type { Database } from '../src/database/database.js';
import { columnOf, createRandom } from '../test/database/harness.js';
import { EMBEDDED_THREADS, withDatabase } from './embedded.js';
import { describeMachine } from './engine/machine.js';
import { quantile } from './engine/timing.js';

interface Case {
  readonly rowCount: number;
  readonly dimension: number;
  readonly dimensions: number;
  readonly neighborCount: number;
}

const SMOKE: readonly Case[] = [
  { rowCount: 1_797, dimension: 64, dimensions: 2, neighborCount: 0 },
  { rowCount: 1_797, dimension: 64, dimensions: 2, neighborCount: 15 },
];
const FULL: readonly Case[] = [
  ...SMOKE,
  { rowCount: 20_000, dimension: 768, dimensions: 2, neighborCount: 0 },
  { rowCount: 20_000, dimension: 768, dimensions: 2, neighborCount: 15 },
  { rowCount: 100_000, dimension: 768, dimensions: 2, neighborCount: 0 },
  { rowCount: 20_000, dimension: 768, dimensions: 50, neighborCount: 0 },
  { rowCount: 5_000, dimension: 3_072, dimensions: 2, neighborCount: 0 },
];
const RUN_COUNT = 2;
const BATCH_ROWS = 2_048;
/** Directions in which the vectors spread, each less than the one before, as with embeddings. */
const DIRECTIONS = 12;
const SEED = 23;

const { values: args } = parseArgs({
  options: { full: { type: 'boolean', default: false }, out: { type: 'string' } },
});
const lines: string[] = [];
await withDatabase('auto', async (database) => {
  const collections = new Map<string, CollectionHandle>();
  for (const one of args.full ? FULL : SMOKE) {
    const name = `c${one.rowCount}x${one.dimension}`;
    const collection = collections.get(name) ?? (await createCollection(database, name, one));
    collections.set(name, collection);
    await measure(collection, one);
  }
});
const table = [
  `Projection bench, ${args.full ? 'full' : 'smoke'} parameters: pool of ${EMBEDDED_THREADS}, seed ${SEED}`,
  describeMachine(),
  '',
  '| vectors | coordinates | neighbours | components in ms | all in ms |',
  '| --- | --- | --- | --- | --- |',
  ...lines,
  '',
].join('\n');
console.log(table);
if (args.out !== undefined) await writeFile(args.out, table);

async function measure(collection: CollectionHandle, one: Case): Promise<void> {
  const { rowCount, dimension, dimensions, neighborCount } = one;
  const sample = { count: rowCount, seed: 0 };
  const componentsMs: number[] = [];
  const allMs: number[] = [];
  for (let run = 0; run <= RUN_COUNT; run++) {
    const startedAt = performance.now();
    const projection = await collection.project({ sample, dimensions, neighborCount });
    const { varianceRatios, chunks } = await projection.project();
    const foundAt = performance.now();
    const squares = new Float64Array(dimensions);
    let count = 0;
    for await (const chunk of chunks()) {
      count += chunk.count;
      for (const [i, value] of chunk.coordinates.entries()) squares[i % dimensions]! += value ** 2;
    }
    assert.equal(count, rowCount);
    assert.ok(Math.abs(squares[1]! / squares[0]! - varianceRatios[1]! / varianceRatios[0]!) < 0.05);
    if (run === 0) continue;
    componentsMs.push(foundAt - startedAt);
    allMs.push(performance.now() - startedAt);
  }
  const [components, all] = [componentsMs, allMs].map((times) => quantile(times, 0.5).toFixed(0));
  lines.push(
    `| ${rowCount} × ${dimension} | ${dimensions} | ${neighborCount} | ${components} | ${all} |`,
  );
  console.error(lines.at(-1));
}

async function createCollection(
  database: Database,
  id: string,
  { rowCount, dimension }: Case,
): Promise<CollectionHandle> {
  await database.createCollection({
    id,
    vectors: { '': { kind: 'dense', dimension, metric: 'cosine' } },
    description: null,
    labels: {},
  });
  const collection = database.collection(id);
  const random = createRandom(SEED);
  const directions = Array.from({ length: DIRECTIONS }, () =>
    Float32Array.from({ length: dimension }, () => random() - 0.5),
  );
  for (let start = 0; start < rowCount; start += BATCH_ROWS) {
    const count = Math.min(BATCH_ROWS, rowCount - start);
    const values = Float32Array.from({ length: count * dimension }, () => (random() - 0.5) / 2);
    for (let row = 0; row < count; row++) {
      for (const [n, direction] of directions.entries()) {
        const along = (random() - 0.5) * (3 / (1 + n / 3));
        for (let i = 0; i < dimension; i++) values[row * dimension + i]! += along * direction[i]!;
      }
    }
    const ids = columnOf(Array.from({ length: count }, (_, i) => `row-${start + i}`));
    const metadata = columnOf(new Array<string>(count).fill('{}'));
    const vectors = [{ name: '', kind: 'dense', dimension, values, presence: null } as const];
    await collection.write({ count, ids, vectors, metadata }, { mode: 'insert' });
  }
  return collection;
}
