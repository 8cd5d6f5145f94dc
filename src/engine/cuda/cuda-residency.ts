// What a batch needs on the devices, and what it gets: blocks are dealt to the devices, sent up, and
// held there until the batch is done. What is not there in time is the caller's to search elsewhere.

import type { VectorBlock } from '../../common/types.js';
import type { SearchQuery } from '../core/engine.js';
import type { CudaDevice } from './cuda-device.js';
import type { DevicePlacement, Effort, Resident } from './cuda-placement.js';

/** What a batch waits for, at most, before it is searched; more comes while others answer. */
const AWAITED_BYTES_MAX = 256 * 1024 * 1024;

/** In this order: values are worth values that nobody uses, and codes are worth any values. */
const WAYS: readonly { readonly hasValues: boolean; readonly effort: Effort }[] = [
  { hasValues: true, effort: 'free' },
  { hasValues: true, effort: 'idle values' },
  { hasValues: false, effort: 'free' },
  { hasValues: false, effort: 'idle blocks' },
  { hasValues: false, effort: 'all values' },
];

export interface Place {
  readonly device: CudaDevice;
  readonly resident: Resident;
}

/** The blocks of a batch that are on devices, until they are released. */
export interface Holding {
  /** Null for what no device has in full. */
  placeOf(key: string): Place | null;
  release(): void;
}

interface Need {
  /** The view with the most rows. */
  block: VectorBlock;
  /** Rows that are searched. */
  rowCount: number;
}

interface Held extends Place {
  readonly placement: DevicePlacement;
  readonly need: Need;
}

interface Missing {
  readonly held: Held;
  readonly bytes: number;
}

export class CudaResidency {
  readonly #devices: readonly CudaDevice[];
  readonly #blockBytes: (dimension: number, rowCapacity: number, hasValues: boolean) => number;
  /** Uploads that some batch waits for. */
  readonly #awaited = new Map<Resident, Promise<void>>();

  constructor(
    devices: readonly CudaDevice[],
    blockBytes: (dimension: number, rowCapacity: number, hasValues: boolean) => number,
  ) {
    this.#devices = devices;
    this.#blockBytes = blockBytes;
  }

  /** Resolves when what the batch waits for has arrived. */
  async acquire(queries: readonly SearchQuery[]): Promise<Holding> {
    for (const device of this.#devices) device.wake();
    const needs = needsOf(queries);
    const held = this.#holdWhatIsThere(needs);
    const grown = [...held.values()].flatMap((each) => this.#grow(each));
    const arrived = [...needs.entries()].flatMap(([key, need]) => {
      if (held.has(key)) return [];
      const each = this.#place(need);
      if (each === null) return [];
      held.set(key, each);
      return [this.#missing(each)];
    });
    this.#send(grown, arrived);
    const waits = [...held.values()].flatMap(({ resident, need }) => {
      const awaited = resident.rowCount < need.rowCount ? this.#awaited.get(resident) : undefined;
      return awaited === undefined ? [] : [awaited];
    });
    await Promise.all(waits);
    return {
      placeOf(key) {
        const each = held.get(key);
        if (each === undefined || each.resident.isGone) return null;
        return each.resident.rowCount >= each.need.rowCount ? each : null;
      },
      release() {
        for (const { device, placement, resident } of held.values()) {
          device.carryOut(placement.release(resident));
        }
      },
    };
  }

  forget(key: string): void {
    for (const device of this.#devices) {
      if (device.placement !== null) device.carryOut(device.placement.forget(key));
    }
  }

  find(key: string): Resident | undefined {
    for (const { placement } of this.#devices) {
      const resident = placement?.find(key);
      if (resident !== undefined) return resident;
    }
    return undefined;
  }

  /** Held before anything is placed, so that nothing of this batch makes room for the rest of it. */
  #holdWhatIsThere(needs: ReadonlyMap<string, Need>): Map<string, Held> {
    const held = new Map<string, Held>();
    let isRestored = false;
    for (const [key, need] of needs) {
      for (const device of this.#devices) {
        const { placement } = device;
        const resident = placement?.find(key);
        if (placement === null || resident === undefined) continue;
        // One a batch, and it comes back whole: values are not added to rows that are there.
        if (!isRestored && mayBeRestored(placement, resident)) {
          isRestored = true;
          device.carryOut(placement.forget(key));
          continue;
        }
        placement.pin(resident);
        held.set(key, { device, placement, resident, need });
      }
    }
    return held;
  }

  /** What must be sent, when the block has grown and there is room for it. */
  #grow(held: Held): Missing[] {
    const { device, placement, resident, need } = held;
    if (resident.sentRowCount >= need.rowCount) return [];
    const orders = placement.grow(resident, need.block.rowCount);
    if (orders === null) return [];
    device.carryOut(orders);
    return [this.#missing(held)];
  }

  #place(need: Need): Held | null {
    const open = this.#devices.flatMap((device) => {
      return device.placement === null ? [] : [{ device, placement: device.placement }];
    });
    open.sort((left, right) => right.placement.freeBytes - left.placement.freeBytes);
    for (const { hasValues, effort } of WAYS) {
      for (const { device, placement } of open) {
        const placed = placement.place(need.block, hasValues, effort);
        if (placed === null) continue;
        const { resident, orders } = placed;
        device.carryOut(orders);
        placement.pin(resident);
        return { device, placement, resident, need };
      }
    }
    return null;
  }

  #missing(held: Held): Missing {
    const { resident, need } = held;
    const rowCount = need.block.rowCount - resident.sentRowCount;
    return { held, bytes: this.#blockBytes(resident.dimension, rowCount, resident.hasValues) };
  }

  /** Waited for if all of it is little, or at least what blocks have grown by. */
  #send(grown: readonly Missing[], arrived: readonly Missing[]): void {
    const grownBytes = sumOf(grown);
    const isGrownAwaited = grownBytes <= AWAITED_BYTES_MAX;
    const isAllAwaited = grownBytes + sumOf(arrived) <= AWAITED_BYTES_MAX;
    for (const missing of grown) this.#upload(missing, isGrownAwaited);
    for (const missing of arrived) this.#upload(missing, isAllAwaited);
  }

  #upload({ held: { device, resident, need } }: Missing, isAwaited: boolean): void {
    // What comes after an upload that nobody waits for is not there before it.
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

function mayBeRestored(placement: DevicePlacement, resident: Resident): boolean {
  const isAtRest = resident.pinCount === 0 && resident.sentRowCount === resident.rowCount;
  return !resident.hasValues && isAtRest && placement.hasRoomForValues(resident);
}

/** Of each block that is searched at all. */
function needsOf(queries: readonly SearchQuery[]): Map<string, Need> {
  const needs = new Map<string, Need>();
  for (const { views: parts } of queries) {
    for (const { block, rowCount } of parts) {
      if (rowCount === 0) continue;
      const need = needs.get(block.key);
      if (need === undefined) {
        needs.set(block.key, { block, rowCount });
        continue;
      }
      if (block.rowCount > need.block.rowCount) need.block = block;
      need.rowCount = Math.max(need.rowCount, rowCount);
    }
  }
  return needs;
}

function sumOf(missing: readonly Missing[]): number {
  return missing.reduce((sum, { bytes }) => sum + bytes, 0);
}
