// Random rows, documents and views with many edge cases for the tests of segments, and the comparison of a metadata
// view with its documents.

import assert from 'node:assert/strict';
import { KIND, type MetadataColumn, type MetadataView } from '../../src/common/columns.js';
import { flattenMetadata, isJsonObject, resolvePath } from '../../src/common/metadata-path.js';
import type { Json, JsonObject, Utf8Column, VectorBatch } from '../../src/common/types.js';
import { type Named, UNNAMED } from '../../src/common/vectors.js';
import type { Segment } from '../../src/segment/segment.js';
import type { SegmentData } from '../../src/segment/segment-data.js';
import { encodeSegmentTask } from '../../src/segment/segment-file.js';
import { createRandom } from '../support/random.js';
import { columnOf, dense, rowValuesOf } from '../vector-columns.js';

/** A seeded generator. */
export class Random {
  /** Returns the next number in [0, 1). */
  readonly next: () => number;

  constructor(seed: number) {
    this.next = createRandom(seed);
  }

  below(bound: number): number {
    return Math.floor(this.next() * bound);
  }

  pick<T>(choices: readonly T[]): T {
    return choices[this.below(choices.length)]!;
  }
}

/** Prints the seed, so that a failure can be repeated with SAGITTA_TEST_SEED. */
export function seedOf(name: string): number {
  const seed = Number(process.env.SAGITTA_TEST_SEED ?? Date.now() % 1_000_000);
  console.log(`${name}: SAGITTA_TEST_SEED=${seed}`);
  return seed;
}

const KEYS = ['a', 'b', 'c', 'a.b', 'b.c', 'a.b.c', '', '.', 'ä', '__proto__', 'toString'];
const STRINGS = ['', 'x', 'y', 'ä', '🐬', '\ufffd', 'x\u0000y', 'long'.repeat(50)];

/** Returns a document with mixed types, nested objects, several keys for one path, or `__proto__`. */
export function randomDocument(random: Random, depth = 0): JsonObject {
  const members: string[] = [];
  const count = random.below(depth === 0 ? 6 : 4);
  const keys = new Set(Array.from({ length: count }, () => random.pick(KEYS)));
  for (const key of keys) {
    members.push(`${JSON.stringify(key)}:${JSON.stringify(randomValue(random, depth))}`);
  }
  // A literal `__proto__` would not be a member, so the document is parsed.
  return JSON.parse(`{${members.join(',')}}`) as JsonObject;
}

function randomValue(random: Random, depth: number): Json {
  switch (random.below(depth < 3 ? 8 : 6)) {
    case 0:
      return null;
    case 1:
      return random.next() < 0.5;
    case 2:
      return random.pick([0, -0, 1, -1.5, 1e300, 2 ** 53, random.next()]);
    case 3:
    case 4:
      return random.pick(STRINGS);
    case 5:
      return Array.from({ length: random.below(4) }, () =>
        random.pick<Json>([null, true, false, 1, 2.5, random.pick(STRINGS), [1], { a: 1 }]),
      );
    default:
      return randomDocument(random, depth + 1);
  }
}

export interface SampleRow {
  readonly id: string;
  readonly values: readonly number[];
  /** JSON text. */
  readonly metadata: string;
}

export function utf8Of(strings: readonly string[]): Utf8Column {
  const offsets = Int32Array.from([0, ...strings.map((text) => Buffer.byteLength(text))]);
  for (let i = 1; i < offsets.length; i++) offsets[i]! += offsets[i - 1]!;
  return { offsets, bytes: Buffer.from(strings.join('')) };
}

/** Returns a batch with `others` and, if the rows have values, the unnamed vector. */
export function batchOf(rows: readonly SampleRow[], others: readonly Named[] = []): VectorBatch {
  const dimension = rows[0]?.values.length ?? 0;
  const values = rows.map((row) => row.values);
  const unnamed = dimension === 0 ? [] : [columnOf(UNNAMED, dense(dimension), values)];
  return {
    count: rows.length,
    ids: utf8Of(rows.map(({ id }) => id)),
    vectors: [...unnamed, ...others],
    metadata: utf8Of(rows.map(({ metadata }) => metadata)),
  };
}

/** Returns rows of dimension 2 with ids `<prefix>0`, `<prefix>1` and so on. */
export function rowsOf(documents: readonly JsonObject[], prefix = 'id-'): SampleRow[] {
  return documents.map((document, i) => ({
    id: `${prefix}${i}`,
    values: [i, i + 0.5],
    metadata: JSON.stringify(document),
  }));
}

export function stringAt({ offsets, bytes }: Utf8Column, index: number): string {
  return Buffer.from(bytes.subarray(offsets[index]!, offsets[index + 1]!)).toString();
}

/** Returns a cell: strings as stored, arrays of scalars, `KIND` for objects and nested arrays. */
export function cellOf(column: MetadataColumn, row: number): unknown {
  const kind = column.kinds[row] ?? KIND.missing;
  switch (kind) {
    case KIND.missing:
      return undefined;
    case KIND.null:
      return null;
    case KIND.false:
    case KIND.true:
      return kind === KIND.true;
    case KIND.number:
      return column.numbers![row];
    case KIND.string:
      assert.ok(column.codes![row]! < column.dictionaryCount);
      return stringAt(column.dictionary!, column.codes![row]!);
    case KIND.array: {
      if (column.items === null) return { kind };
      const { offsets, elements } = column.items;
      const cells: unknown[] = [];
      for (let i = offsets[row]!; i < offsets[row + 1]!; i++) cells.push(cellOf(elements, i));
      return cells;
    }
    default:
      return { kind };
  }
}

/** Returns the expected result of `cellOf` for a value of a document. */
function cellFor(value: Json | undefined, isElement = false): unknown {
  if (typeof value === 'string') return Buffer.from(value).toString();
  if (Array.isArray(value)) {
    return isElement ? { kind: KIND.array } : value.map((element) => cellFor(element, true));
  }
  return isJsonObject(value) ? { kind: KIND.object } : value;
}

/** Checks that columns equal documents and that a complete view has a column for every path. */
export function assertColumnsEqual(
  { columns, isComplete, rowCount }: Pick<MetadataView, 'columns' | 'isComplete' | 'rowCount'>,
  documents: readonly JsonObject[],
): void {
  assert.equal(rowCount, documents.length);
  const paths = new Set<string>(columns.keys());
  for (const document of documents) flattenMetadata(document, (path) => paths.add(path));
  for (const path of paths) {
    const column = columns.get(path);
    if (column === undefined) {
      assert.ok(!isComplete, `no column for ${JSON.stringify(path)}`);
      continue;
    }
    assert.ok(column.kinds.length <= rowCount);
    for (const [row, document] of documents.entries()) {
      const where = `${JSON.stringify(path)} of row ${row}: ${JSON.stringify(document)}`;
      assert.deepEqual(cellOf(column, row), cellFor(resolvePath(document, path)), where);
    }
  }
}

/** Copies everything that a segment returns about its rows. */
export function contentOf(segment: Segment): unknown[] {
  return Array.from({ length: segment.rowCount }, (_, row) => ({
    id: segment.id(row),
    values: valuesAt(segment, row),
    metadata: segment.metadata(row),
    insertedSequence: segment.insertedSequence(row),
    deletedSequence: segment.deletedSequence(row),
  }));
}

/** Returns the vector of a row by name; undefined if it lacks the vector. */
export function valuesAt(segment: Segment, row: number, name = UNNAMED): unknown {
  const vector = segment.vectorAt(row, name);
  return vector && rowValuesOf(vector);
}

export function activeOptions(options: {
  rowsMax?: number;
  columnsMax?: number;
  bytesMax?: number;
  number?: number;
}): Parameters<typeof Segment.createActive>[0] {
  const number = options.number ?? 1;
  return {
    key: `incarnation/${number}`,
    number,
    rowsMax: options.rowsMax ?? 1_000,
    columnsMax: options.columnsMax ?? 256,
    ...(options.bytesMax === undefined ? {} : { bytesMax: options.bytesMax }),
  };
}

/** Returns the file of a segment as one buffer, with its checksum. */
export function encodeSegment(data: SegmentData): { bytes: Uint8Array; checksum: string } {
  const { parts, byteLength, checksum } = encodeSegmentTask.run({ data, hasDigest: false });
  const bytes = new Uint8Array(byteLength);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.byteLength;
  }
  return { bytes, checksum };
}
