import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { tableFromArrays, tableFromIPC, tableToIPC } from 'apache-arrow';
import { KIND } from '../../src/common/columns.js';
import { SagittaError } from '../../src/common/errors.js';
import { sharedFloat32 } from '../../src/common/shared-array.js';
import { CODE_NAMES, type JsonObject, type RowCodes } from '../../src/common/types.js';
import { bytesOfRows, UNNAMED, valuesOfRows } from '../../src/common/vectors.js';
import { BLOCK_BYTES, blockCountOf } from '../../src/platform/blocks.js';
import { checksumOf } from '../../src/platform/crc32.js';
import { Segment } from '../../src/segment/segment.js';
import type { SegmentData } from '../../src/segment/segment-data.js';
import {
  decodeSegment,
  encodeSegmentTask,
  verifySegmentTask,
} from '../../src/segment/segment-file.js';
import { IS_NIGHTLY } from '../support/nightly.js';
import {
  activeOptions,
  assertColumnsEqual,
  batchOf,
  contentOf,
  encodeSegment,
  Random,
  randomDocument,
  rowsOf,
  seedOf,
} from './sample.js';

const IDENTITY = { key: 'incarnation/5', number: 5 };

function sealedSegment(documents: readonly JsonObject[], columnsMax = 256): Segment {
  const segment = Segment.createActive(activeOptions({ columnsMax, rowsMax: 100_000 }));
  const batch = batchOf(rowsOf(documents));
  for (let row = 0; row < documents.length; row++) {
    segment.append(batch, row, 1, 2 ** 40 + Math.floor(row / 2));
  }
  segment.seal();
  return segment;
}

function randomDocuments(random: Random, countMax: number): JsonObject[] {
  return Array.from({ length: random.below(countMax) }, () => randomDocument(random));
}

function inSharedMemory(bytes: Uint8Array): Uint8Array {
  const copy = new Uint8Array(new SharedArrayBuffer(bytes.length));
  copy.set(bytes);
  return copy;
}

/** Returns a copy in which every occurrence of `from` is replaced by `to`, of the same length. */
function replaceText(bytes: Uint8Array, from: string, to: string): Uint8Array {
  assert.equal(to.length, from.length);
  const latin1 = Buffer.from(bytes).toString('latin1');
  assert.ok(latin1.includes(from));
  return Buffer.from(latin1.replaceAll(from, to), 'latin1');
}

function isCorrupt(error: unknown): boolean {
  assert.ok(error instanceof SagittaError, `not one of ours: ${error}`);
  assert.equal(error.code, 'data_corrupt');
  assert.match(error.message, /^(footer: )?([Ff]ound|[Ee]xpected) .+\.$/);
  return true;
}

/** Returns the segment with other codes for its only vector. */
function withCodes(data: SegmentData, codes: RowCodes): SegmentData {
  return { ...data, vectors: data.vectors.map((column) => ({ ...column, codes })) };
}

function codesIn(bytes: Uint8Array): (RowCodes | null)[] {
  return decodeSegment(bytes, IDENTITY)
    .toData()
    .vectors.map(({ codes }) => codes);
}

/** Reads everything that a reader of the segment can reach. A read out of bounds would give undefined. */
function readAll(segment: Segment): void {
  contentOf(segment);
  const { columns, rowCount } = segment.metadataView();
  for (const column of segment.toData().vectors) {
    assert.ok(Number.isFinite(bytesOfRows(column, 0, rowCount)));
    assert.equal(valuesOfRows(column, 0, rowCount).length, column.values.length);
    if (column.kind === 'sparse') assert.equal(column.indices.length, column.values.length);
  }
  for (const column of columns.values()) {
    assert.ok(column.items !== null || !column.kinds.includes(KIND.array));
    for (const { kinds, numbers, codes, dictionary, items } of [
      column,
      ...(column.items === null ? [] : [column.items.elements]),
    ]) {
      for (let i = 0; i < kinds.length; i++) {
        if (kinds[i] === KIND.number) assert.notEqual(numbers![i], undefined);
        if (kinds[i] === KIND.string) {
          const code = codes![i]!;
          assert.ok(dictionary!.offsets[code + 1]! <= dictionary!.bytes.length);
        }
        if (items !== null) assert.ok(items.offsets[i + 1]! <= items.elements.kinds.length);
      }
    }
  }
}

describe('a segment file', () => {
  it('holds every row and every column, for random documents', () => {
    const seed = seedOf('segment files');
    for (let round = 0; round < (IS_NIGHTLY ? 100 : 30); round++) {
      const random = new Random(seed + round);
      const documents = randomDocuments(random, 60);
      const segment = sealedSegment(documents, random.pick([0, 3, 256]));
      const encoded = structuredClone(
        encodeSegmentTask.run(structuredClone({ data: segment.toData(), hasDigest: true })),
      );
      const bytes = new Uint8Array(Buffer.concat(encoded.parts));
      assert.equal(bytes.length, encoded.byteLength);
      verifySegmentTask.run({ bytes, checksum: encoded.checksum });
      const decoded = decodeSegment(bytes, IDENTITY);
      assert.deepEqual([decoded.key, decoded.number], [IDENTITY.key, IDENTITY.number]);
      assert.ok(decoded.isSealed);
      assert.deepEqual(contentOf(decoded), contentOf(segment));
      const [found, expected] = [decoded.metadataView(), segment.metadataView()];
      assert.deepEqual([...found.columns.keys()], [...expected.columns.keys()]);
      assert.equal(found.isComplete, expected.isComplete);
      assertColumnsEqual(found, documents);
      readAll(decoded);
      // A decoded segment can be encoded again.
      const again = encodeSegment(decoded.toData());
      assertColumnsEqual(decodeSegment(again.bytes, IDENTITY).metadataView(), documents);
    }
  });

  it('does not contain deletions', () => {
    const segment = sealedSegment([{}, {}]);
    segment.markDeleted(0, 2 ** 50);
    const decoded = decodeSegment(encodeSegment(segment.toData()).bytes, IDENTITY);
    assert.equal(decoded.liveCount, 2);
  });

  it('is used in place, with aligned buffers, if it is in shared memory', () => {
    const documents = [{ a: 1, b: 'x', c: [1, 'y', true] }, { a: 'z' }, {}];
    const encoded = encodeSegment(sealedSegment(documents).toData()).bytes;
    const bytes = inSharedMemory(encoded);
    const decoded = decodeSegment(bytes, IDENTITY);
    const { insertedSequences, ids, json, ...data } = decoded.toData();
    const views: ArrayBufferView[] = [];
    const collect = (value: unknown) => {
      if (ArrayBuffer.isView(value)) views.push(value);
      else if (value instanceof Map) for (const item of value.values()) collect(item);
      else if (typeof value === 'object' && value !== null) Object.values(value).forEach(collect);
    };
    collect([data, ids.bytes, json.bytes]);
    assert.ok(views.length > 15);
    for (const view of views) {
      assert.equal(view.buffer, bytes.buffer);
      assert.equal(view.byteOffset % 64, 0);
    }
    assert.equal(insertedSequences.length, 3);
    // The file, the sequences as numbers, and copies of the offsets, which native code follows.
    assert.equal(decoded.hostBytes, bytes.length + 3 * 8 + 2 * 4 * 4);

    // Bytes that are not shared or not aligned are copied into shared memory.
    const shifted = new Uint8Array(new SharedArrayBuffer(bytes.length + 4)).subarray(4);
    shifted.set(bytes);
    for (const elsewhere of [Buffer.from(bytes), shifted]) {
      const copied = decodeSegment(elsewhere, IDENTITY);
      assert.ok(copied.block(UNNAMED)!.values.buffer instanceof SharedArrayBuffer);
      assert.notEqual(copied.block(UNNAMED)!.values.buffer, elsewhere.buffer);
      assert.deepEqual(contentOf(copied), contentOf(decoded));
    }
  });

  it('can be read by other Arrow readers', () => {
    const documents = [{ price: 1.5, tag: 'x' }, { price: 2, tag: 'y' }, {}];
    const { bytes } = encodeSegment(sealedSegment(documents).toData());
    const table = tableFromIPC(bytes);
    assert.equal(table.batches.length, 1);
    assert.deepEqual(
      table.toArray().map((row) => [row.id, row['metadata.price'], row['metadata.tag']]),
      [
        ['id-0', 1.5, 'x'],
        ['id-1', 2, 'y'],
        ['id-2', null, null],
      ],
    );
    assert.equal(table.get(0)!.inserted_sequence, 2n ** 40n);
  });

  it('holds the codes of its rows, aligned, where other Arrow readers do not look', () => {
    const data = sealedSegment([{ a: 1 }, { a: 2 }]).toData();
    assert.deepEqual(
      data.vectors.map(({ codes }) => codes),
      [null],
    );
    const stored = {
      encoding: 'test 1',
      tiles: Uint8Array.from({ length: 20_000 }, (_, i) => i),
      coarse: Uint8Array.of(1, 2, 3),
      refinement: Uint8Array.from({ length: 100 }, (_, i) => 200 - i),
      basis: Uint8Array.from({ length: 3_000 }, (_, i) => 3 * i),
      head: Uint8Array.from({ length: 301 }, (_, i) => 7 * i),
    };
    const { bytes } = encodeSegment(withCodes(data, stored));
    const [codes] = codesIn(inSharedMemory(bytes));
    assert.deepEqual(codes, stored);
    for (const name of CODE_NAMES) assert.equal(codes![name]!.byteOffset % 64, 0);
    assert.ok(codes!.head!.buffer === codes!.tiles.buffer);
    assert.ok(codes!.basis!.buffer instanceof SharedArrayBuffer);
    assert.ok(codes!.basis!.buffer !== codes!.tiles.buffer, 'a file cannot change a basis');
    assert.deepEqual(tableFromIPC(bytes).getChild('id')!.toArray(), ['id-0', 'id-1']);

    const onlyTiles = { ...stored, coarse: null, refinement: null, basis: null, head: null };
    const again = encodeSegment(withCodes(data, onlyTiles));
    assert.deepEqual(codesIn(again.bytes), [onlyTiles]);
  });

  it('is rejected when its codes do not fit', () => {
    const codes = {
      encoding: 'test 1',
      tiles: new Uint8Array(1_000),
      coarse: null,
      refinement: null,
      basis: null,
      head: null,
    };
    const { bytes } = encodeSegment(withCodes(sealedSegment([{}]).toData(), codes));
    assert.throws(
      () => decodeSegment(replaceText(bytes, '[1000,0,0,0,0]', '[9000,0,0,0,0]'), IDENTITY),
      /9000 bytes at byte \d+, but the footer is at \d+/,
    );
    assert.throws(
      () => decodeSegment(replaceText(bytes, '[1000,0,0,0,0]', '[10,0,    0,0]'), IDENTITY),
      /Expected encodings and lengths for 1 vectors/,
    );
  });

  it('is rejected when its format is another', () => {
    const { bytes } = encodeSegment(sealedSegment([{ a: 1 }, { b: 'x' }]).toData());
    assert.throws(
      () => decodeSegment(replaceText(bytes, 'segment 2', 'segment 9'), IDENTITY),
      /Expected segment 2; found the format segment 9/,
    );
  });

  it('fails its checksum when a bit is changed or the end is missing', () => {
    const { bytes, checksum } = encodeSegment(sealedSegment([{ a: 1 }, { b: ['x'] }]).toData());
    for (let at = 0; at < bytes.length; at++) {
      const damaged = new Uint8Array(bytes);
      damaged[at]! ^= 1 << (at % 8);
      assert.throws(() => verifySegmentTask.run({ bytes: damaged, checksum }), isCorrupt);
    }
    assert.throws(
      () => verifySegmentTask.run({ bytes: bytes.subarray(0, bytes.length - 1), checksum }),
      /Expected crc32:[0-9a-f]{8}; found the checksum crc32:[0-9a-f]{8} over \d+ bytes/,
    );
    assert.throws(() => verifySegmentTask.run({ bytes, checksum: 'md5:1' }), isCorrupt);
    verifySegmentTask.run({ bytes, checksum });
  });

  it('is verified by the checksum of its kept parts alone, if it has such', () => {
    const { bytes, checksum } = encodeSegment(sealedSegment([{ a: 1 }, { b: ['x'] }]).toData());
    const ranges = [
      { begin: 0, end: 10 },
      { begin: 20, end: bytes.length },
    ];
    const parts = ranges.map(({ begin, end }) => bytes.subarray(begin, end));
    const kept = { ranges, checksum: checksumOf(parts) };
    const changed = (at: number) => {
      const copy = new Uint8Array(bytes);
      copy[at]! ^= 1;
      return { bytes: copy, checksum, kept };
    };
    verifySegmentTask.run(changed(10));
    verifySegmentTask.run(changed(19));
    for (const at of [0, 9, 20, bytes.length - 1]) {
      assert.throws(() => verifySegmentTask.run(changed(at)), isCorrupt);
    }
  });

  it('is loaded from the blocks that are kept without its vectors', () => {
    const [rowCount, dimension] = [4_000, 512];
    const documents = Array.from({ length: rowCount }, (_, i) => ({ i, text: `row ${i % 7}` }));
    const data = sealedSegment(documents).toData();
    const values = sharedFloat32(rowCount * dimension).fill(0.5);
    const bytesOf = (byteCount: number) => new Uint8Array(new SharedArrayBuffer(byteCount)).fill(7);
    const codes: RowCodes = {
      encoding: 'test',
      tiles: bytesOf(rowCount * dimension),
      coarse: bytesOf(rowCount * 64),
      refinement: null,
      basis: bytesOf(1_000),
      head: bytesOf(rowCount * 256),
    };
    const column = { name: '', kind: 'dense', element: 'float32', dimension } as const;
    const vectors = [{ ...data.vectors[0]!, ...column, values, codes }] as SegmentData['vectors'];
    const encoded = encodeSegmentTask.run({ data: { ...data, vectors }, hasDigest: true });
    const bytes = inSharedMemory(Buffer.concat(encoded.parts));
    const whole = decodeSegment(bytes.slice(), IDENTITY);
    const keptCount = encoded.kept.reduce((sum, { count }) => sum + count, 0);
    assert.ok(keptCount < 0.5 * blockCountOf(bytes.length), `keeps ${keptCount} blocks`);
    const part = new Uint8Array(new SharedArrayBuffer(bytes.length));
    for (const { first, count } of encoded.kept) {
      const [from, to] = [first * BLOCK_BYTES, (first + count) * BLOCK_BYTES];
      part.set(bytes.subarray(from, to), from);
    }
    const segment = decodeSegment(part, IDENTITY);
    for (let row = 0; row < rowCount; row++) {
      assert.equal(segment.id(row), whole.id(row));
      assert.equal(segment.insertedSequence(row), whole.insertedSequence(row));
    }
    const { columns } = segment.metadataView();
    assert.deepEqual(columns.get('i')!.numbers, whole.metadataView().columns.get('i')!.numbers);
    assert.deepEqual(columns.get('text')!.codes, whole.metadataView().columns.get('text')!.codes);
    assert.deepEqual(segment.bases, whole.bases);
  });

  it('is rejected at every shorter length', () => {
    const { bytes } = encodeSegment(sealedSegment([{ a: 1 }]).toData());
    for (let length = 0; length < bytes.length; length++) {
      assert.throws(() => decodeSegment(bytes.subarray(0, length), IDENTITY), isCorrupt);
    }
  });

  it('is never read out of bounds, whichever bytes change', () => {
    const seed = seedOf('hostile segment files');
    const rounds = IS_NIGHTLY ? 3_000 : 250;
    let refusedCount = 0;
    for (let round = 0; round < rounds; round++) {
      const random = new Random(seed + round);
      const segment = sealedSegment(randomDocuments(random, 4));
      const { bytes } = encodeSegment(segment.toData());
      for (let i = 1 + random.below(3); i > 0; i--) {
        const at = random.below(bytes.length);
        bytes[at] = random.pick([0, 1, 0x7f, 0x80, 0xff, random.below(256)]);
      }
      try {
        readAll(decodeSegment(bytes, IDENTITY));
      } catch (error) {
        isCorrupt(error);
        refusedCount++;
      }
    }
    assert.ok(refusedCount > rounds / 10, `${refusedCount} refused`);
  });

  it('is rejected when offsets, codes, kinds or sequences are out of bounds', () => {
    const documents = [{ a: 'x', b: [1, 2], c: 1 }, { a: 'y', b: [3] }, {}];
    const hostile = (change: (data: SegmentData) => Partial<SegmentData>): Uint8Array => {
      const data = sealedSegment(documents).toData();
      return encodeSegment({ ...data, ...change(data) }).bytes;
    };
    const column = (path: string, change: (parts: { data: SegmentData }) => void) =>
      hostile((data) => {
        change({ data });
        return { columns: new Map([[path, data.columns.get(path)!]]) };
      });
    const cases: [RegExp, Uint8Array][] = [
      [
        /at least 9; found offset 1 at index 2 of column "id"/,
        hostile(({ ids }) => ({ ids: { ...ids, offsets: Int32Array.of(0, 9, 1, 12) } })),
      ],
      [/sequence 4 after 5/, hostile(() => ({ insertedSequences: Float64Array.of(5, 4, 6) }))],
      [
        /the code 7 of 2 strings/,
        column('a', ({ data }) => {
          data.columns.get('a')!.codes![1] = 7;
        }),
      ],
      [
        /the code -1 of 2 strings/,
        column('a', ({ data }) => {
          data.columns.get('a')!.codes![1] = -1;
        }),
      ],
      [
        /the kind 8/,
        column('c', ({ data }) => {
          data.columns.get('c')!.kinds[0] = 8;
        }),
      ],
      [
        /no elements in metadata field 0/,
        column('c', ({ data }) => {
          data.columns.get('c')!.kinds[0] = KIND.array;
        }),
      ],
      [
        /at least 2; found offset 1 at index 2 of column "metadata.b"/,
        column('b', ({ data }) => {
          data.columns.get('b')!.items!.offsets.set([0, 2, 1]);
        }),
      ],
    ];
    for (const [message, bytes] of cases) {
      assert.throws(
        () => decodeSegment(bytes, IDENTITY),
        (error) => {
          assert.match(String(error), message);
          return isCorrupt(error);
        },
      );
    }
  });

  it('is rejected when it is another file', () => {
    const foreign = tableToIPC(tableFromArrays({ id: new Int32Array(3) }), 'file');
    assert.throws(() => decodeSegment(foreign, IDENTITY), /format of another program/);
    assert.throws(
      () => decodeSegment(Buffer.from('PK\u0003\u0004'.repeat(9)), IDENTITY),
      isCorrupt,
    );
  });
});
