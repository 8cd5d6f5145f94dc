// The thread of one GPU, in which calls may block: it copies rows and batches into shared memory and waits for
// the process of the device, with a deadline. It handles one request at a time, in the order of the messages.
// Any exception ends the thread; the code that started the thread then ends the process.

import { parentPort, workerData } from 'node:worker_threads';
import { assert } from '../../common/errors.js';
import {
  connectKernels,
  type DeviceChannel,
  type DeviceDeadlines,
  loadCudaAddon,
} from './cuda-kernels.js';
import { DeviceProgram, type DeviceReply, type DeviceRequest } from './cuda-program.js';

export interface CudaWorkerData {
  readonly addonPath: string;
  readonly deviceIndex: number;
  /** Null for the fastest kernels. */
  readonly kernelsName: string | null;
  readonly channel: DeviceChannel;
  readonly deadlines: DeviceDeadlines;
  readonly heartbeatMs: number;
}

const port = parentPort;
assert(port !== null, 'the CUDA worker runs in a worker thread');

const { addonPath, deviceIndex, kernelsName, channel, deadlines, heartbeatMs } =
  workerData as CudaWorkerData;
let hasFailed = false;

const program = new DeviceProgram({
  kernels: connectKernels(loadCudaAddon(addonPath), channel, deadlines),
  deviceIndex,
  kernelsName,
  reply,
  defer: (_work, step) => setImmediate(() => runUnlessFailed(step)),
});
port.on('message', (request: DeviceRequest) => runUnlessFailed(() => program.handle(request)));
// Finds a lost device while nobody searches, so that it is reopened before a query has to wait.
setInterval(() => runUnlessFailed(() => program.handle({ kind: 'check' })), heartbeatMs);

/** Messages still arrive while the thread ends. After a failure its state cannot be trusted. */
function runUnlessFailed(step: () => void): void {
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

/** Returns the buffers to transfer instead of copying them. */
function buffersOf(message: DeviceReply): ArrayBuffer[] {
  if (message.kind !== 'answer' || typeof message.answer === 'string') return [];
  const { offsets, views, rows, scores, scannedCounts, rescoredCounts, isDecided } = message.answer;
  return [offsets, views, rows, scores, scannedCounts, rescoredCounts, isDecided].map(
    ({ buffer }) => buffer as ArrayBuffer,
  );
}
