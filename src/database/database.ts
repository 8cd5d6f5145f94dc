// The database: the service without HTTP. It opens at once and loads its collections in the
// background. A collection whose data is damaged is unavailable; the others are not affected.

import { randomBytes } from 'node:crypto';
import { BufferPool } from '../common/buffer-pool.js';
import type { Clock } from '../common/clock.js';
import type { Limits } from '../common/limits.js';
import type { Logger } from '../common/logger.js';
import type { TextSettings } from '../common/text-settings.js';
import type { Engine } from '../engine/core/engine.js';
import { MemoryRelease } from '../platform/memory-release.js';
import type { WorkerPool } from '../platform/pool.js';
import type { Segment } from '../segment/segment.js';
import { createSparseIndexes } from '../sparse/sparse-index.js';
import type { Store } from '../storage/store.js';
import { TextIndexes } from '../text/text-index.js';
import type { AliasEntry } from './aliases.js';
import type {
  AliasChange,
  AliasesPage,
  AliasRecord,
  CollectionInput,
  CollectionRecord,
  CollectionsPage,
  CollectionsRequest,
  IdempotencyRequest,
} from './api.js';
import { ApiKeys } from './api-keys.js';
import { AuditLog } from './audit-log.js';
import { ScanStats } from './bulk/scan-stats.js';
import { Catalogue, type CollectionEntry, type StorageUse } from './catalogue.js';
import { VerificationQueue } from './collection/file-guard.js';
import { CollectionHandle } from './collection-handle.js';
import { pageOf, toAliasRecord, toRecord } from './collection-record.js';
import type { DatabaseServices } from './database-services.js';
import { ExpirySweep } from './expiry-sweep.js';
import {
  type AttachedReply,
  type AttachReply,
  IdempotencyKeys,
  runIdempotent,
} from './idempotency.js';
import { keys } from './keys.js';
import { type DatabaseObserver, SILENT_OBSERVER } from './observer.js';
import { RowOrders } from './order/row-orders.js';
import { CursorSealer } from './query/cursor.js';
import { FilterCache } from './query/filter-cache.js';
import { openToken } from './query/paging.js';
import { SearchScheduler } from './query/search-scheduler.js';
import { createWordsColumns } from './query/words-columns.js';

/** Records that are written to disk at the same time, each at most a body; usually far less. */
const RECORD_BUFFERS_KEPT_MAX = 4;
const RECORD_BYTES_KEPT_MAX = 64_000_000;

export interface DatabaseOptions {
  readonly store: Store;
  readonly engine: Engine;
  /** Why this engine: shown in every collection's record. */
  readonly engineReason: string;
  readonly pool: WorkerPool;
  readonly limits: Limits;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Absent: nothing is reported. */
  readonly observer?: DatabaseObserver;
}

export class Database {
  readonly #services: DatabaseServices;
  readonly apiKeys: ApiKeys;
  readonly audit: AuditLog;
  /** Gives memory of deleted collections and compacted segments back to the system. */
  readonly memory: MemoryRelease;
  readonly #sweep: ExpirySweep;
  #isStopping = false;
  /** Resolves when every collection is loaded or has failed. */
  readonly loaded: Promise<void>;

  private constructor(options: DatabaseOptions, cursorSecret: Uint8Array) {
    const { store, engine, pool, clock, limits, logger, observer = SILENT_OBSERVER } = options;
    this.memory = new MemoryRelease(pool);
    const recordBytes = new BufferPool((byteCount) => new ArrayBuffer(byteCount), {
      countMax: RECORD_BUFFERS_KEPT_MAX,
      bytesMax: RECORD_BYTES_KEPT_MAX,
    });
    this.memory.onRelease(() => recordBytes.drop());
    const textIndexes = new TextIndexes(pool);
    const words = createWordsColumns(textIndexes, (segmentKey) => this.#textOf(segmentKey));
    const filters = new FilterCache({ pool, bytesMax: limits.filterCacheBytesMax, words });
    const unloadSegment = ({ key, blockKeys }: Segment) => {
      for (const blockKey of blockKeys) engine.unload(blockKey);
      filters.forget(key);
      this.memory.soon();
    };
    const encoder = engine.rowEncoder;
    this.apiKeys = new ApiKeys({ store, clock });
    this.audit = new AuditLog({ store, clock, logger, countMax: limits.auditEventsMax });
    this.#services = {
      catalogue: new Catalogue({
        ...options,
        unloadSegment,
        encoder,
        observer,
        verifications: new VerificationQueue(pool),
      }),
      engine,
      engineReason: options.engineReason,
      scheduler: new SearchScheduler({ engine, waitingMax: limits.queuedQueriesMax, observer }),
      filters,
      rowOrders: new RowOrders({ pool, rowsMax: limits.sortedRowsMax }),
      textIndexes,
      sparseIndexes: createSparseIndexes(pool),
      pool,
      sealer: new CursorSealer(cursorSecret),
      idempotencyKeys: new IdempotencyKeys({ store, clock, keptMs: limits.idempotencyMs }),
      scanStats: new ScanStats(),
      recordBytes,
      limits,
      clock,
      observer,
      unloadSegment,
    };
    this.#sweep = new ExpirySweep({ ...options, observer, catalogue: this.#services.catalogue });
    this.loaded = this.#services.catalogue.load();
    this.#sweep.start();
  }

  /** Throws `data_corrupt` when the catalogue or an API key cannot be read. Collections load after it returns. */
  static async open(options: DatabaseOptions): Promise<Database> {
    let secret = options.store.get(keys.cursorSecret);
    if (secret === undefined) {
      secret = randomBytes(32);
      await options.store.commit([{ kind: 'put', key: keys.cursorSecret, value: secret }]);
    }
    return new Database(options, secret);
  }

  get state(): 'starting' | 'ready' | 'stopping' {
    if (this.#isStopping) return 'stopping';
    return this.#services.catalogue.isLoaded ? 'ready' : 'starting';
  }

  /** Use of the filter cache, for metrics. */
  get filterCacheUse(): Pick<FilterCache, 'bytesUsed' | 'hitCount' | 'missCount'> {
    const { bytesUsed, hitCount, missCount } = this.#services.filters;
    return { bytesUsed, hitCount, missCount };
  }

  /** Searches that wait for the engine, for metrics. */
  get queuedQueryCount(): number {
    return this.#services.scheduler.waitingCount;
  }

  /** Scans and joins under way, for metrics. */
  get scanStats(): ScanStats {
    return this.#services.scanStats;
  }

  /** Sums over all loaded collections, for metrics. */
  storageUse(): StorageUse {
    return this.#services.catalogue.storageUse();
  }

  async createCollection(
    input: CollectionInput,
    options: {
      /** Gives the collection that exists when its dimension and metric are the same. */
      readonly ifNotExists?: boolean;
      /** Stored in the transaction that creates the collection. */
      readonly attachedReply?: AttachedReply<CollectionRecord> | undefined;
    } = {},
  ): Promise<{ record: CollectionRecord; created: boolean }> {
    const { attachedReply } = options;
    const { entry, created } = await this.#services.catalogue.create(input, {
      ifNotExists: options.ifNotExists ?? false,
      alsoCommit: (made) => attachedReply?.operations(this.#toRecord(made)) ?? [],
    });
    return { record: this.#toRecord(entry), created };
  }

  /** The id of the collection that an alias points to; other names are returned as they are. */
  resolve(name: string): string {
    return this.#services.catalogue.find(name)?.definition.id ?? name;
  }

  /** The collection that a list or query began with; undefined when it is gone. Throws `cursor_invalid`. */
  collectionOfCursor(token: string): string | undefined {
    const { catalogue, sealer } = this.#services;
    return catalogue.findIncarnation(openToken(token, sealer).incarnation)?.definition.id;
  }

  /** See Catalogue.setAliases. The records are those of the aliases that are left, in the order of the changes. */
  async setAliases(
    changes: readonly AliasChange[],
    options: Parameters<Catalogue['setAliases']>[1],
  ): Promise<readonly AliasRecord[]> {
    const entries = await this.#services.catalogue.setAliases(changes, options);
    return this.#toAliasRecords(entries);
  }

  /** Undefined when there is no such alias. */
  alias(name: string): AliasRecord | undefined {
    const entry = this.#services.catalogue.findAlias(name);
    return entry && toAliasRecord(entry, this.#services.catalogue);
  }

  /** In the order of their names. Throws `cursor_invalid`. */
  listAliases(request: CollectionsRequest): AliasesPage {
    const { isVisible, cursor, limit = this.#services.limits.pageLimitDefault } = request;
    const visible = this.#toAliasRecords(this.#services.catalogue.aliases)
      .filter(({ collection }) => isVisible?.(collection) ?? true)
      .sort((a, b) => (a.name < b.name ? -1 : 1));
    const { entries, ...page } = pageOf(visible, ({ name }) => name, { limit, cursor });
    return { aliases: entries, ...page, total: visible.length };
  }

  #toAliasRecords(entries: Iterable<AliasEntry>): AliasRecord[] {
    return [...entries]
      .map((entry) => toAliasRecord(entry, this.#services.catalogue))
      .filter((record) => record !== undefined);
  }

  /** Looks the collection up once, by id or alias, for all operations of a request. Throws nothing. */
  collection(id: string): CollectionHandle {
    return new CollectionHandle(id, this.#services);
  }

  listCollections(request: CollectionsRequest): CollectionsPage {
    const { isVisible, cursor, limit = this.#services.limits.pageLimitDefault } = request;
    const all = this.#services.catalogue.entries;
    const entries =
      isVisible === undefined ? all : all.filter(({ definition }) => isVisible(definition.id));
    const idOf = ({ definition }: CollectionEntry) => definition.id;
    const { entries: found, ...page } = pageOf(entries, idOf, { limit, cursor });
    return {
      collections: found.map((entry) => this.#toRecord(entry)),
      ...page,
      total: entries.length,
    };
  }

  /**
   * Runs `perform` once per key. A reply that it attaches to a write is stored in the transaction of
   * the write; one that it does not attach (to a refusal, or to a write without effect) is stored
   * alone. Replies are kept as JSON and given back as they were. When `perform` rejects, nothing is
   * stored. Throws `idempotency_in_flight` and `idempotency_key_reused`.
   */
  runIdempotent<Reply extends object>(
    request: IdempotencyRequest,
    perform: (attach: AttachReply<Reply>) => Promise<Reply>,
  ): Promise<{ reply: Reply; isReplay: boolean }> {
    const { observer, idempotencyKeys } = this.#services;
    return runIdempotent(idempotencyKeys, observer, request, perform);
  }

  /** Deletes the vectors that have expired by now; otherwise they go within about a second. */
  deleteExpired(): Promise<void> {
    return this.#sweep.run();
  }

  /** Finishes the writes under way. The caller then closes the engine, the pool and the store. */
  async close(): Promise<void> {
    this.#isStopping = true;
    await this.loaded;
    await this.#sweep.close();
    await this.#services.catalogue.close();
    await this.audit.close();
    this.memory.close();
  }

  /** Undefined for a collection without text. */
  #textOf(segmentKey: string): TextSettings | undefined {
    const incarnation = segmentKey.slice(0, segmentKey.indexOf('/'));
    return this.#services.catalogue.findIncarnation(incarnation)?.definition.text;
  }

  #toRecord(entry: CollectionEntry): CollectionRecord {
    return toRecord(entry, this.#services);
  }
}
