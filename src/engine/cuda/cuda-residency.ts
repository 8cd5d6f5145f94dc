// Makes the blocks of a batch resident: places them on devices, uploads their rows, and pins them until the
// batch is done. The caller searches blocks that do not become resident in time elsewhere.

import type { VectorBlock } from '../../common/types.js';
import type { SearchQuery } from '../core/engine.js';
import { memoizeByViews } from '../core/kernel-batch.js';
import type { CudaDevice } from './cuda-device.js';
import type { CudaKernels } from './cuda-kernels.js';
import {
  type DevicePlacement,
  type EvictionLevel,
  hasHeadTiles,
  type ResidentBlock,
} from './cuda-placement.js';

/** The number of bytes whose upload a batch waits for. Larger uploads continue while the fallback answers. */
const AWAITED_BYTES_MAX = 256 * 1024 * 1024;

/** Attempts to place a block, in order: values may evict idle values, codes may evict any values. */
const PLACEMENT_ATTEMPTS: readonly {
  readonly hasValues: boolean;
  readonly eviction: EvictionLevel;
}[] = [
  { hasValues: true, eviction: 'nothing' },
  { hasValues: true, eviction: 'idle values' },
  { hasValues: false, eviction: 'nothing' },
  { hasValues: false, eviction: 'idle blocks' },
  { hasValues: false, eviction: 'all values' },
];

/** A block on a device. */
interface PlacedBlock {
  readonly device: CudaDevice;
  readonly resident: ResidentBlock;
}

/** The blocks of a batch that are on devices, pinned until they are released. */
export interface PinnedBlocks {
  /** Returns null for a block that is on no device with all rows of the batch. */
  find(key: string): PlacedBlock | null;
  release(): void;
}

interface NeededBlock {
  /** The version with the most rows. */
  block: VectorBlock;
  /** The largest number of rows that a query searches. */
  rowCount: number;
}

interface PinnedBlock extends PlacedBlock {
  readonly placement: DevicePlacement;
  readonly need: NeededBlock;
}

interface MissingRows {
  readonly pinned: PinnedBlock;
  readonly bytes: number;
}

export class CudaResidency {
  readonly #devices: readonly CudaDevice[];
  readonly #blockBytes: CudaKernels['blockBytes'];
  /** Uploads that a batch waits for. */
  readonly #awaited = new Map<ResidentBlock, Promise<void>>();

  constructor(devices: readonly CudaDevice[], blockBytes: CudaKernels['blockBytes']) {
    this.#devices = devices;
    this.#blockBytes = blockBytes;
  }

  /** Resolves when the uploads that the batch waits for are complete. */
  async acquire(queries: readonly SearchQuery[]): Promise<PinnedBlocks> {
    for (const device of this.#devices) device.retryIfDue();
    const needs = neededBlocks(queries);
    const pinned = this.#pinResident(needs);
    const grown = [...pinned.values()].flatMap((each) => this.#grow(each));
    const arrived = [...needs.entries()].flatMap(([key, need]) => {
      if (pinned.has(key)) return [];
      const each = this.#place(need);
      if (each === null) return [];
      pinned.set(key, each);
      return [this.#missing(each)];
    });
    this.#send(grown, arrived);
    const waits = [...pinned.values()].flatMap(({ resident, need }) => {
      const awaited = resident.rowCount < need.rowCount ? this.#awaited.get(resident) : undefined;
      return awaited === undefined ? [] : [awaited];
    });
    await Promise.all(waits);
    return {
      find(key) {
        const each = pinned.get(key);
        if (each === undefined || each.resident.isGone) return null;
        return each.resident.rowCount >= each.need.rowCount ? each : null;
      },
      release() {
        for (const { device, placement, resident } of pinned.values()) {
          device.execute(placement.release(resident));
        }
      },
    };
  }

  forget(key: string): void {
    for (const device of this.#devices) {
      if (device.placement !== null) device.execute(device.placement.forget(key));
    }
  }

  find(key: string): ResidentBlock | undefined {
    for (const { placement } of this.#devices) {
      const resident = placement?.find(key);
      if (resident !== undefined) return resident;
    }
    return undefined;
  }

  /** Pins resident blocks before others are placed, so that placing these does not evict blocks of the batch. */
  #pinResident(needs: ReadonlyMap<string, NeededBlock>): Map<string, PinnedBlock> {
    const pinned = new Map<string, PinnedBlock>();
    let isCompleted = false;
    for (const [key, need] of needs) {
      for (const device of this.#devices) {
        const { placement } = device;
        const resident = placement?.find(key);
        if (placement === null || resident === undefined) continue;
        // Completes one block per batch by uploading all of it again.
        if (!isCompleted && mayBeCompleted(placement, resident, need.block)) {
          isCompleted = true;
          device.execute(placement.forget(key));
          continue;
        }
        placement.pin(resident);
        pinned.set(key, { device, placement, resident, need });
      }
    }
    return pinned;
  }

  /** Returns the rows to upload if the block has grown and there is room for them. */
  #grow(pinned: PinnedBlock): MissingRows[] {
    const { device, placement, resident, need } = pinned;
    if (resident.sentRowCount >= need.rowCount) return [];
    const commands = placement.grow(resident, need.block.rowCount);
    if (commands === null) return [];
    device.execute(commands);
    return [this.#missing(pinned)];
  }

  #place(need: NeededBlock): PinnedBlock | null {
    const open = this.#devices.flatMap((device) => {
      return device.placement === null ? [] : [{ device, placement: device.placement }];
    });
    open.sort((left, right) => right.placement.freeBytes - left.placement.freeBytes);
    for (const { hasValues, eviction } of PLACEMENT_ATTEMPTS) {
      for (const { device, placement } of open) {
        const placed = placement.place(need.block, hasValues, eviction);
        if (placed === null) continue;
        const { resident, commands } = placed;
        device.execute(commands);
        placement.pin(resident);
        return { device, placement, resident, need };
      }
    }
    return null;
  }

  #missing(pinned: PinnedBlock): MissingRows {
    const { resident, need } = pinned;
    const rowCount = need.block.rowCount - resident.sentRowCount;
    return { pinned, bytes: this.#blockBytes(resident.dimension, rowCount, resident) };
  }

  /** Uploads rows. The batch waits for new rows of resident blocks and for new blocks, if there are few enough. */
  #send(grown: readonly MissingRows[], arrived: readonly MissingRows[]): void {
    const grownBytes = sumOf(grown);
    const isGrownAwaited = grownBytes <= AWAITED_BYTES_MAX;
    const isAllAwaited = grownBytes + sumOf(arrived) <= AWAITED_BYTES_MAX;
    for (const missing of grown) this.#upload(missing, isGrownAwaited);
    for (const missing of arrived) this.#upload(missing, isAllAwaited);
  }

  #upload({ pinned: { device, resident, need } }: MissingRows, isAwaited: boolean): void {
    // Rows behind a background upload of the same block cannot arrive before it.
    const isBehind = resident.sentRowCount > resident.rowCount && !this.#awaited.has(resident);
    const isUrgent = isAwaited && !isBehind;
    const uploaded = device.upload(resident, need.block, isUrgent);
    if (!isUrgent) return;
    const awaited = uploaded.then(() => {
      if (this.#awaited.get(resident) === awaited) this.#awaited.delete(resident);
    });
    this.#awaited.set(resident, awaited);
  }
}

/** Whether values that were evicted, or head tiles that were made after the upload, may follow. */
function mayBeCompleted(
  placement: DevicePlacement,
  resident: ResidentBlock,
  block: VectorBlock,
): boolean {
  const isAtRest = resident.pinCount === 0 && resident.sentRowCount === resident.rowCount;
  const lacksHead = hasHeadTiles(block) && !resident.hasHead;
  const lacksAny = !resident.hasValues || lacksHead;
  return lacksAny && isAtRest && placement.hasRoomForAll(resident, block);
}

/** Returns the blocks of which any row is searched. */
function neededBlocks(queries: readonly SearchQuery[]): Map<string, NeededBlock> {
  const needs = new Map<string, NeededBlock>();
  const addBlocks = memoizeByViews((views) => {
    for (const { block, rowCount } of views) {
      if (rowCount === 0) continue;
      const need = needs.get(block.key);
      if (need === undefined) {
        needs.set(block.key, { block, rowCount });
        continue;
      }
      if (block.rowCount > need.block.rowCount) need.block = block;
      need.rowCount = Math.max(need.rowCount, rowCount);
    }
  });
  for (const { views } of queries) addBlocks(views);
  return needs;
}

function sumOf(missing: readonly MissingRows[]): number {
  return missing.reduce((sum, { bytes }) => sum + bytes, 0);
}
