// A small model of a database, and runs of seeded random operations with restarts, checkpoints and compactions, after
// each of which the database must agree with the model.

import assert from 'node:assert/strict';
import { field, SagittaError } from '../../src/common/errors.js';
import type { JsonObject, VectorBatch } from '../../src/common/types.js';
import { UNNAMED } from '../../src/common/vectors.js';
import type { Database } from '../../src/database/database.js';
import { columnsOf, dense } from '../vector-columns.js';
import { batchOf, createRandom, type TestClock, type TestVector } from './harness.js';
import { ModelledVectors, type ModelVectors } from './modelled-vectors.js';

const DIMENSION = 3;

interface ModelRow extends TestVector {
  readonly tag: string;
  readonly count: number;
  /** Infinity for never. */
  readonly expiresAtMs: number;
  readonly vectors: ModelVectors;
}

/** Live rows in order of arrival. */
class Model {
  readonly rows = new Map<string, ModelRow>();

  write(row: ModelRow): void {
    this.rows.delete(row.id);
    this.rows.set(row.id, row);
  }

  /** Rows without a score are not ranked. */
  nearest(score: (row: ModelRow) => number | null, k: number): string[] {
    const scored = [...this.rows.values()].flatMap((row) => {
      const found = score(row);
      return found === null ? [] : { id: row.id, score: found };
    });
    scored.sort(
      (a, b) => b.score - a.score || Buffer.compare(Buffer.from(a.id), Buffer.from(b.id)),
    );
    return scored.slice(0, k).map(({ id }) => id);
  }
}

/** The system that the operations are applied to. */
export interface ModelledSystem {
  readonly clock: TestClock;
  /** The clock of the database. */
  now(): number;
  /** The database to write to, which changes after a restart. */
  readonly database: Database;
  /** A database to read from, which contains everything that was acknowledged. */
  reader(): Promise<Database>;
  /** Stops and starts the system, which keeps everything that was acknowledged. */
  restart(): Promise<void>;
  /** Restarts without closing anything, possibly during maintenance. */
  crash(): Promise<void>;
  close(): Promise<void>;
}

/** Runs against a system without collections, and closes it. */
export async function runAgainstModel(
  system: ModelledSystem,
  { seed, stepCount }: { readonly seed: number; readonly stepCount: number },
): Promise<void> {
  const random = createRandom(seed);
  const below = (n: number) => Math.floor(random() * n);
  const { clock } = system;
  const model = new Model();
  const vectors = new ModelledVectors(below);
  const toBatch = (rows: readonly ModelRow[]): VectorBatch => {
    const columns = vectors.columnsOf(rows.map((row) => row.vectors));
    const expiresAtMs = Float64Array.from(rows, (row) => row.expiresAtMs);
    return { ...batchOf(rows, columns), expiresAtMs };
  };
  let sequence = 0;
  await system.database.createCollection({
    id: 'c',
    vectors: { '': { kind: 'dense', dimension: DIMENSION, metric: 'dot' } },
    description: null,
    labels: {},
  });
  let name = 'c';
  const setAlias = (collection: string) =>
    system.database.setAliases([{ name: 'alias', collection }], {
      authorize() {},
      locate: () => field(),
    });
  await setAlias(name);

  const randomRow = (): ModelRow => {
    const tag = ['red', 'green', 'blue'][below(3)]!;
    const count = below(20);
    return {
      id: `v${below(150)}`,
      values: Array.from({ length: DIMENSION }, () => below(7) - 3),
      metadata: JSON.stringify({ tag, nested: { count } }),
      tag,
      count,
      expiresAtMs: random() < 0.2 ? clock.nowMs + 1 + below(300_000) : Number.POSITIVE_INFINITY,
      vectors: vectors.random(),
    };
  };
  const randomFilter = (): { json: JsonObject; keep: (row: ModelRow) => boolean } => {
    const tag = ['red', 'green', 'none'][below(3)]!;
    const bound = below(20);
    return [
      { json: { tag }, keep: (row: ModelRow) => row.tag === tag },
      { json: { 'nested.count': { $gte: bound } }, keep: (row: ModelRow) => row.count >= bound },
      {
        json: { $not: { tag }, 'nested.count': { $lt: bound } },
        keep: (row: ModelRow) => row.tag !== tag && row.count < bound,
      },
    ][below(3)]!;
  };

  const operations: Record<string, () => Promise<void>> = {
    async upsert() {
      const rows = distinct(Array.from({ length: 1 + below(12) }, randomRow));
      const updated = rows.filter(({ id }) => model.rows.has(id)).length;
      const result = await system.database
        .collection(name)
        .write(toBatch(rows), { mode: 'upsert' });
      sequence++;
      assert.deepEqual(result, {
        insertedCount: rows.length - updated,
        updatedCount: updated,
        sequence,
      });
      for (const row of rows) model.write(row);
    },
    async concurrentUpserts() {
      const rows = Array.from({ length: 5 }, randomRow);
      const results = await Promise.all(
        rows.map((row) =>
          system.database.collection(name).write(toBatch([row]), { mode: 'upsert' }),
        ),
      );
      for (const [i, row] of rows.entries()) {
        assert.equal(results[i]!.updatedCount, model.rows.has(row.id) ? 1 : 0);
        assert.equal(results[i]!.sequence, ++sequence);
        model.write(row);
      }
    },
    async insert() {
      const rows = distinct([randomRow(), randomRow()]);
      const isTaken = rows.some(({ id }) => model.rows.has(id));
      const write = system.database.collection(name).write(toBatch(rows), { mode: 'insert' });
      if (isTaken) return assert.rejects(write, { code: 'vector_exists' });
      assert.equal((await write).sequence, ++sequence);
      for (const row of rows) model.write(row);
    },
    async update() {
      const row = randomRow();
      const write = system.database.collection(name).write(toBatch([row]), { mode: 'update' });
      if (!model.rows.has(row.id)) return assert.rejects(write, { code: 'vector_not_found' });
      assert.equal((await write).sequence, ++sequence);
      model.write(row);
    },
    async patch() {
      const row = randomRow();
      const old = model.rows.get(row.id);
      const expiresAtMs = random() < 0.3 ? row.expiresAtMs : undefined;
      const patch = system.database.collection(name).patch(row.id, {
        metadata: JSON.stringify({ nested: { count: row.count } }),
        vectors: new Map([[UNNAMED, Float32Array.from(row.values)]]),
        expiresAtMs,
      });
      if (old === undefined) return assert.rejects(patch, { code: 'vector_not_found' });
      assert.equal((await patch).sequence, ++sequence);
      const metadata = JSON.stringify({ tag: old.tag, nested: { count: row.count } });
      const kept = { tag: old.tag, vectors: old.vectors };
      model.write({ ...row, ...kept, metadata, expiresAtMs: expiresAtMs ?? old.expiresAtMs });
    },
    async patchMany() {
      const rows = distinct(Array.from({ length: 1 + below(6) }, randomRow)).filter(
        ({ id }) => random() < 0.1 || model.rows.has(id),
      );
      if (rows.length === 0) return;
      const changes = rows.map(() => vectors.random({ mayRemove: true }));
      const hasValues = Uint8Array.from(rows, () => below(2));
      const texts = rows.map(({ count }) => JSON.stringify({ nested: { count } }));
      const batch = batchOf(
        rows.map((row, i) => ({ ...row, values: [], metadata: texts[i]! })),
        [
          ...columnsOf(
            { [UNNAMED]: dense(DIMENSION) },
            rows.map(({ values }, i) => ({ [UNNAMED]: hasValues[i] === 1 ? values : null })),
          ),
          ...vectors.columnsOf(changes),
        ],
      );
      const write = system.database
        .collection(name)
        .write({ ...batch, removed: vectors.removedBy(changes) }, { mode: 'patch' });
      if (rows.some(({ id }) => !model.rows.has(id))) {
        return assert.rejects(write, { code: 'vector_not_found' });
      }
      const result = { insertedCount: 0, updatedCount: rows.length, sequence: ++sequence };
      assert.deepEqual(await write, result);
      for (const [i, { id, values, count }] of rows.entries()) {
        const old = model.rows.get(id)!;
        const set = { ...old.vectors, ...changes[i]! };
        model.write({
          ...old,
          count,
          values: hasValues[i] === 1 ? values : old.values,
          metadata: JSON.stringify({ tag: old.tag, nested: { count } }),
          vectors: Object.fromEntries(Object.entries(set).filter(([, vector]) => vector !== null)),
        });
      }
    },
    async changeVectors() {
      const { change, dropped } = vectors.change();
      await system.database.collection(name).update(change);
      if (dropped === null) return;
      for (const [id, row] of model.rows) {
        const { [dropped]: _, ...kept } = row.vectors;
        model.rows.set(id, { ...row, vectors: kept });
      }
    },
    async writeIfUnchanged() {
      const row = randomRow();
      const include = { values: false, metadata: false, sequence: true };
      const { vectors } = await system.database.collection(name).fetch([row.id], include);
      const found = vectors[0]?.sequence ?? 0;
      assert.equal(found > 0, model.rows.has(row.id));
      const isUnchanged = random() < 0.6;
      const ifSequences = Float64Array.of(isUnchanged ? found : found + 1);
      const batch = { ...toBatch([row]), ifSequences };
      const write = system.database.collection('alias').write(batch, { mode: 'upsert' });
      if (!isUnchanged) return assert.rejects(write, { code: 'precondition_failed' });
      assert.equal((await write).sequence, ++sequence);
      model.write(row);
    },
    async remove() {
      const ids = Array.from({ length: 1 + below(6) }, () => `v${below(150)}`);
      const found = new Set(ids.filter((id) => model.rows.has(id)));
      const result = await system.database
        .collection(name)
        .delete({ kind: 'ids', ids }, { dryRun: false });
      if (found.size > 0) sequence++;
      assert.deepEqual(result, { deletedCount: found.size, sequence });
      for (const id of found) model.rows.delete(id);
    },
    async removeMatching() {
      if (random() > 0.3) return;
      const { json, keep } = randomFilter();
      const gone = [...model.rows.values()].filter(keep);
      const selection = { kind: 'filter', filter: json } as const;
      const dry = await system.database.collection(name).delete(selection, { dryRun: true });
      assert.equal(dry.deletedCount, gone.length);
      const result = await system.database.collection(name).delete(selection, { dryRun: false });
      if (gone.length > 0) sequence++;
      assertCounts(result, { deletedCount: gone.length, sequence });
      for (const { id } of gone) model.rows.delete(id);
    },
    async updateMatching() {
      const { json, keep } = randomFilter();
      const count = below(20);
      const isPatch = random() < 0.7;
      const limit = random() < 0.5 ? 1 + below(10) : undefined;
      const changedBy = (row: ModelRow): ModelRow =>
        isPatch
          ? { ...row, count, metadata: JSON.stringify({ tag: row.tag, nested: { count } }) }
          : { ...row, tag: 'red', count: Number.NaN, metadata: '{"tag":"red"}' };
      const changed = [...model.rows.values()]
        .filter((row) => keep(row) && changedBy(row).metadata !== row.metadata)
        .map(changedBy);
      const result = await system.database.collection('alias').updateMetadata(
        { kind: 'filter', filter: json },
        {
          change: isPatch
            ? { kind: 'patch', text: JSON.stringify({ nested: { count } }) }
            : { kind: 'replace', text: '{"tag":"red"}' },
          limit,
        },
      );
      const written = changed.slice(0, limit);
      if (written.length > 0) sequence++;
      const hasMore = written.length < changed.length;
      assertCounts(result, { updatedCount: written.length, hasMore, sequence });
      for (const row of written) model.write(row);
    },
    async rename() {
      if (random() > 0.3) return;
      name = name === 'c' ? 'renamed' : 'c';
      await system.database.collection('alias').rename(name);
      assert.equal(system.database.alias('alias')?.collection, name);
    },
    async clone() {
      if (random() > 0.2) return;
      const id = `clone-${sequence}`;
      const copying = system.database.collection(name).clone({ id });
      // The clone has the rows of one moment, while the collection keeps changing.
      await operations.upsert!();
      const record = await copying;
      assert.ok(record.sequence === sequence || record.sequence === sequence - 1);
      await system.database.collection(id).delete({ kind: 'all' }, { dryRun: false });
      await system.database.collection(id).drop();
    },
    async replaceByClone() {
      if (random() > 0.2) return;
      await system.database.collection(name).clone({ id: 'next' });
      await setAlias('next');
      await system.database.collection(name).drop();
      await system.database.collection('alias').rename(name);
    },
    async removeAll() {
      if (random() > 0.1) return;
      const result = await system.database
        .collection(name)
        .delete({ kind: 'all' }, { dryRun: false });
      if (model.rows.size > 0) sequence++;
      assert.deepEqual(result, { deletedCount: model.rows.size, sequence });
      model.rows.clear();
    },
    async restart() {
      if (random() <= 0.4) await system.restart();
    },
    async crash() {
      if (random() <= 0.4) await system.crash();
    },
    async wait() {
      clock.nowMs += below(90_000);
      const gone = [...model.rows.values()].filter((row) => row.expiresAtMs <= system.now());
      await system.database.deleteExpired();
      if (gone.length > 0) sequence++;
      for (const { id } of gone) model.rows.delete(id);
    },
    async query() {
      const query = Array.from({ length: DIMENSION }, () => below(7) - 3);
      const { json, keep } = randomFilter();
      const isFiltered = random() < 0.5;
      const k = 1 + below(40);
      const reader = await system.reader();
      const reply = await reader.collection(name).query({
        vector: Float32Array.from(query),
        topK: k,
        ...(isFiltered ? { filter: json } : {}),
      });
      const dot = ({ values }: ModelRow) =>
        values.reduce((sum, value, i) => sum + value * query[i]!, 0);
      const expected = model.nearest((row) => (!isFiltered || keep(row) ? dot(row) : null), k);
      assert.deepEqual(
        reply.matches.map(({ id }) => id),
        expected,
      );
    },
    async queryNamed() {
      const query = vectors.randomQuery();
      if (query === null) return;
      const { json, keep } = randomFilter();
      const isFiltered = random() < 0.5;
      const topK = 1 + below(40);
      const filter = isFiltered ? { filter: json } : {};
      const reader = await system.reader();
      const reply = await reader
        .collection(name)
        .query({ ...query.request, topK, includeValues: true, ...filter });
      const expected = model.nearest(
        (row) => (!isFiltered || keep(row) ? query.score(row.vectors) : null),
        topK,
      );
      assert.deepEqual(
        reply.matches.map(({ id }) => id),
        expected,
      );
      for (const match of reply.matches) {
        vectors.assertSame(match, model.rows.get(match.id)!.vectors);
      }
    },
    async list() {
      const { json, keep } = randomFilter();
      const isFiltered = random() < 0.5;
      const expected = [...model.rows.values()].filter(isFiltered ? keep : () => true);
      const listed: string[] = [];
      let cursor: string | undefined;
      let reader: Database;
      do {
        reader = await system.reader();
        const page = await reader.collection(name).list({
          limit: 1 + below(30),
          cursor,
          includeValues: true,
          ...(isFiltered && cursor === undefined ? { filter: json } : {}),
        });
        for (const record of page.vectors) {
          const { id, metadata } = record;
          listed.push(id);
          assert.equal(metadata, model.rows.get(id)?.metadata);
          vectors.assertSame(record, model.rows.get(id)!.vectors);
        }
        cursor = page.nextCursor;
        assert.equal(page.hasMore, cursor !== undefined);
      } while (cursor !== undefined);
      assert.deepEqual(
        listed,
        expected.map(({ id }) => id),
      );
      assert.equal(
        await reader.collection(name).count(isFiltered ? json : undefined),
        expected.length,
      );
    },
    async get() {
      const row = randomRow();
      const old = model.rows.get(row.id);
      const reader = await system.reader();
      const { vectors, notFound } = await reader.collection(name).fetch([row.id], {
        values: true,
        metadata: true,
        expiry: true,
      });
      const found = vectors.map(({ id, values, metadata, expiresAt }) => ({
        id,
        values: [...values!],
        metadata,
        expiresAtMs: expiresAt === undefined ? Number.POSITIVE_INFINITY : Date.parse(expiresAt),
      }));
      const expected = old && {
        id: old.id,
        values: [...old.values],
        metadata: old.metadata,
        expiresAtMs: old.expiresAtMs,
      };
      assert.deepEqual(found, expected === undefined ? [] : [expected]);
      assert.deepEqual(notFound, old === undefined ? [row.id] : []);
    },
  };
  const names = Object.keys(operations);
  for (let step = 0; step < stepCount; step++) {
    const operation = names[below(names.length)]!;
    try {
      await operations[operation]!();
      const reader = await system.reader();
      const record = reader.collection(random() < 0.5 ? name : 'alias').record();
      assert.equal(record.vectorCount, model.rows.size);
      assert.equal(record.sequence, sequence);
      assert.equal(record.status, 'ready');
    } catch (error) {
      const cause = error instanceof SagittaError ? `${error.code}: ${error.message}` : '';
      throw new Error(`seed ${seed}, step ${step}, operation ${operation} ${cause}`, {
        cause: error,
      });
    }
  }
  await system.close();
}

function distinct(rows: readonly ModelRow[]): ModelRow[] {
  return [...new Map(rows.map((row) => [row.id, row])).values()];
}

/** Warnings name the paths of a filter that no row has. */
function assertCounts<Counts extends object>(
  { warnings: _, ...found }: Counts & { readonly warnings?: unknown },
  expected: Counts,
): void {
  assert.deepEqual(found, expected);
}
