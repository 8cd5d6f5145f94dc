// One GPU as the engine sees it: a thread that has it open, what is placed on it, and what the thread
// still owes. When the thread ends, everything pending is answered with null, and after a pause, which
// grows, another thread is started; after a few failures in a row no more.

import { Worker } from 'node:worker_threads';
import type { VectorBlock } from '../../common/types.js';
import { type PackedBatch, toKernel } from '../simd/kernel-batch.js';
import type { DeviceFacts, DeviceHits } from './cuda-kernels.js';
import { DevicePlacement, type PlacementOrder, type Resident } from './cuda-placement.js';
import type { DeviceReply, DeviceRequest } from './cuda-program.js';
import type { CudaWorkerData } from './cuda-worker.js';

/** What an operator may want to know. */
export type CudaEvent =
  | {
      readonly kind: 'device lost';
      readonly device: number;
      readonly error: Error;
      /** Until it is tried again; null when it never is. */
      readonly pauseMs: number | null;
    }
  | { readonly kind: 'device back'; readonly device: number }
  | {
      readonly kind: 'out of memory';
      readonly device: number;
      /** What may be placed on it from now on. */
      readonly budgetBytes: number;
    };

/** The thread of a device, or what stands for it in a test. */
export interface DeviceLink {
  post(request: DeviceRequest, transfer: ArrayBuffer[]): void;
  close(): Promise<void>;
}

export type ConnectDevice = (
  deviceIndex: number,
  on: { reply(reply: DeviceReply): void; end(error: Error): void },
) => DeviceLink;

export interface DeviceOptions {
  readonly index: number;
  readonly connect: ConnectDevice;
  /** Bytes that may be used; null for what is free when it is opened, but for a reserve. */
  readonly deviceMemory: number | null;
  readonly blockBytes: (dimension: number, rowCapacity: number, hasValues: boolean) => number;
  readonly onEvent: (event: CudaEvent) => void;
  readonly now: () => number;
  readonly idleMs: number;
  readonly pausesMs: readonly number[];
}

/** Others may need some of what is free, and a driver does. */
const FREE_SHARE = 0.9;
/** What the kernels need beside blocks, for the queries and candidates of a batch. */
const WORKSPACE_SHARE = 0.1;
const WORKSPACE_BYTES_MAX = 2 * 1024 ** 3;
/** However often a search runs out of memory, so much stays for blocks. */
const SEARCH_SHRINK = 7 / 8;
const BUDGET_SHARE_MIN = 1 / 2;
/** A failure after so long is not one in a row. */
const STEADY_MS = 60_000;

/** Null where the device cannot answer. */
type Settle<Answer> = (answer: Answer | null) => void;

interface PendingUpload {
  readonly resident: Resident;
  readonly settle: () => void;
}

export class CudaDevice {
  readonly index: number;
  readonly #options: DeviceOptions;
  readonly #searches = new Map<number, Settle<DeviceHits>>();
  readonly #uploads = new Map<number, PendingUpload>();
  #link: DeviceLink | null = null;
  #startup: Promise<void> = Promise.resolve();
  #placement: DevicePlacement | null = null;
  #facts: DeviceFacts | null = null;
  #requestCount = 0;
  #initialBudgetBytes = 0;
  #openedAtMs = 0;
  #failureCount = 0;
  #retryAtMs: number | null = null;
  #uploadedBytes = 0;
  #lossCount = 0;
  #isClosed = false;

  constructor(options: DeviceOptions) {
    this.index = options.index;
    this.#options = options;
  }

  /** Null while the device is not open. */
  get placement(): DevicePlacement | null {
    return this.#placement;
  }

  /** As when it was last opened. */
  get facts(): DeviceFacts | null {
    return this.#facts;
  }

  get uploadedBytes(): number {
    return this.#uploadedBytes;
  }

  get lossCount(): number {
    return this.#lossCount;
  }

  /** Resolves when it is open; rejects, after the event that says so, when that failed. */
  start(): Promise<void> {
    this.#retryAtMs = null;
    this.#startup = new Promise((resolve, reject) => {
      let isOver = false;
      const link = this.#options.connect(this.index, {
        reply: (reply) => {
          if (isOver) return;
          if (reply.kind === 'ready') {
            this.#open(reply.facts);
            resolve();
          } else {
            this.#receive(reply);
          }
        },
        end: (error) => {
          if (isOver) return;
          isOver = true;
          reject(error);
          if (!this.#isClosed) this.#bury(error);
        },
      });
      this.#link = link;
    });
    return this.#startup;
  }

  /** Starts it again, in the background, if its pause is over. */
  wake(): void {
    if (this.#retryAtMs === null || this.#isClosed) return;
    if (this.#options.now() < this.#retryAtMs) return;
    this.start().then(
      () => this.#options.onEvent({ kind: 'device back', device: this.index }),
      // `bury` has told.
      () => {},
    );
  }

  carryOut(orders: readonly PlacementOrder[]): void {
    for (const order of orders) this.#post(order);
  }

  /** Resolves when the rows are there, or will not come; the resident says which. */
  upload(resident: Resident, block: VectorBlock, isUrgent: boolean): Promise<void> {
    const uploadId = this.#requestCount++;
    const { number, dimension, rowCapacity, hasValues } = resident;
    resident.sentRowCount = block.rowCount;
    return new Promise((settle) => {
      this.#uploads.set(uploadId, { resident, settle });
      const view = toKernel(block);
      const what = { block: number, dimension, rowCapacity, hasValues, view, isUrgent };
      this.#post({ kind: 'upload', uploadId, ...what });
    });
  }

  /** Null when the device cannot answer, or nobody waits. `blocks` are the residents of the batch. */
  search(
    { columns }: PackedBatch,
    blocks: readonly Resident[],
    abandoned: Int32Array,
  ): Promise<DeviceHits | null> {
    if (this.#placement === null) return Promise.resolve(null);
    const searchId = this.#requestCount++;
    const numbers = blocks.map(({ number }) => number);
    return new Promise((resolve) => {
      this.#searches.set(searchId, resolve);
      const request = { kind: 'search', searchId, columns, blocks: numbers, abandoned } as const;
      const { views, vectors, metrics, ks, floors } = columns;
      const { afterScores, afterOffsets, afterIds, viewOffsets } = columns;
      const moved = [views, vectors, metrics, ks, floors];
      const alsoMoved = [afterScores, afterOffsets, afterIds, viewOffsets];
      const buffers = [...moved, ...alsoMoved].map(({ buffer }) => buffer as ArrayBuffer);
      this.#post(request, buffers);
    });
  }

  /** Searches under way are answered with null. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#abandonAll();
    const link = this.#link;
    this.#link = null;
    // Node 20 aborts the process when a thread is ended while it loads its modules.
    await this.#startup.catch(() => {});
    await link?.close();
  }

  #open(facts: DeviceFacts): void {
    const { deviceMemory, blockBytes, now, idleMs } = this.#options;
    const free = facts.freeBytes * FREE_SHARE;
    const usable = deviceMemory === null ? free : Math.min(deviceMemory, facts.freeBytes);
    const workspace = Math.min(usable * WORKSPACE_SHARE, WORKSPACE_BYTES_MAX);
    const budgetBytes = Math.floor(usable - workspace);
    this.#facts = facts;
    this.#initialBudgetBytes = budgetBytes;
    this.#openedAtMs = now();
    this.#placement = new DevicePlacement({ budgetBytes, blockBytes, now, idleMs });
  }

  #post(request: DeviceRequest, transfer: ArrayBuffer[] = []): void {
    this.#link?.post(request, transfer);
  }

  #receive(reply: Exclude<DeviceReply, { kind: 'ready' }>): void {
    if (reply.kind === 'uploaded') this.#receiveUpload(reply);
    else this.#receiveAnswer(reply);
  }

  #receiveUpload(reply: Extract<DeviceReply, { kind: 'uploaded' }>): void {
    const upload = this.#uploads.get(reply.uploadId);
    this.#uploads.delete(reply.uploadId);
    this.#uploadedBytes += reply.bytes;
    if (upload === undefined || this.#placement === null) return;
    const { resident } = upload;
    resident.rowCount = Math.max(resident.rowCount, reply.rowCount);
    if (reply.outcome === 'out of memory') {
      // What this block has beyond the rest is more than there is.
      const isCurrent = this.#placement.find(resident.key) === resident;
      const left = this.#placement.usedBytes - resident.bytes;
      this.#shrink(left, isCurrent ? resident.key : null);
    }
    upload.settle();
  }

  #receiveAnswer({ searchId, answer }: Extract<DeviceReply, { kind: 'answer' }>): void {
    const settle = this.#searches.get(searchId);
    this.#searches.delete(searchId);
    if (answer === 'out of memory' && this.#placement !== null) {
      const least = this.#initialBudgetBytes * BUDGET_SHARE_MIN;
      this.#shrink(Math.max(least, this.#placement.budgetBytes * SEARCH_SHRINK), null);
    }
    settle?.(typeof answer === 'string' ? null : answer);
  }

  #shrink(budgetBytes: number, forgottenKey: string | null): void {
    const placement = this.#placement!;
    const before = placement.budgetBytes;
    if (forgottenKey !== null) this.carryOut(placement.forget(forgottenKey));
    this.carryOut(placement.shrinkBudget(Math.floor(budgetBytes)));
    if (placement.budgetBytes === before) return;
    const { budgetBytes: left } = placement;
    this.#options.onEvent({ kind: 'out of memory', device: this.index, budgetBytes: left });
  }

  #bury(error: Error): void {
    const { now, pausesMs, onEvent } = this.#options;
    if (this.#placement !== null && now() - this.#openedAtMs >= STEADY_MS) this.#failureCount = 0;
    const pauseMs = pausesMs[this.#failureCount++] ?? null;
    this.#retryAtMs = pauseMs === null ? null : now() + pauseMs;
    this.#link = null;
    this.#lossCount++;
    this.#abandonAll();
    onEvent({ kind: 'device lost', device: this.index, error, pauseMs });
  }

  #abandonAll(): void {
    this.#placement?.clear();
    this.#placement = null;
    for (const { settle } of this.#uploads.values()) settle();
    this.#uploads.clear();
    for (const settle of this.#searches.values()) settle(null);
    this.#searches.clear();
  }
}

/** Each device in a thread of its own, so that neither the event loop nor another device waits for it. */
export function connectThread(options: Omit<CudaWorkerData, 'deviceIndex'>): ConnectDevice {
  return (deviceIndex, on) => {
    const workerData: CudaWorkerData = { ...options, deviceIndex };
    const worker = new Worker(new URL('./cuda-worker.js', import.meta.url), { workerData });
    let error: Error | null = null;
    worker.on('message', on.reply);
    worker.on('error', (cause: Error) => {
      error = cause;
    });
    worker.on('exit', (exitCode) => {
      on.end(error ?? new Error(`the thread of the device ended with code ${exitCode}`));
    });
    return {
      post: (request, transfer) => worker.postMessage(request, transfer),
      close: async () => {
        await worker.terminate();
      },
    };
  };
}
