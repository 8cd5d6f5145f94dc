// The one file that knows TensorFlow.js: a matrix device over its WebAssembly backend. To be used in
// a thread of its own, since a product blocks the thread.

import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { type BackendWasm, setWasmPaths } from '@tensorflow/tfjs-backend-wasm';
import {
  backend,
  type DataStorage,
  enableProdMode,
  matMul,
  memory,
  ready,
  setBackend,
  type Tensor2D,
  tensor2d,
  tidy,
} from '@tensorflow/tfjs-core';
import { assert } from '../../common/errors.js';
import {
  type DeviceMatrix,
  floatProductError,
  type ProductDevice,
} from '../tensor/matrix-device.js';

/**
 * What is asked for beside an allocation: room for the allocator's own records and for a kernel's
 * small buffers, and a large step where the heap has to grow, since growing often is slow. Memory
 * that is not touched costs address space only.
 */
const SLACK_BYTES = 2 ** 26;

class TensorMatrix implements DeviceMatrix {
  readonly rowCount: number;
  readonly columnCount: number;
  readonly tensor: Tensor2D;
  /** Whether only the backend's packed copy is left, which serves as a right operand. */
  isPacked = false;

  constructor(tensor: Tensor2D) {
    this.tensor = tensor;
    [this.rowCount, this.columnCount] = tensor.shape;
  }

  dispose(): void {
    this.tensor.dispose();
  }
}

/** What the backend knows of a tensor's place in its heap, which its types leave out. */
interface HeapPlace {
  memoryOffset: number | null;
}

/** The allocator of the backend's heap, which its types leave out. */
interface Allocator {
  _malloc(byteCount: number): number;
  _free(pointer: number): void;
}

class WasmDevice implements ProductDevice {
  readonly kind = 'product';
  readonly name = 'WebAssembly';
  readonly hasOwnMemory = false;
  /** 4 MiB is enough to hide the cost of a call, and stays in the caches while a batch passes. */
  readonly chunkValuesMax = 2 ** 20;
  /** Products of 256 queries with it are 16 MiB. */
  readonly chunkRowsMax = 16_384;
  /** The memory of WebAssembly ends at 4 GiB; what is needed beside resident rows is small, but not bounded by them. */
  readonly residentBytesUsual = 2 ** 30;
  readonly residentBytesMax = 3 * 2 ** 30;
  private readonly backend: BackendWasm;

  constructor(wasmBackend: BackendWasm) {
    this.backend = wasmBackend;
  }

  load(values: Float32Array, rowCount: number, columnCount: number): DeviceMatrix | null {
    if (!this.hasRoom(values.byteLength)) return null;
    return new TensorMatrix(tensor2d(values, [rowCount, columnCount], 'float32'));
  }

  multiply(left: TensorMatrix, right: TensorMatrix, use: (product: Float32Array) => void): boolean {
    assert(!left.isPacked, 'a right operand serves as nothing else afterwards');
    // The first product with a right operand packs it, into as many bytes again.
    const productBytes = left.rowCount * right.columnCount * 4;
    const packedBytes = right.isPacked ? 0 : right.rowCount * right.columnCount * 4;
    if (!this.hasRoom(productBytes + packedBytes)) return false;
    tidy(() => {
      const product = matMul(left.tensor, right.tensor);
      use(this.backend.typedArrayFromHeap(product) as Float32Array);
    });
    this.keepPackedOnly(right);
    return true;
  }

  productError(dimension: number): number {
    return floatProductError(dimension);
  }

  /** The packed copy that the backend makes of a right operand and keeps. */
  residentBytes(rowCount: number, columnCount: number): number {
    return rowCount * columnCount * 4;
  }

  matrixCount(): number {
    return memory().numTensors;
  }

  /**
   * Gives the heap back what the backend never reads again: with the packed copy, rows would be
   * resident twice. `provePacking` holds the backend to this.
   */
  private keepPackedOnly(matrix: TensorMatrix): void {
    if (matrix.isPacked) return;
    matrix.isPacked = true;
    const place = (this.backend as unknown as { dataIdMap: DataStorage<HeapPlace> }).dataIdMap.get(
      matrix.tensor.dataId,
    );
    const allocator = this.backend.wasm as unknown as Allocator;
    allocator._free(place.memoryOffset ?? 0);
    // Freeing nothing is what the backend's own disposal then does.
    place.memoryOffset = null;
  }

  /** The backend does not check its allocations, and a failed one would corrupt its heap: ask before. */
  private hasRoom(byteCount: number): boolean {
    const allocator = this.backend.wasm as unknown as Allocator;
    const pointer = allocator._malloc(byteCount + SLACK_BYTES);
    if (pointer === 0) return false;
    allocator._free(pointer);
    return true;
  }
}

/** Rejects when the backend does not start: no WebAssembly, or its files are missing. */
export async function createWasmDevice(): Promise<ProductDevice> {
  const require = createRequire(import.meta.url);
  // The package's entry is beside its binaries, but the backend looks for them elsewhere in Node.
  setWasmPaths(`${dirname(require.resolve('@tensorflow/tfjs-backend-wasm'))}/`);
  enableProdMode();
  if (!(await setBackend('wasm'))) throw new Error('the WebAssembly backend did not start');
  await ready();
  const device = new WasmDevice(backend() as BackendWasm);
  provePacking(device);
  return device;
}

/** Throws when a product reads its right operand again after the backend has packed it. */
function provePacking(device: WasmDevice): void {
  const size = 64;
  const ones = new Float32Array(size * size).fill(1);
  const left = device.load(ones, size, size) as TensorMatrix;
  const right = device.load(ones, size, size) as TensorMatrix;
  const sums: number[] = [];
  const add = (product: Float32Array) => {
    sums.push(product.reduce((sum, value) => sum + value, 0));
  };
  device.multiply(left, right, add);
  // Takes the place that the right operand left.
  const intruder = device.load(new Float32Array(size * size).fill(7), size, size) as TensorMatrix;
  device.multiply(left, right, add);
  for (const matrix of [left, right, intruder]) matrix.dispose();
  if (sums.some((sum) => sum !== size ** 3)) {
    throw new Error(`the WebAssembly backend does not keep its packed operands: ${sums}`);
  }
}
