// One GPU: the process that uses it, the blocks placed on it, and the pending requests. When the process ends
// or hangs, pending searches are answered with null, and another process is started after a pause that grows;
// after a few consecutive failures the device is given up.

import type { VectorBlock } from '../../common/types.js';
import { type PackedBatch, toKernelBlock } from '../core/kernel-batch.js';
import type { CudaKernels, DeviceFacts, DeviceHits } from './cuda-kernels.js';
import type { ConnectDevice, DeviceLink } from './cuda-link.js';
import { DevicePlacement, type PlacementCommand, type ResidentBlock } from './cuda-placement.js';
import type { DeviceReply, DeviceRequest } from './cuda-program.js';

/** Events for an operator. */
export type CudaEvent =
  | {
      readonly kind: 'device lost';
      readonly device: number;
      readonly error: Error;
      /** The time until the next attempt; null when the device is given up. */
      readonly pauseMs: number | null;
    }
  | { readonly kind: 'device back'; readonly device: number }
  | {
      /** These kernels faulted or hung when they were checked; the device runs others. */
      readonly kind: 'kernels excluded';
      readonly device: number;
      readonly kernels: string;
      readonly error: Error;
    }
  | {
      readonly kind: 'out of memory';
      readonly device: number;
      /** The new budget for blocks. */
      readonly budgetBytes: number;
    }
  /** Reported once, until the device has answered again; the budget for blocks stays the same. */
  | { readonly kind: 'out of host memory'; readonly device: number }
  | {
      /** Reported once per opening: the system refuses to pin memory, so copies take longer. */
      readonly kind: 'host memory not pinned';
      readonly device: number;
      readonly bytes: number;
    };

interface DeviceOptions {
  readonly index: number;
  readonly connect: ConnectDevice;
  /** Bytes that may be used; null for the memory that is free at the start, minus a reserve. */
  readonly deviceMemory: number | null;
  readonly blockBytes: CudaKernels['blockBytes'];
  readonly onEvent: (event: CudaEvent) => void;
  readonly now: () => number;
  readonly idleMs: number;
  readonly pausesMs: readonly number[];
}

/** The share of the free memory that is used; the driver and other processes need the rest. */
const FREE_SHARE = 0.9;
/** Memory that the kernels need besides blocks, for the queries and candidates of a batch. */
const WORKSPACE_SHARE = 0.1;
const WORKSPACE_BYTES_MAX = 2 * 1024 ** 3;
/** The budget shrinks by this factor when a search runs out of memory, down to the share below. */
const SEARCH_SHRINK = 7 / 8;
const BUDGET_SHARE_MIN = 1 / 2;
/** A failure after this time of operation does not count as consecutive. */
const STEADY_MS = 60_000;

/** Resolves a pending request; null when the device cannot answer. */
type Settle<Answer> = (answer: Answer | null) => void;

interface PendingUpload {
  readonly resident: ResidentBlock;
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
  #isHostMemoryShort = false;
  #isUnpinnedReported = false;
  #isClosed = false;

  constructor(options: DeviceOptions) {
    this.index = options.index;
    this.#options = options;
  }

  /** Null while the device is not open. */
  get placement(): DevicePlacement | null {
    return this.#placement;
  }

  /** The facts reported when the device was last opened. */
  get facts(): DeviceFacts | null {
    return this.#facts;
  }

  get uploadedBytes(): number {
    return this.#uploadedBytes;
  }

  get lossCount(): number {
    return this.#lossCount;
  }

  /** Opens the device in a new process. If that fails, reports an event and rejects. */
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
        excluded: (kernels, error) => {
          const { onEvent } = this.#options;
          if (!isOver) onEvent({ kind: 'kernels excluded', device: this.index, kernels, error });
        },
        end: (error) => {
          if (isOver) return;
          isOver = true;
          reject(error);
          if (!this.#isClosed) this.#handleExit(error);
        },
      });
      this.#link = link;
    });
    return this.#startup;
  }

  /** Restarts a failed device in the background if its pause is over. */
  retryIfDue(): void {
    if (this.#retryAtMs === null || this.#isClosed) return;
    if (this.#options.now() < this.#retryAtMs) return;
    this.start().then(
      () => this.#options.onEvent({ kind: 'device back', device: this.index }),
      // `#handleExit` has reported it.
      () => {},
    );
  }

  execute(commands: readonly PlacementCommand[]): void {
    for (const command of commands) this.#post(command);
  }

  /** Resolves when the upload has ended; `resident.rowCount` tells whether it succeeded. */
  upload(resident: ResidentBlock, block: VectorBlock, isUrgent: boolean): Promise<void> {
    const uploadId = this.#requestCount++;
    const { number, dimension, rowCapacity, hasValues, hasHead } = resident;
    resident.sentRowCount = block.rowCount;
    return new Promise((settle) => {
      this.#uploads.set(uploadId, { resident, settle });
      const view = toKernelBlock(block);
      const upload = { block: number, dimension, rowCapacity, hasValues, hasHead, view, isUrgent };
      this.#post({ kind: 'upload', uploadId, ...upload });
    });
  }

  /** Returns null when the device cannot answer or the search was aborted. `blocks` are those of the batch. */
  search(
    { columns }: PackedBatch,
    blocks: readonly ResidentBlock[],
    abandoned: Int32Array,
  ): Promise<DeviceHits | null> {
    if (this.#placement === null) return Promise.resolve(null);
    const searchId = this.#requestCount++;
    const numbers = blocks.map(({ number }) => number);
    return new Promise((resolve) => {
      this.#searches.set(searchId, resolve);
      const request = { kind: 'search', searchId, columns, blocks: numbers, abandoned } as const;
      const { views, vectors, metrics, ks, floors } = columns;
      const { afterScores, afterOffsets, afterIds, viewRanges } = columns;
      const arrays = [views, vectors, metrics, ks, floors];
      arrays.push(afterScores, afterOffsets, afterIds, viewRanges);
      const buffers = arrays.map(({ buffer }) => buffer as ArrayBuffer);
      this.#post(request, buffers);
    });
  }

  /** Pending searches are answered with null. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#abandonAll();
    const link = this.#link;
    this.#link = null;
    await link?.close();
    await this.#startup.catch(() => {});
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
    this.#isHostMemoryShort = false;
    this.#isUnpinnedReported = false;
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
      // The device has no room for this block beside the others.
      const isCurrent = this.#placement.find(resident.key) === resident;
      const left = this.#placement.usedBytes - resident.bytes;
      this.#shrink(left, isCurrent ? resident.key : null);
    } else if (reply.outcome === 'out of host memory') {
      this.#reportHostMemoryShortage();
      // The next search that needs the block uploads it again.
      if (this.#placement.find(resident.key) === resident) {
        this.execute(this.#placement.forget(resident.key));
      }
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
    if (answer === 'out of host memory') this.#reportHostMemoryShortage();
    if (typeof answer === 'string') {
      settle?.(null);
      return;
    }
    this.#isHostMemoryShort = false;
    this.#reportUnpinnedMemory(answer.times.unpinnedBytes);
    settle?.(answer);
  }

  #reportHostMemoryShortage(): void {
    if (this.#isHostMemoryShort) return;
    this.#isHostMemoryShort = true;
    this.#options.onEvent({ kind: 'out of host memory', device: this.index });
  }

  #reportUnpinnedMemory(bytes: number): void {
    if (bytes === 0 || this.#isUnpinnedReported) return;
    this.#isUnpinnedReported = true;
    this.#options.onEvent({ kind: 'host memory not pinned', device: this.index, bytes });
  }

  #shrink(budgetBytes: number, forgottenKey: string | null): void {
    const placement = this.#placement!;
    const before = placement.budgetBytes;
    if (forgottenKey !== null) this.execute(placement.forget(forgottenKey));
    this.execute(placement.shrinkBudget(Math.floor(budgetBytes)));
    if (placement.budgetBytes === before) return;
    const { budgetBytes: left } = placement;
    this.#options.onEvent({ kind: 'out of memory', device: this.index, budgetBytes: left });
  }

  #handleExit(error: Error): void {
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
