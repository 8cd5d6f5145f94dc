// Indexes the text and the sparse vectors of a collection soon after writes, so that the first query that needs an
// index does not build it. A query that comes earlier extends the index itself, or waits for the extension in progress.

import type { Lock } from '../../common/lock.js';
import type { Logger } from '../../common/logger.js';
import { analyzerOf } from '../../inverted/analyzer.js';
import type { SparseIndexes } from '../../inverted/sparse-index.js';
import type { TextIndexes } from '../../inverted/text-index.js';
import type { Segment } from '../../segment/segment.js';
import type { Collection } from './collection.js';

/** Writes that follow each other within this time are indexed together. */
const QUIET_MS = 100;
/** Under constant writes, rows are indexed after this time. */
const WAIT_MS_MAX = 1_000;

export interface IndexingServices {
  readonly textIndexes: TextIndexes;
  readonly sparseIndexes: SparseIndexes;
  /** Shared by all collections: one at a time is indexed in the background, so that requests find idle threads. */
  readonly indexing: Lock;
}

export class BackgroundIndexing {
  readonly #services: IndexingServices;
  readonly #collection: Collection;
  readonly #logger: Logger;
  readonly #closing = new AbortController();
  /** When rows that are not indexed were first and last added; null if nothing waits. */
  #waiting: { readonly sinceMs: number; lastMs: number } | null = null;

  constructor(services: IndexingServices, collection: Collection, logger: Logger) {
    this.#services = services;
    this.#collection = collection;
    this.#logger = logger;
  }

  /** Called after rows were added or rewritten. It is cheap, because it is called after every commit. */
  soon(): void {
    if (this.#closing.signal.aborted || !this.#hasIndexes) return;
    const nowMs = performance.now();
    if (this.#waiting !== null) {
      this.#waiting.lastMs = nowMs;
      return;
    }
    this.#waiting = { sinceMs: nowMs, lastMs: nowMs };
    this.#wait(QUIET_MS);
  }

  close(): void {
    this.#closing.abort();
  }

  get #hasIndexes(): boolean {
    const { text, vectors } = this.#collection.definition;
    return text !== undefined || Object.values(vectors).some(({ kind }) => kind === 'sparse');
  }

  #wait(delayMs: number): void {
    setTimeout(() => {
      const { sinceMs, lastMs } = this.#waiting!;
      const restMs = Math.min(lastMs + QUIET_MS, sinceMs + WAIT_MS_MAX) - performance.now();
      if (restMs > 0 && !this.#closing.signal.aborted) return this.#wait(restMs);
      void this.#services.indexing.run(() => this.#run());
    }, delayMs).unref();
  }

  async #run(): Promise<void> {
    // Rows that are added from now on may be missed.
    this.#waiting = null;
    try {
      const { signal } = this.#closing;
      if (signal.aborted) return;
      // An index of damaged text would only occupy the pool.
      await this.#collection.whenVerified();
      for (const segment of this.#collection.rows.segments) {
        signal.throwIfAborted();
        if (segment.liveCount > 0) await this.#index(segment, signal);
      }
    } catch (error) {
      if (this.#closing.signal.aborted) return;
      const collection = this.#collection.definition.id;
      this.#logger.warn({ collection, err: error }, 'indexing failed; queries will try again');
    }
  }

  async #index(segment: Segment, signal: AbortSignal): Promise<void> {
    const { textIndexes, sparseIndexes } = this.#services;
    const { text, vectors } = this.#collection.definition;
    const { rowCount } = segment;
    if (text !== undefined) {
      const view = { segment, metadata: segment.metadataView(), rowCount };
      await textIndexes.runsOf(view, text, signal);
      // Queries are analysed on this thread, and the first analysis loads the stemmer.
      analyzerOf(text);
    }
    for (const [name, { kind }] of Object.entries(vectors)) {
      const owner = kind === 'sparse' ? segment.vectorField(name) : undefined;
      const column = owner?.column();
      if (column?.kind !== 'sparse') continue;
      const source = { ...column, rowCount: segment.rowCount };
      await sparseIndexes.runsOf(owner!, { source, rowCount: source.rowCount }, signal);
    }
  }
}
