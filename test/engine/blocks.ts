// Blocks, queries and the truth about them, for the tests of engines. The brute force shares no code
// with the engines: plain loops over plain arrays, and a sort.

import assert from 'node:assert/strict';
import { type Bitmap, createBitmap, setBit } from '../../src/bitmap.js';
import {
  type Engine,
  publicScore,
  type SearchHits,
  type SearchPart,
  type SearchQuery,
} from '../../src/engine/engine.js';
import type { BlockHits, BlockQuery } from '../../src/engine/per-block.js';
import type { Metric, VectorBlock } from '../../src/types.js';

/** A number in [0, 1), the same sequence for the same seed. */
export type Random = () => number;

/** The seed comes from SAGITTA_TEST_SEED or the clock, and is printed by whoever takes it. */
export const SEED = Number(process.env.SAGITTA_TEST_SEED ?? Date.now() % 1_000_000_007);

export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function randomInt(random: Random, below: number): number {
  return Math.floor(random() * below);
}

/** Kinds of rows, each of which has broken a search somewhere. */
export const ROW_KINDS = {
  random: (random: Random) => () => random() * 2 - 1,
  /** Few distinct values: whole groups of rows have equal scores. */
  duplicates: (random: Random) => () => randomInt(random, 2) - 0.5,
  equal: () => () => 0.3,
  denormal: (random: Random) => () => (random() - 0.5) * 1e-42,
  huge: (random: Random) => () => (random() < 0.5 ? -1 : 1) * (3e38 + random() * 4e37),
  zeros: (random: Random) => () => (random() < 0.7 ? (random() < 0.5 ? -0 : 0) : random() - 0.5),
  /** Every value of a magnitude of its own: sums cancel, products underflow beside ones that do not. */
  scattered: (random: Random) => () => (random() - 0.5) * 10 ** (random() * 78 - 40),
} satisfies Record<string, (random: Random) => () => number>;

export type RowKind = keyof typeof ROW_KINDS | 'clustered' | 'outlier' | 'scaled';

export function createValues(
  random: Random,
  kind: RowKind,
  rowCount: number,
  dimension: number,
): Float32Array {
  const values = new Float32Array(new SharedArrayBuffer(rowCount * dimension * 4));
  const centers = Array.from({ length: 5 * dimension }, () => random() * 2 - 1);
  for (let row = 0; row < rowCount; row++) {
    const next = ROW_KINDS[kind in ROW_KINDS ? (kind as keyof typeof ROW_KINDS) : 'random'](random);
    const center = randomInt(random, 5) * dimension;
    const scale = kind === 'scaled' ? 10 ** (random() * 70 - 35) : 1;
    for (let i = 0; i < dimension; i++) {
      let value = next() * scale;
      if (kind === 'clustered') value = centers[center + i]! + value * 1e-4;
      values[row * dimension + i] = value;
    }
  }
  if (kind === 'outlier' && rowCount > 0) {
    const row = randomInt(random, rowCount);
    for (let i = 0; i < dimension; i++) values[row * dimension + i] = (i % 2 === 0 ? 1 : -1) * 1e30;
  }
  return values;
}

/** Distinct ids in random order, many of them prefixes of others, some not ASCII. */
export function createIds(random: Random, count: number): string[] {
  const letters = ['a', 'b', 'ab', 'é', '日', '😀', '\u{7f}', '~'];
  const ids = new Set<string>();
  while (ids.size < count) {
    let id = letters[randomInt(random, letters.length)]!;
    while (random() < 0.8 || ids.has(id)) id += letters[randomInt(random, letters.length)]!;
    ids.add(id);
  }
  return [...ids];
}

let blockCount = 0;

export function createBlock(
  values: Float32Array,
  dimension: number,
  ids: readonly string[],
  key = `block ${blockCount++}`,
): VectorBlock {
  const rowCount = ids.length;
  const encoded = ids.map((id) => Buffer.from(id));
  const byteCount = encoded.reduce((sum, id) => sum + id.length, 0);
  const offsets = new Int32Array(new SharedArrayBuffer((rowCount + 1) * 4));
  const bytes = new Uint8Array(new SharedArrayBuffer(byteCount));
  for (const [row, id] of encoded.entries()) {
    bytes.set(id, offsets[row]!);
    offsets[row + 1] = offsets[row]! + id.length;
  }
  return { key, dimension, rowCount, values, ids: { offsets, bytes }, codes: null };
}

export function createRandomBlock(
  random: Random,
  kind: RowKind,
  rowCount: number,
  dimension: number,
): VectorBlock {
  const values = createValues(random, kind, rowCount, dimension);
  return createBlock(values, dimension, createIds(random, rowCount));
}

/** A query for everything in the block, but for what `changes` say. */
export function createQuery(
  block: VectorBlock,
  vector: Float32Array,
  changes: Partial<Omit<SearchQuery, 'parts'> & Omit<SearchPart, 'block'>> = {},
): SearchQuery {
  const { rowCount = block.rowCount, rows = null, ...rest } = changes;
  return createPartsQuery([{ block, rowCount, rows }], vector, rest);
}

/** A query over several blocks, for the ten nearest unless `changes` say otherwise. */
export function createPartsQuery(
  parts: readonly SearchPart[],
  vector: Float32Array,
  changes: Partial<Omit<SearchQuery, 'parts'>> = {},
): SearchQuery {
  return { vector, metric: 'cosine', k: 10, after: null, scoreMin: null, ...changes, parts };
}

/** A query over one block as what lies behind an engine is asked it … */
export function toBlockQuery({ parts, ...query }: SearchQuery): BlockQuery {
  assert.equal(parts.length, 1);
  const { rowCount, rows } = parts[0]!;
  return { ...query, rowCount, rows };
}

/** … and the answer as an engine gives it. */
export function toSearchHits(hits: BlockHits): SearchHits {
  return { ...hits, parts: new Uint32Array(hits.rows.length) };
}

/** A vector to ask for: a row of the block as often as not, so that distances of 0 occur. */
export function createVector(random: Random, block: VectorBlock, kind: RowKind): Float32Array {
  if (block.rowCount > 0 && random() < 0.5) return rowOf(block, randomInt(random, block.rowCount));
  return Float32Array.from(createValues(random, kind, 1, block.dimension));
}

/** Each row passes with the given probability. */
export function createRandomBitmap(random: Random, length: number, probability: number): Bitmap {
  const bitmap = createBitmap(length);
  for (let row = 0; row < length; row++) if (random() < probability) setBit(bitmap, row);
  return bitmap;
}

export function rowOf(block: VectorBlock, row: number): Float32Array {
  return Float32Array.from(
    block.values.subarray(row * block.dimension, (row + 1) * block.dimension),
  );
}

export function idOf(block: VectorBlock, row: number): Buffer {
  const { offsets, bytes } = block.ids;
  return Buffer.from(bytes.slice(offsets[row]!, offsets[row + 1]!));
}

/** The sum of products as the documents describe it: eight lanes, then halves onto halves. */
export function laneSum(left: ArrayLike<number>, right: ArrayLike<number>): number {
  let lanes = new Float64Array(8);
  for (let i = 0; i < left.length; i++) lanes[i % 8]! += left[i]! * right[i]!;
  while (lanes.length > 1) {
    const half = lanes.length / 2;
    lanes = lanes.slice(0, half).map((lane, j) => lane + lanes[j + half]!);
  }
  return lanes[0]!;
}

export function trueScore(
  metric: Metric,
  query: Float32Array,
  row: Float32Array,
  querySquare = laneSum(query, query),
): number {
  const product = laneSum(query, row);
  if (metric === 'dot') return product;
  const rowSquare = laneSum(row, row);
  if (metric === 'euclidean') {
    const squaredDistance = Math.max(0, querySquare - 2 * product + rowSquare);
    return squaredDistance === 0 ? 0 : -squaredDistance;
  }
  const lengths = Math.sqrt(querySquare) * Math.sqrt(rowSquare);
  return lengths === 0 ? 0 : Math.max(-1, Math.min(1, product / lengths));
}

export interface TrueHits {
  readonly parts: number[];
  readonly rows: number[];
  readonly scores: number[];
  readonly scannedCount: number;
}

/** What every engine must answer. */
export function bruteForce(query: SearchQuery): TrueHits {
  const { metric, after, scoreMin } = query;
  const querySquare = laneSum(query.vector, query.vector);
  let matches: { part: number; row: number; score: number; id: Buffer }[] = [];
  for (const [part, { block, rowCount, rows: bitmap }] of query.parts.entries()) {
    for (let row = 0; row < rowCount; row++) {
      if (bitmap !== null && ((bitmap.words[row >> 5]! >> (row % 32)) & 1) === 0) continue;
      const score = trueScore(metric, query.vector, rowOf(block, row), querySquare);
      matches.push({ part, row, score, id: idOf(block, row) });
    }
  }
  const scannedCount = matches.length;
  matches.sort((a, b) => b.score - a.score || Buffer.compare(a.id, b.id));
  if (after !== null) {
    matches = matches.filter(
      ({ score, id }) =>
        score < after.score || (score === after.score && Buffer.compare(id, after.id) > 0),
    );
  }
  if (scoreMin !== null) {
    matches = matches.filter(({ score }) => Math.fround(publicScore(metric, score)) >= scoreMin);
  }
  matches = matches.slice(0, query.k);
  return {
    parts: matches.map(({ part }) => part),
    rows: matches.map(({ row }) => row),
    scores: matches.map(({ score }) => score),
    scannedCount,
  };
}

/** Fails unless the hits are the true ones, score bits included. */
export function assertTrueHits(actual: SearchHits, expected: TrueHits, message: string): void {
  assert.deepEqual([...actual.parts], expected.parts, `parts: ${message}`);
  assert.deepEqual([...actual.rows], expected.rows, `rows: ${message}`);
  assert.deepEqual(bitsOf(actual.scores), bitsOf(expected.scores), `score bits: ${message}`);
  assert.equal(actual.scannedCount, expected.scannedCount, `scannedCount: ${message}`);
  assert.ok(
    actual.rescoredCount >= actual.rows.length && actual.rescoredCount <= actual.scannedCount,
    `${actual.rescoredCount} rescored of ${actual.scannedCount} scanned: ${message}`,
  );
}

/** Fails unless the engine answers a batch truly. */
export async function checkAnswers(
  engine: Engine,
  queries: readonly SearchQuery[],
  message = '',
): Promise<SearchHits[]> {
  const hits = await engine.search(queries);
  assert.equal(hits.length, queries.length);
  for (const [index, query] of queries.entries()) {
    const rowCounts = query.parts.map(({ rowCount }) => rowCount);
    const shape = `[${rowCounts}] rows of ${query.vector.length}, query ${index} of ${queries.length}`;
    const what = `${query.metric}, k ${query.k}, ${shape}, ${message}, seed ${SEED}`;
    assertTrueHits(hits[index]!, bruteForce(query), what);
  }
  return hits;
}

function bitsOf(scores: Iterable<number>): bigint[] {
  return [...new BigUint64Array(Float64Array.from(scores).buffer)];
}
