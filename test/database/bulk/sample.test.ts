// The rows in samples of exports and joins depend only on the ids and the seed.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JsonObject } from '../../../src/common/types.js';
import type { JoinRequest } from '../../../src/database/bulk/join.js';
import type { SampleRequest } from '../../../src/database/bulk/sample.js';
import type { Database } from '../../../src/database/database.js';
import { batchOf, openDatabase, type TestVector } from '../harness.js';

const ROWS: readonly TestVector[] = Array.from({ length: 300 }, (_, i) => ({
  id: `row-${i}`,
  values: [i + 1, 1],
  metadata: `{"n":${i % 3}}`,
}));

async function openWith(rows: readonly TestVector[]): Promise<Database> {
  const database = await openDatabase({});
  const shape = {
    vectors: { '': { kind: 'dense', dimension: 2, metric: 'dot' } },
    description: null,
    labels: {},
  } as const;
  await database.createCollection({ id: 'c', ...shape });
  await database.collection('c').write(batchOf(rows), { mode: 'upsert' });
  return database;
}

async function sampled(
  database: Database,
  sample: SampleRequest,
  filter?: JsonObject,
): Promise<string[]> {
  const request = { sample, filter, includeValues: false, includeMetadata: false };
  const scan = await database.collection('c').scan(request);
  const found = [...scan.chunks()].flatMap(({ count, ids: { offsets, bytes } }) =>
    Array.from({ length: count }, (_, i) =>
      Buffer.from(bytes.subarray(offsets[i]!, offsets[i + 1]!)).toString(),
    ),
  );
  assert.equal(found.length, scan.rowCount);
  return found;
}

const numberOf = (id: string) => Number(id.slice(4));

describe('a sample of an export', () => {
  it('has exactly the requested number of rows that pass the filter, in insertion order', async () => {
    const database = await openWith(ROWS);
    for (const count of [1, 2, 64, 99, 100, 101, 5_000]) {
      const found = await sampled(database, { count, seed: 7 }, { n: 1 });
      assert.equal(new Set(found).size, Math.min(count, 100));
      assert.ok(found.every((id) => numberOf(id) % 3 === 1));
      assert.deepEqual(
        found,
        found.toSorted((a, b) => numberOf(a) - numberOf(b)),
      );
    }
    await database.close();
  });

  it('is the same whatever the order of the rows, and part of a larger one', async () => {
    const [one, other] = await Promise.all([openWith(ROWS), openWith(ROWS.toReversed())]);
    const small = await sampled(one, { count: 40, seed: 0 });
    const again = await sampled(other, { count: 40, seed: 0 });
    assert.deepEqual(again.toSorted(), small.toSorted());
    const large = new Set(await sampled(one, { count: 41, seed: 0 }));
    assert.ok(small.every((id) => large.has(id)));
    await Promise.all([one.close(), other.close()]);
  });

  it('replaces only a row that is deleted', async () => {
    const database = await openWith(ROWS);
    const sample = { count: 50, seed: 3 };
    const before = await sampled(database, sample);
    const outside = ROWS.find(({ id }) => !before.includes(id))!.id;
    await database.collection('c').deleteVector(outside);
    assert.deepEqual(await sampled(database, sample), before);
    await database.collection('c').deleteVector(before[10]!);
    const after = await sampled(database, sample);
    assert.equal(after.length, 50);
    assert.equal(before.filter((id) => !after.includes(id)).length, 1);
    await database.close();
  });

  it('chooses every row about equally often over the seeds', async () => {
    const database = await openWith(ROWS);
    const chosen = new Map(ROWS.map(({ id }) => [id, 0]));
    for (let seed = 0; seed < 300; seed++) {
      const found = await sampled(database, { count: 100, seed });
      for (const id of found) chosen.set(id, chosen.get(id)! + 1);
    }
    // Binomial with mean 100 and standard deviation 8.2; the seeds are fixed.
    for (const [id, count] of chosen) assert.ok(count > 60 && count < 140, `${id}: ${count}`);
    await database.close();
  });
});

describe('a join of a sample', () => {
  const sample = { count: 20, seed: 1 };
  async function joined(database: Database, request: JoinRequest): Promise<[string, string[]][]> {
    const join = await database.collection('c').join({ topK: 1_000, ...request });
    const rows: [string, string[]][] = [];
    for await (const chunk of join.chunks()) {
      const text = ({ offsets, bytes }: typeof chunk.ids, i: number) =>
        Buffer.from(bytes.subarray(offsets[i]!, offsets[i + 1]!)).toString();
      for (let row = 0; row < chunk.rowCount; row++) {
        const matches: string[] = [];
        for (let i = chunk.offsets[row]!; i < chunk.offsets[row + 1]!; i++) {
          matches.push(text(chunk.matchIds, i));
        }
        rows.push([text(chunk.ids, row), matches]);
      }
    }
    return rows;
  }

  it('searches all rows, unless they are sampled, too', async () => {
    const database = await openWith(ROWS);
    await database.collection('c').clone({ id: 'other' });
    const ids = await sampled(database, sample);
    const fewer = await sampled(database, { count: 7, seed: 1 });
    const all = ROWS.map(({ id }) => id);
    for (const other of [undefined, 'c', 'other']) {
      for (const [request, queries, searched] of [
        [{ sample }, ids, all],
        [{ sample, withSample: sample }, ids, ids],
        [{ withSample: { count: 7, seed: 1 } }, all, fewer],
      ] as const) {
        const rows = await joined(database, { with: other, ...request });
        assert.deepEqual(
          rows.map(([id]) => id),
          queries,
        );
        for (const [id, matches] of rows) {
          const expected = searched.filter((found) => other === 'other' || found !== id);
          assert.deepEqual(matches.toSorted(), expected.toSorted());
        }
      }
    }
    await database.close();
  });
});
