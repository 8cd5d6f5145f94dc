// A matrix device over TensorFlow's binding for Node, on a CUDA GPU or on TensorFlow's CPU library. It must run in a
// thread of its own, because reading blocks.
//
// The environment may allow products as TF32. A probe measures the error of products and selects the error bound.

import { execFileSync } from 'node:child_process';
import { loadTensorflow } from '../../platform/tensorflow-binding.js';
import type { DeviceMatrix, KeyTerms, TopColumns, TopDevice, TopKeys } from './matrix-device.js';
import { floatProductError, tf32ProductError } from './matrix-device.js';

const MEBIBYTE = 2 ** 20;

/** Resident bytes on a GPU whose memory size is unknown. */
const GPU_BYTES_USUAL = 4 * 2 ** 30;

/** The share of a GPU's free memory for resident rows; the rest is for products and keys. */
const GPU_RESIDENT_SHARE = 0.75;

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
  /** On a GPU, large enough to hide the cost of calls; products for 256 queries then take 128 MiB. */
  readonly chunkValuesMax: number;
  readonly chunkRowsMax: number;
  readonly residentBytesUsual: number;
  readonly residentBytesMax = Number.POSITIVE_INFINITY;
  readonly #tf: TensorFlow;
  readonly #lowest: TensorFlowTensor;
  readonly #isTf32: boolean;

  constructor(tf: TensorFlow) {
    const { binding, isUsingGpuDevice } = tf.backend();
    const gpu = isUsingGpuDevice ? describeGpu() : null;
    this.#tf = tf;
    this.name = `TensorFlow ${binding.TF_Version} on ${gpu?.name ?? 'the CPU'}`;
    this.hasOwnMemory = gpu !== null;
    this.chunkValuesMax = gpu === null ? 2 ** 20 : 2 ** 26;
    this.chunkRowsMax = gpu === null ? 2 ** 14 : 2 ** 17;
    this.residentBytesUsual = gpu?.residentBytes ?? 2 ** 30;
    this.#lowest = tf.scalar(Number.NEGATIVE_INFINITY);
    this.#isTf32 = this.#multipliesAsTf32();
  }

  load(values: Float32Array, rowCount: number, columnCount: number): DeviceMatrix | null {
    const tf = this.#tf;
    // The library keeps a reference to the array, so it gets a copy.
    const tensor = tf.tensor2d(values.slice(), [rowCount, columnCount], 'float32');
    const isLoaded = nullIfOutOfMemory(() => {
      // The first operation that reads the values copies them to the device.
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
    const tf = this.#tf;
    const tensorOf = (matrix: DeviceMatrix) => (matrix as TensorMatrix).tensor;
    return nullIfOutOfMemory(() => {
      const tensor = tf.tidy(() => {
        let keys = tf.matMul(left.tensor, right.tensor);
        if (weights !== null) keys = tf.mul(keys, tensorOf(weights));
        if (biases !== null) {
          keys = tf.add(keys, tf.mul(tensorOf(biasScales!), tensorOf(biases)));
        }
        if (mask !== null) keys = tf.add(keys, tensorOf(mask));
        if (caps !== null) keys = tf.where(tf.greater(keys, tensorOf(caps)), this.#lowest, keys);
        const { values, indices } = tf.topk(keys, count, true);
        return tf.concat([values, tf.cast(indices, 'float32')], 1);
      });
      return new TensorTop(tensor, left.rowCount, count);
    });
  }

  read(tops: readonly TensorTop[]): TopKeys[] | null {
    const tf = this.#tf;
    const all = nullIfOutOfMemory(() => {
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
    return this.#isTf32 ? tf32ProductError(dimension) : floatProductError(dimension);
  }

  residentBytes(rowCount: number, columnCount: number): number {
    return rowCount * columnCount * 4;
  }

  /** Does not count the constant of the capping operation. */
  matrixCount(): number {
    return this.#tf.memory().numTensors - 1;
  }

  /** Whether products have the error of TF32. Throws when their error is larger. */
  #multipliesAsTf32(): boolean {
    // The first value needs more mantissa bits than TF32 has, the second exactly as many.
    const values = [1 + 2 ** -11 - 2 ** -17, 1 + 2 ** -9];
    let isTf32 = false;
    for (const value of values) {
      for (const [rowCount, dimension, columnCount] of [
        [1, 8, 64],
        [7, 64, 1024],
        [256, 256, 4096],
      ] as const) {
        const error = this.#largestError(value, rowCount, dimension, columnCount);
        if (error > tf32ProductError(dimension)) {
          throw new Error(
            `${this.name} multiplies with a relative error of ${error}; TF32 allows ${tf32ProductError(dimension)}`,
          );
        }
        isTf32 ||= error > floatProductError(dimension);
      }
    }
    return isTf32;
  }

  /** Returns the largest relative error of a product of matrices filled with one value. */
  #largestError(value: number, rowCount: number, dimension: number, columnCount: number): number {
    const tf = this.#tf;
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

/** Rejects with a message for an operator when the binding is not installed or does not load. */
export async function createTensorflowDevice(): Promise<TopDevice> {
  return new TensorflowDevice(await loadTensorflow<TensorFlow>());
}

/** Runs `work`. Returns null when the device is out of memory; throws other errors. */
function nullIfOutOfMemory<Result>(work: () => Result): Result | null {
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

/** The name and free memory of the first GPU from nvidia-smi, since the library does not report them. */
function describeGpu(): { name: string; residentBytes: number } {
  try {
    const query = ['--query-gpu=name,memory.free', '--format=csv,noheader,nounits', '--id=0'];
    const answer = execFileSync('nvidia-smi', query, { encoding: 'utf8', timeout: 10_000 });
    const [name = '', free = ''] = answer.trim().split(', ');
    const residentBytes = Math.floor(Number(free) * MEBIBYTE * GPU_RESIDENT_SHARE);
    if (name !== '' && residentBytes > 0) return { name, residentBytes };
  } catch {
    // nvidia-smi is missing or does not answer.
  }
  return { name: 'a GPU', residentBytes: GPU_BYTES_USUAL };
}

// The members of the binding that this file uses.

interface TensorFlowTensor {
  /** Waits for the device. */
  dataSync(): Float32Array;
  dispose(): void;
}

interface TensorFlow {
  backend(): {
    readonly binding: { readonly TF_Version: string };
    readonly isUsingGpuDevice: boolean;
  };
  memory(): { readonly numTensors: number };
  tidy<Result>(work: () => Result): Result;
  scalar(value: number): TensorFlowTensor;
  tensor2d(values: Float32Array, shape: [number, number], type: 'float32'): TensorFlowTensor;
  fill(shape: [number, number], value: number): TensorFlowTensor;
  slice(tensor: TensorFlowTensor, begin: number[], size: number[]): TensorFlowTensor;
  reshape(tensor: TensorFlowTensor, shape: number[]): TensorFlowTensor;
  concat(tensors: readonly TensorFlowTensor[], axis: number): TensorFlowTensor;
  cast(tensor: TensorFlowTensor, type: 'float32'): TensorFlowTensor;
  matMul(left: TensorFlowTensor, right: TensorFlowTensor): TensorFlowTensor;
  mul(left: TensorFlowTensor, right: TensorFlowTensor): TensorFlowTensor;
  add(left: TensorFlowTensor, right: TensorFlowTensor): TensorFlowTensor;
  greater(left: TensorFlowTensor, right: TensorFlowTensor): TensorFlowTensor;
  where(
    condition: TensorFlowTensor,
    whereTrue: TensorFlowTensor,
    whereFalse: TensorFlowTensor,
  ): TensorFlowTensor;
  topk(
    tensor: TensorFlowTensor,
    k: number,
    isSorted: boolean,
  ): { values: TensorFlowTensor; indices: TensorFlowTensor };
}
