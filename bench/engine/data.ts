// The data of the engine bench: unit vectors from a mixture of Gaussians, in blocks of the size that the
// database uses, and queries from the same mixture; reproducible from a seed. Also encodes the blocks for
// the chosen engine, as segments do when they are sealed.

import { DEFAULT_LIMITS } from '../../src/common/limits.js';
import { CODE_NAMES, type RowEncoder, type VectorBlock } from '../../src/common/types.js';
import type { BlockView, Engine } from '../../src/engine/core/engine.js';
import type { DataName, Parameters, Shape } from './options.js';

export const SEED = 20_251;
/** Spread of a row around its centre, whose coordinates have spread 1; cosines to it are about 0.8. */
const SPREAD = 0.5;
/** Width of ids, zero-padded, so that id order is row order. */
const ID_DIGITS = 6;

export interface DataSet extends Shape {
  readonly name: DataName;
  readonly blocks: readonly VectorBlock[];
  /** Number of the first row of each block, over all blocks. */
  readonly starts: readonly number[];
  /** A view of all rows of each block. */
  readonly views: readonly BlockView[];
  readonly queries: readonly Float32Array[];
}

export function createDataSet(name: DataName, parameters: Parameters): DataSet {
  const shape = parameters.data[name];
  const mixture = new Mixture(shape.dimension, Math.ceil(Math.sqrt(shape.rowCount)));
  return createBlocks(name, shape, parameters, (target, offset) => mixture.draw(target, offset));
}

/** Rows in order and then queries, each written to `target[offset..offset + dimension)` by `fill`. */
export function createBlocks(
  name: DataName,
  { rowCount, dimension }: Shape,
  { queryCount, blockRowsMax }: Parameters,
  fill: (target: Float32Array, offset: number) => void,
): DataSet {
  if (rowCount > 10 ** ID_DIGITS)
    throw new Error(`${rowCount} rows need ids of more than ${ID_DIGITS} digits`);
  const blocks: VectorBlock[] = [];
  const starts: number[] = [];
  const blockRows = Math.min(blockRowsMax, rowsPerSegment(dimension));
  for (let start = 0; start < rowCount; start += blockRows) {
    const count = Math.min(blockRows, rowCount - start);
    const values = new Float32Array(new SharedArrayBuffer(count * dimension * 4));
    for (let row = 0; row < count; row++) fill(values, row * dimension);
    const key = `${name} ${blocks.length}`;
    const ids = createIds(start, count);
    blocks.push({ key, dimension, rowCount: count, values, ids, codes: null });
    starts.push(start);
  }
  const queries = Array.from({ length: queryCount }, () => {
    const query = new Float32Array(dimension);
    fill(query, 0);
    return query;
  });
  return { name, rowCount, dimension, blocks, starts, views: viewsOf(blocks), queries };
}

/** Returns the same rows with other blocks, which an engine has encoded. */
function withBlocks(data: DataSet, blocks: readonly VectorBlock[]): DataSet {
  return { ...data, blocks, views: viewsOf(blocks) };
}

/** Returns the id of a row from its number over all blocks. */
export function idOf(row: number): string {
  return `v${String(row).padStart(ID_DIGITS, '0')}`;
}

/** Returns the number of rows of a full segment. */
function rowsPerSegment(dimension: number): number {
  const { segmentRowsMax, segmentValueBytesMax } = DEFAULT_LIMITS;
  return Math.min(segmentRowsMax, Math.floor(segmentValueBytesMax / (4 * dimension)));
}

function viewsOf(blocks: readonly VectorBlock[]): BlockView[] {
  return blocks.map((block) => ({ block, rowCount: block.rowCount, rows: null }));
}

function createIds(start: number, count: number): VectorBlock['ids'] {
  const length = idOf(0).length;
  const offsets = new Int32Array(new SharedArrayBuffer((count + 1) * 4));
  const bytes = new Uint8Array(new SharedArrayBuffer(count * length));
  for (let row = 0; row < count; row++) {
    bytes.set(Buffer.from(idOf(start + row)), row * length);
    offsets[row + 1] = (row + 1) * length;
  }
  return { offsets, bytes };
}

/**
 * Generates unit vectors. 128 million values must not take longer than the cases that use them, so a
 * value costs one step of xorshift32 and no logarithm or cosine: the sum of the step's four bytes is
 * approximately normal (Irwin–Hall), and a scan sums over hundreds of values anyway.
 */
class Mixture {
  readonly #dimension: number;
  readonly #centreCount: number;
  /** Row-major [centreCount, dimension]. */
  readonly #centres: Float32Array;
  #state = SEED;

  constructor(dimension: number, centreCount: number) {
    this.#dimension = dimension;
    this.#centreCount = centreCount;
    this.#centres = new Float32Array(centreCount * dimension);
    this.#addNormal(this.#centres, 0, this.#centres.length, 1);
  }

  /** Writes one vector to `target[offset..offset + dimension)`. */
  draw(target: Float32Array, offset: number): void {
    this.#step();
    const centre = ((this.#state >>> 0) % this.#centreCount) * this.#dimension;
    for (let i = 0; i < this.#dimension; i++) target[offset + i] = this.#centres[centre + i]!;
    this.#addNormal(target, offset, this.#dimension, SPREAD);
    let square = 0;
    for (let i = offset; i < offset + this.#dimension; i++) square += target[i]! * target[i]!;
    const scale = 1 / Math.sqrt(square);
    for (let i = offset; i < offset + this.#dimension; i++) target[i]! *= scale;
  }

  #addNormal(target: Float32Array, offset: number, count: number, spread: number): void {
    /** Four uniform bytes have mean 510 and this standard deviation. */
    const scale = spread / Math.sqrt((4 * (256 * 256 - 1)) / 12);
    let state = this.#state;
    for (let i = offset; i < offset + count; i++) {
      state ^= state << 13;
      state ^= state >>> 17;
      state ^= state << 5;
      const sum =
        (state & 255) + ((state >>> 8) & 255) + ((state >>> 16) & 255) + ((state >>> 24) & 255);
      target[i]! += (sum - 510) * scale;
    }
    this.#state = state;
  }

  #step(): void {
    this.#state ^= this.#state << 13;
    this.#state ^= this.#state >>> 17;
    this.#state ^= this.#state << 5;
  }
}

export interface EncodedData {
  readonly data: DataSet;
  /** Null when the engine uses no codes. */
  readonly encoding: { readonly bytes: number; readonly seconds: number } | null;
}

export async function encodeData(engine: Engine, data: DataSet): Promise<EncodedData> {
  const encoder = engine.rowEncoder;
  if (encoder === null) return { data, encoding: null };
  const startedAt = performance.now();
  const blocks: VectorBlock[] = [];
  let basis: Uint8Array | null = null;
  for (const block of data.blocks) {
    const encoded = await encodeBlock(encoder, block, basis);
    basis = encoded.codes?.basis ?? basis;
    blocks.push(encoded);
  }
  const seconds = (performance.now() - startedAt) / 1000;
  const arrays = blocks.flatMap(({ codes }) => CODE_NAMES.map((name) => codes?.[name] ?? null));
  // Blocks share equal bases.
  const bytes = [...new Set(arrays)].reduce((sum, array) => sum + (array?.byteLength ?? 0), 0);
  return { data: withBlocks(data, blocks), encoding: { bytes, seconds } };
}

async function encodeBlock(
  encoder: RowEncoder,
  block: VectorBlock,
  previous: Uint8Array | null,
): Promise<VectorBlock> {
  const { values, dimension, rowCount } = block;
  const codes = encoder.allocate(rowCount, dimension);
  await encoder.encodeAll({ values, codes, dimension, from: 0, to: rowCount });
  const head = await encoder.makeHead(block, previous);
  return { ...block, codes: { ...codes, ...head } };
}
