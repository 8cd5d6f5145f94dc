import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { hasBit } from '../../src/common/bitmap.js';
import type { JsonObject } from '../../src/common/types.js';
import { rowsOfColumn, UNNAMED } from '../../src/common/vectors.js';
import { createInlinePool } from '../../src/platform/pool.js';
import { Segment } from '../../src/segment/segment.js';
import { IS_NIGHTLY } from '../support/nightly.js';
import {
  activeOptions,
  assertColumnsEqual,
  batchOf,
  contentOf,
  Random,
  randomDocument,
  rowsOf,
  type SampleRow,
  seedOf,
  valuesAt,
} from './sample.js';

interface ModelRow extends SampleRow {
  readonly inserted: number;
  deleted: number;
}

/** Compares all results of the segment at every sequence with those of a plain list of rows. */
function assertEqualsModel(segment: Segment, model: readonly ModelRow[], lastSequence: number) {
  assert.equal(segment.rowCount, model.length);
  assert.equal(segment.liveCount, model.filter(({ deleted }) => deleted === Infinity).length);
  assert.deepEqual(
    contentOf(segment),
    model.map(({ id, values, metadata, inserted, deleted }) => ({
      id,
      values,
      metadata,
      insertedSequence: inserted,
      deletedSequence: deleted,
    })),
  );
  for (let sequence = 0; sequence <= lastSequence + 1; sequence++) {
    const rowCount = model.filter(({ inserted }) => inserted <= sequence).length;
    const visible = model.map((row) => row.inserted <= sequence && sequence < row.deleted);
    const found = segment.visibleAt(sequence);
    assert.equal(segment.rowCountAt(sequence), rowCount);
    assert.equal(found.rowCount, rowCount);
    assert.equal(found.visibleCount, visible.filter(Boolean).length, `at ${sequence}`);
    assert.equal(found.rows?.length ?? rowCount, rowCount);
    for (let row = 0; row < rowCount; row++) {
      const isVisible = found.rows === null || hasBit(found.rows, row);
      assert.equal(isVisible, visible[row], `row ${row} at ${sequence}`);
    }
    const ended = model.filter(({ deleted }) => deleted <= sequence);
    assert.equal(segment.deletedCountAt(sequence), ended.length);
    const between = segment.deletionsBetween(sequence - 3, sequence);
    assert.deepEqual(
      [...between.rows].map((row, i) => [row, between.sequences[i]]),
      [...model.entries()]
        .filter(([, { deleted }]) => deleted > sequence - 3 && deleted <= sequence)
        .map(([row, { deleted }]) => [row, deleted]),
    );
  }
}

describe('a segment', () => {
  it('behaves like a plain list of rows at every sequence', () => {
    const seed = seedOf('segment model');
    for (let round = 0; round < 60; round++) {
      const random = new Random(seed + round);
      const segment = Segment.createActive(activeOptions({ rowsMax: 200 }));
      const model: ModelRow[] = [];
      let sequence = 0;
      for (let step = 0; step < 40; step++) {
        sequence += random.below(2);
        if (sequence === 0) sequence = 1;
        if (random.next() < 0.5) {
          const documents = Array.from({ length: 1 + random.below(4) }, () =>
            randomDocument(random),
          );
          const rows = rowsOf(documents, `${step}-`);
          const from = random.below(rows.length);
          const count = segment.fits(batchOf(rows), from);
          const first = segment.append(batchOf(rows), from, count, sequence);
          assert.equal(first, model.length);
          for (const row of rows.slice(from, from + count)) {
            model.push({ ...row, inserted: sequence, deleted: Infinity });
          }
        }
        const row = random.below(model.length);
        if (model[row]?.deleted === Infinity && random.next() < 0.5) {
          segment.markDeleted(row, sequence);
          model[row].deleted = sequence;
        }
        // Cached results must not be returned later.
        segment.visibleAt(random.below(sequence + 1));
        segment.visibleAt(sequence);
      }
      assertEqualsModel(segment, model, sequence);
      segment.seal();
      assertEqualsModel(segment, model, sequence);
      assertEqualsModel(Segment.fromData(structuredClone(segment.toData())), model, sequence);
      const documents = model.map(({ metadata }) => JSON.parse(metadata) as JsonObject);
      assertColumnsEqual(segment.metadataView(), documents);
    }
  });

  it('does not change returned blocks and views while it grows', () => {
    const seed = seedOf('segment growth');
    const random = new Random(seed);
    const rows = rowsOf(Array.from({ length: 400 }, () => randomDocument(random)));
    const batch = batchOf(rows);
    const segment = Segment.createActive(activeOptions({}));
    const handedOut = [];
    for (let row = 0; row < rows.length; row++) {
      segment.append(batch, row, 1, row + 1);
      const gone = random.below(row + 1);
      if (segment.deletedSequence(gone) === Infinity) segment.markDeleted(gone, row + 1);
      if (row % (IS_NIGHTLY ? 5 : 60) !== 0) continue;
      const visible = segment.visibleAt(row + 1);
      handedOut.push({
        block: segment.block(UNNAMED)!,
        view: segment.metadataView(),
        visible,
        words: [...(visible.rows?.words ?? [])],
      });
    }
    segment.seal();
    for (const { block, view, visible, words } of handedOut) {
      assert.equal(view.rowCount, block.rowCount);
      const expected = rows.slice(0, block.rowCount);
      assert.deepEqual(
        [...block.values],
        expected.flatMap(({ values }) => values),
      );
      assert.equal(Buffer.from(block.ids.bytes).toString(), expected.map(({ id }) => id).join(''));
      assert.equal(block.ids.offsets.length, block.rowCount + 1);
      assert.equal(
        Buffer.from(view.json.bytes).toString(),
        expected.map(({ metadata }) => metadata).join(''),
      );
      assertColumnsEqual(
        view,
        expected.map(({ metadata }) => JSON.parse(metadata) as JsonObject),
      );
      assert.deepEqual([...(visible.rows?.words ?? [])], words);
    }
  });

  it('returns the same block and view until the next append', () => {
    const segment = Segment.createActive(activeOptions({}));
    const batch = batchOf(rowsOf([{ a: 1 }, { a: 2 }]));
    segment.append(batch, 0, 1, 1);
    const block = segment.block(UNNAMED)!;
    const view = segment.metadataView();
    segment.markDeleted(0, 2);
    assert.equal(segment.block(UNNAMED)!, block);
    assert.equal(segment.metadataView(), view);
    segment.append(batch, 1, 1, 3);
    assert.notEqual(segment.block(UNNAMED)!, block);
    assert.notEqual(segment.metadataView(), view);
    assert.equal(segment.block(UNNAMED)!.key, block.key);
  });

  it('returns the same visibility until rows change', () => {
    const segment = Segment.createActive(activeOptions({}));
    segment.append(batchOf(rowsOf([{}, {}, {}])), 0, 3, 5);
    segment.markDeleted(1, 6);
    segment.markDeleted(2, 8);
    const latest = segment.visibleAt(8);
    const past = segment.visibleAt(6);
    assert.equal(segment.visibleAt(9), latest);
    assert.equal(segment.visibleAt(6), past);
    // A second deletion at a sequence whose visibility is cached.
    segment.markDeleted(0, 8);
    assert.equal(segment.visibleAt(8).visibleCount, 0);
    assert.equal(segment.visibleAt(6), past);
    assert.equal(segment.visibleAt(5).rows, null);
  });

  it('updates the visibility of a sequence after earlier changes, as a replay makes them', () => {
    const segment = Segment.createActive(activeOptions({}));
    const batch = batchOf(rowsOf([{}, {}, {}, {}]));
    segment.append(batch, 0, 3, 5);
    segment.markDeleted(0, 9);
    segment.markDeleted(1, 6);
    assert.equal(segment.visibleAt(7).visibleCount, 2);
    segment.markDeleted(2, 7);
    assert.equal(segment.visibleAt(7).visibleCount, 1);
    segment.append(batch, 3, 1, 7);
    assert.equal(segment.visibleAt(7).visibleCount, 2);
    assert.equal(segment.visibleAt(7).rowCount, 4);
  });

  it('keeps all arrays in shared memory', () => {
    const segment = Segment.createActive(activeOptions({}));
    segment.append(batchOf(rowsOf([{ a: [1, 'x'], b: 'y', c: 2 }])), 0, 1, 1);
    segment.markDeleted(0, 2);
    const views: ArrayBufferView[] = [];
    const collect = (value: unknown) => {
      if (ArrayBuffer.isView(value)) views.push(value);
      else if (value instanceof Map) for (const item of value.values()) collect(item);
      else if (typeof value === 'object' && value !== null) Object.values(value).forEach(collect);
    };
    collect(segment.toData());
    collect(segment.visibleAt(2));
    assert.ok(views.length > 15);
    for (const view of views) assert.ok(view.buffer instanceof SharedArrayBuffer);
  });

  it('limits appended rows by count and by bytes', () => {
    const rows = rowsOf([{ a: 'x'.repeat(80) }, {}, { a: 1 }]);
    const batch = batchOf(rows);
    const byRows = Segment.createActive(activeOptions({ rowsMax: 2 }));
    assert.equal(byRows.fits(batch, 0), 2);
    assert.equal(byRows.fits(batch, 2), 1);
    byRows.append(batch, 0, 2, 1);
    assert.ok(byRows.isFull);
    assert.equal(byRows.fits(batch, 2), 0);
    assert.throws(() => byRows.append(batch, 2, 1, 1), /do not fit/);

    const bytesOf = (count: number) =>
      rows
        .slice(0, count)
        .reduce((sum, { id, metadata }) => sum + id.length + metadata.length + 8, 0);
    for (const count of [1, 2, 3]) {
      const exact = Segment.createActive(activeOptions({ bytesMax: bytesOf(count) }));
      assert.equal(exact.fits(batch, 0), count);
      const less = Segment.createActive(activeOptions({ bytesMax: bytesOf(count) - 1 }));
      assert.equal(less.fits(batch, 0), count - 1);
      exact.append(batch, 0, count, 1);
      assert.equal(exact.dataBytes, bytesOf(count));
      assert.equal(exact.fits(batch, 0), 0);
    }
  });

  it('appends rows of a batch inside larger arrays', () => {
    const { ids, vectors, metadata } = batchOf(rowsOf([{ a: 1 }, { a: 2 }, { a: 3 }, { a: 4 }]));
    const inner = {
      count: 2,
      ids: { offsets: ids.offsets.subarray(1), bytes: ids.bytes },
      vectors: vectors.map((column) => rowsOfColumn(column, 1, 3)),
      metadata: { offsets: metadata.offsets.subarray(1), bytes: metadata.bytes },
    };
    const segment = Segment.createActive(activeOptions({}));
    segment.append(inner, 1, 1, 1);
    segment.append(inner, 0, 2, 2);
    assert.deepEqual(
      [0, 1, 2].map((row) => [segment.id(row), valuesAt(segment, row), segment.metadata(row)]),
      [
        ['id-2', [2, 2.5], '{"a":3}'],
        ['id-1', [1, 1.5], '{"a":2}'],
        ['id-2', [2, 2.5], '{"a":3}'],
      ],
    );
  });

  it('compares ids by their bytes', () => {
    const segment = Segment.createActive(activeOptions({}));
    const rows = ['ä', 'a', 'aa'].map((id) => ({ id, values: [1, 2], metadata: '{}' }));
    segment.append(batchOf(rows), 0, 3, 1);
    assert.ok(segment.idEquals(0, Buffer.from('ä')));
    assert.ok(!segment.idEquals(1, Buffer.from('aa')));
    assert.ok(!segment.idEquals(2, Buffer.from('a')));
    assert.ok(!segment.idEquals(2, Buffer.from('ab')));
    assert.deepEqual(Buffer.from(segment.idBytes(0)), Buffer.from('ä'));
  });

  it('continues after the row of a cursor, or after its sequence if it has no such row', () => {
    const segment = Segment.createActive(activeOptions({}));
    const batch = batchOf(rowsOf([{}, {}, {}, {}, {}]));
    segment.append(batch, 0, 1, 1);
    segment.append(batch, 1, 3, 4);
    segment.append(batch, 4, 1, 6);
    assert.equal(segment.rowAfter(4, Buffer.from('id-2')), 3);
    assert.equal(segment.rowAfter(4, Buffer.from('id-3')), 4);
    assert.equal(segment.rowAfter(4, Buffer.from('id-0')), 4);
    assert.equal(segment.rowAfter(5, Buffer.from('id-2')), 4);
    assert.equal(segment.rowAfter(0, Buffer.from('id-0')), 0);
    assert.equal(segment.rowAfter(9, Buffer.from('id-0')), 5);
    assert.equal(segment.findRow(4, Buffer.from('id-2')), 2);
    assert.equal(segment.findRow(1, Buffer.from('id-2')), -1);
  });

  it('asserts its preconditions', () => {
    const segment = Segment.createActive(activeOptions({}));
    const batch = batchOf(rowsOf([{}, {}]));
    segment.append(batch, 0, 2, 5);
    assert.throws(() => segment.append(batch, 0, 1, 4), /sequence 4 comes before/);
    assert.throws(() => segment.markDeleted(2, 6), /row 2 of 2/);
    assert.throws(() => segment.markDeleted(0, 4), /inserted after 4/);
    segment.markDeleted(0, 6);
    segment.markDeleted(0, 6);
    assert.equal(segment.liveCount, 1);
    assert.throws(() => segment.markDeleted(0, 7), /deleted at 6/);
    segment.seal();
    assert.ok(segment.isSealed);
    assert.equal(segment.fits(batch, 0), 0);
    assert.throws(() => segment.append(batch, 0, 1, 9), /the segment is active/);
    segment.markDeleted(1, 9);
    assert.equal(segment.liveCount, 0);
  });

  it('takes little memory when empty or for rows without metadata', () => {
    const empty = Segment.createActive(activeOptions({ rowsMax: 65_536 }));
    assert.ok(empty.hostBytes < 100, `${empty.hostBytes} bytes`);
    const segment = Segment.createActive(activeOptions({ rowsMax: 5_000 }));
    const rows = rowsOf(Array.from({ length: 5_000 }, () => ({})));
    segment.append(batchOf(rows), 0, rows.length, 1);
    segment.seal();
    // Values 8, id at most 7, JSON 2, two offsets 8, sequence 8.
    assert.ok(segment.hostBytes / rows.length < 8 + 7 + 2 + 8 + 8 + 1);
    assert.equal(segment.metadataView().columns.size, 0);
  });

  it('shows staged rows when they are appended, and no others in their place', async () => {
    const pool = createInlinePool();
    const segment = Segment.createActive(activeOptions({}));
    const [first, announced, other] = [0, 1, 2].map((i) =>
      batchOf([1, 2, 3].map((row) => ({ id: `v${i}${row}`, values: [i, row], metadata: '{}' }))),
    );
    segment.append(first!, 0, 3, 1);
    const block = segment.block(UNNAMED)!;
    const values = [...block.values];
    const rows = [{ batch: announced!, from: 1, count: 2 }];
    assert.ok(!segment.hasStaged(rows));
    await segment.stage(rows, pool);
    assert.ok(segment.hasStaged(rows));
    assert.equal(segment.rowCount, 3);
    assert.deepEqual([...block.values], values);

    // The rows of another write come first, as they do after a failed commit.
    segment.append(other!, 0, 2, 2);
    segment.append(announced!, 1, 2, 3);
    await segment.stage([{ batch: announced!, from: 0, count: 1 }], pool);
    segment.append(announced!, 0, 1, 4);
    assert.deepEqual(
      Array.from({ length: 8 }, (_, row) => valuesAt(segment, row)),
      [
        [0, 1],
        [0, 2],
        [0, 3],
        [2, 1],
        [2, 2],
        [1, 2],
        [1, 3],
        [1, 1],
      ],
    );
  });

  it('appends staged rows in time that does not grow with the rows still staged', async () => {
    const rowCount = 20_000;
    const segment = Segment.createActive(activeOptions({ rowsMax: rowCount }));
    const batch = batchOf(
      Array.from({ length: rowCount }, (_, i) => ({ id: `v${i}`, values: [i], metadata: '{}' })),
    );
    const writes = Array.from({ length: rowCount }, (_, from) => ({ batch, from, count: 1 }));
    await segment.stage(writes, createInlinePool());
    assert.ok(segment.hasStaged(writes));
    // This would take seconds, more than a test may, if each write scanned all staged rows.
    for (const { from } of writes) segment.append(batch, from, 1, from + 1);
    assert.equal(segment.rowCount, rowCount);
    assert.deepEqual([...segment.block(UNNAMED)!.values.subarray(rowCount - 2)], [19_998, 19_999]);
  });

  it('frees memory reserved for growth when it is sealed', () => {
    const segment = Segment.createActive(activeOptions({ rowsMax: 65_536 }));
    const rows = Array.from({ length: 1_100 }, (_, i) => ({
      id: `id-${i}`,
      values: new Array<number>(64).fill(i),
      metadata: JSON.stringify({ number: i, text: `text ${i}`, tags: [`tag ${i}`] }),
    }));
    const batch = batchOf(rows);
    for (let i = 0; i < rows.length; i++) segment.append(batch, i, 1, i + 1);
    const grown = segment.hostBytes;
    const content = contentOf(segment);
    segment.seal();
    assert.ok(segment.hostBytes < grown * 0.85, `${segment.hostBytes} of ${grown}`);
    assert.deepEqual(contentOf(segment), content);
  });
});
