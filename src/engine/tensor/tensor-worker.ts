// The thread of a tensor engine: one device, one search at a time, in the order of the messages. Any
// exception ends the thread, and the engine's fallback answers.

import { parentPort, workerData } from 'node:worker_threads';
import { assert } from '../../common/errors.js';
import type { VectorBlock } from '../../common/types.js';
import { buffersOf, type PackedQueries } from '../core/packed-queries.js';
import type { BlockHits } from '../core/per-block.js';
import type { BlockUsage } from './block-cache.js';
import type { MatrixDevice } from './matrix-device.js';
import { TensorProgram } from './tensor-program.js';

export type TensorDeviceName = 'wasm' | 'tensorflow';

export interface TensorWorkerData {
  readonly device: TensorDeviceName;
  /** Null for the default of the device. */
  readonly residentBytesMax: number | null;
}

/** The device, for an operator. */
export interface DeviceInfo {
  readonly name: string;
  readonly hasOwnMemory: boolean;
}

export type TensorRequest =
  | {
      readonly kind: 'search';
      readonly searchId: number;
      readonly block: VectorBlock;
      readonly packed: PackedQueries;
      /** Shared [1] int32; not 0 after the caller has aborted the search. */
      readonly abandoned: Int32Array;
    }
  | { readonly kind: 'unload'; readonly key: string };

export type TensorReply =
  | { readonly kind: 'ready'; readonly device: DeviceInfo }
  | {
      readonly kind: 'hits';
      readonly searchId: number;
      /** Null when the search was aborted or the device cannot answer. */
      readonly hits: BlockHits[] | null;
      readonly usage: readonly BlockUsage[];
    }
  | { readonly kind: 'unloaded'; readonly usage: readonly BlockUsage[] };

const port = parentPort;
assert(port !== null, 'the tensor worker runs in a worker thread');

const options = workerData as TensorWorkerData;
// A rejection becomes an error of the thread, of which the engine is notified.
createDevice(options.device).then(serve);

function serve(device: MatrixDevice): void {
  const program = new TensorProgram(device, {
    residentBytesMax: Math.min(
      options.residentBytesMax ?? device.residentBytesUsual,
      device.residentBytesMax,
    ),
  });
  let hasFailed = false;
  port!.on('message', (request: TensorRequest) => {
    // Messages still arrive while the thread ends. After a failure its state cannot be trusted.
    if (hasFailed) return;
    try {
      handle(program, request);
    } catch (error) {
      hasFailed = true;
      throw error;
    }
  });
  reply({ kind: 'ready', device: { name: device.name, hasOwnMemory: device.hasOwnMemory } });
}

/** Imports are dynamic because the packages of the other device may be missing. */
async function createDevice(name: TensorDeviceName): Promise<MatrixDevice> {
  switch (name) {
    case 'wasm':
      return (await import('./wasm-device.js')).createWasmDevice();
    case 'tensorflow':
      return (await import('./tensorflow-device.js')).createTensorflowDevice();
  }
}

function handle(program: TensorProgram, request: TensorRequest): void {
  switch (request.kind) {
    case 'search': {
      const { searchId, block, packed, abandoned } = request;
      const hits = Atomics.load(abandoned, 0) === 0 ? program.search(block, packed) : null;
      reply({ kind: 'hits', searchId, hits, usage: program.takeChanges() }, buffersOf(hits ?? []));
      break;
    }
    case 'unload':
      program.unload(request.key);
      reply({ kind: 'unloaded', usage: program.takeChanges() });
      break;
  }
}

function reply(message: TensorReply, transfer: ArrayBuffer[] = []): void {
  port!.postMessage(message, transfer);
}
