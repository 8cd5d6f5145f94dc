// The thread of one GPU, in which calls of the device may block. It handles one request at a time, in
// the order of the messages. Any exception ends the thread, which closes the device.

import { parentPort, workerData } from 'node:worker_threads';
import { assert } from '../../common/errors.js';
import { loadCudaKernels } from './cuda-kernels.js';
import { DeviceProgram, type DeviceReply, type DeviceRequest } from './cuda-program.js';

export interface CudaWorkerData {
  readonly addonPath: string | null;
  readonly deviceIndex: number;
  /** Null for the fastest kernels. */
  readonly kernelsName: string | null;
}

const port = parentPort;
assert(port !== null, 'the CUDA worker runs in a worker thread');

const { addonPath, deviceIndex, kernelsName } = workerData as CudaWorkerData;
let hasFailed = false;

const program = new DeviceProgram({
  kernels: addonPath === null ? loadCudaKernels() : loadCudaKernels(addonPath),
  deviceIndex,
  kernelsName,
  reply,
  defer: (step) => setImmediate(() => unlessFailed(step)),
});
port.on('message', (request: DeviceRequest) => unlessFailed(() => program.handle(request)));

/** Messages still arrive while the thread ends. After a failure its state cannot be trusted. */
function unlessFailed(step: () => void): void {
  if (hasFailed) return;
  try {
    step();
  } catch (error) {
    hasFailed = true;
    throw error;
  }
}

function reply(message: DeviceReply): void {
  port!.postMessage(message, buffersOf(message));
}

/** The buffers to transfer instead of copying them. */
function buffersOf(message: DeviceReply): ArrayBuffer[] {
  if (message.kind !== 'answer' || typeof message.answer === 'string') return [];
  const { offsets, views, rows, scores, scannedCounts, rescoredCounts, isDecided } = message.answer;
  return [offsets, views, rows, scores, scannedCounts, rescoredCounts, isDecided].map(
    ({ buffer }) => buffer as ArrayBuffer,
  );
}
