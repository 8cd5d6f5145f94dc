import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { tableFromIPC } from 'apache-arrow';
import { hasBit } from '../../src/common/bitmap.js';
import type { NamedVectors, VectorBatch } from '../../src/common/types.js';
import { createSimdEngine } from '../../src/engine/simd/simd-engine.js';
import { createInlinePool } from '../../src/platform/pool.js';
import { decodeLogRecord, encodeLogRecord } from '../../src/segment/log-record.js';
import { Segment } from '../../src/segment/segment.js';
import { decodeSegment } from '../../src/segment/segment-file.js';
import { activeOptions, batchOf, encodeSegment, Random, rowsOf, seedOf } from './sample.js';
import { checkSegmentLife } from './segment-life.js';

const NAMED = new Map([
  ['title', 3],
  ['image', 5],
]);

/** The named vectors of one row, by name. */
type Row = Readonly<Record<string, readonly number[]>>;

function randomRow(random: Random): Row {
  const row: Record<string, readonly number[]> = {};
  for (const [name, dimension] of NAMED) {
    if (random.next() < 0.4) continue;
    row[name] = Array.from({ length: dimension }, () => Math.fround(random.next() - 0.5));
  }
  return row;
}

/** Vectors that no row has are left out, as parsers do. */
function namedOf(rows: readonly Row[]): NamedVectors[] {
  return [...NAMED].flatMap(([name, dimension]) => {
    if (!rows.some((row) => name in row)) return [];
    const absent = new Array<number>(dimension).fill(0);
    const values = Float32Array.from(rows.flatMap((row) => row[name] ?? absent));
    const presence = Uint8Array.from(rows, (row) => (name in row ? 1 : 0));
    return [{ name, dimension, values, presence }];
  });
}

function batchWith(rows: readonly Row[], prefix: string): VectorBatch {
  const documents = rows.map((_, i) => ({ i }));
  return { ...batchOf(rowsOf(documents, prefix)), named: namedOf(rows) };
}

function assertNamed(segment: Segment, rows: readonly Row[]): void {
  assert.equal(segment.rowCount, rows.length);
  for (const [name, dimension] of NAMED) {
    const block = segment.namedBlock(name);
    assert.equal(
      block !== undefined,
      rows.some((row) => name in row),
    );
    if (block !== undefined) {
      assert.equal(block.dimension, dimension);
      assert.equal(block.rowCount, rows.length);
      const expected = rows.flatMap((row) => row[name] ?? new Array<number>(dimension).fill(0));
      assert.deepEqual([...block.values], expected);
    }
    const visible = { rowCount: rows.length, rows: null, visibleCount: rows.length };
    const having = segment.withNamed(name, visible);
    assert.equal(having.visibleCount, rows.filter((row) => name in row).length);
    for (const [i, row] of rows.entries()) {
      const found = segment.namedValues(i, name);
      assert.deepEqual(found && [...found], row[name]);
      assert.equal(having.rows === null || hasBit(having.rows, i), name in row, `${name} of ${i}`);
    }
  }
}

function activeSegment(number = 1): Segment {
  return Segment.createActive(activeOptions({ number }));
}

describe('named vectors of a segment', () => {
  it('are those that were appended, before and after sealing, in a file and compacted', () => {
    const kind = { activeSegment, randomRow, batchWith, assertRows: assertNamed };
    checkSegmentLife(seedOf('named vectors'), kind);
  });

  it('do not change in views that were handed out before rows were appended', () => {
    const segment = activeSegment();
    segment.append(batchWith([{ title: [1, 2, 3] }, {}], 'a'), 0, 2, 1);
    const visible = { rowCount: 2, rows: null, visibleCount: 2 };
    const before = segment.withNamed('title', visible);
    segment.append(batchWith([{ title: [4, 5, 6] }], 'b'), 0, 1, 2);
    assert.deepEqual([...before.rows!.words], [1]);
    const after = segment.withNamed('title', { rowCount: 3, rows: before.rows, visibleCount: 1 });
    assert.equal(after.visibleCount, 1);
  });

  it('count in the bytes that a segment may have, and in its memory', () => {
    const rows = [{ title: [1, 2, 3] }, { image: [1, 2, 3, 4, 5] }];
    const batch = batchWith(rows, '');
    const textBytes = batch.ids.bytes.length + batch.metadata.bytes.length;
    const bytesMax = textBytes + 2 * 4 * (2 + 3 + 5);
    const create = (bytes: number) => Segment.createActive(activeOptions({ bytesMax: bytes }));
    assert.equal(create(bytesMax).fits(batch, 0), 2);
    assert.equal(create(bytesMax - 1).fits(batch, 0), 1);
    const named = create(bytesMax);
    named.append(batch, 0, 2, 1);
    const unnamed = Segment.createActive(activeOptions({ bytesMax }));
    unnamed.append({ ...batch, named: [] }, 0, 2, 1);
    assert.ok(named.hostBytes >= unnamed.hostBytes + 2 * 4 * (3 + 5));
  });

  it('may come with rows that are staged, after others without them, or in place of these', async () => {
    const encoder = createSimdEngine({ pool: createInlinePool() }).rowEncoder;
    const random = new Random(seedOf('staged named vectors'));
    const [staged, plain] = [1, 2].map((number) =>
      Segment.createActive({ ...activeOptions({ number }), encoder }),
    );
    const model: Row[] = [];
    for (let step = 0; step < 12; step++) {
      const rows = Array.from({ length: 1 + random.below(4) }, () =>
        step < 4 ? {} : randomRow(random),
      );
      const batch = batchWith(rows, `${step}-`);
      const others = batchWith(
        rows.map(() => randomRow(random)),
        'other',
      );
      const announced = random.below(3) === 0 ? others : batch;
      await staged!.stage([{ batch: announced, from: 0, count: rows.length }], createInlinePool());
      for (const segment of [staged!, plain!]) segment.append(batch, 0, rows.length, step + 1);
      model.push(...rows);
      assertNamed(staged!, model);
    }
    for (const segment of [staged!, plain!]) segment.seal();
    const dataOf = (segment: Segment) => ({ ...segment.toData(), key: '', number: 0 });
    assert.deepEqual(dataOf(staged!), dataOf(plain!));
  });

  it('have blocks with keys of their own', () => {
    const segment = activeSegment();
    segment.append(batchWith([{ title: [1, 2, 3], image: [1, 2, 3, 4, 5] }], ''), 0, 1, 1);
    assert.equal(new Set(segment.blockKeys).size, 3);
    assert.ok(segment.blockKeys.includes(segment.namedBlock('image')!.key));
    assert.equal(segment.block().key, segment.key);
  });
});

describe('a segment without the unnamed vector', () => {
  const create = () => Segment.createActive(activeOptions({ dimension: 0 }));
  const rows: Row[] = [{ title: [1, 2, 3] }, {}, { image: [1, 2, 3, 4, 5] }];
  const withoutValues = (batch: VectorBatch) => ({ ...batch, values: new Float32Array(0) });

  it('has the named vectors of its rows, also in a file without a column of values', () => {
    const segment = create();
    segment.append(withoutValues(batchWith(rows, '')), 0, 3, 1);
    segment.seal();
    assertNamed(segment, rows);
    const { bytes } = encodeSegment(segment.toData());
    const names = tableFromIPC(bytes).schema.fields.map(({ name }) => name);
    assert.ok(names.includes('vectors.title') && !names.includes('values'), names.join());
    const stored = decodeSegment(bytes, { key: 'k', number: 1, dimension: 0 });
    assertNamed(stored, rows);
    assert.deepEqual(encodeSegment(stored.toData()).bytes, bytes);
    assert.throws(() => decodeSegment(bytes, { key: 'k', number: 1, dimension: 2 }), {
      code: 'data_corrupt',
      message: /the dimension 0, expected 2/,
    });
  });

  it('takes what a log record has', () => {
    const batch = withoutValues(batchWith(rows, ''));
    const record = decodeLogRecord(encodeLogRecord({ kind: 'write', timeMs: 5, batch }));
    assert.ok(record.kind === 'write');
    assert.equal(record.batch.values.length, 0);
    const segment = create();
    segment.append(record.batch, 0, 3, 1);
    assertNamed(segment, rows);
  });

  it('counts no values in the bytes that it may have', () => {
    const batch = withoutValues({ ...batchWith(rows, ''), named: undefined });
    const bytesMax = batch.ids.bytes.length + batch.metadata.bytes.length;
    const segment = Segment.createActive(activeOptions({ dimension: 0, bytesMax }));
    assert.equal(segment.fits(batch, 0), 3);
    segment.append(batch, 0, 3, 1);
    assert.equal(segment.dataBytes, bytesMax);
  });
});

describe('a log record', () => {
  it('has the named vectors that rows of its batch have', () => {
    const rows: Row[] = [{ title: [1, 2, 3] }, {}, { title: [4, 5, 6] }];
    const batch = batchWith(rows, '');
    const record = decodeLogRecord(encodeLogRecord({ kind: 'write', timeMs: 5, batch }));
    assert.ok(record.kind === 'write');
    assert.deepEqual(record.batch.named, namedOf(rows));
    const segment = activeSegment();
    segment.append(record.batch, 0, 3, 1);
    assertNamed(segment, rows);
  });
});
