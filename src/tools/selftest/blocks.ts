// Rows, blocks and queries for checking engines. A seed produces the same data on every machine.

import { type Bitmap, createBitmap, setBit } from '../../common/bitmap.js';
import type { VectorBlock } from '../../common/types.js';
import type { BlockView, SearchQuery } from '../../engine/core/engine.js';

/** Returns the next number in [0, 1) of a seeded sequence. */
export type Random = () => number;

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

const uniform = (random: Random) => () => random() * 2 - 1;

/** Kinds of rows, each of which stresses a different property of a search, with the generator of their values. */
const VALUES = {
  random: uniform,
  /** Rows near one of a few centers. */
  clustered: uniform,
  /** Few distinct values, so that whole groups of rows have equal scores. */
  duplicates: (random: Random) => () => randomInt(random, 2) - 0.5,
  equal: () => () => 0.3,
  /** One row far away from all others. */
  outlier: uniform,
  /** Many small clusters that differ in few directions, like the vectors of neural models. */
  directed: uniform,
  /** Rows of very different lengths. */
  scaled: uniform,
  denormal: (random: Random) => () => (random() - 0.5) * 1e-42,
  huge: (random: Random) => () => (random() < 0.5 ? -1 : 1) * (3e38 + random() * 4e37),
  zeros: (random: Random) => () => (random() < 0.7 ? (random() < 0.5 ? -0 : 0) : random() - 0.5),
  /** Values of very different magnitudes, so that sums cancel and some products underflow. */
  scattered: (random: Random) => () => (random() - 0.5) * 10 ** (random() * 78 - 40),
} satisfies Record<string, (random: Random) => () => number>;

const DIRECTION_COUNT = 4;

export type RowKind = keyof typeof VALUES;
export const ROW_KINDS = Object.keys(VALUES) as RowKind[];

export function createValues(
  random: Random,
  kind: RowKind,
  rowCount: number,
  dimension: number,
): Float32Array {
  const values = new Float32Array(new SharedArrayBuffer(rowCount * dimension * 4));
  const centerCount = kind === 'directed' ? 1 + Math.floor(rowCount / 12) : 5;
  const centers = Array.from({ length: centerCount * dimension }, () => random() * 2 - 1);
  for (let row = 0; row < rowCount; row++) {
    const next = VALUES[kind](random);
    const chosen = kind === 'directed' ? row % centerCount : randomInt(random, centerCount);
    const center = chosen * dimension;
    const scale = kind === 'scaled' ? 10 ** (random() * 70 - 35) : 1;
    for (let i = 0; i < dimension; i++) {
      let value = next() * scale;
      if (kind === 'directed') {
        value = (i < DIRECTION_COUNT ? centers[center + i]! : 0) + value * 0.01;
      }
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

/** Distinct ids in random order; many are prefixes of others, and some are not ASCII. */
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

/** Blocks of one dimension with ids that are distinct across all blocks. */
export function createBlocks(
  random: Random,
  kind: RowKind,
  rowCounts: readonly number[],
  dimension: number,
): VectorBlock[] {
  const ids = createIds(
    random,
    rowCounts.reduce((sum, rowCount) => sum + rowCount, 0),
  );
  return rowCounts.map((rowCount) =>
    createBlock(
      createValues(random, kind, rowCount, dimension),
      dimension,
      ids.splice(0, rowCount),
    ),
  );
}

/** A view of all rows of a block. */
export function fullView(block: VectorBlock): BlockView {
  return { block, rowCount: block.rowCount, rows: null };
}

/** A query over all rows of a block, with `changes` applied. */
export function createQuery(
  block: VectorBlock,
  vector: Float32Array,
  changes: Partial<Omit<SearchQuery, 'views'> & Omit<BlockView, 'block'>> = {},
): SearchQuery {
  const { rowCount = block.rowCount, rows = null, ...rest } = changes;
  return createMultiBlockQuery([{ block, rowCount, rows }], vector, rest);
}

/** A query over several views for the ten best rows, with `changes` applied. */
export function createMultiBlockQuery(
  views: readonly BlockView[],
  vector: Float32Array,
  changes: Partial<Omit<SearchQuery, 'views'>> = {},
): SearchQuery {
  return { vector, metric: 'cosine', k: 10, after: null, scoreMin: null, ...changes, views };
}

/** A query vector; half of the time it is a row of the block, so that distances of 0 occur. */
export function createVector(random: Random, block: VectorBlock, kind: RowKind): Float32Array {
  if (block.rowCount > 0 && random() < 0.5) return rowOf(block, randomInt(random, block.rowCount));
  return Float32Array.from(createValues(random, kind, 1, block.dimension));
}

/** Includes each row with the given probability. */
export function createRandomBitmap(random: Random, length: number, probability: number): Bitmap {
  const bitmap = createBitmap(length);
  for (let row = 0; row < length; row++) if (random() < probability) setBit(bitmap, row);
  return bitmap;
}

export function rowOf(block: VectorBlock, row: number): Float32Array {
  return block.values.slice(row * block.dimension, (row + 1) * block.dimension);
}

export function idOf(block: VectorBlock, row: number): Buffer {
  const { offsets, bytes } = block.ids;
  return Buffer.from(bytes.slice(offsets[row]!, offsets[row + 1]!));
}
