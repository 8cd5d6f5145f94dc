// The one file that knows TensorFlow.js: a matrix device over its WebAssembly backend. To be used in
// a thread of its own, since a product blocks the thread.

import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { type BackendWasm, setWasmPaths } from '@tensorflow/tfjs-backend-wasm';
import {
  backend,
  enableProdMode,
  matMul,
  memory,
  ready,
  setBackend,
  type Tensor2D,
  tensor2d,
  tidy,
} from '@tensorflow/tfjs-core';
import type { DeviceMatrix, MatrixDevice } from './matrix-device.js';

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

  constructor(tensor: Tensor2D) {
    this.tensor = tensor;
    [this.rowCount, this.columnCount] = tensor.shape;
  }

  dispose(): void {
    this.tensor.dispose();
  }
}

/** The allocator of the backend's heap, which its types leave out. */
interface Allocator {
  _malloc(byteCount: number): number;
  _free(pointer: number): void;
}

class WasmDevice implements MatrixDevice {
  private readonly backend: BackendWasm;

  constructor(wasmBackend: BackendWasm) {
    this.backend = wasmBackend;
  }

  load(values: Float32Array, rowCount: number, columnCount: number): DeviceMatrix | null {
    if (!this.hasRoom(values.byteLength)) return null;
    return new TensorMatrix(tensor2d(values, [rowCount, columnCount], 'float32'));
  }

  multiply(left: TensorMatrix, right: TensorMatrix, use: (product: Float32Array) => void): boolean {
    // The first product with a right operand packs it, into as many bytes again.
    const productBytes = left.rowCount * right.columnCount * 4;
    const packedBytes = right.rowCount * right.columnCount * 4;
    if (!this.hasRoom(productBytes + packedBytes)) return false;
    tidy(() => {
      const product = matMul(left.tensor, right.tensor);
      use(this.backend.typedArrayFromHeap(product) as Float32Array);
    });
    return true;
  }

  /** The tensor, and the packed copy that the backend makes of a right operand and keeps. */
  residentBytes(rowCount: number, columnCount: number): number {
    return 2 * rowCount * columnCount * 4;
  }

  matrixCount(): number {
    return memory().numTensors;
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
export async function createWasmDevice(): Promise<MatrixDevice> {
  const require = createRequire(import.meta.url);
  // The package's entry is beside its binaries, but the backend looks for them elsewhere in Node.
  setWasmPaths(`${dirname(require.resolve('@tensorflow/tfjs-backend-wasm'))}/`);
  enableProdMode();
  if (!(await setBackend('wasm'))) throw new Error('the WebAssembly backend did not start');
  await ready();
  return new WasmDevice(backend() as BackendWasm);
}
