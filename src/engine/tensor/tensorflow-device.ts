// The one file that knows TensorFlow's binding for Node: a matrix device on a CUDA GPU, or on
// TensorFlow's own library for the CPU. To be used in a thread of its own that shares the
// environment of the process: reading blocks the thread, and the library reads that environment.
//
// On Ampere and later cuBLAS would multiply as TF32; the environment that is set here before the
// library is loaded forbids it. A probe looks whether it obeys, and chooses the error bound.

import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { DeviceMatrix, KeyTerms, TopColumns, TopDevice, TopKeys } from './matrix-device.js';
import { floatProductError, tf32ProductError } from './matrix-device.js';
import type { TensorFlow, TensorFlowTensor } from './tensorflow-package.js';

/** From dist/src/engine, where this file runs, to what scripts/install-tensorflow.mjs makes. */
const INSTALLED_URL = new URL('../../../../build/tensorflow/package.json', import.meta.url);

/** What the library reads when it is loaded; an operator's own choice stands. */
const ENVIRONMENT = {
  // Float32 products in full.
  NVIDIA_TF32_OVERRIDE: '0',
  // As much of the GPU's memory as is used, instead of all of it.
  TF_FORCE_GPU_ALLOW_GROWTH: 'true',
  // Errors only.
  TF_CPP_MIN_LOG_LEVEL: '2',
};

const MEBIBYTE = 2 ** 20;

/** Resident bytes on a GPU that does not say how much memory it has. */
const GPU_BYTES_USUAL = 4 * 2 ** 30;

/** The part of a GPU's free memory for resident rows; products and their keys take some of the rest. */
const GPU_RESIDENT_PART = 0.75;

class TensorMatrix implements DeviceMatrix {
  readonly rowCount: number;
  readonly columnCount: number;
  readonly tensor: TensorFlowTensor;

  constructor(tensor: TensorFlowTensor, rowCount: number, columnCount: number) {
    this.tensor = tensor;
    this.rowCount = rowCount;
    this.columnCount = columnCount;
  }

  dispose(): void {
    this.tensor.dispose();
  }
}

class TensorTop implements TopColumns {
  readonly rowCount: number;
  readonly count: number;
  /** [rowCount, 2 * count]: keys, then columns as float32, which is exact below 2^24. */
  readonly tensor: TensorFlowTensor;

  constructor(tensor: TensorFlowTensor, rowCount: number, count: number) {
    this.tensor = tensor;
    this.rowCount = rowCount;
    this.count = count;
  }

  dispose(): void {
    this.tensor.dispose();
  }
}

class TensorflowDevice implements TopDevice {
  readonly kind = 'top';
  readonly name: string;
  readonly hasOwnMemory: boolean;
  /** On a GPU what hides the cost of some calls, and products of 256 queries are 128 MiB; else as for WebAssembly. */
  readonly chunkValuesMax: number;
  readonly chunkRowsMax: number;
  readonly residentBytesUsual: number;
  readonly residentBytesMax = Number.POSITIVE_INFINITY;
  private readonly tf: TensorFlow;
  private readonly lowest: TensorFlowTensor;
  private readonly isTf32: boolean;

  constructor(tf: TensorFlow) {
    const { binding, isUsingGpuDevice } = tf.backend();
    const gpu = isUsingGpuDevice ? describeGpu() : null;
    this.tf = tf;
    this.name = `TensorFlow ${binding.TF_Version} on ${gpu?.name ?? 'the CPU'}`;
    this.hasOwnMemory = gpu !== null;
    this.chunkValuesMax = gpu === null ? 2 ** 20 : 2 ** 26;
    this.chunkRowsMax = gpu === null ? 2 ** 14 : 2 ** 17;
    this.residentBytesUsual = gpu?.residentBytes ?? 2 ** 30;
    this.lowest = tf.scalar(Number.NEGATIVE_INFINITY);
    this.isTf32 = this.multipliesAsTf32();
  }

  load(values: Float32Array, rowCount: number, columnCount: number): DeviceMatrix | null {
    const { tf } = this;
    // The library keeps what it is given, until it is copied to a GPU or for good.
    const tensor = tf.tensor2d(values.slice(), [rowCount, columnCount], 'float32');
    const isLoaded = orNoRoom(() => {
      // Values go to the device with the first operation that reads them.
      tf.slice(tensor, [0, 0], [1, 1]).dispose();
      return true;
    });
    if (isLoaded) return new TensorMatrix(tensor, rowCount, columnCount);
    tensor.dispose();
    return null;
  }

  topColumns(
    left: TensorMatrix,
    right: TensorMatrix,
    { weights, biases, biasScales, mask, caps }: KeyTerms,
    count: number,
  ): TensorTop | null {
    const { tf } = this;
    const tensorOf = (matrix: DeviceMatrix) => (matrix as TensorMatrix).tensor;
    return orNoRoom(() => {
      const tensor = tf.tidy(() => {
        let keys = tf.matMul(left.tensor, right.tensor);
        if (weights !== null) keys = tf.mul(keys, tensorOf(weights));
        if (biases !== null) {
          keys = tf.add(keys, tf.mul(tensorOf(biasScales!), tensorOf(biases)));
        }
        if (mask !== null) keys = tf.add(keys, tensorOf(mask));
        if (caps !== null) keys = tf.where(tf.greater(keys, tensorOf(caps)), this.lowest, keys);
        const { values, indices } = tf.topk(keys, count, true);
        return tf.concat([values, tf.cast(indices, 'float32')], 1);
      });
      return new TensorTop(tensor, left.rowCount, count);
    });
  }

  read(tops: readonly TensorTop[]): TopKeys[] | null {
    const { tf } = this;
    const all = orNoRoom(() => {
      const joined = tf.tidy(() =>
        tf.concat(
          tops.map(({ tensor }) => tf.reshape(tensor, [-1])),
          0,
        ),
      );
      const values = joined.dataSync();
      joined.dispose();
      return values;
    });
    if (all === null) return null;
    let offset = 0;
    return tops.map((top) => {
      const { rowCount, count } = top;
      const keys = new Float32Array(rowCount * count);
      const columns = new Float32Array(rowCount * count);
      for (let row = 0; row < rowCount; row++) {
        keys.set(all.subarray(offset, offset + count), row * count);
        columns.set(all.subarray(offset + count, offset + 2 * count), row * count);
        offset += 2 * count;
      }
      top.dispose();
      return { keys, columns };
    });
  }

  productError(dimension: number): number {
    return this.isTf32 ? tf32ProductError(dimension) : floatProductError(dimension);
  }

  residentBytes(rowCount: number, columnCount: number): number {
    return rowCount * columnCount * 4;
  }

  /** Without the one that is kept for capping. */
  matrixCount(): number {
    return this.tf.memory().numTensors - 1;
  }

  /** Throws when products are less exact than TF32 makes them. */
  private multipliesAsTf32(): boolean {
    // The first needs 12 bits of mantissa, the second 10, as TF32 has: fewer lose more than its bound.
    const values = [1 + 2 ** -11 - 2 ** -17, 1 + 2 ** -9];
    let isTf32 = false;
    for (const value of values) {
      for (const [rowCount, dimension, columnCount] of [
        [1, 8, 64],
        [7, 64, 1024],
        [256, 256, 4096],
      ] as const) {
        const error = this.largestError(value, rowCount, dimension, columnCount);
        if (error > tf32ProductError(dimension)) {
          throw new Error(`${this.name} multiplies with an error of ${error}, more than TF32 has`);
        }
        isTf32 ||= error > floatProductError(dimension);
      }
    }
    return isTf32;
  }

  /** Relative, of products of matrices full of one value. */
  private largestError(
    value: number,
    rowCount: number,
    dimension: number,
    columnCount: number,
  ): number {
    const { tf } = this;
    const product = tf.tidy(() => {
      const left = tf.fill([rowCount, dimension], value);
      return tf.matMul(left, tf.fill([dimension, columnCount], value));
    });
    const sum = dimension * value * value;
    let largest = 0;
    for (const found of product.dataSync()) {
      const error = Math.abs(found - sum) / sum;
      if (!(error <= largest)) largest = error;
    }
    product.dispose();
    return largest;
  }
}

/** Why looking for a GPU is not worth the cost of loading the library, in words; null where it is. */
export function whyNoGpu(): string | null {
  // The second is how Windows lends its GPU to Linux.
  const hasDriver = ['/dev/nvidiactl', '/dev/dxg'].some((path) => existsSync(path));
  if (!hasDriver) return 'no driver of an NVIDIA GPU';
  try {
    createPackageRequire().resolve('@tensorflow/tfjs-node-gpu');
    return null;
  } catch {
    return 'TensorFlow is not installed; `node scripts/install-tensorflow.mjs` installs it';
  }
}

/** Rejects, in words for an operator, where the binding is not installed or does not load. */
export async function createTensorflowDevice(): Promise<TopDevice> {
  for (const [name, value] of Object.entries(ENVIRONMENT)) process.env[name] ??= value;
  const tf = loadPackage();
  tf.enableProdMode();
  await tf.ready();
  return new TensorflowDevice(tf);
}

/** Finds what the install script made, else what the package manager did. */
function createPackageRequire(): NodeJS.Require {
  return createRequire(existsSync(INSTALLED_URL) ? INSTALLED_URL : import.meta.url);
}

function loadPackage(): TensorFlow {
  const require = createPackageRequire();
  const util = require('node:util') as { isNullOrUndefined?: (value: unknown) => boolean };
  // The binding's kernels call it, and Node has it no more since 23.
  util.isNullOrUndefined ??= (value) => value === null || value === undefined;
  try {
    return require('@tensorflow/tfjs-node-gpu') as TensorFlow;
  } catch (error) {
    const cause = error instanceof Error ? error.message.split('\n')[0] : String(error);
    throw new Error(
      `TensorFlow is not installed here, or does not load (${cause}); \`node scripts/install-tensorflow.mjs\` installs it`,
    );
  }
}

/** Null where the device has no room; other failures are thrown. */
function orNoRoom<Result>(work: () => Result): Result | null {
  try {
    return work();
  } catch (error) {
    if (
      error instanceof Error &&
      /out of memory|\boom\b|resource.?exhausted/i.test(error.message)
    ) {
      return null;
    }
    throw error;
  }
}

/** The first GPU, as its driver's own tool tells; the library does not. */
function describeGpu(): { name: string; residentBytes: number } {
  try {
    const query = ['--query-gpu=name,memory.free', '--format=csv,noheader,nounits', '--id=0'];
    const answer = execFileSync('nvidia-smi', query, { encoding: 'utf8', timeout: 10_000 });
    const [name = '', free = ''] = answer.trim().split(', ');
    const residentBytes = Math.floor(Number(free) * MEBIBYTE * GPU_RESIDENT_PART);
    if (name !== '' && residentBytes > 0) return { name, residentBytes };
  } catch {
    // Not there, or it does not answer: then the GPU has no name.
  }
  return { name: 'a GPU', residentBytes: GPU_BYTES_USUAL };
}
