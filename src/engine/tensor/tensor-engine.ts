// The `wasm` and `tensorflow` engines as the service sees them: a thread that runs the tensor program, and a fallback
// that answers in its place when the thread dies. Never fails for reasons of the thread's own.

import { SHARE_ENV, Worker } from 'node:worker_threads';
import { assert } from '../../common/errors.js';
import type { VectorBlock } from '../../common/types.js';
import type { Engine, SearchHits, SearchQuery } from '../core/engine.js';
import { cutBatch, type PackedQueries, packQueries } from '../core/packed-queries.js';
import {
  type BlockHits,
  type BlockQuery,
  type SearchBlock,
  type SearchOptions,
  searchPerBlock,
} from '../core/per-block.js';
import type { BlockUsage } from './block-cache.js';
import type {
  DeviceFacts,
  TensorDeviceName,
  TensorReply,
  TensorRequest,
  TensorWorkerData,
} from './tensor-worker.js';

/** Deaths in a row, without an answer between, after which the thread is not started again. */
const DEATHS_MAX = 3;

export interface TensorEngineOptions {
  readonly device: TensorDeviceName;
  /** Answers what the thread cannot. */
  readonly fallback: SearchBlock;
  /** Bytes for resident rows and what is known of them, as far as the device allows; its own choice unless told otherwise. */
  readonly residentBytesMax?: number;
  /** Called when the thread dies; `isLast` when it will not be started again. */
  readonly onDeath?: (error: Error, isLast: boolean) => void;
  /** The module of the thread: for tests. */
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
  /** The thread died; nothing is known of this search. */
  abandon(): void;
}

export class TensorEngine implements Engine {
  readonly name: TensorDeviceName;
  readonly rowEncoder = null;
  private readonly options: TensorEngineOptions;
  private readonly pending = new Map<number, PendingSearch>();
  private readonly usage = new Map<string, BlockUsage>();
  private worker: Worker | null = null;
  /** The last start of a thread. */
  private startup: Promise<void> = Promise.resolve();
  private searchCount = 0;
  private deathCount = 0;
  private hasStarted = false;
  private isClosed = false;
  private fallbackSearchCount = 0;
  private deviceFacts: DeviceFacts | null = null;

  constructor(options: TensorEngineOptions) {
    this.name = options.device;
    this.options = options;
  }

  /** Resolves when the thread is ready for work. */
  start(): Promise<void> {
    this.startup = this.startWorker();
    return this.startup;
  }

  private async startWorker(): Promise<void> {
    const workerData: TensorWorkerData = {
      device: this.options.device,
      residentBytesMax: this.options.residentBytesMax ?? null,
    };
    const workerUrl = this.options.workerUrl ?? new URL('./tensor-worker.js', import.meta.url);
    // A thread with an environment of its own cannot set what native libraries read.
    const worker = new Worker(workerUrl, { workerData, env: SHARE_ENV });
    this.worker = worker;
    return new Promise((resolve, reject) => {
      let error: Error | null = null;
      worker.on('message', (reply: TensorReply) => {
        this.hasStarted = true;
        if (reply.kind !== 'ready') return this.receive(reply);
        this.deviceFacts = reply.device;
        resolve();
      });
      worker.on('error', (cause: Error) => {
        error = cause;
      });
      worker.on('exit', (exitCode) => {
        error ??= new Error(`the thread of the ${this.name} engine ended with code ${exitCode}`);
        reject(error);
        if (this.worker === worker) this.bury(error);
      });
    });
  }

  async search(
    queries: readonly SearchQuery[],
    options: SearchOptions = {},
  ): Promise<SearchHits[]> {
    assert(!this.isClosed, 'an engine is not used after it is closed');
    const { signal } = options;
    const abandoned = new Int32Array(new SharedArrayBuffer(4));
    const abandon = () => Atomics.store(abandoned, 0, 1);
    // Once for all blocks: node warns of a signal to which many listen.
    signal?.addEventListener('abort', abandon);
    const searchBlock: SearchBlock = (block, asked) =>
      this.searchBlock(block, asked, { abandoned, options });
    try {
      return await searchPerBlock(queries, searchBlock, options);
    } finally {
      signal?.removeEventListener('abort', abandon);
    }
  }

  unload(key: string): void {
    this.usage.delete(key);
    this.post({ kind: 'unload', key });
  }

  bytesUsed(key: string) {
    const { hostBytes = 0, deviceBytes = 0 } = this.usage.get(key) ?? {};
    return { hostBytes, deviceBytes };
  }

  /** Searches of a block that the fallback answered. */
  get fallbackCount(): number {
    return this.fallbackSearchCount;
  }

  /** What the thread said of its device when it started last; null before. */
  get device(): DeviceFacts | null {
    return this.deviceFacts;
  }

  /** Searches under way are answered by the fallback. */
  async close(): Promise<void> {
    this.isClosed = true;
    const { worker } = this;
    this.worker = null;
    this.abandonPending();
    // Node 20 aborts the process when a thread is ended while it loads its modules.
    await this.startup.catch(() => {});
    await worker?.terminate();
  }

  private async searchBlock(
    block: VectorBlock,
    queries: readonly BlockQuery[],
    { abandoned, options }: { abandoned: Int32Array; options: SearchOptions },
  ): Promise<BlockHits[]> {
    const results = await Promise.all(
      cutBatch(queries).map(async (slice) => {
        const hits = await this.ask(block, packQueries(block, slice), abandoned);
        if (hits !== null) return hits;
        options.signal?.throwIfAborted();
        this.fallbackSearchCount++;
        return this.options.fallback(block, slice, options);
      }),
    );
    return results.flat();
  }

  /** Null when the thread cannot answer, or need not. */
  private ask(
    block: VectorBlock,
    packed: PackedQueries,
    abandoned: Int32Array,
  ): Promise<BlockHits[] | null> {
    if (this.worker === null && this.deathCount < DEATHS_MAX && !this.isClosed) {
      // A start that fails is reported by `bury`.
      this.start().catch(() => {});
    }
    if (this.worker === null) return Promise.resolve(null);
    const searchId = this.searchCount++;
    return new Promise((resolve) => {
      this.pending.set(searchId, { resolve, abandon: () => resolve(null) });
      this.post({ kind: 'search', searchId, block, packed, abandoned });
    });
  }

  private post(request: TensorRequest): void {
    this.worker?.postMessage(request);
  }

  private receive(reply: Exclude<TensorReply, { kind: 'ready' }>): void {
    this.recordUsage(reply.usage);
    if (reply.kind !== 'hits') return;
    if (reply.hits !== null) this.deathCount = 0;
    this.pending.get(reply.searchId)?.resolve(reply.hits);
    this.pending.delete(reply.searchId);
  }

  private recordUsage(usage: readonly BlockUsage[]): void {
    for (const kept of usage) {
      if (kept.hostBytes + kept.deviceBytes === 0) this.usage.delete(kept.key);
      else this.usage.set(kept.key, kept);
    }
  }

  private bury(error: Error): void {
    this.worker = null;
    this.deathCount++;
    this.usage.clear();
    // A first start that fails is the caller's to report.
    if (this.hasStarted) this.options.onDeath?.(error, this.deathCount >= DEATHS_MAX);
    this.abandonPending();
  }

  private abandonPending(): void {
    for (const search of this.pending.values()) search.abandon();
    this.pending.clear();
  }
}
