// The native addon for GPUs: loaded by path, once a thread. What its functions take and give is
// declared here and checked there; see kernels/cuda/device.h for what they mean. Devices and blocks
// are numbers that mean something to the thread that made them only.

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import type { KernelBatch, KernelHits } from '../simd/simd-kernels.js';

export interface DeviceFacts {
  /** As its maker calls it. */
  readonly name: string;
  /** The kernels in use. */
  readonly kernels: string;
  /** 90 for compute capability 9.0. */
  readonly computeCapability: number;
  readonly multiprocessorCount: number;
  /** Of CUDA: 13000 is 13.0. */
  readonly driverVersion: number;
  readonly runtimeVersion: number;
  readonly memoryBytes: number;
  readonly freeBytes: number;
}

/** Milliseconds on the device, then on the host; and what came back. */
export interface DeviceTimes {
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
  /** One a query: 0 where the device cannot decide, which then has no hits. */
  readonly isDecided: Uint8Array;
  readonly times: DeviceTimes;
}

/**
 * All throw Errors in the words of the device or its driver, with the `code` 'DEVICE_LOST' when
 * nothing will work on it any more and 'OUT_OF_MEMORY' when something smaller may.
 */
export interface CudaKernels {
  deviceCount(): number;
  /** Null for the fastest kernels that prove themselves on the device. */
  open(index: number, kernels: string | null): number;
  describe(device: number): DeviceFacts;
  /** Its blocks are gone with it. */
  close(device: number): void;
  /** Bytes of device memory that a block takes; the same on every device. */
  blockBytes(dimension: number, rowCapacity: number, hasValues: boolean): number;
  createBlock(device: number, dimension: number): number;
  /** Room for exactly so many rows. False when there is no memory for it; the block is as it was. */
  reserve(block: number, rowCapacity: number, hasValues: boolean): boolean;
  /** Brings the rows up to `to`; both arrays begin with row 0. */
  extend(block: number, values: Float32Array, codes: Uint8Array | null, to: number): void;
  destroyBlock(block: number): void;
  /** `residents`, one a block of the batch, have the rows that its parts search. */
  search(device: number, batch: KernelBatch, residents: Uint32Array): DeviceHits;
}

/** From dist/src/engine, where this file runs, to what scripts/build-kernels.mjs writes. */
const ADDON_URL = new URL('../../../../build/kernels/sagitta-cuda.node', import.meta.url);

/** Throws, in words for an operator, where the addon was not built or does not load. */
export function loadCudaKernels(addonPath: string = fileURLToPath(ADDON_URL)): CudaKernels {
  if (!existsSync(addonPath)) {
    throw new Error(
      'the CUDA kernels are not built here; `node scripts/build-kernels.mjs cuda` builds them where nvcc is',
    );
  }
  return createRequire(import.meta.url)(addonPath) as CudaKernels;
}

/** What a failure of the kernels calls for. */
export function failureCode(error: unknown): 'DEVICE_LOST' | 'OUT_OF_MEMORY' | null {
  const code = error instanceof Error && 'code' in error ? error.code : null;
  return code === 'DEVICE_LOST' || code === 'OUT_OF_MEMORY' ? code : null;
}
