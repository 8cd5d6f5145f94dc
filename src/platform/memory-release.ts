// Returns unused memory to the system. Otherwise much of it stays with the process: pools keep buffers, each thread
// keeps the shared buffers that it has seen until it collects garbage, and the C library keeps freed memory that lies
// before later allocations.

import { collectGarbage } from '../common/garbage.js';
import { addonPath, loadAddon } from './native-addon.js';
import type { Task, WorkerPool } from './pool.js';

interface MemoryAddon {
  /** Absent if the C library has no such function. Takes up to 0.1 s. */
  trimMemory?(): void;
}

/**
 * Memory is returned after this time without further releases. During heavy writing, buffers are reused at once, which
 * is faster than getting them from the system.
 */
const QUIET_MS = 3_000;
/** V8 frees buffers on a separate thread after it has collected garbage. */
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

  /** Registers a function that drops buffers kept for reuse; it is called before each release. */
  onRelease(dropKept: () => void): void {
    this.#dropKept.push(dropKept);
  }

  /** Called when much memory was released. Cheap. */
  soon(): void {
    this.#timer ??= setTimeout(() => this.#run(), this.#quietMs).unref();
    this.#timer.refresh();
  }

  /** Releases memory immediately, for a process that is short of it. Takes tens of milliseconds. */
  now(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#run();
  }

  /** Cancels a scheduled release. The pool is closed by its owner. */
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
    // Trimming would block the main thread, so the pool does it.
    const trim = () =>
      setTimeout(() => pool.run(trimMemoryTask, null).catch(() => {}), FREEING_MS).unref();
    // A closing pool rejects, but then the process releases its memory anyway.
    Promise.all(collections).then(trim, () => {});
  }
}

function load(): MemoryAddon | null {
  try {
    return loadAddon<MemoryAddon>(addonPath('sagitta.node'), 'the addon is not built');
  } catch {
    // The choice of the engine reports the error.
    return null;
  }
}
