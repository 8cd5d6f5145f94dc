// Makes the WebAssembly backend of TensorFlow.js multiply matrices with the kernels for this processor, which are several
// times as fast. They read and write the heap of the backend in place, so all other operations stay as they are.

import type { BackendWasm } from '@tensorflow/tfjs-backend-wasm';
import {
  _FusedMatMul,
  type _FusedMatMulAttrs,
  type _FusedMatMulInputs,
  BatchMatMul,
  type BatchMatMulAttrs,
  getKernel,
  type KernelFunc,
  registerKernel,
  type TensorInfo,
  unregisterKernel,
  util,
} from '@tensorflow/tfjs-core';
import { addonPath, loadAddon } from './native-addon.js';

interface Kernels {
  /**
   * Multiplies pairs of row-major matrices: products [count, rows, columns] = left [count, rows, inner] ·
   * right [count, inner, columns], or [count, columns, inner] if it is transposed. `sizes` are count, rows, inner, columns.
   */
  multiply(
    left: Float32Array,
    right: Float32Array,
    sizes: Uint32Array,
    isRightTransposed: boolean,
    products: Float32Array,
  ): void;
}

/** Requires the backend to be in use. Returns false where the kernels are not built or not for this machine. */
export function useNativeProducts(): boolean {
  let kernels: Kernels;
  try {
    kernels = loadAddon<Kernels>(addonPath('sagitta.node'), 'the kernels are not built');
  } catch {
    return false;
  }
  replaceKernel(BatchMatMul, ({ inputs, attrs, backend }) => {
    const { a, b } = inputs as unknown as { readonly a: TensorInfo; readonly b: TensorInfo };
    const { transposeA, transposeB } = attrs as unknown as BatchMatMulAttrs;
    if (transposeA) return null;
    return multiply(kernels, backend as BackendWasm, a, b, transposeB);
  });
  replaceKernel(_FusedMatMul, ({ inputs, attrs, backend }) => {
    const { a, b, bias } = inputs as unknown as _FusedMatMulInputs;
    const { transposeA, transposeB, activation } = attrs as unknown as _FusedMatMulAttrs;
    if (transposeA || (bias !== undefined && bias.shape.length !== 1)) return null;
    if (activation !== 'linear' && activation !== 'relu') return null;
    const products = multiply(kernels, backend as BackendWasm, a, b, transposeB);
    if (products !== null) finish(backend as BackendWasm, products, bias, activation === 'relu');
    return products;
  });
  return true;
}

/** Replaces a kernel of the backend for the inputs for which `compute` does not return null. */
function replaceKernel(
  name: string,
  compute: (...parameters: Parameters<KernelFunc>) => TensorInfo | null,
): void {
  const own = getKernel(name, 'wasm');
  unregisterKernel(name, 'wasm');
  // Without the other members of `own`, whose setup has already run.
  registerKernel({
    kernelName: name,
    backendName: 'wasm',
    kernelFunc: (parameters) => compute(parameters) ?? own.kernelFunc(parameters),
  });
}

/** Returns null unless both have as many matrices, all float32. */
function multiply(
  kernels: Kernels,
  backend: BackendWasm,
  left: TensorInfo,
  right: TensorInfo,
  isRightTransposed: boolean,
): TensorInfo | null {
  if (left.dtype !== 'float32' || right.dtype !== 'float32') return null;
  const outer = left.shape.slice(0, -2);
  if (!util.arraysEqual(outer, right.shape.slice(0, -2))) return null;
  const [rows, inner] = left.shape.slice(-2) as [number, number];
  const columns = right.shape.at(isRightTransposed ? -2 : -1)!;
  const products = backend.makeOutput([...outer, rows, columns], 'float32');
  // Views of the heap, which the allocation may have moved.
  kernels.multiply(
    backend.typedArrayFromHeap(left) as Float32Array,
    backend.typedArrayFromHeap(right) as Float32Array,
    Uint32Array.of(util.sizeFromShape(outer), rows, inner, columns),
    isRightTransposed,
    backend.typedArrayFromHeap(products) as Float32Array,
  );
  return products;
}

/** Adds the bias to each row, and replaces negative values by zero for `relu`. */
function finish(
  backend: BackendWasm,
  products: TensorInfo,
  bias: TensorInfo | undefined,
  isRelu: boolean,
): void {
  const values = backend.typedArrayFromHeap(products) as Float32Array;
  const columns = products.shape.at(-1)!;
  const added = bias === undefined ? new Float32Array(columns) : backend.typedArrayFromHeap(bias);
  const least = isRelu ? 0 : Number.NEGATIVE_INFINITY;
  for (let at = 0; at < values.length; at += columns) {
    for (let i = 0; i < columns; i++) {
      const value = values[at + i]! + added[i]!;
      values[at + i] = value > least ? value : least;
    }
  }
}
