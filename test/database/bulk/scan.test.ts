// Scans return all visible rows in order of arrival, during writes, deletions and compactions.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { hasBit } from '../../../src/common/bitmap.js';
import type { Utf8Column } from '../../../src/common/types.js';
import { valuesOfRows } from '../../../src/common/vectors.js';
import type { RowChunk, Scan, ScanRequest, TypedChunk } from '../../../src/database/bulk/scan.js';
import type { Database } from '../../../src/database/database.js';
import { dense } from '../../vector-columns.js';
import {
  batchOf,
  createRandom,
  createTestClock,
  openDatabase,
  type TestVector,
} from '../harness.js';

const ALL = { includeValues: true, includeMetadata: true } as const;

describe('a scan', () => {
  it('gives the same rows as the list, in chunks of any length', async () => {
    const database = await openDatabase({});
    const random = createRandom(5);
    await fill(database, 0, 500, random);
    await database
      .collection('c')
      .delete({ kind: 'filter', filter: { odd: true } }, { dryRun: false });
    // Writes the first ids again, so that their rows come last.
    await fill(database, 0, 90, random);
    for (const filter of [undefined, { n: { $gte: 80 } }, { odd: true }, { n: -1 }]) {
      const expected = await listed(database, filter);
      for (const chunkBytesMax of [1, 100, 1_000, undefined]) {
        const request = { ...ALL, filter, chunkBytesMax };
        const { rows, chunks } = await scanned(database, request);
        assert.deepEqual(rows, expected, JSON.stringify(request));
        assert.ok(chunks.every(({ count }) => count > 0));
        if (chunkBytesMax === 1) assert.equal(chunks.length, rows.length);
      }
    }
    await database.close();
  });

  it('leaves out columns that were not requested', async () => {
    const database = await openDatabase({});
    await fill(database, 0, 3, createRandom(5));
    const only = (request: ScanRequest) => scanned(database, request);
    const { chunks } = await only({ includeValues: false, includeMetadata: true });
    assert.ok(chunks.every(({ vectors, metadata }) => vectors.length === 0 && metadata !== null));
    const { chunks: others } = await only({ includeValues: true, includeMetadata: false });
    assert.ok(others.every(({ vectors, metadata }) => vectors.length === 1 && metadata === null));
    await database.close();
  });

  it('shares memory with a segment whose rows are all visible', async () => {
    const database = await openDatabase({ limits: { segmentRowsMax: 1_024 } });
    await fill(database, 0, 900, createRandom(5));
    const whole = await scanned(database, { ...ALL, chunkBytesMax: 4_096 });
    assert.ok(
      whole.chunks.every(({ vectors }) => vectors[0]!.values.buffer instanceof SharedArrayBuffer),
    );
    await database.collection('c').delete({ kind: 'ids', ids: ['v450'] }, { dryRun: false });
    const worn = await scanned(database, { ...ALL, chunkBytesMax: 4_096 });
    const copied = worn.chunks.filter(
      ({ vectors }) => vectors[0]!.values.buffer instanceof ArrayBuffer,
    );
    assert.equal(copied.length, 1, 'only the chunk around the hole is a copy');
    await database.close();
  });

  it('reads its snapshot while rows are written, deleted and compacted', async () => {
    const clock = createTestClock();
    const database = await openDatabase({ clock, limits: { retentionMs: 1_000 } });
    const random = createRandom(5);
    await fill(database, 0, 700, random);
    const expected = await listed(database, undefined);
    const scan = await database.collection('c').scan({ ...ALL, chunkBytesMax: 2_000 });
    const rows: TestVector[] = [];
    const rowCountBefore = database.storageUse().rowCount;
    let round = 0;
    for (const chunk of scan.chunks()) {
      rows.push(...rowsOf(chunk));
      if (++round % 10 !== 1) continue;
      clock.nowMs += 10_000;
      const filter = { n: { $lt: round * 30 } };
      await database.collection('c').delete({ kind: 'filter', filter }, { dryRun: false });
      await fill(database, 1_000 + round * 10, 70, random);
      for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    }
    assert.deepEqual(rows, expected);
    assert.ok(round > 20);
    const { rowCount } = database.storageUse();
    assert.ok(rowCount < rowCountBefore, `compactions took rows: ${rowCountBefore} → ${rowCount}`);
    await database.close();
  });

  it('gives typed columns of its snapshot while values of other types are written', async () => {
    const database = await openDatabase({});
    await fill(database, 0, 300, createRandom(5));
    const request = { ...ALL, includeValues: false, hasTypedMetadata: true, chunkBytesMax: 2_000 };
    const before = await typedRows(await database.collection('c').scan(request));
    const scan = await database.collection('c').scan(request);
    const rows: unknown[] = [];
    for await (const chunk of scan.typedChunks()) {
      rows.push(...typedRowsOf(scan, chunk));
      const id = `v${rows.length - 1}`;
      const metadata = JSON.stringify({ n: 'text', odd: 1.5, new: rows.length });
      await database
        .collection('c')
        .write(batchOf([{ id, values: [0, 0, 0], metadata }]), { mode: 'upsert' });
    }
    assert.deepEqual(rows, before);
    assert.deepEqual(rows.slice(0, 2), [
      { id: 'v0', n: 0n, odd: false, text: '' },
      { id: 'v1', n: 1n, odd: true, text: 'ä' },
    ]);
    const after = await database.collection('c').scan(request);
    assert.deepEqual(
      after.typedFields.map(({ path, type }) => `${path}: ${type}`),
      ['n: json', 'new: int64', 'odd: json', 'text: text'],
    );
    await database.close();
  });

  it('gives typed columns of paths that other segments lack', async () => {
    for (const metadataColumnsMax of [256, 1]) {
      const database = await openDatabase({ limits: { segmentRowsMax: 64, metadataColumnsMax } });
      await fill(database, 0, 100, createRandom(5));
      const rows = [
        { id: 'a', values: [0, 0, 0], metadata: '{"mixed": 1.50, "wide": -9223372036854775808}' },
        { id: 'b', values: [0, 0, 0], metadata: '{"mixed": "x", "wide": 1e17}' },
      ];
      await database.collection('c').write(batchOf(rows), { mode: 'upsert' });
      const request = { ...ALL, includeValues: false, hasTypedMetadata: true };
      const found = (await typedRows(await database.collection('c').scan(request))) as {
        readonly mixed: string;
        readonly wide: bigint;
      }[];
      assert.deepEqual(
        [found[0], ...found.slice(-2)].map((row) => [row!.mixed, row!.wide]),
        [
          ['', 0n],
          ['1.50', -(2n ** 63n)],
          ['"x"', 10n ** 17n],
        ],
      );
      await database.close();
    }
  });

  it('is counted only while it runs', async () => {
    const database = await openDatabase({});
    await fill(database, 0, 100, createRandom(5));
    const { scanStats: readings } = database;
    const scan = await database.collection('c').scan({ ...ALL, chunkBytesMax: 500 });
    assert.equal(readings.scanCount, 0);
    let isFirst = true;
    for (const _ of scan.chunks()) {
      assert.equal(readings.scanCount, 1);
      if (!isFirst) break;
      assert.equal(readings.scanRowsLeft, 100);
      isFirst = false;
    }
    assert.deepEqual([readings.scanCount, readings.scanRowsLeft], [0, 0]);
    assert.ok(readings.scannedRowCount > 0 && readings.scannedRowCount < 100);
    await database.close();
  });
});

async function typedRows(scan: Scan): Promise<unknown[]> {
  const rows: unknown[] = [];
  for await (const chunk of scan.typedChunks()) rows.push(...typedRowsOf(scan, chunk));
  return rows;
}

/** Rows without nulls and lists. */
function typedRowsOf({ typedFields }: Scan, { count, ids, typed }: TypedChunk): unknown[] {
  const cellOf = (column: TypedChunk['typed'][number], row: number) => {
    assert.ok('leaf' in column);
    const { leaf } = column;
    if ('words' in leaf) return hasBit(leaf, row);
    return 'offsets' in leaf ? textAt(leaf, row) : leaf[row];
  };
  return Array.from({ length: count }, (_, row) => ({
    id: textAt(ids, row),
    ...Object.fromEntries(typedFields.map(({ path }, i) => [path, cellOf(typed[i]!, row)])),
  }));
}

async function fill(
  database: Database,
  from: number,
  count: number,
  random: () => number,
): Promise<void> {
  const vectors = { '': { ...dense(3), metric: 'dot' } } as const;
  const definition = { id: 'c', vectors, description: null, labels: {} };
  await database.createCollection(definition, { ifNotExists: true });
  for (let at = from; at < from + count; at += 50) {
    const rows = Array.from({ length: Math.min(50, from + count - at) }, (_, i) => ({
      id: `v${at + i}`,
      values: [Math.fround(random()), Math.fround(random()), at + i],
      metadata: JSON.stringify({ n: at + i, odd: (at + i) % 2 === 1, text: 'ä'.repeat(i) }),
    }));
    await database.collection('c').write(batchOf(rows), { mode: 'upsert' });
  }
}

async function scanned(database: Database, request: ScanRequest) {
  const scan = await database.collection('c').scan(request);
  const chunks = [...scan.chunks()];
  const rows = chunks.flatMap(rowsOf);
  assert.equal(rows.length, scan.rowCount);
  return { chunks, rows };
}

function rowsOf({ count, ids, vectors, metadata }: RowChunk): TestVector[] {
  return Array.from({ length: count }, (_, row) => ({
    id: textAt(ids, row),
    values: vectors.flatMap((column) => [...valuesOfRows(column, row, row + 1)]),
    metadata: textAt(metadata, row),
  }));
}

function textAt(column: Utf8Column | null, row: number): string {
  if (column === null) return '';
  const { offsets, bytes } = column;
  return Buffer.from(bytes.subarray(offsets[row]!, offsets[row + 1]!)).toString();
}

async function listed(database: Database, filter: ScanRequest['filter']): Promise<TestVector[]> {
  const rows: TestVector[] = [];
  let cursor: string | undefined;
  do {
    const page = await database
      .collection('c')
      .list(cursor === undefined ? { limit: 300, filter, includeValues: true } : { cursor });
    for (const { id, values, metadata } of page.vectors) {
      rows.push({ id, values: [...values!], metadata: metadata! });
    }
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return rows;
}
