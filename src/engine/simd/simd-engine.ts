// The `simd` engine: a certified int8 scan in the threads of the pool, through the kernels. A batch
// becomes one native search over all its blocks; each thread takes pieces of it until none is left,
// and what the threads share, thresholds above all, they share inside the kernels.

import { assert } from '../../common/errors.js';
import type { RowEncoder, UnencodedRows } from '../../common/types.js';
import type { Task, WorkerPool } from '../../platform/pool.js';
import type { Engine, SearchHits, SearchQuery } from '../core/engine.js';
import { cutForKernels, packColumns, sliceHits, toKernel } from './kernel-batch.js';
import { type KernelBatch, type KernelHits, type Kernels, loadKernels } from './simd-kernels.js';

/**
 * What one native search may be. Its threads keep up to 140 bytes for every hit that is asked for,
 * each; making it takes a nanosecond a value of its queries and a tenth of a microsecond for every
 * block of every query, on the calling thread.
 */
const HIT_BYTES_MAX = 128 * 1024 * 1024;
const BYTES_PER_HIT = 140;
const QUERY_BOUNDS = { valuesMax: 2 ** 21, viewsMax: 2 ** 16 };

/** What is cheaper than handing it to another thread is done at once, on the calling one. */
const INLINE_COST_NS = 40_000;

/** Work that is worth a second thread. */
const SHARED_COST_NS = 100_000;

/** Rows that are encoded in one task of the pool: a few milliseconds. */
const ENCODED_VALUES = 2 ** 21;

/** Works on a search until nothing is left to take; true when that completed it. */
export const workSimdTask: Task<number, boolean> = {
  name: 'engine.workSimd',
  run: (ticket) => loadKernels().work(ticket),
};

/** Makes the codes of rows, in shared memory, where they are. */
export const encodeSimdTask: Task<UnencodedRows, null> = {
  name: 'engine.encodeSimd',
  run(rows) {
    encodeRows(loadKernels(), rows);
    return null;
  },
};

/** Throws where the addon is not built, or the processor does not have the target that is asked for. */
export function createSimdEngine(options: { pool: WorkerPool; target?: string | null }): Engine {
  const kernels = loadKernels();
  selectTarget(kernels, options.target ?? kernels.targets()[0]!);
  return new SimdEngine(kernels, options.pool);
}

/** What the kernels run on, in words for an operator. */
export function describeSimd(): string {
  return `int8 kernels for ${loadKernels().selectedTarget()}`;
}

function selectTarget(kernels: Kernels, target: string): void {
  const known = kernels.targets();
  if (!known.includes(target)) {
    throw new Error(`this processor does not have ${target}; it has ${known.join(', ')}`);
  }
  kernels.selectTarget(target);
}

class SimdEngine implements Engine {
  readonly name = 'simd';
  readonly rowEncoder: RowEncoder;
  readonly #kernels: Kernels;
  readonly #pool: WorkerPool;
  /** Searches under way, and the arrays that their threads read: nothing else keeps those alive. */
  readonly #running = new Map<number, KernelBatch>();
  /** Settle when no thread works on a search any more. */
  readonly #ending = new Set<Promise<void>>();
  #isClosed = false;

  constructor(kernels: Kernels, pool: WorkerPool) {
    this.#kernels = kernels;
    this.#pool = pool;
    this.rowEncoder = createRowEncoder(kernels, pool);
  }

  async search(
    queries: readonly SearchQuery[],
    { signal }: { readonly signal?: AbortSignal } = {},
  ): Promise<SearchHits[]> {
    assert(!this.#isClosed, 'an engine is not used after it is closed');
    signal?.throwIfAborted();
    const answers = new Array<SearchHits>(queries.length);
    const workerCount = this.#pool.threadCount;
    const hitsMax = HIT_BYTES_MAX / (BYTES_PER_HIT * workerCount);
    for (const { dimension, places } of cutForKernels(queries, { ...QUERY_BOUNDS, hitsMax })) {
      signal?.throwIfAborted();
      const { columns, blocks } = packColumns(
        places.map((place) => queries[place]!),
        dimension,
      );
      const batch: KernelBatch = { ...columns, blocks: blocks.map(toKernel), workerCount };
      const hits = await this.#run(batch, signal);
      for (const [i, place] of places.entries()) answers[place] = sliceHits(hits, i);
    }
    return answers;
  }

  async #run(batch: KernelBatch, signal: AbortSignal | undefined): Promise<KernelHits> {
    const kernels = this.#kernels;
    const ticket = kernels.createSearch(batch);
    this.#running.set(ticket, batch);
    const cost = kernels.cost(ticket);
    if (cost <= INLINE_COST_NS) {
      try {
        assert(kernels.work(ticket), 'one thread alone ends a search');
        return kernels.takeHits(ticket);
      } finally {
        this.#release(ticket);
      }
    }
    const onAbort = () => kernels.cancel(ticket);
    signal?.addEventListener('abort', onAbort);
    const wanted = Math.min(this.#pool.threadCount, Math.ceil(cost / SHARED_COST_NS));
    const workers = Array.from({ length: wanted }, () => this.#pool.run(workSimdTask, ticket));
    const hits = isAnyTrue(workers).then((isDone) => {
      if (!isDone) throw new Error('no thread of the pool ended the search');
      signal?.throwIfAborted();
      return kernels.takeHits(ticket);
    });
    const ended = Promise.allSettled([...workers, hits]).then(() => {
      this.#release(ticket);
      this.#ending.delete(ended);
    });
    this.#ending.add(ended);
    try {
      return await hits;
    } finally {
      signal?.removeEventListener('abort', onAbort);
      // A thread that comes late finds nothing to do; one that is at work still reads the arrays.
      kernels.cancel(ticket);
    }
  }

  #release(ticket: number): void {
    this.#kernels.release(ticket);
    this.#running.delete(ticket);
  }

  unload(): void {}

  bytesUsed() {
    return { hostBytes: 0, deviceBytes: 0 };
  }

  /** Waits until no thread reads what it was given: the pool may be closed after that, not before. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const ticket of this.#running.keys()) this.#kernels.cancel(ticket);
    await Promise.all(this.#ending);
  }
}

/** True with the first promise that gives true, false when none does; rejects with the first that rejects. */
function isAnyTrue(promises: readonly Promise<boolean>[]): Promise<boolean> {
  return new Promise((resolve, reject) => {
    for (const promise of promises) {
      promise.then((isTrue) => {
        if (isTrue) resolve(true);
      }, reject);
    }
    Promise.all(promises).then(() => resolve(false), reject);
  });
}

function createRowEncoder(kernels: Kernels, pool: WorkerPool): RowEncoder {
  return {
    byteLength: (rowCount, dimension) => kernels.codesByteLength(rowCount, dimension),
    allocate(byteLength) {
      const whole = new Uint8Array(new SharedArrayBuffer(byteLength + ALIGNMENT_BYTES));
      const offset = kernels.alignmentOffset(whole);
      return whole.subarray(offset, offset + byteLength);
    },
    encode: (rows) => encodeRows(kernels, rows),
    async encodeAll({ from, to, ...rows }) {
      const step = Math.max(1, Math.floor(ENCODED_VALUES / rows.dimension));
      const tasks: Promise<null>[] = [];
      for (let at = from; at < to; at += step) {
        const piece = { ...rows, from: at, to: Math.min(at + step, to) };
        tasks.push(pool.run(encodeSimdTask, piece));
      }
      await Promise.all(tasks);
    },
  };
}

/** A cache line: loads of codes then never straddle two. */
const ALIGNMENT_BYTES = 64;

function encodeRows(kernels: Kernels, { values, dimension, from, to, codes }: UnencodedRows): void {
  kernels.encode(values, dimension, from, to, codes);
}
