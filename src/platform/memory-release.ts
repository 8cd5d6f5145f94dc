// Gives memory that is no longer used back to the system. Otherwise much of it stays with the process: pools keep
// buffers, each thread keeps the shared buffers that it has seen until it collects garbage, and the C library
// keeps what is freed, since any later allocation may lie behind it.

import { collectGarbage } from '../common/garbage.js';
import { addonPath, loadAddon } from './native-addon.js';
import type { Task, WorkerPool } from './pool.js';

interface MemoryAddon {
  /** Absent where the C library has no such function. Takes up to 0.1 s. */
  trimMemory?(): void;
}

/**
 * Without a release in this time there is one. While much is written buffers are used again at once, which is
 * faster than to get them from the system.
 */
const QUIET_MS = 3_000;
/** V8 frees buffers in a thread of its own, after the collection of garbage. */
const FREEING_MS = 500;

export const collectGarbageTask: Task<null, null> = {
  name: 'platform.collectGarbage',
  run() {
    collectGarbage();
    return null;
  },
};

export const trimMemoryTask: Task<null, null> = {
  name: 'platform.trimMemory',
  run() {
    load()?.trimMemory?.();
    return null;
  },
};

export class MemoryRelease {
  readonly #pool: WorkerPool;
  readonly #quietMs: number;
  readonly #dropKept: (() => void)[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(pool: WorkerPool, { quietMs = QUIET_MS }: { readonly quietMs?: number } = {}) {
    this.#pool = pool;
    this.#quietMs = quietMs;
  }

  /** `dropKept` drops buffers that are kept to be used again; called before each release. */
  onRelease(dropKept: () => void): void {
    this.#dropKept.push(dropKept);
  }

  /** Called when much memory was released. Cheap. */
  soon(): void {
    this.#timer ??= setTimeout(() => this.#run(), this.#quietMs).unref();
    this.#timer.refresh();
  }

  /** For a process that is short of memory. Takes tens of milliseconds. */
  now(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#run();
  }

  /** None follows. The pool is closed by its owner. */
  close(): void {
    clearTimeout(this.#timer);
  }

  #run(): void {
    for (const drop of this.#dropKept) drop();
    collectGarbage();
    const pool = this.#pool;
    const collections = Array.from({ length: pool.threadCount }, () =>
      pool.run(collectGarbageTask, null),
    );
    // Not on the main thread, which would stand still meanwhile.
    const trim = () =>
      setTimeout(() => pool.run(trimMemoryTask, null).catch(() => {}), FREEING_MS).unref();
    // A pool that is being closed rejects, and the memory of the process is released anyway.
    Promise.all(collections).then(trim, () => {});
  }
}

function load(): MemoryAddon | null {
  try {
    return loadAddon<MemoryAddon>(addonPath('sagitta.node'), 'the addon is not built');
  } catch {
    // The choice of the engine reports it.
    return null;
  }
}
