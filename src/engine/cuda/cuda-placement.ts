// Places blocks on one device and evicts blocks to make room for others. Pure bookkeeping: what must be done on
// the device is returned as commands, to be executed in order.

import type { VectorBlock } from '../../common/types.js';
import type { CudaKernels } from './cuda-kernels.js';

/** A block on a device, or being uploaded. */
export interface ResidentBlock {
  readonly key: string;
  /** Unique, so that a stale reference never refers to another block. */
  readonly number: number;
  readonly dimension: number;
  /** The number of rows that fit. */
  rowCapacity: number;
  /** Whether the values and coarse codes are on the device; if not, the host rescores its rows. */
  hasValues: boolean;
  /** Whether it has head tiles, as long as it has its values. */
  readonly hasHead: boolean;
  bytes: number;
  /** Rows on the device, and rows whose upload has been started. */
  rowCount: number;
  sentRowCount: number;
  lastUseMs: number;
  /** The number of batches that have pinned the block. */
  pinCount: number;
  /** Its key was forgotten; it is unloaded when its last batch is done. */
  isForgotten: boolean;
  /** Whether the device no longer has the block. */
  isGone: boolean;
}

export type PlacementCommand =
  | { readonly kind: 'drop values'; readonly block: number }
  | { readonly kind: 'unload'; readonly block: number };

interface PlacementOptions {
  readonly budgetBytes: number;
  readonly blockBytes: CudaKernels['blockBytes'];
  /** Milliseconds, from any origin. */
  readonly now: () => number;
  /** Blocks used more recently are not evicted, so that two alternating collections do not thrash. */
  readonly idleMs: number;
}

/** A growing block gets room for half as many rows again, so that it is seldom copied. */
const GROWTH = 1.5;
/** The share of the budget that must stay free when values are restored; otherwise they might be evicted again. */
const FREE_SHARE = 1 / 16;

/** What may be evicted to make room: each level includes those before it. */
const EVICTION_LEVELS = ['nothing', 'idle values', 'idle blocks', 'all values'] as const;
export type EvictionLevel = (typeof EVICTION_LEVELS)[number];

let residentCount = 0;

export class DevicePlacement {
  readonly #options: PlacementOptions;
  readonly #residents = new Map<string, ResidentBlock>();
  /** Forgotten blocks that are still pinned. */
  readonly #forgotten = new Set<ResidentBlock>();
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

  find(key: string): ResidentBlock | undefined {
    return this.#residents.get(key);
  }

  pin(resident: ResidentBlock): void {
    resident.pinCount++;
    resident.lastUseMs = this.#options.now();
  }

  release(resident: ResidentBlock): PlacementCommand[] {
    resident.pinCount--;
    resident.lastUseMs = this.#options.now();
    return resident.isForgotten && resident.pinCount === 0 ? this.#remove(resident) : [];
  }

  /** Forgets the block; it is unloaded now or when it is no longer pinned. */
  forget(key: string): PlacementCommand[] {
    const resident = this.#residents.get(key);
    if (resident === undefined) return [];
    this.#residents.delete(key);
    resident.isForgotten = true;
    this.#forgotten.add(resident);
    return resident.pinCount === 0 ? this.#remove(resident) : [];
  }

  /** Places a block with room for exactly its rows; null when the evictions make no room. */
  place(
    block: VectorBlock,
    hasValues: boolean,
    eviction: EvictionLevel,
  ): { resident: ResidentBlock; commands: PlacementCommand[] } | null {
    const { key, dimension, rowCount } = block;
    const hasHead = hasHeadTiles(block);
    const bytes = this.#options.blockBytes(dimension, rowCount, { hasValues, hasHead });
    const commands = this.#makeRoom(bytes, eviction, null);
    if (commands === null) return null;
    const resident: ResidentBlock = {
      key,
      number: residentCount++,
      dimension,
      rowCapacity: rowCount,
      hasValues,
      hasHead,
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
    return { resident, commands };
  }

  /**
   * Makes room for more rows, at the cost of the block's own values if necessary; null if impossible. Blocks with head
   * tiles are sealed and do not grow.
   */
  grow(resident: ResidentBlock, rowCount: number): PlacementCommand[] | null {
    if (rowCount <= resident.rowCapacity) return [];
    const { blockBytes } = this.#options;
    const { dimension, hasHead } = resident;
    if (hasHead) return null;
    const ample = Math.max(rowCount, Math.ceil(resident.rowCapacity * GROWTH));
    const shapes = [
      [ample, resident.hasValues, 'idle blocks'],
      [rowCount, resident.hasValues, 'idle blocks'],
      [rowCount, false, 'all values'],
    ] as const;
    for (const [rowCapacity, hasValues, eviction] of shapes) {
      const bytes = blockBytes(dimension, rowCapacity, { hasValues, hasHead });
      const commands = this.#makeRoom(bytes - resident.bytes, eviction, resident);
      if (commands === null) continue;
      if (resident.hasValues && !hasValues) {
        commands.push({ kind: 'drop values', block: resident.number });
      }
      this.#resize(resident, rowCapacity, hasValues);
      return commands;
    }
    return null;
  }

  /** Whether a resident block that lacks values or head tiles of this block may get them, and would keep them. */
  hasRoomForAll(resident: ResidentBlock, block: VectorBlock): boolean {
    const { dimension, rowCapacity, bytes } = resident;
    const parts = { hasValues: true, hasHead: hasHeadTiles(block) };
    const added = this.#options.blockBytes(dimension, rowCapacity, parts) - bytes;
    return this.freeBytes - added >= this.#budgetBytes * FREE_SHARE;
  }

  /** Lowers the budget because the device has less memory than expected, and evicts blocks that are not pinned. */
  shrinkBudget(budgetBytes: number): PlacementCommand[] {
    this.#budgetBytes = Math.max(0, Math.min(this.#budgetBytes, budgetBytes));
    const idle = [...this.#residents.values()].filter(({ pinCount }) => pinCount === 0);
    return this.#evict(
      idle.filter(({ hasValues }) => hasValues),
      idle,
      0,
    );
  }

  /** Forgets all blocks because the device is gone. */
  clear(): void {
    for (const resident of [...this.#residents.values(), ...this.#forgotten])
      resident.isGone = true;
    this.#residents.clear();
    this.#forgotten.clear();
    this.#usedBytes = 0;
  }

  /** Returns null, and evicts nothing, when that much eviction is not enough. */
  #makeRoom(
    bytes: number,
    eviction: EvictionLevel,
    grown: ResidentBlock | null,
  ): PlacementCommand[] | null {
    if (bytes <= this.freeBytes) return [];
    const idleSince = this.#options.now() - this.#options.idleMs;
    const isIdle = (resident: ResidentBlock) =>
      resident !== grown && resident.pinCount === 0 && resident.lastUseMs <= idleSince;
    const level = EVICTION_LEVELS.indexOf(eviction);
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
    return bytes <= within ? this.#evict(values, blocks, bytes) : null;
  }

  /** Evicts values, then whole blocks, least recently used first, until `bytes` are free. */
  #evict(values: ResidentBlock[], blocks: ResidentBlock[], bytes: number): PlacementCommand[] {
    const commands: PlacementCommand[] = [];
    for (const resident of values.sort(byLastUse)) {
      if (bytes <= this.freeBytes) return commands;
      this.#resize(resident, resident.rowCapacity, false);
      commands.push({ kind: 'drop values', block: resident.number });
    }
    for (const resident of blocks.sort(byLastUse)) {
      if (bytes <= this.freeBytes) return commands;
      this.#residents.delete(resident.key);
      commands.push(...this.#remove(resident));
    }
    return commands;
  }

  #codeBytes({ dimension, rowCapacity, hasHead }: ResidentBlock): number {
    return this.#options.blockBytes(dimension, rowCapacity, { hasValues: false, hasHead });
  }

  #resize(resident: ResidentBlock, rowCapacity: number, hasValues: boolean): void {
    const { dimension, hasHead } = resident;
    const bytes = this.#options.blockBytes(dimension, rowCapacity, { hasValues, hasHead });
    this.#usedBytes += bytes - resident.bytes;
    Object.assign(resident, { rowCapacity, hasValues, bytes });
  }

  #remove(resident: ResidentBlock): PlacementCommand[] {
    this.#forgotten.delete(resident);
    if (resident.isGone) return [];
    resident.isGone = true;
    this.#usedBytes -= resident.bytes;
    return [{ kind: 'unload', block: resident.number }];
  }
}

/** Whether the block has head tiles that are worth copying to a device. */
export function hasHeadTiles({ codes, hasProvisionalHead }: VectorBlock): boolean {
  return codes !== null && codes.head !== null && hasProvisionalHead !== true;
}

function byLastUse(left: ResidentBlock, right: ResidentBlock): number {
  return left.lastUseMs - right.lastUseMs || left.number - right.number;
}
