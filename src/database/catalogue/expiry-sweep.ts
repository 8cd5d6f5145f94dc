// Deletes expired vectors by writes to the log of their collection. Earlier snapshots keep them, and other nodes that
// apply the log delete the same vectors. A vector stays visible until then, about a second after its expiry.

import type { Clock } from '../../common/clock.js';
import type { Logger } from '../../common/logger.js';
import type { DatabaseObserver } from '../api/observer.js';
import type { Collection } from '../collection/collection.js';
import { deleteExpired } from '../collection/writes.js';
import type { Collections } from './collections.js';

/** The interval of the sweeps; expired vectors stay visible for up to this long. */
const SWEEP_INTERVAL_MS = 1_000;
/** Vectors deleted by one write, which is applied to memory without a pause. */
const SWEEP_ROWS_MAX = 10_000;
/** Delay before the next attempt after a failure, such as a full disk. */
const RETRY_MS = 10_000;

interface SweepOptions {
  readonly collections: Collections;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly observer: DatabaseObserver;
}

export class ExpirySweep {
  readonly #options: SweepOptions;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  #notBeforeMs = 0;

  constructor(options: SweepOptions) {
    this.#options = options;
  }

  start(): void {
    this.#timer = setInterval(() => {
      if (this.#running === undefined) void this.run();
    }, SWEEP_INTERVAL_MS).unref();
  }

  /** Deletes all vectors that have expired by now, after the current run. */
  run(): Promise<void> {
    // The current run may have passed collections whose vectors have expired since.
    const run = (this.#running ?? Promise.resolve())
      .then(() => this.#sweepAll())
      .finally(() => {
        if (this.#running === run) this.#running = undefined;
      });
    this.#running = run;
    return run;
  }

  /** Waits for all requested runs. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#running;
  }

  async #sweepAll(): Promise<void> {
    const { clock, collections, logger, observer } = this.#options;
    if (clock.now() < this.#notBeforeMs) return;
    for (const { state } of collections.entries) {
      if (state.kind !== 'ready') continue;
      try {
        await this.#sweep(state.collection);
      } catch (error) {
        const collection = state.collection.definition.id;
        // The deletion of the collection during the sweep is not a failure.
        if (!collections.isServing(state.collection)) continue;
        this.#notBeforeMs = clock.now() + RETRY_MS;
        observer.count('sagitta_maintenance_failures_total', 1);
        logger.warn({ collection, err: error }, 'expired vectors could not be deleted');
      }
    }
  }

  async #sweep(collection: Collection): Promise<void> {
    const { clock, observer } = this.#options;
    const options = { clock, countMax: SWEEP_ROWS_MAX };
    // Only the node that writes the collection deletes its vectors.
    while (collection.isWritable && collection.expiries.isDue(clock.now())) {
      const { deletedCount } = await collection.write(deleteExpired(collection, options));
      observer.count('sagitta_vectors_expired_total', deletedCount);
    }
  }
}
