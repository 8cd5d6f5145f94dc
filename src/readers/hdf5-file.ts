// Reads HDF5 files in the layout of ann-benchmarks. The HDF5 library opens the file where it is and reads the dataset
// of vectors in slices, so only one slice is in memory.

import type { Dataset, Module } from 'h5wasm/node';
import type { InputSource } from './input-source.js';
import { ReadError } from './read-error.js';
import type { ReaderOptions } from './reader-options.js';
import { toFloats } from './record-files.js';
import {
  plainBatch,
  type RowBatch,
  type RowReader,
  rowsPerBatch,
  sampleOfVectors,
} from './row-batch.js';

const DATASET_DEFAULT = 'train';

export async function openHdf5(source: InputSource, options: ReaderOptions): Promise<RowReader> {
  const name = options.dataset ?? DATASET_DEFAULT;
  const table = await openTable(source, name);
  const { rowCount, dimension } = table;
  async function* batches(startRow: number): AsyncGenerator<RowBatch> {
    const step = rowsPerBatch(dimension, options.rowsPerBatch);
    const location = (row: number) => `${source.name}, row ${row + 1} of ${name}`;
    for (let firstRow = startRow; firstRow < rowCount; firstRow += step) {
      const end = Math.min(firstRow + step, rowCount);
      const values = Float32Array.from(table.slice(firstRow, end));
      const rows = { values, dimension, firstRow, field: name, location };
      if (yield* plainBatch(rows, options)) return;
    }
  }
  return { rowCount, batches, sample: (count) => sampleOfVectors({ batches }, count) };
}

/** Finds an item by its path through groups: `group/vectors`. Null when it does not exist. */
function findItem<Item>(
  wrapErrors: <Value>(read: () => Value) => Value,
  file: { keys(): string[]; get(name: string): Item },
  path: string,
): Item | null {
  let at = file;
  const parts = path.split('/').filter((part) => part !== '');
  for (const [depth, part] of parts.entries()) {
    if (!wrapErrors(() => at.keys()).includes(part)) return null;
    const item = wrapErrors(() => at.get(part));
    if (depth === parts.length - 1) return item;
    if (!isGroup<Item>(item)) return null;
    at = item;
  }
  return null;
}

function isGroup<Item>(item: unknown): item is { keys(): string[]; get(name: string): Item } {
  return typeof item === 'object' && item !== null && 'keys' in item && 'get' in item;
}

/** The filters built into the library; higher ids belong to plugins, which it lacks. */
const FILTER_ID_MAX = 6;

/** The little-endian bytes of rows, for number types that the library does not convert to JavaScript numbers. */
function bytesOf(library: typeof Module, dataset: Dataset, from: number, to: number): Uint8Array {
  const { shape, size } = dataset.metadata;
  const count = [BigInt(to - from), BigInt(shape![1]!)];
  const byteCount = (to - from) * shape![1]! * size;
  const pointer = library._malloc(byteCount);
  if (pointer === 0) throw new Error(`no memory for ${byteCount} bytes`);
  try {
    const { file_id: file, path } = dataset;
    const target = BigInt(pointer);
    library.get_dataset_data(file, path, count, [BigInt(from), 0n], [1n, 1n], target);
    return library.HEAPU8.slice(pointer, pointer + byteCount);
  } finally {
    library._free(pointer);
  }
}

interface NumberTable {
  readonly rowCount: number;
  readonly dimension: number;
  /** Row-major. */
  slice(from: number, to: number): ArrayLike<number>;
}

/** Opens a two-dimensional dataset. Throws ReadError when no dataset has that name. */
async function openTable(source: InputSource, name: string): Promise<NumberTable> {
  const { library: hdf5, path: filePath } = await source.file!.packages.hdf5();
  const path = source.name;
  const library = await hdf5.ready;
  // By default the library prints errors on stderr and continues.
  library.activate_throwing_error_handler();
  const wrapErrors = <Value>(read: () => Value): Value => {
    try {
      return read();
    } catch (cause) {
      const reason = (cause as Error).message.trim().split('\n').at(-1);
      throw new ReadError(`${path}: invalid HDF5: ${reason}`, { cause });
    }
  };
  const file = wrapErrors(() => new hdf5.File(filePath, 'r'));
  const found = findItem(wrapErrors, file, name);
  if (found === null) {
    const names = wrapErrors(() => file.paths());
    throw new ReadError(
      `${path}: no dataset ${name} (datasets: ${names.join(', ')}); choose one with --dataset`,
      { isUsage: true },
    );
  }
  if (!(found instanceof hdf5.Dataset)) {
    throw new ReadError(`${path}: ${name} is a group, expected a dataset`);
  }
  const dataset: Dataset = found;
  // Each access to these properties reads the header of the dataset.
  const { shape, dtype: type } = wrapErrors(() => ({ shape: dataset.shape, dtype: dataset.dtype }));
  if (shape === null || shape.length !== 2 || shape[1]! < 1) {
    throw new ReadError(
      `${path}: dataset ${name} has the shape (${shape?.join(', ') ?? ''}), ` +
        'expected (vectors, dimension)',
    );
  }
  if (typeof type !== 'string' || !/^[<>|=]?[bBhHiIlLqQefd]$/.test(type)) {
    throw new ReadError(
      `${path}: dataset ${name} has the type ${JSON.stringify(type)}, expected numbers`,
    );
  }
  const unknown = wrapErrors(() => dataset.filters).filter(({ id }) => id > FILTER_ID_MAX);
  if (unknown.length > 0) {
    const filters = unknown
      .map(({ name: filter, id }) => `${filter || 'filter'} (${id})`)
      .join(', ');
    throw new ReadError(
      `${path}: dataset ${name} has the filter ${filters}, which is not supported; convert the file with ` +
        'h5repack -f GZIP=1, or write it with compression="gzip"',
    );
  }
  const dimension = shape[1]!;
  return {
    rowCount: shape[0]!,
    dimension,
    slice(from, to) {
      if (type.endsWith('e')) {
        const bytes = wrapErrors(() => bytesOf(library, dataset, from, to));
        return toFloats('float16', bytes);
      }
      const values = wrapErrors(() =>
        dataset.slice([
          [from, to],
          [0, dimension],
        ]),
      );
      if (!ArrayBuffer.isView(values)) {
        throw new ReadError(`${path}: rows ${from + 1} to ${to} of ${name} cannot be read`);
      }
      const numbers = values as unknown as ArrayLike<number | bigint>;
      if (typeof numbers[0] !== 'bigint') return numbers as ArrayLike<number>;
      return Float64Array.from(numbers as ArrayLike<bigint>, Number);
    },
  };
}
