// Takes vectors of each kind, and of all kinds together, through appends, staging, sealing, files, compaction and log
// records, with and without the unnamed vector.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { tableFromIPC } from 'apache-arrow';
import { hasBit } from '../../src/common/bitmap.js';
import { ELEMENTS } from '../../src/common/elements.js';
import type { RowEncoder, VectorBatch } from '../../src/common/types.js';
import {
  bytesOfRows,
  type ColumnSpec,
  isSameSpec,
  type Named,
  rowsOfColumn,
  UNNAMED,
} from '../../src/common/vectors.js';
import { createSimdEngine } from '../../src/engine/simd/simd-engine.js';
import { createInlinePool } from '../../src/platform/pool.js';
import { compactSegmentsTask } from '../../src/segment/compaction.js';
import { decodeLogRecord, encodeLogRecord, recordBytesMax } from '../../src/segment/log-record.js';
import { Segment } from '../../src/segment/segment.js';
import { decodeSegment } from '../../src/segment/segment-file.js';
import { columnsOf, dense, multi, type RowValues, sparse } from '../vector-columns.js';
import {
  activeOptions,
  batchOf,
  encodeSegment,
  Random,
  rowsOf,
  seedOf,
  valuesAt,
} from './sample.js';

type Specs = Readonly<Record<string, ColumnSpec>>;
/** The vectors of one row by name. */
type Row = Readonly<Record<string, RowValues>>;

interface Example {
  readonly specs: Specs;
  /** The second row lacks the vectors of the first and the third. */
  readonly rows: readonly [Row, Row, Row];
  /** Bytes of the vectors of each row, including zeros in place of dense vectors that it lacks. */
  readonly rowBytes: readonly number[];
  /** Type and cells of the columns of a file. */
  readonly arrow: Readonly<Record<string, { readonly type: string; readonly cells: unknown }>>;
}

const EXAMPLES: Readonly<Record<string, Example>> = {
  'dense vectors': {
    specs: { title: dense(3), image: dense(2) },
    rows: [{ title: [1, 2, 3] }, { image: [4, 5] }, { title: [6, 7, 8], image: [9, 0] }],
    rowBytes: [20, 20, 20],
    arrow: {
      'vectors.title': { type: 'FixedSizeList[3]<Float32>', cells: [[1, 2, 3], null, [6, 7, 8]] },
      'vectors.image': { type: 'FixedSizeList[2]<Float32>', cells: [null, [4, 5], [9, 0]] },
    },
  },
  'dense vectors of other elements': {
    specs: { half: dense(2, 'float16'), brain: dense(2, 'bfloat16'), bits: dense(3, 'bit') },
    rows: [
      { half: [0.5, -65_504], brain: [2 ** 100, 3] },
      { bits: [1, 0, 1] },
      { half: [1, 0], bits: [0, 1, 1] },
    ],
    rowBytes: [28, 28, 28],
    arrow: {
      'vectors.half': {
        type: 'FixedSizeList[2]<Float16>',
        cells: [[0.5, -65_504], null, [1, 0]],
      },
      'vectors.brain': { type: 'FixedSizeList[2]<Uint16>', cells: [[0x7180, 0x4040], null, null] },
      'vectors.bits': {
        type: 'FixedSizeList[3]<Bool>',
        cells: [null, [true, false, true], [false, true, true]],
      },
    },
  },
  'multi-vectors': {
    specs: { tokens: multi(3), patches: multi(2) },
    rows: [{ tokens: [1, 2, 3, 4, 5, 6] }, {}, { tokens: [7, 8, 9], patches: [1, 2] }],
    rowBytes: [24, 0, 20],
    arrow: {
      'vectors.tokens': {
        type: 'List<FixedSizeList[3]<Float32>>',
        cells: [
          [
            [1, 2, 3],
            [4, 5, 6],
          ],
          null,
          [[7, 8, 9]],
        ],
      },
      'vectors.patches': {
        type: 'List<FixedSizeList[2]<Float32>>',
        cells: [null, null, [[1, 2]]],
      },
    },
  },
  'sparse vectors': {
    specs: { words: sparse, tags: sparse },
    rows: [
      { words: new Map([[3, 0.5]]) },
      {},
      {
        words: new Map([
          [3, 1],
          [4, -1],
        ]),
        tags: new Map([[0xffff_ffff, 2]]),
      },
    ],
    rowBytes: [8, 0, 24],
    arrow: {
      'sparse_vectors.words.indices': { type: 'List<Uint32>', cells: [[3], [], [3, 4]] },
      'sparse_vectors.words.values': { type: 'List<Float32>', cells: [[0.5], [], [1, -1]] },
      'sparse_vectors.tags.indices': { type: 'List<Uint32>', cells: [[], [], [0xffff_ffff]] },
      'sparse_vectors.tags.values': { type: 'List<Float32>', cells: [[], [], [2]] },
    },
  },
  'vectors of all kinds': {
    specs: { title: dense(2), tokens: multi(2), words: sparse },
    rows: [
      { title: [1, 2], tokens: [1, 2, 3, 4, 5, 6], words: new Map([[7, 8]]) },
      {},
      { title: [3, 4], tokens: [5, 6], words: new Map([[1, 1]]) },
    ],
    rowBytes: [40, 8, 24],
    arrow: {
      'vectors.title': { type: 'FixedSizeList[2]<Float32>', cells: [[1, 2], null, [3, 4]] },
      'vectors.tokens': {
        type: 'List<FixedSizeList[2]<Float32>>',
        cells: [
          [
            [1, 2],
            [3, 4],
            [5, 6],
          ],
          null,
          [[5, 6]],
        ],
      },
      'sparse_vectors.words.values': { type: 'List<Float32>', cells: [[8], [], [1]] },
    },
  },
};

const ROUNDS = 8;
const DELETED_AT = 7;

function randomRow(random: Random, specs: Specs): Row {
  const row: Record<string, RowValues> = {};
  for (const [name, spec] of Object.entries(specs)) {
    if (random.next() >= 0.4) row[name] = randomValues(random, spec);
  }
  return row;
}

function randomValues(random: Random, spec: ColumnSpec): RowValues {
  const element = (spec.kind === 'dense' && spec.element) || 'float32';
  const value = () =>
    element === 'bit'
      ? random.below(2)
      : ELEMENTS[element].nearest(Math.fround(random.next() - 0.5) || 0.5);
  if (spec.kind === 'sparse') {
    const indices = new Set(Array.from({ length: 1 + random.below(5) }, () => random.below(30)));
    const ascending = [...indices, 0xffff_ffff].sort((a, b) => a - b);
    return new Map(ascending.map((index) => [index, value()]));
  }
  const vectorCount = spec.kind === 'multi' ? 1 + random.below(4) : 1;
  return Array.from({ length: spec.dimension * vectorCount }, value);
}

/** Builds segments with the vectors of an example, with or without the unnamed vector. */
class Case {
  readonly #hasUnnamed: boolean;
  readonly specs: Specs;

  constructor(specs: Specs, hasUnnamed: boolean) {
    this.specs = specs;
    this.#hasUnnamed = hasUnnamed;
  }

  /** Bytes of the unnamed vector per row. */
  get unnamedBytes(): number {
    return this.#hasUnnamed ? 8 : 0;
  }

  /** Ids begin with the prefix. */
  batch(rows: readonly Row[], prefix = ''): VectorBatch {
    const documents = rows.map((_, i) => ({ i }));
    const samples = rowsOf(documents, prefix).map((row) => {
      return this.#hasUnnamed ? row : { ...row, values: [] };
    });
    return batchOf(samples, columnsOf(this.specs, rows));
  }

  segmentOf(rows: readonly Row[]): Segment {
    const segment = activeSegment();
    segment.append(this.batch(rows), 0, rows.length, 1);
    return segment;
  }

  assertRows(segment: Segment, rows: readonly Row[]): void {
    assert.equal(segment.rowCount, rows.length);
    for (const [name, spec] of Object.entries(this.specs)) {
      const column = segment.vectorColumn(name);
      // The column may come from a batch in which only other rows have the vector.
      assert.ok(column !== undefined || !rows.some((row) => name in row), name);
      assert.ok(column === undefined || isSameSpec(column, spec), name);
      const all = { rowCount: rows.length, rows: null, visibleCount: rows.length };
      const having = segment.withVector(name, all);
      assert.equal(having.visibleCount, rows.filter((row) => name in row).length);
      for (const [i, row] of rows.entries()) {
        assert.deepEqual(valuesAt(segment, i, name), row[name], `${name} of ${i}`);
        assert.equal(having.rows === null || hasBit(having.rows, i), name in row, `${name} ${i}`);
      }
      this.#assertBlock(segment, name, rows);
    }
    const unnamed = segment.block(UNNAMED);
    assert.equal(unnamed?.rowCount, this.#hasUnnamed && rows.length > 0 ? rows.length : undefined);
  }

  #assertBlock(segment: Segment, name: string, rows: readonly Row[]): void {
    const spec = this.specs[name]!;
    const block = segment.block(name);
    const isThere = spec.kind !== 'sparse' && segment.vectorColumn(name) !== undefined;
    assert.equal(block !== undefined, isThere);
    if (block === undefined || spec.kind === 'sparse') return;
    assert.equal(block.dimension, spec.dimension);
    assert.equal(block.rowCount, rows.length);
    const absent = new Array<number>(spec.kind === 'dense' ? spec.dimension : 0).fill(0);
    const expected = rows.map((row) => (row[name] as number[]) ?? absent);
    assert.deepEqual([...block.values], expected.flat());
    const ends = expected.map((_, i) => expected.slice(0, i + 1).flat().length / spec.dimension);
    assert.deepEqual(
      block.starts && [...block.starts],
      spec.kind === 'multi' ? [0, ...ends] : undefined,
    );
  }
}

function activeSegment(
  options: Parameters<typeof activeOptions>[0] & { encoder?: RowEncoder | null } = {},
): Segment {
  return Segment.createActive({ ...activeOptions(options), encoder: options.encoder ?? null });
}

/** Appends rows in pieces, seals them, writes them to a file and compacts them, and compares after each step. */
function checkLifecycle(subject: Case, seed: number): void {
  for (let round = 0; round < ROUNDS; round++) {
    const random = new Random(seed + round);
    const segments = [activeSegment({ number: 1 }), activeSegment({ number: 2 })];
    const models = segments.map((segment) => fillAndStore(subject, segment, random));
    for (const [i, segment] of segments.entries()) {
      for (const row of models[i]!.keys()) {
        if (random.next() < 0.3) segment.markDeleted(row, DELETED_AT);
      }
    }
    const { data } = compactSegmentsTask.run({
      inputs: segments.map((segment) => segment.toData()),
      horizonSequence: DELETED_AT,
      key: 'c',
      number: 3,
      rowsMax: 1_000,
    });
    const kept = segments.flatMap((segment, i) =>
      models[i]!.filter((_, row) => segment.deletedSequence(row) === Infinity),
    );
    if (data === null) assert.equal(kept.length, 0);
    else subject.assertRows(Segment.fromData(data), kept);
  }
}

/** Fills the segment, checks that its file holds the same rows, and returns them. */
function fillAndStore(subject: Case, segment: Segment, random: Random): Row[] {
  const model: Row[] = [];
  for (let step = 0; step < 6; step++) {
    const rows = Array.from({ length: 1 + random.below(12) }, () =>
      randomRow(random, subject.specs),
    );
    const from = random.below(rows.length);
    segment.append(subject.batch(rows, `${step}-`), from, rows.length - from, step + 1);
    model.push(...rows.slice(from));
  }
  subject.assertRows(segment, model);
  segment.seal();
  subject.assertRows(segment, model);
  const { bytes } = encodeSegment(segment.toData());
  const stored = decodeSegment(bytes, { key: 'k', number: segment.number });
  subject.assertRows(stored, model);
  assert.deepEqual(encodeSegment(stored.toData()).bytes, bytes);
  return model;
}

interface RandomWrite {
  readonly rows: readonly Row[];
  readonly batch: VectorBatch;
}

/**
 * Stages writes together, then appends some of them whole, some in pieces, some not at all and others in place of
 * staged ones. The segment always holds the appended rows, and in the end the codes of a segment without staging.
 */
async function checkStaging(subject: Case, seed: number): Promise<void> {
  const pool = createInlinePool();
  const encoder = createSimdEngine({ pool }).rowEncoder;
  for (let round = 0; round < ROUNDS / 2; round++) {
    const random = new Random(seed + round);
    const [staged, plain] = [activeSegment({ encoder }), activeSegment({ encoder })] as const;
    const model: Row[] = [];
    let id = 0;
    const randomWrite = (rowCount: number): RandomWrite => {
      const mayHave = random.next() < 0.7;
      const rows = Array.from({ length: rowCount }, () =>
        mayHave ? randomRow(random, subject.specs) : {},
      );
      const batch = subject.batch(rows, `${id++}-`);
      return { rows, batch: random.next() < 0.5 ? inSharedMemory(batch) : batch };
    };
    const append = ({ rows, batch }: RandomWrite, from = 0, to = rows.length): void => {
      for (const segment of [staged, plain]) segment.append(batch, from, to - from, id);
      model.push(...rows.slice(from, to));
      subject.assertRows(staged, model);
    };
    const stage = (writes: readonly RandomWrite[]) =>
      staged.stage(
        writes.map(({ batch }) => ({ batch, from: 0, count: batch.count })),
        pool,
      );
    for (let step = 0; step < 8; step++) {
      const writes = Array.from({ length: 1 + random.below(4) }, () =>
        randomWrite(1 + random.below(4)),
      );
      await stage(writes);
      subject.assertRows(staged, model);
      for (const write of writes) {
        const outcome = random.pick(['whole', 'whole', 'whole', 'replaced', 'missing', 'pieces']);
        const cut = random.below(write.rows.length);
        if (outcome === 'whole') append(write);
        if (outcome === 'replaced') append(randomWrite(write.rows.length));
        if (outcome === 'pieces') {
          if (cut > 0) append(write, 0, cut);
          append(write, cut);
        }
      }
    }
    // Replaces everything that was staged but never appended.
    const last = randomWrite(20);
    await stage([last]);
    append(last);
    for (const segment of [staged, plain]) segment.seal();
    subject.assertRows(staged, model);
    assert.deepEqual({ ...staged.toData() }, plain.toData());
  }
}

function inSharedMemory(batch: VectorBatch): VectorBatch {
  const vectors = batch.vectors.map((column): Named => {
    const values = new Float32Array(new SharedArrayBuffer(column.values.byteLength));
    values.set(column.values);
    return { ...column, values };
  });
  return { ...batch, vectors };
}

for (const [what, example] of Object.entries(EXAMPLES)) {
  for (const hasUnnamed of [true, false]) {
    const subject = new Case(example.specs, hasUnnamed);
    const variant = hasUnnamed ? 'with the unnamed vector' : 'without the unnamed vector';
    describe(`${what} in a segment ${variant}`, () => testCase(subject, example));
  }
}

function testCase(subject: Case, { rows, rowBytes, arrow }: Example): void {
  const names = Object.keys(subject.specs);

  it('equal the appended vectors before and after sealing, in a file and after compaction', () => {
    checkLifecycle(subject, seedOf('vectors of segments'));
  });

  it('equal the appended vectors, whatever was staged', async () => {
    await checkStaging(subject, seedOf('staged vectors'));
  });

  it('do not change in columns and views that were returned before rows were appended', () => {
    const segment = subject.segmentOf(rows.slice(0, 2));
    const visible = { rowCount: 2, rows: null, visibleCount: 2 };
    const returned = names.map((name) => {
      return { name, column: segment.vectorColumn(name), rows: segment.withVector(name, visible) };
    });
    const before = structuredClone(returned);
    segment.append(subject.batch(rows, 'b'), 0, 3, 2);
    assert.deepEqual(returned, before);
    for (const { name, rows: earlier } of returned) {
      const now = segment.withVector(name, { ...earlier, rowCount: 5, rows: fiveRows(earlier) });
      assert.equal(now.visibleCount, earlier.visibleCount);
    }
  });

  it('count towards the byte limit and the memory of a segment', () => {
    const batch = subject.batch(rows);
    const textBytes = batch.ids.bytes.length + batch.metadata.bytes.length;
    const vectorBytes = rowBytes.reduce((sum, bytes) => sum + bytes, 0);
    const bytesMax = textBytes + 3 * subject.unnamedBytes + vectorBytes;
    assert.equal(activeSegment({ bytesMax }).fits(batch, 0), 3);
    assert.equal(activeSegment({ bytesMax: bytesMax - 1 }).fits(batch, 0), 2);
    const segment = activeSegment({ bytesMax });
    segment.append(batch, 0, 3, 1);
    assert.equal(segment.dataBytes, bytesMax);
    assert.deepEqual(
      rows.map((_, row) => segment.vectorBytes(row) - subject.unnamedBytes),
      rowBytes,
    );
    const without = activeSegment({ bytesMax });
    const unnamed = batch.vectors.filter(({ name }) => name === UNNAMED);
    without.append({ ...batch, vectors: unnamed }, 0, 3, 1);
    assert.equal(without.dataBytes, bytesMax - vectorBytes);
    assert.ok(segment.hostBytes >= without.hostBytes + vectorBytes);
  });

  it('have no column if no row has one', () => {
    const segment = subject.segmentOf([{}, {}]);
    for (const name of names) {
      assert.equal(segment.vectorColumn(name), undefined);
      assert.equal(segment.vectorAt(1, name), undefined);
      const all = { rowCount: 2, rows: null, visibleCount: 2 };
      assert.equal(segment.withVector(name, all).visibleCount, 0);
    }
  });

  it('have a block with its own key, which engines cache for dense vectors', () => {
    const segment = subject.segmentOf(rows);
    const blocks = [UNNAMED, ...names].flatMap((name) => segment.block(name) ?? []);
    assert.equal(new Set(blocks.map(({ key }) => key)).size, blocks.length);
    const kept = blocks.filter(({ starts }) => starts === undefined).map(({ key }) => key);
    assert.deepEqual([...segment.blockKeys].sort(), kept.sort());
    assert.equal(segment.block(UNNAMED)?.key ?? segment.key, segment.key);
  });

  it('are columns of a file that other programs can read', () => {
    const segment = subject.segmentOf(rows);
    segment.seal();
    const table = tableFromIPC(encodeSegment(segment.toData()).bytes);
    for (const [name, { type, cells }] of Object.entries(arrow)) {
      const column = table.getChild(name)!;
      assert.equal(String(column.type), type);
      assert.deepEqual(JSON.parse(JSON.stringify([...column])), cells);
    }
    const fields = table.schema.fields.map(({ name }) => name);
    assert.equal(fields.includes('values'), subject.unnamedBytes > 0);
  });

  it('are rejected in a damaged file', () => {
    const segment = subject.segmentOf([rows[0]]);
    segment.seal();
    const data = segment.toData();
    for (const damaged of data.vectors) {
      if (damaged.kind === 'dense') continue;
      const starts = Int32Array.of(0, 1 + damaged.starts[1]!);
      const vectors = data.vectors.map((column) =>
        column.name === damaged.name ? { ...damaged, starts } : column,
      );
      const { bytes } = encodeSegment({ ...data, vectors });
      assert.throws(() => decodeSegment(bytes, { key: 'k', number: 1 }), { code: 'data_corrupt' });
    }
  });

  it('are in the record of a whole or partial batch, within the predicted bytes', () => {
    const around = [rows[2], ...rows, rows[0]];
    const whole = subject.batch(around);
    for (const [from, to] of [
      [0, 5],
      [1, 4],
      [3, 4],
    ] as const) {
      const part = subject.batch(around.slice(from, to));
      const vectors = whole.vectors.map((column) => rowsOfColumn(column, from, to));
      const batch = { ...part, vectors };
      const bytes = encodeLogRecord({ kind: 'write', timeMs: 5, batch });
      assert.ok(bytes.length <= recordBytesMax(batch));
      const record = decodeLogRecord(bytes);
      assert.ok(record.kind === 'write');
      for (const [i, column] of record.batch.vectors.entries()) {
        assert.equal(column.name, vectors[i]!.name);
        assert.equal(bytesOfRows(column, 0, to - from), bytesOfRows(vectors[i]!, 0, to - from));
      }
      const segment = activeSegment();
      segment.append(record.batch, 0, to - from, 1);
      subject.assertRows(segment, around.slice(from, to));
    }
  });
}

/** Returns the same rows of a longer segment. */
function fiveRows({ rows }: { readonly rows: { readonly words: Uint32Array } | null }) {
  return { length: 5, words: rows?.words ?? Uint32Array.of(0b11) };
}
