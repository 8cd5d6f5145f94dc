// The `simd` engine: native kernels scan codes with proven bounds, on the threads of the pool. A batch becomes
// one native search over all its blocks. Each thread works on it until no row range is left; the kernels share
// thresholds and merge the results.

import { assert } from '../../common/errors.js';
import type { RankKey } from '../../common/rank-key.js';
import type { RowEncoder } from '../../common/types.js';
import { whenAborted } from '../../common/when-aborted.js';
import type { Task, WorkerPool } from '../../platform/pool.js';
import type {
  CountedQuery,
  Engine,
  SearchHits,
  SearchOptions,
  SearchQuery,
} from '../core/engine.js';
import {
  cutForKernels,
  type KernelBatch,
  type KernelHits,
  packColumns,
  sliceHits,
  toKernelBlock,
} from '../core/kernel-batch.js';
import { createRowEncoder } from './row-encoder.js';
import { type Kernels, loadKernels } from './simd-kernels.js';

/**
 * Limits of one native search. Each of its threads keeps up to 160 bytes per hit; creating it takes
 * about 1 ns per value of its queries and 0.1 µs per view, on the calling thread.
 */
const HIT_BYTES_MAX = 128 * 1024 * 1024;
const BYTES_PER_HIT = 160;
const QUERY_BOUNDS = { valuesMax: 2 ** 21, viewsMax: 2 ** 16, plansSharedViewsOnce: false };

/** A search gets one more thread for every such amount of work. */
const SHARED_COST_NS = 100_000;

/** Searches below this cost run on the calling thread: waking another thread would cost more. */
const INLINE_COST_NS = 40_000;

/**
 * Up to this cost the calling thread takes the place of one thread of the pool, if it may block: waking a
 * thread and being woken by it takes 0.2 to 0.3 ms. If every other thread is busy it is blocked for the whole
 * cost, otherwise for its share.
 */
const JOINED_COST_NS = 2_000_000;

/** How long the calling thread waits for the one that finishes the search before it lets others run. */
const FINISH_MS_MAX = 0.2;

/** Works on a search until no work is left. Returns true if this task completed it. */
export const workSimdTask: Task<number, boolean> = {
  name: 'engine.workSimd',
  priority: 'search',
  run: (ticket) => loadKernels().work(ticket),
};

/** Throws when the addon is not built or the processor does not support the requested target. */
export function createSimdEngine(options: { pool: WorkerPool; target?: string | null }): Engine {
  const kernels = loadKernels();
  selectTarget(kernels, options.target ?? kernels.targets()[0]!);
  return new SimdEngine(kernels, options.pool);
}

/** Describes the selected target, for an operator. */
export function describeSimd(): string {
  return `int8 kernels for ${loadKernels().selectedTarget()}`;
}

function selectTarget(kernels: Kernels, target: string): void {
  const known = kernels.targets();
  if (!known.includes(target)) {
    throw new Error(`this processor does not support ${target}; it supports ${known.join(', ')}`);
  }
  kernels.selectTarget(target);
}

/** A kind of native search, by its result. */
interface SearchKind<Result> {
  /** A ticket. */
  create(kernels: Kernels, batch: KernelBatch): number;
  take(kernels: Kernels, ticket: number): Result;
}

const searchKind: SearchKind<KernelHits> = {
  create: (kernels, batch) => kernels.createSearch(batch),
  take: (kernels, ticket) => kernels.takeHits(ticket),
};

function countKindOf(rankKeys: readonly RankKey[]): SearchKind<Float64Array> {
  const scores = Float64Array.from(rankKeys, ({ score }) => score);
  const idOffsets = new Uint32Array(rankKeys.length + 1);
  for (const [i, { id }] of rankKeys.entries()) idOffsets[i + 1] = idOffsets[i]! + id.length;
  const ids = new Uint8Array(idOffsets[rankKeys.length]!);
  for (const [i, { id }] of rankKeys.entries()) ids.set(id, idOffsets[i]!);
  return {
    create: (kernels, batch) => kernels.createCount(batch, scores, idOffsets, ids),
    take: (kernels, ticket) => kernels.takeCounts(ticket),
  };
}

interface RunOptions {
  /** A search of at most this cost in nanoseconds is joined by the calling thread. */
  readonly joinedCostMax: number;
  readonly signal: AbortSignal | undefined;
}

class SimdEngine implements Engine {
  readonly name = 'simd';
  readonly rowEncoder: RowEncoder;
  readonly #kernels: Kernels;
  readonly #pool: WorkerPool;
  /** Searches in progress. The map keeps the arrays alive that their threads read. */
  readonly #running = new Map<number, KernelBatch>();
  /** Promises that settle when no thread works on a search any more. */
  readonly #ending = new Set<Promise<void>>();
  #isClosed = false;

  constructor(kernels: Kernels, pool: WorkerPool) {
    this.#kernels = kernels;
    this.#pool = pool;
    this.rowEncoder = createRowEncoder(kernels, pool);
  }

  async search(
    queries: readonly SearchQuery[],
    { signal, mayBlock = false }: SearchOptions = {},
  ): Promise<SearchHits[]> {
    assert(!this.#isClosed, 'the engine is not closed');
    signal?.throwIfAborted();
    const answers = new Array<SearchHits>(queries.length);
    const workerCount = this.#pool.threadCount;
    const hitsMax = HIT_BYTES_MAX / (BYTES_PER_HIT * workerCount);
    let joinedCostMax = mayBlock ? JOINED_COST_NS : INLINE_COST_NS;
    for (const { dimension, indexes } of cutForKernels(queries, { ...QUERY_BOUNDS, hitsMax })) {
      signal?.throwIfAborted();
      const { columns, blocks } = packColumns(
        indexes.map((index) => queries[index]!),
        dimension,
      );
      const batch: KernelBatch = { ...columns, blocks: blocks.map(toKernelBlock), workerCount };
      const hits = await this.#run(batch, searchKind, { joinedCostMax, signal });
      // Granted only once, since a batch of many dimensions becomes several searches.
      joinedCostMax = INLINE_COST_NS;
      for (const [i, index] of indexes.entries()) answers[index] = sliceHits(hits, i);
    }
    return answers;
  }

  /** The calling thread does not join: the cost does not include how many rows will have to be scored. */
  async countBefore(
    query: CountedQuery,
    rankKeys: readonly RankKey[],
    { signal }: SearchOptions = {},
  ): Promise<Float64Array> {
    assert(!this.#isClosed, 'the engine is not closed');
    signal?.throwIfAborted();
    const whole = { ...query, k: 1, after: null, scoreMin: null };
    const { columns, blocks } = packColumns([whole], query.vector.length);
    const workerCount = this.#pool.threadCount;
    const batch: KernelBatch = { ...columns, blocks: blocks.map(toKernelBlock), workerCount };
    const options = { joinedCostMax: INLINE_COST_NS, signal };
    return this.#run(batch, countKindOf(rankKeys), options);
  }

  async #run<Result>(
    batch: KernelBatch,
    kind: SearchKind<Result>,
    { joinedCostMax, signal }: RunOptions,
  ): Promise<Result> {
    const kernels = this.#kernels;
    const ticket = kind.create(kernels, batch);
    this.#running.set(ticket, batch);
    const cost = kernels.cost(ticket);
    const threadCount = Math.min(this.#pool.threadCount, Math.ceil(cost / SHARED_COST_NS));
    const isJoined = cost <= joinedCostMax;
    const workers = Array.from({ length: threadCount - (isJoined ? 1 : 0) }, () =>
      this.#pool.run(workSimdTask, ticket),
    );
    const completed = this.#complete(ticket, workers, { isJoined, signal });
    const result = completed.then(() => kind.take(kernels, ticket));
    const ended = Promise.allSettled([...workers, result]).then(() => {
      this.#release(ticket);
      this.#ending.delete(ended);
    });
    this.#ending.add(ended);
    try {
      return await result;
    } finally {
      // Threads that start late find no work; those still at work read the arrays until they notice.
      kernels.cancel(ticket);
    }
  }

  /** Resolves as soon as a worker, or this thread if it joins them, has completed the search. */
  async #complete(
    ticket: number,
    workers: readonly Promise<boolean>[],
    { isJoined, signal }: { readonly isJoined: boolean; readonly signal: AbortSignal | undefined },
  ): Promise<void> {
    if (isJoined && this.#join(ticket)) return;
    const ignoreAbort = whenAborted(signal, () => this.#kernels.cancel(ticket));
    try {
      const isDone = await isAnyTrue(workers);
      if (!isDone) throw new Error('no thread of the pool completed the search');
      signal?.throwIfAborted();
    } finally {
      ignoreAbort();
    }
  }

  /** Works on the search. Returns false if another thread has yet to complete it. */
  #join(ticket: number): boolean {
    if (this.#kernels.work(ticket)) return true;
    const deadlineMs = performance.now() + FINISH_MS_MAX;
    while (!this.#kernels.isDone(ticket)) {
      if (performance.now() > deadlineMs) return false;
    }
    return true;
  }

  #release(ticket: number): void {
    this.#kernels.release(ticket);
    this.#running.delete(ticket);
  }

  unload(): void {}

  bytesUsed() {
    return { hostBytes: 0, deviceBytes: 0 };
  }

  /** Waits until no thread works on a search. The pool must not be closed before that. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const ticket of this.#running.keys()) this.#kernels.cancel(ticket);
    await Promise.all(this.#ending);
  }
}

/** Resolves to true as soon as one promise does, otherwise to false; rejects with the first rejection. */
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
