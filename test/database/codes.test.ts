// Rows are encoded when they arrive: every block that an engine searches has the codes of exactly
// its rows, after growth, sealing, compaction and a restart.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  CODE_NAMES,
  type RowEncoder,
  type UnencodedRows,
  type VectorBlock,
} from '../../src/common/types.js';
import type { Engine, SearchQuery } from '../../src/engine/core/engine.js';
import { createReferenceEngine } from '../../src/engine/core/reference-engine.js';
import { createInlinePool } from '../../src/platform/pool.js';
import { createMemoryState } from '../../src/storage/memory-store.js';
import { batchOf, createTestClock, openDatabase, type TestVector } from './harness.js';

const DIMENSION = 3;
const ROW_BYTES = 4;

/** An encoder whose arrays of codes each contain one of the three values of a row, which a test can check. */
function encode({ values, dimension, from, to, codes }: UnencodedRows): void {
  for (const [index, name] of CODE_NAMES.entries()) {
    const view = viewOf(codes[name]);
    for (let row = from; row < to; row++) {
      view.setFloat32(row * ROW_BYTES, values[row * dimension + index]!, true);
    }
  }
}

function viewOf(array: Uint8Array | null): DataView {
  assert.ok(array !== null, 'a block has all codes');
  return new DataView(array.buffer, array.byteOffset, array.byteLength);
}

const allocateRows = (rowCount: number) =>
  new Uint8Array(new SharedArrayBuffer(rowCount * ROW_BYTES));

/** The segments that were encoded as a whole: compacted segments, and loaded segments without usable codes. */
let encodedSegmentCount = 0;

const createEncoder = (encoding: string): RowEncoder => ({
  encoding,
  byteLengths(rowCount) {
    const byteLength = rowCount * ROW_BYTES;
    return { tiles: byteLength, coarse: byteLength, refinement: byteLength };
  },
  allocate: (rowCount) => ({
    encoding,
    tiles: allocateRows(rowCount),
    coarse: allocateRows(rowCount),
    refinement: allocateRows(rowCount),
  }),
  encode,
  async encodeAll(rows) {
    encodedSegmentCount++;
    encode(rows);
  },
});

/** The reference engine, which does not use codes, with a check of the codes of every block. */
function createWatchingEngine(encoding: string) {
  const reference = createReferenceEngine({ pool: createInlinePool() });
  const watching = {
    blockCount: 0,
    engine: {
      ...reference,
      name: 'reference',
      rowEncoder: createEncoder(encoding),
      search: (queries: readonly SearchQuery[]) => {
        for (const { block } of queries.flatMap(({ views: parts }) => parts)) {
          watching.blockCount++;
          assertCodes(encoding, block);
        }
        return reference.search(queries);
      },
    } satisfies Engine,
  };
  return watching;
}

function assertCodes(encoding: string, { values, dimension, rowCount, codes }: VectorBlock): void {
  assert.equal(codes?.encoding, encoding);
  for (const [index, name] of CODE_NAMES.entries()) {
    const view = viewOf(codes[name]);
    for (let row = 0; row < rowCount; row++) {
      const value = values[row * dimension + index];
      assert.equal(view.getFloat32(row * ROW_BYTES, true), value, `row ${row}`);
    }
  }
}

function vectors(from: number, to: number): TestVector[] {
  return Array.from({ length: to - from }, (_, i) => ({
    id: `v${from + i}`,
    values: [from + i + 1, 1, i % 7],
    metadata: '{}',
  }));
}

/** Lets background work on the calling thread finish. */
async function settle(): Promise<void> {
  for (let i = 0; i < 100; i++) await new Promise((resolve) => setImmediate(resolve));
}

describe('the codes of rows', () => {
  it('match the rows after growth, compaction and a restart', async () => {
    const state = createMemoryState();
    const clock = createTestClock();
    const watching = createWatchingEngine('three values');
    const open = ({ engine } = watching) => openDatabase({ state, clock, engine });
    let database = await open();
    const search = async () => {
      const request = { vector: Float32Array.of(1, 0, 0), topK: 5, explain: true } as const;
      const { matches, explain } = await database.collection('c').query(request);
      assert.equal(matches.length, 5);
      return explain!.segmentCount;
    };
    await database.createCollection({
      id: 'c',
      vectors: { '': { kind: 'dense', dimension: DIMENSION, metric: 'dot' } },
      description: null,
      labels: {},
    });
    for (let i = 0; i < 300; i += 7) {
      await database.collection('c').write(batchOf(vectors(i, i + 7)), { mode: 'upsert' });
      if (i % 5 === 0) await search();
    }
    const before = await search();
    assert.ok(before > 4, `${before} segments`);

    // Most rows end; after the retention the remaining rows are compacted into one segment.
    await database.collection('c').write(batchOf(vectors(0, 250)), { mode: 'upsert' });
    clock.nowMs += 60_000;
    await database.collection('c').write(batchOf(vectors(1000, 1064)), { mode: 'upsert' });
    await settle();
    clock.nowMs += 16 * 60_000;
    await database.collection('c').write(batchOf(vectors(2000, 2064)), { mode: 'upsert' });
    await settle();
    const files = [...state.blobs.keys()];
    assert.ok(!files.some((name) => name.endsWith('/1.arrow')), `${files}: nothing was compacted`);
    await search();

    await database.close();
    encodedSegmentCount = 0;
    database = await open();
    await search();
    assert.equal(encodedSegmentCount, 0, 'codes are read from the files');
    await database.close();
    assert.ok(watching.blockCount > 20);

    // The codes of another version of the encoder are not used.
    database = await open(createWatchingEngine('three values, another way'));
    await search();
    assert.ok(encodedSegmentCount > 0);
    await database.close();
  });
});
