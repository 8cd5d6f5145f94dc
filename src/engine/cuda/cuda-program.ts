// The program of a device's thread, which talks to the device's process: keeps blocks, uploads rows in slices,
// and searches between slices. A search ends after the next one has begun, if that has arrived, so that the device works
// while hits are read and sorted. Any exception ends the thread, and the engine's fallback answers.

import { assert } from '../../common/errors.js';
import type { KernelBatch, KernelBlock, KernelColumns } from '../core/kernel-batch.js';
import {
  type CudaKernels,
  type DeviceFacts,
  type DeviceHits,
  failureCode,
} from './cuda-kernels.js';

export type DeviceRequest =
  | {
      readonly kind: 'upload';
      readonly uploadId: number;
      /** The engine's number of the block; an unknown number creates a block. */
      readonly block: number;
      readonly dimension: number;
      readonly rowCapacity: number;
      readonly hasValues: boolean;
      readonly hasHead: boolean;
      /** The rows to upload, from row 0 on. */
      readonly view: KernelBlock;
      /** Urgent uploads go before others. */
      readonly isUrgent: boolean;
    }
  /** Frees the values of the block, its coarse codes and its head tiles, but keeps its int8 codes. */
  | { readonly kind: 'drop values'; readonly block: number }
  | { readonly kind: 'unload'; readonly block: number }
  /** Fails, and thereby ends the thread, when the device or its process is lost. */
  | { readonly kind: 'check' }
  | {
      readonly kind: 'search';
      readonly searchId: number;
      readonly columns: KernelColumns;
      /** The engine's numbers of the blocks that the views index. */
      readonly blocks: readonly number[];
      /** Shared [1] int32; not 0 after the caller has aborted the search. */
      readonly abandoned: Int32Array;
    };

/** The memory that ran out: the device's, or the host's, which says nothing about the device's. */
type MissingMemory = 'out of memory' | 'out of host memory';

export type DeviceReply =
  | { readonly kind: 'ready'; readonly facts: DeviceFacts }
  | {
      readonly kind: 'uploaded';
      readonly uploadId: number;
      /** The number of rows now on the device. */
      readonly rowCount: number;
      readonly outcome: UploadOutcome;
      /** Bytes uploaded for all blocks since the last reply of this kind. */
      readonly bytes: number;
    }
  | {
      readonly kind: 'answer';
      readonly searchId: number;
      readonly answer: DeviceHits | MissingMemory | 'given up';
    };

type UploadOutcome = 'done' | MissingMemory | 'given up';

interface DeviceProgramOptions {
  readonly kernels: CudaKernels;
  readonly deviceIndex: number;
  /** Null for the fastest kernels. */
  readonly kernelsName: string | null;
  readonly reply: (reply: DeviceReply) => void;
  /** Runs a step of this work after yielding to the event loop and its waiting messages, like setImmediate. */
  readonly defer: (work: 'uploads' | 'answers', step: () => void) => void;
}

/** Bytes uploaded before yielding to the event loop: about two milliseconds. */
const SLICE_BYTES = 16 * 1024 * 1024;
/** Codes are stored in panels of this many rows; slices of whole panels copy each panel only once. */
const PANEL_ROWS = 16;

/** The searches that may be in progress on a device. */
const SEARCHES_MAX = 2;

type Upload = Extract<DeviceRequest, { kind: 'upload' }>;

interface RunningSearch {
  readonly searchId: number;
  readonly batch: KernelBatch;
}

interface Block {
  readonly ticket: number;
  readonly dimension: number;
  /** The latest version of the rows; its arrays hold at least `rowCount` rows. */
  view: KernelBlock;
  rowCount: number;
  rowCapacity: number;
  hasValues: boolean;
  readonly hasHead: boolean;
  /** False after 'drop values', so that uploads requested before it do not bring values back. */
  mayHaveValues: boolean;
}

export class DeviceProgram {
  readonly #options: DeviceProgramOptions;
  readonly #device: number;
  readonly #blocks = new Map<number, Block>();
  #urgent: Upload[] = [];
  #background: Upload[] = [];
  /** Bytes uploaded since the last reply that reported them. */
  #uploadedBytes = 0;
  #isPumping = false;
  /** In the order in which they have begun. */
  readonly #running: RunningSearch[] = [];
  #isEnding = false;

  /** Throws when the device cannot be opened. */
  constructor(options: DeviceProgramOptions) {
    const { kernels, deviceIndex, kernelsName, reply } = options;
    this.#options = options;
    this.#device = kernels.open(deviceIndex, kernelsName);
    reply({ kind: 'ready', facts: kernels.describe(this.#device) });
  }

  handle(request: DeviceRequest): void {
    switch (request.kind) {
      case 'upload':
        (request.isUrgent ? this.#urgent : this.#background).push(request);
        this.#pump();
        break;
      case 'drop values':
        this.#dropValues(request.block);
        break;
      case 'unload':
        this.#unload(request.block);
        break;
      case 'search':
        this.#search(request);
        break;
      case 'check':
        this.#options.kernels.ping(this.#device);
        break;
    }
  }

  close(): void {
    this.#options.kernels.close(this.#device);
  }

  #search({ searchId, columns, blocks, abandoned }: Extract<DeviceRequest, { kind: 'search' }>) {
    const { kernels, reply } = this.#options;
    if (Atomics.load(abandoned, 0) !== 0) {
      reply({ kind: 'answer', searchId, answer: 'given up' });
      return;
    }
    const known = blocks.map((block) => {
      const found = this.#blocks.get(block);
      assert(found !== undefined, 'every block of a search is resident');
      return found;
    });
    const batch = { ...columns, blocks: known.map(viewOf), workerCount: 1 };
    const residents = Uint32Array.from(known, ({ ticket }) => ticket);
    if (this.#running.length === SEARCHES_MAX) this.#endSearch();
    try {
      kernels.beginSearch(this.#device, batch, residents);
    } catch (error) {
      reply({ kind: 'answer', searchId, answer: missingMemoryOrThrow(error) });
      return;
    }
    this.#running.push({ searchId, batch });
    this.#endSoon();
  }

  /** Ends searches one by one, each after the requests that have arrived. */
  #endSoon(): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    this.#options.defer('answers', () => {
      this.#isEnding = false;
      if (this.#running.length > 0) this.#endSearch();
      if (this.#running.length > 0) this.#endSoon();
    });
  }

  /** Ends all searches, before blocks change otherwise than by more rows. */
  #endSearches(): void {
    while (this.#running.length > 0) this.#endSearch();
  }

  #endSearch(): void {
    const { kernels, reply } = this.#options;
    const { searchId, batch } = this.#running.shift()!;
    try {
      reply({ kind: 'answer', searchId, answer: kernels.endSearch(this.#device, batch) });
    } catch (error) {
      reply({ kind: 'answer', searchId, answer: missingMemoryOrThrow(error) });
    }
  }

  #dropValues(number: number): void {
    const withoutValues = (upload: Upload) =>
      upload.block === number ? { ...upload, hasValues: false } : upload;
    this.#urgent = this.#urgent.map(withoutValues);
    this.#background = this.#background.map(withoutValues);
    const block = this.#blocks.get(number);
    if (block === undefined) return;
    block.mayHaveValues = false;
    this.#reserve(block, block.rowCapacity, false);
  }

  #unload(number: number): void {
    const isOther = (upload: Upload): boolean => {
      if (upload.block !== number) return true;
      this.#finish(upload, 'given up', 0);
      return false;
    };
    this.#urgent = this.#urgent.filter(isOther);
    this.#background = this.#background.filter(isOther);
    const block = this.#blocks.get(number);
    if (block === undefined) return;
    this.#endSearches();
    this.#blocks.delete(number);
    this.#options.kernels.destroyBlock(block.ticket);
  }

  /** Uploads a slice per iteration of the event loop until the queues are empty. */
  #pump(): void {
    if (this.#isPumping) return;
    this.#isPumping = true;
    this.#options.defer('uploads', () => {
      this.#isPumping = false;
      const queue = this.#urgent.length > 0 ? this.#urgent : this.#background;
      const upload = queue[0];
      if (upload === undefined) return;
      if (this.#advance(upload)) queue.shift();
      this.#pump();
    });
  }

  /** Uploads a slice. Returns true when the upload has ended. */
  #advance(upload: Upload): boolean {
    try {
      return this.#uploadSlice(upload);
    } catch (error) {
      if (missingMemory(error) !== 'out of host memory') throw error;
      this.#finish(upload, 'out of host memory', this.#blocks.get(upload.block)?.rowCount ?? 0);
      return true;
    }
  }

  #uploadSlice(upload: Upload): boolean {
    const block = this.#blocks.get(upload.block) ?? this.#create(upload);
    const { view } = upload;
    if (view.rowCount > block.view.rowCount) block.view = view;
    const rowCapacity = Math.max(upload.rowCapacity, block.rowCapacity);
    if (!this.#reserve(block, rowCapacity, upload.hasValues && block.mayHaveValues)) {
      this.#finish(upload, 'out of memory', block.rowCount);
      return true;
    }
    const { kernels } = this.#options;
    const rowBytes = 4 * block.dimension;
    const sliceRows = Math.max(1, Math.floor(SLICE_BYTES / rowBytes / PANEL_ROWS)) * PANEL_ROWS;
    const to = Math.min(view.rowCount, block.rowCount + sliceRows);
    if (to > block.rowCount) {
      kernels.extend(block.ticket, view, to);
      this.#uploadedBytes += kernels.blockBytes(block.dimension, to - block.rowCount, block);
      block.rowCount = to;
    }
    if (block.rowCount < view.rowCount) return false;
    this.#finish(upload, 'done', block.rowCount);
    return true;
  }

  #create({ block: number, dimension, hasHead, view }: Upload): Block {
    const ticket = this.#options.kernels.createBlock(this.#device, dimension);
    const empty = { rowCount: 0, rowCapacity: 0, hasValues: false, mayHaveValues: true };
    const block: Block = { ticket, dimension, hasHead, view, ...empty };
    this.#blocks.set(number, block);
    return block;
  }

  /** Returns false, with the block unchanged, when there is no memory. */
  #reserve(block: Block, rowCapacity: number, hasValues: boolean): boolean {
    if (rowCapacity === block.rowCapacity && hasValues === block.hasValues) return true;
    this.#endSearches();
    const parts = { hasValues, hasHead: block.hasHead };
    if (!this.#options.kernels.reserve(block.ticket, rowCapacity, parts)) return false;
    block.rowCapacity = rowCapacity;
    block.hasValues = hasValues;
    return true;
  }

  #finish({ uploadId }: Upload, outcome: UploadOutcome, rowCount: number) {
    const bytes = this.#uploadedBytes;
    this.#uploadedBytes = 0;
    this.#options.reply({ kind: 'uploaded', uploadId, rowCount, outcome, bytes });
  }
}

function missingMemoryOrThrow(error: unknown): MissingMemory {
  const missing = missingMemory(error);
  if (missing === null) throw error;
  return missing;
}

function missingMemory(error: unknown): MissingMemory | null {
  const code = failureCode(error);
  if (code === 'OUT_OF_MEMORY') return 'out of memory';
  return code === 'OUT_OF_HOST_MEMORY' ? 'out of host memory' : null;
}

function viewOf({ view }: Block): KernelBlock {
  return view;
}
