// Compares the schema found in random metadata with brute force over the documents, with and without columns
// for all paths, and in pages.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stringifyExactJson } from '../../../src/common/exact-json.js';
import { flattenMetadata } from '../../../src/common/metadata-path.js';
import type { Json, JsonObject } from '../../../src/common/types.js';
import type { FoundPath, TypeCounts } from '../../../src/database/api/aggregate-api.js';
import type { CollectionHandle } from '../../../src/database/collection-handle.js';
import type { Database } from '../../../src/database/database.js';
import { batchOf, createRandom, openDatabase, testSeed } from '../harness.js';

// biome-ignore format: a table
const VALUES: readonly Json[] = [
  'x', 'y', 'é', 0, 1, 1.5, -3, true, false, null, {}, [], [null, 'x'], [[1], {}], [1, 1, 7, true], { c: 1 },
  2n ** 53n + 1n, [2n ** 63n + 1n, 2 ** 63], 2n ** 63n + 3n,
];

function randomDocument(random: () => number): JsonObject {
  const document: JsonObject = {};
  for (const key of ['a', 'b', 'a.c', 'b.d']) {
    if (random() < 0.6) document[key] = VALUES[Math.floor(random() * VALUES.length)]!;
  }
  return document;
}

type TypeName = keyof TypeCounts;

function typeOf(value: Json): TypeName {
  if (value === null) return 'null';
  if (typeof value === 'bigint') return 'number';
  return Array.isArray(value) ? 'array' : (typeof value as TypeName);
}

function countTypes(values: readonly Json[]): TypeCounts {
  const counts = { null: 0, boolean: 0, number: 0, string: 0, array: 0, object: 0 };
  for (const value of values) counts[typeOf(value)]++;
  return counts;
}

function expectedPaths(documents: readonly JsonObject[]): FoundPath[] {
  const valuesByPath = new Map<string, Json[]>();
  for (const document of documents) {
    const own = new Map<string, Json>();
    flattenMetadata(document, (path, value) => own.set(path, value));
    for (const [path, value] of own) {
      valuesByPath.set(path, [...(valuesByPath.get(path) ?? []), value]);
    }
  }
  return [...valuesByPath]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([path, values]) => {
      const arrays = values.filter((value) => Array.isArray(value));
      const scalars = values.flat(1).filter((value) => value !== null && typeof value !== 'object');
      const numbers = scalars
        .filter((value) => typeof value === 'number' || typeof value === 'bigint')
        .sort((a, b) => (a < b ? -1 : 1));
      return {
        path,
        count: values.length,
        types: countTypes(values),
        elementTypes: arrays.length === 0 ? undefined : countTypes(arrays.flat(1)),
        distinctCount: new Set(scalars).size,
        isDistinctExact: true,
        ...(numbers.length > 0 ? { min: numbers[0]!, max: numbers.at(-1)! } : {}),
      };
    });
}

async function fill(database: Database, texts: readonly string[]): Promise<CollectionHandle> {
  await database.createCollection({
    id: 'c',
    vectors: { '': { kind: 'dense', dimension: 1, metric: 'dot' } },
    description: null,
    labels: {},
  });
  const collection = database.collection('c');
  const vectors = texts.map((metadata, i) => ({ id: `v${i}`, values: [1], metadata }));
  for (let start = 0; start < vectors.length; start += 50) {
    await collection.write(batchOf(vectors.slice(start, start + 50)), { mode: 'insert' });
  }
  return collection;
}

test('the schema of random metadata is that of brute force, in pages of any size', async () => {
  const seed = testSeed();
  console.log(`seed ${seed}`);
  const random = createRandom(seed);
  for (const limits of [{}, { metadataColumnsMax: 2 }, { segmentRowsMax: 1_000 }]) {
    const documents = Array.from({ length: 200 }, () => randomDocument(random));
    const database = await openDatabase({ limits });
    const collection = await fill(
      database,
      documents.map((document) => stringifyExactJson(document)),
    );
    const deleted = documents.flatMap((_, i) => (random() < 0.2 ? [i] : []));
    const ids = deleted.map((i) => `v${i}`);
    await collection.delete({ kind: 'ids', ids }, { dryRun: false });
    const expected = expectedPaths(documents.filter((_, i) => !deleted.includes(i)));
    const whole = await collection.schema({});
    assert.deepEqual(whole.paths, expected);
    assert.deepEqual(
      [whole.hasMore, whole.nextAfter, whole.count],
      [false, undefined, documents.length - deleted.length],
    );
    const paths: FoundPath[] = [];
    let after: string | undefined;
    do {
      const page = await collection.schema({ limit: 2, after });
      assert.equal(page.hasMore, page.nextAfter !== undefined);
      paths.push(...page.paths);
      after = page.nextAfter;
    } while (after !== undefined);
    assert.deepEqual(paths, expected);
    const filtered = await collection.schema({ filter: { a: 'x' } });
    const matching = documents.filter((document, i) => {
      const values = [document.a].flat(1);
      return values.includes('x') && !deleted.includes(i);
    });
    assert.deepEqual(filtered.paths, expectedPaths(matching));
    await database.close();
  }
});

test('too many distinct values in a segment give a lower bound', async () => {
  const database = await openDatabase({ limits: { segmentRowsMax: 16_384 } });
  const texts = Array.from({ length: 10_500 }, (_, i) => `{"name": "n${i}", "half": ${i >> 1}}`);
  const { paths } = await (await fill(database, texts)).schema({});
  assert.deepEqual(
    paths.map(({ path, distinctCount, isDistinctExact }) => [path, distinctCount, isDistinctExact]),
    [
      ['half', 5_250, true],
      ['name', 10_500, false],
    ],
  );
  await database.close();
});
