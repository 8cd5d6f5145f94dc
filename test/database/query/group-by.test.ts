// Compares grouped queries with groups of the whole ranking, for random values, filters, page sizes and segments, with
// values that most of the best matches share.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { SagittaError } from '../../../src/common/errors.js';
import { parseExactJson, stringifyExactJson } from '../../../src/common/exact-json.js';
import { resolvePath } from '../../../src/common/metadata-path.js';
import type { Json, JsonNumber, JsonObject } from '../../../src/common/types.js';
import type { QueryReply, QueryRequest } from '../../../src/database/api/query-api.js';
import type { CollectionHandle } from '../../../src/database/collection-handle.js';
import type { Database } from '../../../src/database/database.js';
import { IS_NIGHTLY } from '../../support/nightly.js';
import { batchOf, createRandom, openDatabase, testSeed } from '../harness.js';
import { createRecorder } from '../recorder.js';

const PATH = 'group.name';
const COUNT = 500;
const DIMENSION = 3;

type Random = () => number;

/** Few values for most vectors and many for the others, including arrays and no values. */
function randomValue(random: Random): Json | undefined {
  const kind = random();
  if (kind < 0.1) return undefined;
  if (kind < 0.15) return [null, {}, [1], []][Math.floor(random() * 4)]!;
  if (kind < 0.55) return Math.floor(random() * 3);
  if (kind < 0.75) return `v${Math.floor(random() ** 3 * 100)}`;
  if (kind < 0.78) return random() < 0.5;
  // Four integers that share two float64 values.
  if (kind < 0.8) return 2n ** 60n + BigInt(Math.floor(random() * 4)) * 100n;
  const elements = Array.from({ length: Math.floor(random() * 4) }, () =>
    random() < 0.5 ? Math.floor(random() * 5) : `v${Math.floor(random() * 10)}`,
  );
  return [...elements, null];
}

function randomVectors(random: Random, count: number) {
  return Array.from({ length: count }, (_, i) => {
    const name = randomValue(random);
    const group: JsonObject = name === undefined ? {} : { name };
    // Vectors with the value 0 are the best matches, so that their group fills the first searches.
    const isZero = name === 0;
    const values = Array.from({ length: DIMENSION }, () => random() - 0.5 + (isZero ? 2 : 0));
    const metadata = stringifyExactJson({ group, n: i % 10 });
    return { id: `v${i}`, values: values.map((x) => Math.round(x * 8) / 8), metadata };
  });
}

async function fill(database: Database, random: Random): Promise<CollectionHandle> {
  await database.createCollection({
    id: 'c',
    vectors: { '': { kind: 'dense', dimension: DIMENSION, metric: 'dot' } },
    description: null,
    labels: {},
  });
  const collection = database.collection('c');
  const vectors = randomVectors(random, COUNT);
  for (let start = 0; start < COUNT; start += 100) {
    await collection.write(batchOf(vectors.slice(start, start + 100)), { mode: 'insert' });
  }
  await collection.delete({ kind: 'ids', ids: ['v3', 'v77', 'v401'] }, { dryRun: false });
  return collection;
}

interface Row {
  readonly group: Json | undefined;
  readonly id: string;
  readonly score: number;
}

const rowsOf = ({ matches }: QueryReply): Row[] =>
  matches.map(({ group, id, score }) => ({ group, id, score }));

const rankOf = (value: unknown) =>
  ['number', 'string', 'boolean'].indexOf(typeof value === 'bigint' ? 'number' : typeof value);

/** In the order of values. */
function distinctValues(value: Json | undefined): (string | JsonNumber | boolean)[] {
  const values = Array.isArray(value) ? value : [value];
  const scalars = values.filter(
    (one) => one !== undefined && one !== null && typeof one !== 'object',
  );
  return [...new Set(scalars)].sort(
    (a, b) =>
      rankOf(a) - rankOf(b) ||
      (typeof a === 'string'
        ? Buffer.compare(Buffer.from(a), Buffer.from(String(b)))
        : a < b
          ? -1
          : Number(a > b)),
  );
}

/** The groups of the whole ranking with their first matches. */
async function allGroups(
  collection: CollectionHandle,
  request: QueryRequest,
  size: number,
): Promise<Row[][]> {
  const ranked = await collection.query({ ...request, limit: 1_000, includeMetadata: true });
  assert.equal(ranked.hasMore, false);
  const groups = new Map<Json, Row[]>();
  for (const { id, score, metadata } of ranked.matches) {
    for (const group of distinctValues(
      resolvePath(parseExactJson(metadata!) as JsonObject, PATH),
    )) {
      const rows = groups.get(group) ?? [];
      groups.set(group, rows);
      if (rows.length < size) rows.push({ group, id, score });
    }
  }
  return [...groups.values()];
}

describe('a grouped query', () => {
  it('gives the best matches of the best groups, for any size, filter and page', async () => {
    const seed = testSeed();
    console.log(`seed ${seed}`);
    const random = createRandom(seed);
    for (const limits of [{}, { metadataColumnsMax: 1 }, { segmentRowsMax: 1_000 }]) {
      const database = await openDatabase({ limits });
      const collection = await fill(database, random);
      for (let round = 0; round < (IS_NIGHTLY ? 25 : 8); round++) {
        const size = 1 + Math.floor(random() * 5);
        const topK = 1 + Math.floor(random() * 30);
        const request: QueryRequest = {
          ...(random() < 0.3
            ? { id: `v${100 + Math.floor(random() * 100)}` }
            : { vector: Float32Array.from({ length: DIMENSION }, () => random() - 0.2) }),
          ...(random() < 0.4 ? { filter: { n: { $lt: 1 + Math.floor(random() * 9) } } } : {}),
          ...(random() < 0.3 ? { scoreThreshold: random() - 0.5 } : {}),
        };
        const expected = (await allGroups(collection, request, size)).slice(0, topK);
        const grouped = { ...request, topK, groupBy: PATH, groupSize: size };
        const whole = await collection.query(grouped);
        assert.deepEqual(rowsOf(whole), expected.flat());
        assert.equal(whole.hasMore, false);
        const offset = Math.floor(random() * topK);
        const part = await collection.query({ ...grouped, offset, limit: 2 });
        assert.deepEqual(rowsOf(part), expected.slice(offset, offset + 2).flat());
        assert.equal(part.hasMore, expected.length > offset + 2);
      }
      await database.close();
    }
  });

  it('gives the same groups in pages, while writes go on', async () => {
    const random = createRandom(7);
    const database = await openDatabase({});
    const collection = await fill(database, random);
    const request: QueryRequest = { vector: Float32Array.of(1, 0.5, 0.25) };
    const expected = await allGroups(collection, request, 3);
    let page = await collection.query({ ...request, groupBy: PATH, groupSize: 3, limit: 7 });
    const rows = rowsOf(page);
    let pageCount = 1;
    while (page.nextCursor !== undefined) {
      await collection.write(batchOf(randomVectors(random, 60)), { mode: 'upsert' });
      page = await collection.query({ cursor: page.nextCursor });
      rows.push(...rowsOf(page));
      pageCount++;
    }
    assert.deepEqual(rows, expected.flat());
    assert.equal(pageCount, Math.ceil(expected.length / 7));
    await database.close();
  });

  it('is answered in batches together with other queries', async () => {
    const database = await openDatabase({});
    const collection = await fill(database, createRandom(8));
    const vector = Float32Array.of(0, 1, 0);
    const plain = { vector, topK: 4 };
    const grouped = { vector, topK: 4, groupBy: PATH };
    const session = await collection.openQuerySession();
    const [group] = session.prepare([plain, grouped, grouped]);
    const replies = await group!.answer();
    session.close();
    assert.deepEqual(replies.map(rowsOf), [
      rowsOf(await collection.query(plain)),
      rowsOf(await collection.query(grouped)),
      rowsOf(await collection.query(grouped)),
    ]);
    await database.close();
  });

  it('searches at most once more for each group, though few groups have the best matches', async () => {
    const observer = createRecorder();
    const database = await openDatabase({ observer });
    await database.createCollection({
      id: 'c',
      vectors: { '': { kind: 'dense', dimension: 1, metric: 'dot' } },
      description: null,
      labels: {},
    });
    const collection = database.collection('c');
    // Ten blocks of 100 vectors with the same value, the best of which come first.
    const vectors = Array.from({ length: 1_000 }, (_, i) => ({
      id: `v${i}`,
      values: [1_000 - i],
      metadata: JSON.stringify({ block: `b${Math.floor(i / 100)}` }),
    }));
    await collection.write(batchOf(vectors), { mode: 'insert' });
    const reply = await collection.query({
      vector: Float32Array.of(1),
      topK: 10,
      groupBy: 'block',
      groupSize: 2,
    });
    assert.deepEqual(
      reply.matches.map(({ id }) => id),
      Array.from({ length: 10 }, (_, i) => [`v${i * 100}`, `v${i * 100 + 1}`]).flat(),
    );
    // All searches except the first skip full groups.
    const { length } = observer.of('sagitta_engine_batch_queries');
    assert.ok(length > 1 && length <= 11, `${length} searches`);
    await database.close();
  });

  it('rejects options that exclude each other', async () => {
    const database = await openDatabase({});
    const collection = await fill(database, createRandom(9));
    const vector = Float32Array.of(1, 1, 1);
    const expectIssue = (request: QueryRequest, code: string, name: string) =>
      assert.rejects(collection.query(request), (error: SagittaError) => {
        assert.equal(error.code, code);
        assert.deepEqual(error.issues[0]!.location, { kind: 'field', path: [name] });
        return true;
      });
    const sort = [{ field: 'n', order: 'asc' as const }];
    await expectIssue({ vector, groupBy: 'n', topK: 5, sort }, 'invalid_request', 'group_by');
    await expectIssue({ vector, groupSize: 2 }, 'invalid_request', 'group_size');
    await expectIssue({ vector, groupBy: 'n', topK: 10_001 }, 'limit_exceeded', 'top_k');
    await expectIssue(
      { vector, groupBy: 'n', topK: 101, groupSize: 100 },
      'limit_exceeded',
      'group_size',
    );
    const page = await collection.query({ vector, groupBy: 'n', groupSize: 100, limit: 1 });
    const { nextCursor: cursor } = page;
    await expectIssue({ cursor, limit: 101 }, 'limit_exceeded', 'group_size');
    await expectIssue({ cursor, groupBy: 'm' }, 'cursor_mismatch', 'group_by');
    await expectIssue({ cursor, groupSize: 3 }, 'cursor_mismatch', 'group_size');
    const next = await collection.query({ cursor, groupBy: 'n', groupSize: 100 });
    assert.equal(next.matches.length > 0, true);
    await database.close();
  });
});
