// The native addon of the cuda engine, loaded once per thread. Its functions are declared here and
// check their arguments themselves; kernels/cuda/device.h documents them. Devices and blocks are ticket
// numbers, valid in the thread that created them.

import { addonPath, buildCommand, loadAddon } from '../../platform/native-addon.js';
import type { KernelBatch, KernelHits } from '../core/kernel-batch.js';

export interface DeviceFacts {
  /** The product name. */
  readonly name: string;
  /** The kernels in use. */
  readonly kernels: string;
  /** 90 for compute capability 9.0. */
  readonly computeCapability: number;
  readonly multiprocessorCount: number;
  /** CUDA versions: 13000 is 13.0. */
  readonly driverVersion: number;
  readonly runtimeVersion: number;
  readonly memoryBytes: number;
  readonly freeBytes: number;
}

/** Milliseconds on the device and on the host, and the bytes read back. */
interface DeviceTimes {
  readonly uploadMs: number;
  readonly scanMs: number;
  readonly selectMs: number;
  readonly rescoreMs: number;
  readonly totalMs: number;
  readonly prepareMs: number;
  readonly finishMs: number;
  readonly readbackBytes: number;
}

export interface DeviceHits extends KernelHits {
  /** [queries]: 0 for a query that the device could not decide, which has no hits. */
  readonly isDecided: Uint8Array;
  readonly times: DeviceTimes;
}

/**
 * All functions throw Errors with the message of the device or its driver. Their `code` is
 * 'DEVICE_LOST' when the device is unusable, and 'OUT_OF_MEMORY' when a smaller request may succeed.
 */
export interface CudaKernels {
  deviceCount(): number;
  /** Returns a ticket. `kernels` is null for the fastest that pass their check on the device. */
  open(index: number, kernels: string | null): number;
  describe(device: number): DeviceFacts;
  /** Closes the device and frees its blocks. */
  close(device: number): void;
  /** Bytes of device memory of a block; the same on every device. */
  blockBytes(dimension: number, rowCapacity: number, hasValues: boolean): number;
  createBlock(device: number, dimension: number): number;
  /** Sets the capacity of a block. False, with the block unchanged, when there is no memory. */
  reserve(block: number, rowCapacity: number, hasValues: boolean): boolean;
  /** Appends rows until there are `to`; both arrays start with row 0. */
  extend(block: number, values: Float32Array, codes: Uint8Array | null, to: number): void;
  destroyBlock(block: number): void;
  /** `residents` has a ticket per block of the batch, with at least the rows that its views search. */
  search(device: number, batch: KernelBatch, residents: Uint32Array): DeviceHits;
}

/** Throws, with a message for an operator, when the addon is not built or does not load. */
export function loadCudaKernels(path: string = addonPath('sagitta-cuda.node')): CudaKernels {
  return loadAddon<CudaKernels>(
    path,
    `the CUDA kernels are not built; run ${buildCommand('cuda')}, which needs nvcc`,
  );
}

/** The code of an error of the kernels. */
export function failureCode(error: unknown): 'DEVICE_LOST' | 'OUT_OF_MEMORY' | null {
  const code = error instanceof Error && 'code' in error ? error.code : null;
  return code === 'DEVICE_LOST' || code === 'OUT_OF_MEMORY' ? code : null;
}
