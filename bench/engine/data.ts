// The data sets of the benches, in blocks of the size that the database uses, with their queries. Also encodes the
// blocks for the chosen engine, as segments do when they are sealed.

import { DEFAULT_LIMITS } from '../../src/common/limits.js';
import { CODE_NAMES, type RowEncoder, type VectorBlock } from '../../src/common/types.js';
import type { BlockView, Engine } from '../../src/engine/core/engine.js';
import type { DataName, Parameters } from './options.js';
import { openVectors, type Shape } from './vectors.js';

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

export function createDataSet(
  name: DataName,
  parameters: Pick<Parameters, 'data' | 'queryCount' | 'blockRowsMax'>,
): DataSet {
  const source = parameters.data[name];
  const { rowCount, dimension } = source.shape;
  const { fill, queryCount } = openVectors(source, parameters.queryCount);
  if (rowCount > 10 ** ID_DIGITS)
    throw new Error(`${rowCount} rows need ids of more than ${ID_DIGITS} digits`);
  const blocks: VectorBlock[] = [];
  const starts: number[] = [];
  const blockRows = Math.min(parameters.blockRowsMax, rowsPerSegment(dimension));
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
