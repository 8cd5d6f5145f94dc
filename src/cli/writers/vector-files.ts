// Exports to files of bare vectors (npy, fvecs, fbin), with ids and metadata beside them, a line
// each. The number of rows is known at the end only, and is filled in then.

import { type Data, type FixedSizeList, type Float32, RecordBatchReader } from 'apache-arrow';
import { CliError } from '../failure.js';
import { checkFree, type Output, openOutput } from './output.js';

export type VectorFileFormat = 'npy' | 'fvecs' | 'fbin';

/** Room for any number of rows. */
const NPY_HEADER_BYTES = 128;

export interface SideOutputs {
  readonly ids: string;
  readonly metadata: string | undefined;
}

/** `vectors.npy` → `vectors.ids.txt`, `vectors.metadata.ndjson`. */
export function sidePaths(path: string, hasMetadata: boolean): SideOutputs {
  const base = path.replace(/\.[^./]+$/, '');
  return {
    ids: `${base}.ids.txt`,
    metadata: hasMetadata ? `${base}.metadata.ndjson` : undefined,
  };
}

/** All of the files, or none. Throws CliError when one is there and may not be overwritten. */
export async function writeVectorFiles(
  stream: AsyncIterable<Uint8Array>,
  format: VectorFileFormat,
  path: string,
  options: {
    readonly dimension: number;
    readonly isForced: boolean;
    readonly side: SideOutputs;
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
    await values.write(headerOf(format, 0, dimension));
    const reader = await RecordBatchReader.from(stream);
    let rowCount = 0;
    for await (const batch of reader) {
      const list = batch.getChild('values')!.data[0] as Data<FixedSizeList<Float32>>;
      const floats = list.children[0]!.values.subarray(0, batch.numRows * dimension);
      await values.write(format === 'fvecs' ? withPrefixes(floats, dimension) : bytesOf(floats));
      await ids.write(linesOf(batch.getChild('id')!));
      await metadata?.write(linesOf(batch.getChild('metadata')!));
      rowCount += batch.numRows;
      options.onRows(rowCount);
    }
    if (format === 'fbin' && rowCount > 0x7fffffff) {
      throw new CliError(`fbin holds 2147483647 vectors at most, found ${rowCount}`);
    }
    if (format !== 'fvecs') await values.patch(0, headerOf(format, rowCount, dimension));
    for (const output of outputs) await output.finish();
    return rowCount;
  } catch (error) {
    for (const output of outputs) await output.discard();
    throw error;
  }
}

function headerOf(format: VectorFileFormat, rowCount: number, dimension: number): Uint8Array {
  if (format === 'fvecs') return new Uint8Array(0);
  if (format === 'fbin') return bytesOf(Int32Array.of(rowCount, dimension));
  const shape = `(${rowCount}, ${dimension})`;
  const text = `{'descr': '<f4', 'fortran_order': False, 'shape': ${shape}, }`;
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

function bytesOf({ buffer, byteOffset, byteLength }: Float32Array | Int32Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}
