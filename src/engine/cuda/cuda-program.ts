// What the thread of one device does: keeps blocks on it, uploads in slices with searches between
// them, and searches. Whatever it throws ends the thread; the other side answers in its place.

import { assert } from '../../common/errors.js';
import type { KernelColumns } from '../simd/kernel-batch.js';
import type { KernelBlock } from '../simd/simd-kernels.js';
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
      /** The other side's number of the block; a new one makes a new block. */
      readonly block: number;
      readonly dimension: number;
      readonly rowCapacity: number;
      readonly hasValues: boolean;
      /** All its rows go up. */
      readonly view: KernelBlock;
      /** Before those that are not. */
      readonly isUrgent: boolean;
    }
  /** The values of the block leave; its codes stay. */
  | { readonly kind: 'drop values'; readonly block: number }
  | { readonly kind: 'unload'; readonly block: number }
  | {
      readonly kind: 'search';
      readonly searchId: number;
      readonly columns: KernelColumns;
      /** What the parts' first numbers mean, by the numbers of the other side. */
      readonly blocks: readonly number[];
      /** One number, shared: not 0 once nobody waits for the answer. */
      readonly abandoned: Int32Array;
    };

export type DeviceReply =
  | { readonly kind: 'ready'; readonly facts: DeviceFacts }
  | {
      readonly kind: 'uploaded';
      readonly uploadId: number;
      /** Rows on the device now. */
      readonly rowCount: number;
      readonly outcome: 'done' | 'out of memory' | 'given up';
      /** That went up since the last such reply, for this block or another. */
      readonly bytes: number;
    }
  | {
      readonly kind: 'answer';
      readonly searchId: number;
      readonly answer: DeviceHits | 'out of memory' | 'given up';
    };

export interface DeviceProgramOptions {
  readonly kernels: CudaKernels;
  readonly deviceIndex: number;
  /** Null for the fastest. */
  readonly kernelsName: string | null;
  readonly reply: (reply: DeviceReply) => void;
  /** Calls back in a later turn of the event loop, after messages that wait; as setImmediate does. */
  readonly defer: (step: () => void) => void;
}

/** What goes up in one turn: two milliseconds, more or less. */
const SLICE_BYTES = 16 * 1024 * 1024;
/** Codes stand in panels of so many rows; a whole panel is copied once. */
const PANEL_ROWS = 16;

type Upload = Extract<DeviceRequest, { kind: 'upload' }>;

interface Block {
  readonly ticket: number;
  readonly dimension: number;
  /** The newest that was handed over; its arrays hold at least `rowCount` rows. */
  view: KernelBlock;
  rowCount: number;
  rowCapacity: number;
  hasValues: boolean;
  /** What a request that came later than an upload may change. */
  mayHaveValues: boolean;
}

export class DeviceProgram {
  readonly #options: DeviceProgramOptions;
  readonly #device: number;
  readonly #blocks = new Map<number, Block>();
  #urgent: Upload[] = [];
  #background: Upload[] = [];
  /** Since the last reply that told of it. */
  #uploadedBytes = 0;
  #isPumping = false;

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
      assert(found !== undefined, 'a block that is searched is resident');
      return found;
    });
    const batch = { ...columns, blocks: known.map(viewOf), workerCount: 1 };
    const residents = Uint32Array.from(known, ({ ticket }) => ticket);
    try {
      reply({ kind: 'answer', searchId, answer: kernels.search(this.#device, batch, residents) });
    } catch (error) {
      if (failureCode(error) !== 'OUT_OF_MEMORY') throw error;
      reply({ kind: 'answer', searchId, answer: 'out of memory' });
    }
  }

  #dropValues(number: number): void {
    const give = (upload: Upload) =>
      upload.block === number ? { ...upload, hasValues: false } : upload;
    this.#urgent = this.#urgent.map(give);
    this.#background = this.#background.map(give);
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
    this.#blocks.delete(number);
    this.#options.kernels.destroyBlock(block.ticket);
  }

  /** One slice now, and the next in another turn. */
  #pump(): void {
    if (this.#isPumping) return;
    this.#isPumping = true;
    this.#options.defer(() => {
      this.#isPumping = false;
      const queue = this.#urgent.length > 0 ? this.#urgent : this.#background;
      const upload = queue[0];
      if (upload === undefined) return;
      if (this.#advance(upload)) queue.shift();
      this.#pump();
    });
  }

  /** Whether the upload is over. */
  #advance(upload: Upload): boolean {
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
      kernels.extend(block.ticket, view.values, view.codes, to);
      const values = block.hasValues ? (to - block.rowCount) * rowBytes : 0;
      const all = kernels.blockBytes(block.dimension, to - block.rowCount, false);
      this.#uploadedBytes += all + values;
      block.rowCount = to;
    }
    if (block.rowCount < view.rowCount) return false;
    this.#finish(upload, 'done', block.rowCount);
    return true;
  }

  #create({ block: number, dimension, view }: Upload): Block {
    const ticket = this.#options.kernels.createBlock(this.#device, dimension);
    const empty = { rowCount: 0, rowCapacity: 0, hasValues: false, mayHaveValues: true };
    const block: Block = { ticket, dimension, view, ...empty };
    this.#blocks.set(number, block);
    return block;
  }

  /** False when there is no memory for it, and the block is as it was. */
  #reserve(block: Block, rowCapacity: number, hasValues: boolean): boolean {
    if (rowCapacity === block.rowCapacity && hasValues === block.hasValues) return true;
    if (!this.#options.kernels.reserve(block.ticket, rowCapacity, hasValues)) return false;
    block.rowCapacity = rowCapacity;
    block.hasValues = hasValues;
    return true;
  }

  #finish({ uploadId }: Upload, outcome: 'done' | 'out of memory' | 'given up', rowCount: number) {
    const bytes = this.#uploadedBytes;
    this.#uploadedBytes = 0;
    this.#options.reply({ kind: 'uploaded', uploadId, rowCount, outcome, bytes });
  }
}

function viewOf({ view }: Block): KernelBlock {
  return view;
}
