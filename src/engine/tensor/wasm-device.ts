// A matrix device over the WebAssembly backend of TensorFlow.js. It must run in a thread of its own, because products
// block.

import type { BackendWasm } from '@tensorflow/tfjs-backend-wasm';
import {
  backend,
  type DataStorage,
  matMul,
  memory,
  type Tensor2D,
  tensor2d,
  tidy,
} from '@tensorflow/tfjs-core';
import { assert } from '../../common/errors.js';
import { startWasmBackend } from '../../platform/wasm-backend.js';
import { type DeviceMatrix, floatProductError, type ProductDevice } from './matrix-device.js';

/**
 * Bytes requested beyond an allocation: room for the allocator's records and a kernel's small buffers, and a
 * large step when the heap grows, since growing often is slow. Untouched memory costs only address space.
 */
const SLACK_BYTES = 2 ** 26;

class TensorMatrix implements DeviceMatrix {
  readonly rowCount: number;
  readonly columnCount: number;
  readonly tensor: Tensor2D;
  /** Whether only the backend's packed copy is left, which can only be a right operand. */
  isPacked = false;

  constructor(tensor: Tensor2D) {
    this.tensor = tensor;
    [this.rowCount, this.columnCount] = tensor.shape;
  }

  dispose(): void {
    this.tensor.dispose();
  }
}

/** The backend's record of a tensor in its heap, which is missing from its types. */
interface HeapRecord {
  memoryOffset: number | null;
}

/** The allocator of the backend's heap, which is missing from its types. */
interface Allocator {
  _malloc(byteCount: number): number;
  _free(pointer: number): void;
}

class WasmDevice implements ProductDevice {
  readonly kind = 'product';
  readonly name = 'WebAssembly';
  readonly hasOwnMemory = false;
  /** 4 MiB: enough to hide the cost of a call, and small enough for the caches during a batch. */
  readonly chunkValuesMax = 2 ** 20;
  /** Limits the product with 256 queries to 16 MiB. */
  readonly chunkRowsMax = 16_384;
  /** WebAssembly memory is limited to 4 GiB; products and queries need some of it. */
  readonly residentBytesUsual = 2 ** 30;
  readonly residentBytesMax = 3 * 2 ** 30;
  readonly #backend: BackendWasm;

  constructor(wasmBackend: BackendWasm) {
    this.#backend = wasmBackend;
  }

  load(values: Float32Array, rowCount: number, columnCount: number): DeviceMatrix | null {
    if (!this.#hasRoom(values.byteLength)) return null;
    return new TensorMatrix(tensor2d(values, [rowCount, columnCount], 'float32'));
  }

  multiply(left: TensorMatrix, right: TensorMatrix, use: (product: Float32Array) => void): boolean {
    assert(!left.isPacked, 'the left operand was not used as a right operand before');
    // The first product with a right operand makes a packed copy of the same size.
    const productBytes = left.rowCount * right.columnCount * 4;
    const packedBytes = right.isPacked ? 0 : right.rowCount * right.columnCount * 4;
    if (!this.#hasRoom(productBytes + packedBytes)) return false;
    tidy(() => {
      const product = matMul(left.tensor, right.tensor);
      use(this.#backend.typedArrayFromHeap(product) as Float32Array);
    });
    this.#keepPackedOnly(right);
    return true;
  }

  productError(dimension: number): number {
    return floatProductError(dimension);
  }

  /** Counts the packed copy that the backend keeps of a right operand. */
  residentBytes(rowCount: number, columnCount: number): number {
    return rowCount * columnCount * 4;
  }

  matrixCount(): number {
    return memory().numTensors;
  }

  /**
   * Frees the original values, which the backend never reads again after packing them; otherwise rows
   * would be resident twice. `checkPacking` verifies this.
   */
  #keepPackedOnly(matrix: TensorMatrix): void {
    if (matrix.isPacked) return;
    matrix.isPacked = true;
    const { dataIdMap } = this.#backend as unknown as { dataIdMap: DataStorage<HeapRecord> };
    const record = dataIdMap.get(matrix.tensor.dataId);
    const allocator = this.#backend.wasm as unknown as Allocator;
    allocator._free(record.memoryOffset ?? 0);
    // The backend's own disposal then frees nothing.
    record.memoryOffset = null;
  }

  /** Whether an allocation would succeed. The backend does not check: a failing allocation corrupts its heap. */
  #hasRoom(byteCount: number): boolean {
    const allocator = this.#backend.wasm as unknown as Allocator;
    const pointer = allocator._malloc(byteCount + SLACK_BYTES);
    if (pointer === 0) return false;
    allocator._free(pointer);
    return true;
  }
}

/** Rejects when the backend does not start: WebAssembly is not supported or its files are missing. */
export async function createWasmDevice(): Promise<ProductDevice> {
  await startWasmBackend();
  const device = new WasmDevice(backend() as BackendWasm);
  checkPacking(device);
  return device;
}

/** Throws when the backend reads a right operand again after it has packed it. */
function checkPacking(device: WasmDevice): void {
  const size = 64;
  const ones = new Float32Array(size * size).fill(1);
  const left = device.load(ones, size, size) as TensorMatrix;
  const right = device.load(ones, size, size) as TensorMatrix;
  const sums: number[] = [];
  const add = (product: Float32Array) => {
    sums.push(product.reduce((sum, value) => sum + value, 0));
  };
  device.multiply(left, right, add);
  // Overwrites the freed values of the right operand.
  const intruder = device.load(new Float32Array(size * size).fill(7), size, size) as TensorMatrix;
  device.multiply(left, right, add);
  for (const matrix of [left, right, intruder]) matrix.dispose();
  if (sums.some((sum) => sum !== size ** 3)) {
    throw new Error(`the WebAssembly backend does not keep its packed operands: ${sums}`);
  }
}
