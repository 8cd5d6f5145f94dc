// Writes files of plain vectors (npy, fvecs, fbin), with ids and metadata in separate text files of one line per row,
// and files of result ids (ivecs). The row count in a header is filled in at the end.

import {
  type Data,
  DataType,
  type FixedSizeList,
  Precision,
  RecordBatchReader,
} from 'apache-arrow';
import { unpackElements } from '../../common/elements.js';
import { CliError } from '../terminal/failure.js';
import { checkFree, type Output, openOutput, publishAll } from './output.js';

type VectorFileFormat = 'npy' | 'fvecs' | 'fbin';

/** Fixed header size, enough for any row count. */
const NPY_HEADER_BYTES = 128;

interface SidePaths {
  readonly ids: string;
  readonly metadata: string | undefined;
}

/** `vectors.npy` → `vectors.ids.txt`, `vectors.metadata.ndjson`. */
export function sidePaths(path: string, hasMetadata: boolean): SidePaths {
  const base = path.replace(/\.[^./]+$/, '');
  return {
    ids: `${base}.ids.txt`,
    metadata: hasMetadata ? `${base}.metadata.ndjson` : undefined,
  };
}

/** Writes all of the files or none. Throws CliError when one exists and may not be overwritten. */
export async function writeVectorFiles(
  stream: AsyncIterable<Uint8Array>,
  format: VectorFileFormat,
  path: string,
  options: {
    readonly dimension: number;
    readonly isForced: boolean;
    readonly side: SidePaths;
    readonly onRows: (rowCount: number) => void;
  },
): Promise<number> {
  const paths = [path, options.side.ids, options.side.metadata].filter(
    (each) => each !== undefined,
  );
  for (const each of paths) checkFree(each, options.isForced);
  const outputs: Output[] = [];
  try {
    for (const each of paths) outputs.push(await openOutput(each, options.isForced));
    const [values, ids, metadata] = outputs as [Output, Output, Output | undefined];
    const { dimension } = options;
    const reader = await RecordBatchReader.from(stream);
    await reader.open();
    const vectors = reader.schema.fields.find(({ name }) => name === 'values')!;
    const type = (vectors.type as FixedSizeList).children[0]!.type;
    await values.write(headerOf(format, { rowCount: 0, dimension, type }));
    let rowCount = 0;
    for await (const batch of reader) {
      const list = batch.getChild('values')!.data[0] as Data<FixedSizeList>;
      const elements = list.children[0]!;
      const count = batch.numRows * dimension;
      if (format === 'npy') await values.write(npyElements(elements, count));
      else {
        const floats = floatsOf(elements, count);
        await values.write(format === 'fvecs' ? withPrefixes(floats, dimension) : bytesOf(floats));
      }
      await ids.write(linesOf(batch.getChild('id')!));
      await metadata?.write(linesOf(batch.getChild('metadata')!));
      rowCount += batch.numRows;
      options.onRows(rowCount);
    }
    if (format === 'fbin' && rowCount > 0x7fffffff) {
      throw new CliError(`fbin is limited to 2147483647 vectors, found ${rowCount}`);
    }
    if (format !== 'fvecs') {
      await values.patch(0, headerOf(format, { rowCount, dimension, type }));
    }
    await publishAll(outputs);
    return rowCount;
  } catch (error) {
    for (const output of outputs) await output.discard();
    throw error;
  }
}

/** NumPy's names for the element types of vectors. */
const NPY_TYPES = { float32: '<f4', float16: '<f2', int8: '|i1', bit: '|b1' } as const;

function elementTypeOf(type: DataType): keyof typeof NPY_TYPES {
  if (DataType.isBool(type)) return 'bit';
  if (DataType.isInt(type)) return 'int8';
  return DataType.isFloat(type) && type.precision === Precision.HALF ? 'float16' : 'float32';
}

/** The first `count` elements in NumPy's representation, in which a boolean takes a byte. */
function npyElements(elements: Data, count: number): Uint8Array {
  if (DataType.isBool(elements.type)) return Uint8Array.from(floatsOf(elements, count));
  return bytesOf((elements.values as Float32Array | Uint16Array | Int8Array).subarray(0, count));
}

function floatsOf(elements: Data, count: number): Float32Array {
  return unpackElements(elementTypeOf(elements.type), count, (_, length) =>
    (elements.values as Float32Array).subarray(0, length),
  );
}

function headerOf(
  format: VectorFileFormat,
  {
    rowCount,
    dimension,
    type,
  }: { readonly rowCount: number; readonly dimension: number; readonly type: DataType },
): Uint8Array {
  if (format === 'fvecs') return new Uint8Array(0);
  if (format === 'fbin') return bytesOf(Int32Array.of(rowCount, dimension));
  const shape = `(${rowCount}, ${dimension})`;
  const descr = NPY_TYPES[elementTypeOf(type)];
  const text = `{'descr': '${descr}', 'fortran_order': False, 'shape': ${shape}, }`;
  const magic = Buffer.from('\x93NUMPY\x01\x00', 'latin1');
  const length = Buffer.alloc(2);
  length.writeUInt16LE(NPY_HEADER_BYTES - magic.length - length.length);
  const padded = text.padEnd(NPY_HEADER_BYTES - magic.length - length.length - 1);
  return Buffer.concat([magic, length, Buffer.from(`${padded}\n`, 'latin1')]);
}

function withPrefixes(floats: Float32Array, dimension: number): Uint8Array {
  const rowCount = floats.length / dimension;
  const record = dimension + 1;
  const whole = new Float32Array(rowCount * record);
  const prefixes = new Int32Array(whole.buffer);
  for (let row = 0; row < rowCount; row++) {
    prefixes[row * record] = dimension;
    whole.set(floats.subarray(row * dimension, (row + 1) * dimension), row * record + 1);
  }
  return bytesOf(whole);
}

function linesOf(texts: Iterable<string>): Uint8Array {
  let lines = '';
  for (const text of texts) lines += `${text}\n`;
  return Buffer.from(lines);
}

function bytesOf({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

const IVECS_ID_MAX = 0x7fffffff;
const NO_MATCH = -1;

/**
 * The matches of a query stream as ivecs: a record of k ids per query, best first, padded with -1. The ids must be
 * integers, such as those of `sagitta import --row-ids`. `queryCount` is called at the end, because the last queries
 * may have no matches.
 */
export async function* ivecsOfMatches(
  stream: AsyncIterable<Uint8Array>,
  k: number,
  queryCount: () => number,
): AsyncGenerator<Uint8Array> {
  let record = emptyRecord(k);
  let query = 0;
  for await (const batch of await RecordBatchReader.from(stream)) {
    const queries = batch.getChild('query_index')!;
    const ranks = batch.getChild('rank')!;
    const ids = batch.getChild('id')!;
    for (let row = 0; row < batch.numRows; row++) {
      for (const next = Number(queries.get(row)); query < next; query++) {
        yield bytesOf(record);
        record = emptyRecord(k);
      }
      record[Number(ranks.get(row))] = integerId(ids.get(row) as string);
    }
  }
  for (; query < queryCount(); query++) {
    yield bytesOf(record);
    record = emptyRecord(k);
  }
}

function emptyRecord(k: number): Int32Array {
  const record = new Int32Array(k + 1).fill(NO_MATCH);
  record[0] = k;
  return record;
}

function integerId(id: string): number {
  if (/^\d{1,10}$/.test(id) && Number(id) <= IVECS_ID_MAX) return Number(id);
  throw new CliError(
    `ivecs stores integer ids up to ${IVECS_ID_MAX}, found the id ${JSON.stringify(id)}; ` +
      'use ndjson, csv or arrow for other ids',
  );
}
