// A real server process that is told to stop at random moments of its start, while it reads its journal or replays a
// long log of single writes. It ends by itself, and the store has every row afterwards.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { DEFAULT_LIMITS } from '../../src/common/limits.js';
import { silentLogger } from '../../src/common/logger.js';
import { Database } from '../../src/database/database.js';
import { createReferenceEngine } from '../../src/engine/core/reference-engine.js';
import { createInlinePool } from '../../src/platform/pool.js';
import { openStore } from '../../src/storage/open-store.js';
import { makeFolder, start } from '../cli/command.js';
import { serverVariables } from '../cli/serve-settings.js';
import { batchOf, createRandom, testSeed } from '../database/harness.js';
import { IS_NIGHTLY } from '../support/nightly.js';

const ROUNDS = IS_NIGHTLY ? 40 : 6;
const ROWS = 4_000;
/** Writes in one commit. */
const GROUP = 20;
const DIMENSION = 8;

/** Opens the store in this process, and closes it without a checkpoint. */
async function withDatabase<Result>(
  directory: string,
  use: (database: Database) => Promise<Result>,
): Promise<Result> {
  const store = await openStore({ directory });
  const pool = createInlinePool();
  try {
    const database = await Database.open({
      store,
      engine: createReferenceEngine({ pool }),
      engineReason: 'test',
      pool,
      limits: DEFAULT_LIMITS,
      clock: Date,
      logger: silentLogger,
    });
    await database.loaded;
    return await use(database);
  } finally {
    await store.close();
  }
}

async function writeRows(database: Database): Promise<void> {
  const shape = { kind: 'dense', dimension: DIMENSION, metric: 'dot' } as const;
  await database.createCollection({
    id: 'c',
    vectors: { '': shape },
    description: null,
    labels: {},
  });
  const collection = database.collection('c');
  for (let first = 0; first < ROWS; first += GROUP) {
    await Promise.all(
      Array.from({ length: GROUP }, (_, i) => {
        const values = Array.from({ length: DIMENSION }, (_, d) => first + i + d / 8);
        const row = { id: `r${first + i}`, values, metadata: `{"i":${first + i}}` };
        return collection.write(batchOf([row]), { mode: 'upsert' });
      }),
    );
  }
}

const digest = (directory: string) =>
  withDatabase(directory, async (database) => {
    assert.equal(await database.collection('c').count(), ROWS);
    return database.collection('c').digest({});
  });

it(`a server stops at a signal during its start and leaves the store intact (${ROUNDS} rounds)`, async (t) => {
  const seed = testSeed();
  t.diagnostic(`seed ${seed}`);
  const random = createRandom(seed);
  const folder = await makeFolder();
  try {
    await withDatabase(folder.path, writeRows);
    const before = await digest(folder.path);
    const stages: Record<string, number> = {};
    for (let round = 0; round < ROUNDS; round++) {
      const env = serverVariables(folder.path, { SAGITTA_LOG_LEVEL: 'debug' });
      const server = start(['serve'], { env });
      const moment = [/the cuda engine|engine chosen/, /engine chosen/, /listening/][round % 3]!;
      await server.waitForStderr(moment);
      await sleep(random() * 100);
      server.signal(round % 2 === 0 ? 'SIGTERM' : 'SIGINT');
      const { code, signal, stderr } = await server.ended;
      assert.deepEqual([code, signal], [0, null], stderr);
      assert.doesNotMatch(stderr, /"level":[56]0/);
      assert.match(stderr, /"msg":"stopped( during the start)?"/);
      const stage = stderr.includes('"collection loaded"') ? 'loaded' : 'earlier';
      stages[stage] = (stages[stage] ?? 0) + 1;
    }
    t.diagnostic(JSON.stringify(stages));
    assert.deepEqual(await digest(folder.path), before);
  } finally {
    await folder.remove();
  }
});
