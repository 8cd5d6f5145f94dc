// Random writes, deletions, filters, pages and metrics over collections whose segments have heads: the answers are
// those of the reference engine, while segments are sealed and compacted, and after restarts. Damage to the heads in a
// file is noticed like any other.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { METRICS, type VectorBlock } from '../../src/common/types.js';
import type { Database } from '../../src/database/database.js';
import type { Engine } from '../../src/engine/core/engine.js';
import { createReferenceEngine } from '../../src/engine/core/reference-engine.js';
import { createSimdEngine } from '../../src/engine/simd/simd-engine.js';
import { loadNativeFiles } from '../../src/platform/native-files.js';
import { createInlinePool } from '../../src/platform/pool.js';
import { createMemoryState } from '../../src/storage/memory-store.js';
import { openStore } from '../../src/storage/open-store.js';
import { loadedKernels } from '../engine/simd/loaded-kernels.js';
import { makeDirectory } from '../storage/directories.js';
import { eventually } from '../support/waiting.js';
import { batchOf, createRandom, createTestClock, openDatabase, testSeed } from './harness.js';

const DIMENSION = 384;
const SEGMENT_ROWS = 2_200;
const VALUE_METRICS = METRICS.filter((metric) => metric !== 'jaccard' && metric !== 'hamming');

type WatchedEngine = Engine & {
  headCount: number;
  provisionalCount: number;
  lastBlock: VectorBlock | null;
};

/** An engine that counts the searched blocks with a head and remembers the last of them that is sealed. */
function createWatchedEngine(): WatchedEngine {
  const engine = createSimdEngine({ pool: createInlinePool() });
  const watched: WatchedEngine = {
    headCount: 0,
    provisionalCount: 0,
    lastBlock: null,
    name: 'simd',
    rowEncoder: engine.rowEncoder,
    search(queries, options) {
      for (const { block } of queries.flatMap(({ views }) => views)) {
        if (block.codes?.head === null) continue;
        watched.headCount++;
        if (block.hasProvisionalHead) watched.provisionalCount++;
        else watched.lastBlock = block;
      }
      return engine.search(queries, options);
    },
    countBefore: engine.countBefore!.bind(engine),
    unload: (key) => engine.unload(key),
    bytesUsed: (key) => engine.bytesUsed(key),
    close: () => engine.close(),
  };
  return watched;
}

async function settle(): Promise<void> {
  for (let i = 0; i < 300; i++) await new Promise((resolve) => setImmediate(resolve));
}

/** Returns a function that draws vectors near each of some centres in turn, which differ in few directions. */
function createVectors(random: () => number): () => number[] {
  const centres = Array.from({ length: Math.floor(SEGMENT_ROWS / 12) }, () =>
    Array.from({ length: 4 }, () => random() - 0.5),
  );
  let count = 0;
  return () => {
    const centre = centres[count++ % centres.length]!;
    return Array.from({ length: DIMENSION }, (_, i) => (centre[i] ?? 0) + (random() - 0.5) * 0.01);
  };
}

/** Draws the vectors of a segment until a head pays for them, which is a matter of estimated costs. */
async function drawVectors(random: () => number): Promise<number[][]> {
  const { rowEncoder } = createSimdEngine({ pool: createInlinePool() });
  for (let i = 0; i < 8; i++) {
    const vectors = Array.from({ length: SEGMENT_ROWS + 1 }, createVectors(random));
    const values = Float32Array.from(vectors.flat());
    const rows = { values, rowCount: SEGMENT_ROWS, dimension: DIMENSION };
    if ((await rowEncoder!.makeHead(rows, null)) !== null) return vectors;
  }
  throw new Error('no head pays');
}

/** The paths of the segment files. */
function filesIn(directory: string): string[] {
  const root = join(directory, 'segments');
  const paths = readdirSync(root, { recursive: true }) as string[];
  return paths.filter((path) => path.endsWith('.arrow')).map((path) => join(root, path));
}

/** Two databases with the same writes, only one of which has heads. */
class Pair {
  readonly clock = createTestClock();
  readonly #states = [createMemoryState(), createMemoryState()] as const;
  readonly #limits = { segmentRowsMax: SEGMENT_ROWS };
  #databases: readonly Database[] = [];
  watched = createWatchedEngine();

  async open(): Promise<void> {
    this.watched = createWatchedEngine();
    const engines = [this.watched, createReferenceEngine({ pool: createInlinePool() })];
    const { clock } = this;
    const opening = engines.map((engine, i) =>
      openDatabase({ state: this.#states[i]!, engine, clock, limits: this.#limits }),
    );
    this.#databases = await Promise.all(opening);
  }

  async close(): Promise<void> {
    for (const database of this.#databases) await database.close();
  }

  /** Runs the operation on both, and returns its results. */
  both<Result>(run: (database: Database) => Promise<Result>): Promise<Result[]> {
    return Promise.all(this.#databases.map(run));
  }
}

describe('segments with heads', { skip: loadedKernels() === null && 'no kernels' }, () => {
  it('answer as the reference engine does', async () => {
    const seed = testSeed();
    console.log(`SAGITTA_TEST_SEED=${seed}`);
    const random = createRandom(seed);
    const vectorOf = createVectors(random);
    const pair = new Pair();
    await pair.open();
    for (const metric of VALUE_METRICS) {
      const shape = { kind: 'dense', dimension: DIMENSION, metric } as const;
      const definition = { id: metric, vectors: { '': shape }, description: null, labels: {} };
      await pair.both((database) => database.createCollection(definition));
    }
    let nextRow = 0;
    const write = async (count: number) => {
      const rows = Array.from({ length: count }, () => {
        // Some rows replace earlier ones.
        const row = random() < 0.1 ? Math.floor(random() * nextRow) : nextRow++;
        const metadata = `{"part": ${row % 7}, "row": ${row}}`;
        return { id: `v${row}`, values: vectorOf(), metadata };
      });
      const distinct = [...new Map(rows.map((row) => [row.id, row])).values()];
      const batch = batchOf(distinct);
      await pair.both(async (database) => {
        for (const metric of VALUE_METRICS) {
          await database.collection(metric).write(batch, { mode: 'upsert' });
        }
      });
    };
    /** Asks both the same; the answers are compared unless rows are being written, which each shows in its own time. */
    const ask = async ({ writing = false } = {}) => {
      const vector = Float32Array.from(vectorOf());
      const filters = [undefined, { part: 3 }, { row: { $lt: 40 } }, { part: { $ne: 5 } }];
      const filter = filters[Math.floor(random() * filters.length)];
      const topK = [1, 10, 100][Math.floor(random() * 3)]!;
      for (const metric of VALUE_METRICS) {
        const [found, expected] = await pair.both(async (database) => {
          const collection = database.collection(metric);
          const request = { vector, topK, ...(filter !== undefined && { filter }) };
          const first = await collection.query(request);
          const pages = [first.matches.map(({ id, score }) => [id, score])];
          if (first.nextCursor !== null && first.nextCursor !== undefined) {
            const next = await collection.query({ cursor: first.nextCursor } as never);
            pages.push(next.matches.map(({ id, score }) => [id, score]));
          }
          return pages;
        });
        if (writing) continue;
        assert.deepEqual(found, expected, `${metric}, top ${topK}, seed ${seed}`);
      }
    };
    for (let step = 0; step < 4; step++) {
      const writing = write(1_100);
      await ask({ writing: true });
      await writing;
      await ask();
      await settle();
      await ask();
      for (const count of [1, 70]) {
        await write(count);
        await ask();
      }
      if (step % 2 === 1) {
        const part = step;
        await pair.both(async (database) => {
          for (const metric of VALUE_METRICS) {
            const selection = { kind: 'filter', filter: { part } } as const;
            await database.collection(metric).delete(selection, { dryRun: false });
          }
        });
        pair.clock.nowMs += 16 * 60_000;
        await ask();
      }
    }
    const { headCount, provisionalCount } = pair.watched;
    assert.ok(headCount > provisionalCount, 'sealed segments have heads');
    assert.ok(provisionalCount > 0, 'and so do rows that arrive');
    await pair.close();
    await pair.open();
    for (let i = 0; i < 3; i++) await ask();
    assert.ok(pair.watched.headCount > 0, 'loaded segments have heads');
    await pair.close();
  });

  it('are not searched when the head or basis in a file was damaged', async () => {
    const directory = await makeDirectory();
    const random = createRandom(testSeed());
    const vectors = await drawVectors(random);
    const shape = { kind: 'dense', dimension: DIMENSION, metric: 'dot' } as const;
    const rows = Array.from({ length: SEGMENT_ROWS + 1 }, (_, i) => ({
      id: `v${i}`,
      values: vectors[i]!,
      metadata: '{}',
    }));
    const query = { vector: Float32Array.from(rows[7]!.values), topK: 3 };
    // The addon that maps files is built for one version of Node only.
    const mappable = typeof loadNativeFiles() !== 'string';
    const open = async (mapping: 'auto' | 'mapped' | 'memory' = 'auto') => {
      const watched = createWatchedEngine();
      const store = await openStore({ directory, mapping });
      const limits = { segmentRowsMax: SEGMENT_ROWS };
      const database = await openDatabase({ store, engine: watched, limits });
      const search = () => database.collection('c').query(query);
      const close = async () => {
        await database.close();
        await store.close();
      };
      return { database, watched, search, close };
    };
    const first = await open();
    const definition = { id: 'c', vectors: { '': shape }, description: null, labels: {} };
    await first.database.createCollection(definition);
    await first.database.collection('c').write(batchOf(rows), { mode: 'upsert' });
    await eventually('the segment has a file', () => filesIn(directory).length === 1);
    await settle();
    const expected = (await first.search()).matches;
    const { codes } = first.watched.lastBlock!;
    const [path] = filesIn(directory) as [string];
    const file = readFileSync(path);
    const arrays = [codes!.basis!, codes!.head!].map((bytes) => Buffer.from(bytes));
    await first.close();

    for (const mapping of mappable ? (['mapped', 'memory'] as const) : (['memory'] as const)) {
      const intact = await open(mapping);
      assert.deepEqual((await intact.search()).matches, expected);
      const found = intact.watched.lastBlock!.codes!;
      assert.deepEqual(
        [found.basis, found.head].map((bytes) => Buffer.from(bytes!)),
        arrays,
      );
      await intact.close();
      for (const bytes of arrays) {
        const damaged = Buffer.from(file);
        const start = file.indexOf(bytes);
        assert.ok(start > 0, 'the file holds the array');
        damaged[start + Math.floor(random() * bytes.length)]! ^= 1;
        writeFileSync(path, damaged);
        const hurt = await open(mapping);
        await assert.rejects(hurt.search(), (error: Error & { code: string }) => {
          assert.match(error.code, /^(data_corrupt|collection_unavailable)$/);
          return true;
        });
        await hurt.close();
        writeFileSync(path, file);
      }
    }
    if (!mappable) return;
    const cut = await open('mapped');
    await cut.search();
    truncateSync(path, file.indexOf(arrays[1]!) + 1);
    await assert.rejects(cut.search(), { code: 'data_corrupt', message: /was cut/ });
    await cut.close();
  });
});
