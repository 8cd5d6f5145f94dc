// The native addon of the cuda engine, loaded once per thread. Its functions are declared here and check their
// arguments themselves; kernels/cuda/device.h and remote.h document them. Each device runs in a process of its own,
// to which these functions talk. Devices and blocks are ticket numbers, valid in the thread that created them.

import { addonPath, buildCommand, loadAddon } from '../../platform/native-addon.js';
import type { KernelBatch, KernelBlock, KernelHits } from '../core/kernel-batch.js';

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

/** Milliseconds on the device and on the host, and counts. */
interface DeviceTimes {
  readonly uploadMs: number;
  readonly scanMs: number;
  readonly selectMs: number;
  readonly rescoreMs: number;
  readonly totalMs: number;
  readonly prepareMs: number;
  readonly finishMs: number;
  readonly readbackBytes: number;
  /** Queries that were scanned again with longer lists. */
  readonly repeatedQueryCount: number;
  /** Bytes of the host's buffers that could not be pinned, so that copying them takes longer. */
  readonly unpinnedBytes: number;
  /** Queries that coarse codes and that head tiles answered. */
  readonly coarseQueryCount: number;
  readonly headQueryCount: number;
  /** Queries that changed from either to int8 codes after a part of the rows. */
  readonly abandonedQueryCount: number;
}

/** What a block on a device has beside its int8 codes. */
export interface BlockParts {
  /** Values and coarse codes. */
  readonly hasValues: boolean;
  /** Whether it has head tiles, which it keeps for as long as its values. */
  readonly hasHead: boolean;
}

export interface DeviceHits extends KernelHits {
  /** [queries]: 0 for a query that the device could not decide, which has no hits. */
  readonly isDecided: Uint8Array;
  readonly times: DeviceTimes;
}

type UploadedRows = Pick<KernelBlock, 'values' | 'codes' | 'coarse' | 'basis' | 'head'>;

/**
 * All functions throw Errors with the message of the device or its driver. Their `code` is 'DEVICE_LOST' when
 * the device is unusable, 'OUT_OF_MEMORY' when a smaller request may succeed, and 'OUT_OF_HOST_MEMORY' when the
 * host has no memory for the call, which leaves the device unchanged.
 */
export interface CudaKernels {
  /** Returns a ticket. `kernels` is null for the fastest kernels that pass their check on the device. */
  open(index: number, kernels: string | null): number;
  describe(device: number): DeviceFacts;
  /** Throws when the device is lost or its process does not answer in time. */
  ping(device: number): void;
  /** Forgets the device and its blocks; the code that started its process ends it. */
  close(device: number): void;
  /**
   * Returns the bytes of device memory that a block takes, which are the same on every device. Coarse codes are
   * stored exactly if values are.
   */
  blockBytes(dimension: number, rowCapacity: number, parts: BlockParts): number;
  createBlock(device: number, dimension: number): number;
  /** Sets the capacity of a block. Returns false, with the block unchanged, when there is no memory. */
  reserve(block: number, rowCapacity: number, parts: BlockParts): boolean;
  /**
   * Appends rows until there are `to`; all arrays start with row 0. Codes that are null are computed, except for the
   * head tiles of a block that has them.
   */
  extend(block: number, rows: UploadedRows, to: number): void;
  destroyBlock(block: number): void;
  /**
   * Begins a search, behind the one that may already be in progress; a third one throws. `residents` holds a ticket per
   * block of the batch, with at least the rows that its views search. Until the end, rows may only be appended to them.
   */
  beginSearch(device: number, batch: KernelBatch, residents: Uint32Array): void;
  /** Waits for the search that began first, whose batch this is. It has ended even if this throws. */
  endSearch(device: number, batch: KernelBatch): DeviceHits;
}

/**
 * How long a call may go without progress before the process of the device counts as hung. The work of a call
 * extends the time, at rates that any device reaches.
 */
export interface DeviceDeadlines {
  /** Opening loads the kernels, compiles them for architectures not seen before, and checks them. */
  readonly openMs: number;
  readonly callMs: number;
  /** Integer products that a search computes per millisecond. */
  readonly productsPerMs: number;
  /** Bytes of rows copied per millisecond. */
  readonly bytesPerMs: number;
}

/** Descriptors of this process, which are valid in any of its threads. */
export interface DeviceChannel {
  readonly socket: number;
  readonly memory: number;
}

export interface CudaAddon extends Omit<CudaKernels, 'open'> {
  open(
    channel: DeviceChannel & { readonly deadlines: DeviceDeadlines },
    index: number,
    kernels: string | null,
  ): number;
  /** The caller closes these descriptors; `device` is for the process of the device. */
  createChannel(): { service: number; device: number; memory: number };
  /** Called in the process of the device: returns when the service has closed the channel. */
  serve(socket: number, memory: number): void;
  /** Called in a process of its own, because it calls the driver. The facts lack kernels and free memory. */
  list(): DeviceFacts[];
}

/** Connects to the kernels of the device behind a channel. */
export function connectKernels(
  addon: CudaAddon,
  channel: DeviceChannel,
  deadlines: DeviceDeadlines,
): CudaKernels {
  const link = { ...channel, deadlines };
  return { ...addon, open: (index, kernels) => addon.open(link, index, kernels) };
}

/** Returns the path of the addon, which need not exist. */
export function cudaAddonPath(): string {
  return addonPath('sagitta-cuda.node');
}

/** Throws with a message for an operator when the addon is not built or does not load. */
export function loadCudaAddon(path: string = cudaAddonPath()): CudaAddon {
  return loadAddon<CudaAddon>(
    path,
    `the CUDA kernels are not built; run ${buildCommand('cuda')}, which needs nvcc`,
  );
}

const FAILURE_CODES = ['DEVICE_LOST', 'OUT_OF_MEMORY', 'OUT_OF_HOST_MEMORY'] as const;

/** Returns the code of an error of the kernels. */
export function failureCode(error: unknown): (typeof FAILURE_CODES)[number] | null {
  const code = error instanceof Error && 'code' in error ? error.code : null;
  return FAILURE_CODES.find((known) => known === code) ?? null;
}
