// Reads of whole collections: all rows as columns, or every row with its nearest neighbours.

import type { Limits } from '../../common/limits.js';
import type { CallOptions } from '../api.js';
import type { Collection } from '../collection/collection.js';
import type { SegmentView } from '../collection/snapshot.js';
import type { FilterCache } from '../query/filter-cache.js';
import type { SubmitSearches } from '../query/search.js';
import { type Join, type JoinRequest, runJoin } from './join.js';
import { runScan, type Scan, type ScanRequest } from './scan.js';
import { ScanStats } from './scan-stats.js';

export interface ScanServiceOptions {
  readonly filters: FilterCache;
  readonly limits: Limits;
  readonly submitAll: SubmitSearches;
  /** Whether the id of the collection still stands for it. */
  readonly isServing: (collection: Collection) => boolean;
  /** Of the engine and whoever else keeps something of a segment. */
  readonly unloadBlock: (key: string) => void;
}

export class ScanService {
  readonly #options: ScanServiceOptions;
  /** Those under way, for metrics. */
  readonly readings = new ScanStats();

  constructor(options: ScanServiceOptions) {
    this.#options = options;
  }

  scan(collection: Collection, request: ScanRequest, { signal }: CallOptions): Promise<Scan> {
    const { filters, limits } = this.#options;
    return runScan(collection, request, { filters, limits, signal, readings: this.readings });
  }

  join(
    collection: Collection,
    searched: Collection,
    request: JoinRequest,
    { signal }: CallOptions,
  ): Promise<Join> {
    const { filters, limits, submitAll } = this.#options;
    return runJoin(collection, searched, request, {
      filters,
      limits,
      submitAll,
      signal,
      readings: this.readings,
      onEnded: (parts) => this.#unloadGone(searched, parts),
    });
  }

  /** What a long search has loaded into the engine again after its segment was gone from the collection. */
  #unloadGone(collection: Collection, parts: readonly SegmentView[]): void {
    const { isServing, unloadBlock } = this.#options;
    const there = new Set(isServing(collection) ? collection.rows.segments : []);
    for (const { segment } of parts) if (!there.has(segment)) unloadBlock(segment.key);
  }
}
