// The kernels of the simd engine, if they are built.

import { type Kernels, loadKernels } from '../../../src/engine/simd/simd-kernels.js';

/** Null if there was no compiler. */
export function loadedKernels(): Kernels | null {
  try {
    return loadKernels();
  } catch (error) {
    console.log(String(error));
    return null;
  }
}
