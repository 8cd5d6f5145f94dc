// The disk of a simulated node: a store in memory whose commits take time, can fail, and are lost in a crash unless they
// were synced. A crash may also come between the sync and the reply.

import { SagittaError } from '../../../src/common/errors.js';
import {
  createMemoryState,
  createMemoryStore,
  type MemoryState,
} from '../../../src/storage/memory-store.js';
import type { Store, StoreOperation } from '../../../src/storage/store.js';
import { overrideStore } from '../../database/harness.js';
import type { Dice } from './dice.js';
import type { Scheduler, SimProcess } from './scheduler.js';

const SYNC_MS_MIN = 0.05;
const SYNC_MS_MAX = 4;
const SLOW_MS_MAX = 1_500;
/** Some writes fit on a full disk. */
const FITS_CHANCE = 0.3;

export type DiskFault = 'full' | 'broken' | 'slow' | null;

export class SimulatedDisk {
  fault: DiskFault = null;
  readonly #scheduler: Scheduler;
  readonly #dice: Dice;
  #state: MemoryState = createMemoryState();
  /** Commits that are not synced yet, oldest first. */
  #unsynced: (readonly StoreOperation[])[] = [];

  constructor(scheduler: Scheduler, dice: Dice) {
    this.#scheduler = scheduler;
    this.#dice = dice;
  }

  open(process: SimProcess): Store {
    const memory = createMemoryStore({
      state: this.#state,
      beforeCommit: async (operations) => {
        await this.#write(process);
        const at = this.#unsynced.indexOf(operations);
        if (at >= 0) this.#unsynced.splice(at, 1);
      },
    });
    return overrideStore(memory, {
      commit: async (operations) => {
        this.#unsynced.push(operations);
        try {
          await memory.commit(operations);
        } finally {
          this.#unsynced = this.#unsynced.filter((each) => each !== operations);
        }
      },
      writeBlob: async (name, parts) => {
        await this.#write(process);
        await memory.writeBlob(name, parts);
      },
      removeBlob: async (name) => {
        await this.#scheduler.sleep(this.#syncMs());
        await memory.removeBlob(name);
      },
    });
  }

  /** Called when the process has died: of the commits that were being written, the first ones may be on disk. */
  async crash(): Promise<void> {
    const unsynced = this.#unsynced;
    this.#unsynced = [];
    if (this.fault === 'full' || this.fault === 'broken') return;
    const synced = this.#dice.below(unsynced.length + 1);
    const store = createMemoryStore({ state: this.#state });
    for (const operations of unsynced.slice(0, synced))
      await store.commit(operations).catch(() => {});
  }

  erase(): void {
    this.#state = createMemoryState();
    this.#unsynced = [];
  }

  async #write(process: SimProcess): Promise<void> {
    await this.#scheduler.sleep(this.#syncMs());
    if (process.isDead) await new Promise(() => {});
    if (this.fault === 'full' && !this.#dice.chance(FITS_CHANCE))
      throw new SagittaError('storage_full', 'The simulated disk is full.');
    if (this.fault === 'broken') throw new Error('EIO: simulated');
  }

  #syncMs(): number {
    const slowMs = this.fault === 'slow' ? this.#dice.fraction() * SLOW_MS_MAX : 0;
    return this.#dice.between(SYNC_MS_MIN, SYNC_MS_MAX) + slowMs;
  }
}
