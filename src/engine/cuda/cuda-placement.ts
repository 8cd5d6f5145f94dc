// Which blocks are on one device, and what leaves when something else needs the room. Numbers only:
// nothing here knows threads. What must be done on the device comes back as orders, in their order.

import type { VectorBlock } from '../../common/types.js';

/** A block on a device, or on its way there. */
export interface Resident {
  readonly key: string;
  /** Never given twice, so that whoever holds an old one cannot mean another. */
  readonly number: number;
  readonly dimension: number;
  /** Room for so many rows. */
  rowCapacity: number;
  /** Without them, rows are rescored on the host. */
  hasValues: boolean;
  bytes: number;
  /** Rows that are there, and those that were sent. */
  rowCount: number;
  sentRowCount: number;
  lastUseMs: number;
  /** Batches that count on it. */
  pinCount: number;
  /** Nobody can ask for it any more; it leaves when the last batch is done with it. */
  isForgotten: boolean;
  /** The device does not have it any more. */
  isGone: boolean;
}

export type PlacementOrder =
  | { readonly kind: 'drop values'; readonly block: number }
  | { readonly kind: 'unload'; readonly block: number };

export interface PlacementOptions {
  readonly budgetBytes: number;
  readonly blockBytes: (dimension: number, rowCapacity: number, hasValues: boolean) => number;
  /** Milliseconds, from any origin. */
  readonly now: () => number;
  /** What was used more recently stays, so that two collections in turn do not drive each other out. */
  readonly idleMs: number;
}

/** A block that grows has room for half as many rows again, so that it is seldom moved. */
const GROWTH = 1.5;
/** What must stay free before values come back to a block, of the budget: else they might leave again. */
const FREE_SHARE = 1 / 16;

/** How hard room is looked for: each does what those before do, and more. */
const EFFORTS = ['free', 'idle values', 'idle blocks', 'all values'] as const;
export type Effort = (typeof EFFORTS)[number];

let residentCount = 0;

export class DevicePlacement {
  readonly #options: PlacementOptions;
  readonly #residents = new Map<string, Resident>();
  /** Forgotten, and still counted on. */
  readonly #leaving = new Set<Resident>();
  #budgetBytes: number;
  #usedBytes = 0;

  constructor(options: PlacementOptions) {
    this.#options = options;
    this.#budgetBytes = options.budgetBytes;
  }

  get budgetBytes(): number {
    return this.#budgetBytes;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  get freeBytes(): number {
    return this.#budgetBytes - this.#usedBytes;
  }

  find(key: string): Resident | undefined {
    return this.#residents.get(key);
  }

  pin(resident: Resident): void {
    resident.pinCount++;
    resident.lastUseMs = this.#options.now();
  }

  release(resident: Resident): PlacementOrder[] {
    resident.pinCount--;
    resident.lastUseMs = this.#options.now();
    return resident.isForgotten && resident.pinCount === 0 ? this.#remove(resident) : [];
  }

  /** The key means nothing from now on. */
  forget(key: string): PlacementOrder[] {
    const resident = this.#residents.get(key);
    if (resident === undefined) return [];
    this.#residents.delete(key);
    resident.isForgotten = true;
    this.#leaving.add(resident);
    return resident.pinCount === 0 ? this.#remove(resident) : [];
  }

  /** A new resident, for exactly the rows of the block; null when that much effort makes no room. */
  place(
    { key, dimension, rowCount }: VectorBlock,
    hasValues: boolean,
    effort: Effort,
  ): { resident: Resident; orders: PlacementOrder[] } | null {
    const bytes = this.#options.blockBytes(dimension, rowCount, hasValues);
    const orders = this.#makeRoom(bytes, effort, null);
    if (orders === null) return null;
    const resident: Resident = {
      key,
      number: residentCount++,
      dimension,
      rowCapacity: rowCount,
      hasValues,
      bytes,
      rowCount: 0,
      sentRowCount: 0,
      lastUseMs: this.#options.now(),
      pinCount: 0,
      isForgotten: false,
      isGone: false,
    };
    this.#residents.set(key, resident);
    this.#usedBytes += bytes;
    return { resident, orders };
  }

  /** Room for so many rows, at the price of the block's own values if need be; null when there is none. */
  grow(resident: Resident, rowCount: number): PlacementOrder[] | null {
    if (rowCount <= resident.rowCapacity) return [];
    const { blockBytes } = this.#options;
    const { dimension } = resident;
    const ample = Math.max(rowCount, Math.ceil(resident.rowCapacity * GROWTH));
    const shapes = [
      [ample, resident.hasValues, 'idle blocks'],
      [rowCount, resident.hasValues, 'idle blocks'],
      [rowCount, false, 'all values'],
    ] as const;
    for (const [rowCapacity, hasValues, effort] of shapes) {
      const bytes = blockBytes(dimension, rowCapacity, hasValues);
      const orders = this.#makeRoom(bytes - resident.bytes, effort, resident);
      if (orders === null) continue;
      if (resident.hasValues && !hasValues) {
        orders.push({ kind: 'drop values', block: resident.number });
      }
      this.#resize(resident, rowCapacity, hasValues);
      return orders;
    }
    return null;
  }

  /** Whether a block that lost its values may have them back, and would keep them. */
  hasRoomForValues(resident: Resident): boolean {
    const { dimension, rowCapacity, bytes } = resident;
    const added = this.#options.blockBytes(dimension, rowCapacity, true) - bytes;
    return this.freeBytes - added >= this.#budgetBytes * FREE_SHARE;
  }

  /** The device has less memory than was thought; what is idle leaves until the rest fits, if it does. */
  shrinkBudget(budgetBytes: number): PlacementOrder[] {
    this.#budgetBytes = Math.max(0, Math.min(this.#budgetBytes, budgetBytes));
    return this.#leave((resident) => resident.pinCount === 0, 0);
  }

  /** All of it is gone, with the device. */
  clear(): void {
    for (const resident of [...this.#residents.values(), ...this.#leaving]) resident.isGone = true;
    this.#residents.clear();
    this.#leaving.clear();
    this.#usedBytes = 0;
  }

  /** Null, and nothing leaves, when that much effort is not enough. */
  #makeRoom(bytes: number, effort: Effort, grown: Resident | null): PlacementOrder[] | null {
    if (bytes <= this.freeBytes) return [];
    const idleSince = this.#options.now() - this.#options.idleMs;
    const isIdle = (resident: Resident) =>
      resident !== grown && resident.pinCount === 0 && resident.lastUseMs <= idleSince;
    const level = EFFORTS.indexOf(effort);
    const candidates = [...this.#residents.values()];
    const values = candidates.filter(
      (resident) =>
        resident !== grown &&
        resident.hasValues &&
        (level >= 3 || (level >= 1 && isIdle(resident))),
    );
    const blocks = level >= 2 ? candidates.filter(isIdle) : [];
    let within = this.freeBytes;
    for (const resident of values) within += resident.bytes - this.#codeBytes(resident);
    for (const resident of blocks) within += this.#codeBytes(resident);
    return bytes <= within
      ? this.#leave((resident) => blocks.includes(resident), bytes, values)
      : null;
  }

  /** The least recently used first: values of some, then whole blocks, until so many bytes are free. */
  #leave(
    mayLeave: (resident: Resident) => boolean,
    bytes: number,
    values = [...this.#residents.values()].filter(
      (resident) => resident.hasValues && mayLeave(resident),
    ),
  ): PlacementOrder[] {
    const orders: PlacementOrder[] = [];
    for (const resident of values.sort(byLastUse)) {
      if (bytes <= this.freeBytes) return orders;
      this.#resize(resident, resident.rowCapacity, false);
      orders.push({ kind: 'drop values', block: resident.number });
    }
    for (const resident of [...this.#residents.values()].filter(mayLeave).sort(byLastUse)) {
      if (bytes <= this.freeBytes) return orders;
      this.#residents.delete(resident.key);
      orders.push(...this.#remove(resident));
    }
    return orders;
  }

  #codeBytes({ dimension, rowCapacity }: Resident): number {
    return this.#options.blockBytes(dimension, rowCapacity, false);
  }

  #resize(resident: Resident, rowCapacity: number, hasValues: boolean): void {
    const bytes = this.#options.blockBytes(resident.dimension, rowCapacity, hasValues);
    this.#usedBytes += bytes - resident.bytes;
    Object.assign(resident, { rowCapacity, hasValues, bytes });
  }

  #remove(resident: Resident): PlacementOrder[] {
    this.#leaving.delete(resident);
    if (resident.isGone) return [];
    resident.isGone = true;
    this.#usedBytes -= resident.bytes;
    return [{ kind: 'unload', block: resident.number }];
  }
}

function byLastUse(left: Resident, right: Resident): number {
  return left.lastUseMs - right.lastUseMs || left.number - right.number;
}
