// The `wasm` and `tensorflow` engines: a thread that runs the tensor program, and a fallback that
// answers when the thread fails, so that a failure of the thread never fails a search.

import { SHARE_ENV, Worker } from 'node:worker_threads';
import { assert } from '../../common/errors.js';
import { programFile } from '../../common/package-files.js';
import type { VectorBlock } from '../../common/types.js';
import { whenAborted } from '../../common/when-aborted.js';
import type { Engine, SearchHits, SearchOptions, SearchQuery } from '../core/engine.js';
import { cutBatch, type PackedQueries, packQueries } from '../core/packed-queries.js';
import {
  type BlockHits,
  type BlockQuery,
  type SearchBlock,
  searchPerBlock,
} from '../core/per-block.js';
import type { BlockUsage } from './block-cache.js';
import type {
  DeviceInfo,
  TensorDeviceName,
  TensorReply,
  TensorRequest,
  TensorWorkerData,
} from './tensor-worker.js';

/** Consecutive failures of the thread, without an answer in between, after which it is not restarted. */
const FAILURES_MAX = 3;

export interface TensorEngineOptions {
  readonly device: TensorDeviceName;
  /** Answers when the thread cannot. */
  readonly fallback: SearchBlock;
  /** Bytes for resident rows and their norms, up to the limit of the device; by default the device's own choice. */
  readonly residentBytesMax?: number;
  /** Called when the thread fails; `isLast` if it will not be restarted. */
  readonly onThreadFailure?: (error: Error, isLast: boolean) => void;
  /** The module of the thread, for tests. */
  readonly workerUrl?: URL;
}

/** Rejects when the thread does not start. */
export async function createTensorEngine(options: TensorEngineOptions): Promise<TensorEngine> {
  const engine = new TensorEngine(options);
  await engine.start();
  return engine;
}

interface PendingSearch {
  resolve(hits: BlockHits[] | null): void;
  /** Called when the thread ended before it answered. */
  abandon(): void;
}

export class TensorEngine implements Engine {
  readonly name: TensorDeviceName;
  readonly rowEncoder = null;
  readonly #options: TensorEngineOptions;
  readonly #pending = new Map<number, PendingSearch>();
  readonly #usage = new Map<string, BlockUsage>();
  #worker: Worker | null = null;
  /** The latest start of the thread. */
  #startup: Promise<void> = Promise.resolve();
  #searchCount = 0;
  #failureCount = 0;
  #hasStarted = false;
  #isClosed = false;
  #fallbackSearchCount = 0;
  #deviceFacts: DeviceInfo | null = null;

  constructor(options: TensorEngineOptions) {
    this.name = options.device;
    this.#options = options;
  }

  /** Resolves when the thread is ready. */
  start(): Promise<void> {
    this.#startup = this.#startWorker();
    return this.#startup;
  }

  async #startWorker(): Promise<void> {
    const workerData: TensorWorkerData = {
      device: this.#options.device,
      residentBytesMax: this.#options.residentBytesMax ?? null,
    };
    const workerUrl = this.#options.workerUrl ?? programFile('engine/tensor/tensor-worker.js');
    // Native libraries read the process environment, which a thread can change only if it shares it.
    const worker = new Worker(workerUrl, { workerData, env: SHARE_ENV });
    this.#worker = worker;
    return new Promise((resolve, reject) => {
      let error: Error | null = null;
      worker.on('message', (reply: TensorReply) => {
        this.#hasStarted = true;
        if (reply.kind !== 'ready') return this.#receive(reply);
        this.#deviceFacts = reply.device;
        resolve();
      });
      worker.on('error', (cause: Error) => {
        error = cause;
      });
      worker.on('exit', (exitCode) => {
        error ??= new Error(`the thread of the ${this.name} engine ended with code ${exitCode}`);
        reject(error);
        if (this.#worker === worker) this.#handleExit(error);
      });
    });
  }

  async search(
    queries: readonly SearchQuery[],
    options: SearchOptions = {},
  ): Promise<SearchHits[]> {
    assert(!this.#isClosed, 'the engine is not closed');
    const { signal } = options;
    const abandoned = new Int32Array(new SharedArrayBuffer(4));
    const ignoreAbort = whenAborted(signal, () => Atomics.store(abandoned, 0, 1));
    const searchBlock: SearchBlock = (block, blockQueries) =>
      this.#searchBlock(block, blockQueries, { abandoned, options });
    try {
      return await searchPerBlock(queries, searchBlock, options);
    } finally {
      ignoreAbort();
    }
  }

  unload(key: string): void {
    this.#usage.delete(key);
    this.#post({ kind: 'unload', key });
  }

  bytesUsed(key: string) {
    const { hostBytes = 0, deviceBytes = 0 } = this.#usage.get(key) ?? {};
    return { hostBytes, deviceBytes };
  }

  /** Searches of a block that the fallback answered. */
  get fallbackCount(): number {
    return this.#fallbackSearchCount;
  }

  /** The device as reported by the latest start of the thread; null before the first. */
  get device(): DeviceInfo | null {
    return this.#deviceFacts;
  }

  /** Pending searches are answered by the fallback. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const worker = this.#worker;
    this.#worker = null;
    this.#abandonPending();
    // Node 20 aborts the process when a thread is terminated while it loads its modules.
    await this.#startup.catch(() => {});
    await worker?.terminate();
  }

  async #searchBlock(
    block: VectorBlock,
    queries: readonly BlockQuery[],
    { abandoned, options }: { abandoned: Int32Array; options: SearchOptions },
  ): Promise<BlockHits[]> {
    const results = await Promise.all(
      cutBatch(queries).map(async (slice) => {
        const hits = await this.#searchOnThread(block, packQueries(block, slice), abandoned);
        if (hits !== null) return hits;
        options.signal?.throwIfAborted();
        this.#fallbackSearchCount++;
        return this.#options.fallback(block, slice, options);
      }),
    );
    return results.flat();
  }

  /** Returns null when the thread cannot answer or the search was aborted. */
  #searchOnThread(
    block: VectorBlock,
    packed: PackedQueries,
    abandoned: Int32Array,
  ): Promise<BlockHits[] | null> {
    if (this.#worker === null && this.#failureCount < FAILURES_MAX && !this.#isClosed) {
      // `#handleExit` reports a failed start.
      this.start().catch(() => {});
    }
    if (this.#worker === null) return Promise.resolve(null);
    const searchId = this.#searchCount++;
    return new Promise((resolve) => {
      this.#pending.set(searchId, { resolve, abandon: () => resolve(null) });
      this.#post({ kind: 'search', searchId, block, packed, abandoned });
    });
  }

  #post(request: TensorRequest): void {
    this.#worker?.postMessage(request);
  }

  #receive(reply: Exclude<TensorReply, { kind: 'ready' }>): void {
    this.#recordUsage(reply.usage);
    if (reply.kind !== 'hits') return;
    if (reply.hits !== null) this.#failureCount = 0;
    this.#pending.get(reply.searchId)?.resolve(reply.hits);
    this.#pending.delete(reply.searchId);
  }

  #recordUsage(usage: readonly BlockUsage[]): void {
    for (const kept of usage) {
      if (kept.hostBytes + kept.deviceBytes === 0) this.#usage.delete(kept.key);
      else this.#usage.set(kept.key, kept);
    }
  }

  #handleExit(error: Error): void {
    this.#worker = null;
    this.#failureCount++;
    this.#usage.clear();
    // The caller of `start` reports a failure of the first start.
    if (this.#hasStarted)
      this.#options.onThreadFailure?.(error, this.#failureCount >= FAILURES_MAX);
    this.#abandonPending();
  }

  #abandonPending(): void {
    for (const search of this.#pending.values()) search.abandon();
    this.#pending.clear();
  }
}
