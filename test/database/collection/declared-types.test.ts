// Declared types of metadata: which values fit, and the order of writes and changes of the schema.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { DECLARED_TYPES, type DeclaredTypes } from '../../../src/common/types.js';
import { findTypeViolation } from '../../../src/database/collection/declared-types.js';
import type { Database } from '../../../src/database/database.js';
import { createMemoryState } from '../../../src/storage/memory-store.js';
import { batchOf, openDatabase } from '../harness.js';

const shape = {
  vectors: { '': { kind: 'dense', dimension: 1, metric: 'dot' } },
  description: null,
  labels: {},
} as const;

const write = (database: Database, id: string, metadata: object) =>
  database
    .collection('c')
    .write(batchOf([{ id, values: [1], metadata: JSON.stringify(metadata) }]), { mode: 'upsert' });

const MISFIT = { code: 'invalid_metadata' };

describe('declared types', () => {
  it('define for each type which values fit', () => {
    const values: Readonly<Record<string, unknown>> = {
      text: 'x',
      date: '2026-01-31',
      time: '2026-01-31T09:30:00+01:00',
      half: 1.5,
      whole: 3,
      yes: true,
      object: { x: 1 },
      none: [],
      texts: ['x', 'y'],
      dates: ['2026-01-31'],
      halves: [1.5, 2],
      wholes: [1, 2],
      flags: [true],
      mixed: ['x', 1],
      holes: [null],
    };
    const fitting: Readonly<Record<string, readonly string[]>> = {
      string: ['text', 'date', 'time'],
      number: ['half', 'whole'],
      integer: ['whole'],
      boolean: ['yes'],
      date: ['date', 'time'],
      object: ['object'],
      'string[]': ['none', 'texts', 'dates'],
      'number[]': ['none', 'halves', 'wholes'],
      'integer[]': ['none', 'wholes'],
      'boolean[]': ['none', 'flags'],
      'date[]': ['none', 'dates'],
    };
    for (const type of DECLARED_TYPES) {
      const found = Object.entries(values).filter(
        ([, value]) => findTypeViolation({ x: type }, JSON.stringify({ x: value })) === null,
      );
      assert.deepEqual(
        found.map(([name]) => name),
        fitting[type],
        type,
      );
      for (const metadata of ['{}', '{"x":null}', '{"y":{"x":[]}}']) {
        assert.equal(findTypeViolation({ x: type }, metadata), null, type);
      }
    }
  });

  it('follow paths as filters do', () => {
    const types: DeclaredTypes = { 'a.b': 'string' };
    const membersOf = (metadata: object) =>
      findTypeViolation(types, JSON.stringify(metadata))?.members;
    assert.deepEqual(membersOf({ a: { b: 1 } }), ['a', 'b']);
    assert.deepEqual(membersOf({ 'a.b': 1, a: { b: 'x' } }), ['a.b']);
    assert.equal(membersOf({ 'a.b': 'x', a: { b: 1 } }), undefined);
    assert.equal(membersOf({ a: 1 }), undefined);
  });

  it('hold for writes, patches and updates, also after a restart', async () => {
    const state = createMemoryState();
    let database = await openDatabase({ state });
    await database.createCollection({ id: 'c', ...shape, schema: { year: 'integer' } });
    await write(database, 'a', { year: 2024, other: [] });
    await database.close();
    database = await openDatabase({ state });
    const collection = database.collection('c');
    assert.deepEqual(collection.record().schema, { year: 'integer' });
    await assert.rejects(write(database, 'b', { year: 'late' }), MISFIT);
    await assert.rejects(collection.patch('a', { metadata: '{"year":1.5}' }), MISFIT);
    for (const kind of ['patch', 'replace'] as const) {
      const change = { kind, text: '{"year":"x"}' };
      await assert.rejects(collection.updateMetadata({ kind: 'all' }, { change }), MISFIT);
    }
    assert.equal(collection.record().sequence, 1);
    await database.close();
  });

  it('are changed only to what every vector fits', async () => {
    const database = await openDatabase({});
    await database.createCollection({ id: 'c', ...shape });
    await write(database, 'a', { year: '2024' });
    const collection = database.collection('c');
    await assert.rejects(collection.update({ schema: { year: 'integer' } }), /"a".*a string/);
    assert.equal(collection.record().schema, undefined);
    await write(database, 'b', { year: 'x' });
    await write(database, 'a', { year: 2024 });
    await collection.deleteVector('b');
    await collection.update({ schema: { year: 'integer' } });
    await assert.rejects(write(database, 'b', { year: '2024' }), MISFIT);
    await collection.update({ description: 'unchanged schema' });
    await assert.rejects(write(database, 'b', { year: '2024' }), MISFIT);
    await collection.update({ schema: null });
    await write(database, 'b', { year: '2024' });
    await database.close();
  });

  it('apply to all writes after their change', async () => {
    const database = await openDatabase({});
    await database.createCollection({ id: 'c', ...shape });
    const results = await Promise.allSettled([
      write(database, 'a', { x: 1 }),
      database.collection('c').update({ schema: { x: 'string' } }),
      write(database, 'b', { x: 1 }),
    ]);
    assert.deepEqual(
      results.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled'],
    );
    await database.collection('c').delete({ kind: 'all' }, { dryRun: false });
    const changing = database.collection('c').update({ schema: { x: 'string' } });
    const late = changing.then(() => write(database, 'b', { x: 1 }));
    await assert.rejects(late, MISFIT);
    assert.equal(await database.collection('c').count(), 0);
    await database.close();
  });
});
