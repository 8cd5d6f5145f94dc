// Starts the process of a GPU and the thread that talks to it, and ends both: when the thread gives up on the
// process, when the process ends, or when the device is closed. Also lists the GPUs, likewise in a process,
// because the first call of a broken driver may never return.

import { execFile, spawn } from 'node:child_process';
import { closeSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { programFile } from '../../common/package-files.js';
import {
  type CudaAddon,
  cudaAddonPath,
  type DeviceDeadlines,
  type DeviceFacts,
  loadCudaAddon,
} from './cuda-kernels.js';
import type { DeviceReply, DeviceRequest } from './cuda-program.js';
import type { CudaWorkerData } from './cuda-worker.js';

/** The connection to the thread of a device, or to a fake in tests. */
export interface DeviceLink {
  post(request: DeviceRequest, transfer: ArrayBuffer[]): void;
  close(): Promise<void>;
}

export type ConnectDevice = (
  deviceIndex: number,
  on: {
    reply(reply: DeviceReply): void;
    /** Called when these kernels failed their check; others are tried. */
    excluded(kernels: string, error: Error): void;
    end(error: Error): void;
  },
) => DeviceLink;

export interface ProcessOptions {
  readonly addonPath?: string;
  /** Null for the fastest kernels that pass their check. */
  readonly kernelsName?: string | null;
  readonly deadlines?: Partial<DeviceDeadlines>;
  readonly heartbeatMs?: number;
}

/**
 * A search that makes no progress for ten seconds beyond its work has hung: a slice takes milliseconds.
 * The rates are a hundredth or less of what the slowest supported devices reach.
 */
export const DEVICE_DEADLINES: DeviceDeadlines = {
  openMs: 120_000,
  callMs: 10_000,
  productsPerMs: 1e9,
  bytesPerMs: 1e5,
};
const HEARTBEAT_MS = 1_000;
/** Starting the driver takes seconds on machines with many devices. */
const LIST_MS_MAX = 60_000;

const PROGRAM = programFile('engine/cuda/cuda-process.js');

/** Rejects with a message for an operator when there is no driver or it does not answer. */
export async function listDevices(
  addonPath: string = cudaAddonPath(),
  msMax: number = LIST_MS_MAX,
): Promise<DeviceFacts[]> {
  const printed = await new Promise<string>((resolve, reject) => {
    const options = { timeout: msMax, killSignal: 'SIGKILL' } as const;
    execFile(process.execPath, [PROGRAM, addonPath, 'list'], options, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else if (error.killed) reject(new Error(`the GPU driver did not answer within ${msMax} ms`));
      else
        reject(new Error(`the process that lists GPUs failed: ${stderr.trim() || error.message}`));
    });
  });
  const listed = JSON.parse(printed) as { devices: DeviceFacts[] } | { error: string };
  if ('error' in listed) throw new Error(listed.error);
  return listed.devices;
}

/** Runs each device in its own process, with a thread that waits for it. */
export function connectProcess(options: ProcessOptions): ConnectDevice {
  const addonPath = options.addonPath ?? cudaAddonPath();
  const addon = loadCudaAddon(addonPath);
  /** Devices whose wgmma kernels faulted or hung when they were checked. */
  const withoutWgmma = new Set<number>();
  return (deviceIndex, on) => {
    let current: DeviceProcess;
    let isClosed = false;
    let fault: Error | null = null;
    const onReply = (reply: DeviceReply) => {
      if (reply.kind === 'ready' && fault !== null) {
        withoutWgmma.add(deviceIndex);
        on.excluded('wgmma', fault);
      }
      on.reply(reply);
    };
    const start = (kernelsName: string | null): DeviceProcess =>
      new DeviceProcess(
        { ...options, addon, addonPath, deviceIndex, kernelsName },
        onReply,
        (end) => {
          // A fault ends the context, so that the other kernels need a process of their own.
          const mayFallBack =
            kernelsName === null && !end.wasReady && !end.isUnsupported && !isClosed;
          if (!mayFallBack) {
            on.end(end.error);
            return;
          }
          fault = end.error;
          current = start('mma');
        },
      );
    const wanted = options.kernelsName ?? null;
    current = start(wanted === null && withoutWgmma.has(deviceIndex) ? 'mma' : wanted);
    return {
      post: (request, transfer) => current.post(request, transfer),
      async close() {
        isClosed = true;
        await current.close();
      },
    };
  };
}

interface ProcessEnd {
  readonly error: Error;
  /** Whether its device was open. */
  readonly wasReady: boolean;
  /** Whether the device cannot run the kernels, which is no fault. */
  readonly isUnsupported: boolean;
}

class DeviceProcess {
  readonly #child: ReturnType<typeof spawn>;
  readonly #worker: Worker;
  readonly #ended: Promise<unknown>;
  #error: Error | null = null;
  #isReady = false;
  #exit = 'unknown exit';

  constructor(
    options: ProcessOptions & {
      readonly addon: CudaAddon;
      readonly addonPath: string;
      readonly deviceIndex: number;
      readonly kernelsName: string | null;
    },
    onReply: (reply: DeviceReply) => void,
    onEnd: (end: ProcessEnd) => void,
  ) {
    const { addon, addonPath, deviceIndex, kernelsName } = options;
    const { service: socket, device, memory } = addon.createChannel();
    this.#child = spawn(process.execPath, [PROGRAM, addonPath, 'serve'], {
      stdio: ['ignore', 'ignore', 'inherit', device, memory],
    });
    closeSync(device);
    const workerData: CudaWorkerData = {
      ...{ addonPath, deviceIndex, kernelsName, channel: { socket, memory } },
      deadlines: { ...DEVICE_DEADLINES, ...options.deadlines },
      heartbeatMs: options.heartbeatMs ?? HEARTBEAT_MS,
    };
    this.#worker = new Worker(programFile('engine/cuda/cuda-worker.js'), { workerData });
    this.#worker.on('message', (reply: DeviceReply) => {
      this.#isReady ||= reply.kind === 'ready';
      onReply(reply);
    });
    this.#worker.on('error', (error: Error) => {
      this.#error ??= error;
    });
    const childEnded = new Promise<void>((resolve) => {
      this.#child.once('error', (error) => {
        this.#error = error;
        resolve();
      });
      this.#child.once('exit', (exitCode, signal) => {
        this.#exit = signal === null ? `exit code ${exitCode}` : signal;
        this.#handleExit();
        resolve();
      });
    });
    const workerEnded = new Promise<void>((resolve) => {
      this.#worker.once('exit', () => {
        this.#child.kill('SIGKILL');
        resolve();
      });
    });
    this.#ended = Promise.all([childEnded, workerEnded]).then(() => {
      closeSync(socket);
      closeSync(memory);
      const error = this.#error ?? new Error('the thread of the GPU has ended');
      // The thread sees only that the process is gone.
      if (/has ended$/.test(error.message)) error.message += ` (${this.#exit})`;
      onEnd({ error, wasReady: this.#isReady, isUnsupported: error instanceof RangeError });
    });
  }

  post(request: DeviceRequest, transfer: ArrayBuffer[]): void {
    this.#worker.postMessage(request, transfer);
  }

  async close(): Promise<void> {
    // The thread may be waiting for the process, and then sees that it has ended.
    this.#child.kill('SIGKILL');
    await this.#ended;
  }

  #handleExit(): void {
    this.#error ??= new Error('the process of the GPU has ended');
    // A thread that waits for the process sees that it has ended; an idle one has to look. It is not
    // terminated, because that could interrupt it anywhere.
    this.post({ kind: 'check' }, []);
  }
}
