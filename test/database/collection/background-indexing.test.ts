// Indexes of text and sparse vectors that are built in the background: a later query builds nothing, and queries that
// come earlier find the same rows.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { DEFAULT_LIMITS } from '../../../src/common/limits.js';
import { silentLogger } from '../../../src/common/logger.js';
import type { QueryRequest } from '../../../src/database/api/query-api.js';
import { Database } from '../../../src/database/database.js';
import { createReferenceEngine } from '../../../src/engine/core/reference-engine.js';
import { createInlinePool, type WorkerPool } from '../../../src/platform/pool.js';
import {
  createMemoryState,
  createMemoryStore,
  type MemoryState,
} from '../../../src/storage/memory-store.js';
import { eventually } from '../../support/waiting.js';
import { columnsOf, sparse } from '../../vector-columns.js';
import { batchOf, createRandom, createTestClock, testSeed } from '../harness.js';

const SHAPES = { s: { ...sparse, metric: 'dot' } } as const;
const TEXT = { fields: ['text'], language: 'english', stopWords: [], k1: 1.2, b: 0.75 } as const;
const WORDS = [
  'river',
  'running',
  'stones',
  'of',
  'the',
  'old',
  'bridges',
  'Ärger',
  '1,000',
  'o’er',
];

/** A database whose pool records the names of its tasks. */
async function openWith(state: MemoryState): Promise<{ database: Database; tasks: string[] }> {
  const tasks: string[] = [];
  const inline = createInlinePool();
  const pool: WorkerPool = {
    ...inline,
    run(task, input, options) {
      tasks.push(task.name);
      return inline.run(task, input, options);
    },
  };
  const database = await Database.open({
    store: createMemoryStore({ state }),
    engine: createReferenceEngine({ pool }),
    engineReason: 'test',
    pool,
    limits: { ...DEFAULT_LIMITS, segmentRowsMax: 200 },
    clock: createTestClock(),
    logger: silentLogger,
  });
  await database.loaded;
  return { database, tasks };
}

const indexedBytes = (database: Database) => database.collection('c').record().memory!.hostBytes;
const isIndexing = (name: string) => /^(text|sparse)\.(build|merge)/.test(name);

it('a query after a pause builds no index, before and after a start', async (t) => {
  const seed = testSeed();
  t.diagnostic(`seed ${seed}`);
  const random = createRandom(seed);
  const below = (count: number) => Math.floor(random() * count);
  const text = () => Array.from({ length: 30 }, () => WORDS[below(WORDS.length)]).join(' ');
  const state = createMemoryState();
  const { database, tasks } = await openWith(state);
  await database.createCollection({
    ...{ id: 'c', vectors: SHAPES, description: null, labels: {}, text: TEXT },
  });
  const collection = database.collection('c');
  let written = 0;
  const write = (count: number) => {
    const rows = Array.from({ length: count }, () => {
      return { id: `r${written++}`, values: [], metadata: JSON.stringify({ text: text() }) };
    });
    const vectors = rows.map(() => ({
      s: new Map(Array.from({ length: 9 }, (_, i) => [9 * i + below(9), 1 + below(3)])),
    }));
    return collection.write(batchOf(rows, columnsOf(SHAPES, vectors)), { mode: 'upsert' });
  };
  const requests: QueryRequest[] = [
    { text: { query: 'old bridges run', match: 'any' }, limit: 20 },
    {
      sparse: { indices: Uint32Array.of(3, 40), values: Float32Array.of(1, 2) },
      using: 's',
      limit: 20,
    },
  ];
  const answers = async (of: Database) => {
    const replies = await Promise.all(requests.map((request) => of.collection('c').query(request)));
    return replies.map(({ matches }) => matches.map(({ id, score }) => [id, score]));
  };
  /** Waits until nothing more is indexed. */
  const settled = async (of: Database) => {
    let bytes = -1;
    let sameCount = 0;
    await eventually('the rows are indexed', () => {
      const found = indexedBytes(of);
      sameCount = found === bytes ? sameCount + 1 : 0;
      bytes = found;
      return sameCount > 30;
    });
  };
  for (const count of [500, 1, 250]) {
    await write(count);
    const early = await answers(database);
    await write(1);
    await collection.deleteVector(`r${written - 1}`);
    await settled(database);
    tasks.length = 0;
    const late = await answers(database);
    assert.deepEqual(tasks.filter(isIndexing), []);
    assert.deepEqual(late[0], early[0]);
    assert.deepEqual(late[1], early[1]);
  }
  const expected = await answers(database);
  await database.close();
  const again = await openWith(state);
  await settled(again.database);
  assert.ok(again.tasks.filter(isIndexing).length > 0);
  again.tasks.length = 0;
  assert.deepEqual(await answers(again.database), expected);
  assert.deepEqual(again.tasks.filter(isIndexing), []);
  await again.database.close();
});
