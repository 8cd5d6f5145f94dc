// The service without HTTP. It opens at once and loads its collections in the background, those that operations
// wait for first. A collection with damaged data is unavailable; other collections are not affected.

import { randomBytes } from 'node:crypto';
import { BufferPool } from '../common/buffer-pool.js';
import type { Clock } from '../common/clock.js';
import { SagittaError } from '../common/errors.js';
import type { Limits } from '../common/limits.js';
import { Lock } from '../common/lock.js';
import type { Logger } from '../common/logger.js';
import type { TextSettings } from '../common/text-settings.js';
import type { Engine } from '../engine/core/engine.js';
import { createSparseIndexes } from '../inverted/sparse-index.js';
import { TextIndexes } from '../inverted/text-index.js';
import { MemoryRelease } from '../platform/memory-release.js';
import type { WorkerPool } from '../platform/pool.js';
import { type CommitLogs, logsOfStore } from '../storage/commit-log.js';
import type { Store, StoreOperation } from '../storage/store.js';
import { ApiKeys } from './admin/api-keys.js';
import { AuditLog } from './admin/audit-log.js';
import {
  type AttachedReply,
  type AttachReply,
  IdempotencyKeys,
  runIdempotent,
} from './admin/idempotency.js';
import type {
  AliasChange,
  AliasesPage,
  AliasRecord,
  CollectionInput,
  CollectionRecord,
  CollectionsPage,
  CollectionsRequest,
  IdempotencyRequest,
  WriteResult,
} from './api/database-api.js';
import { type DatabaseObserver, observeWritten, SILENT_OBSERVER } from './api/observer.js';
import { ScanStats } from './bulk/scan-stats.js';
import type { AliasEntry } from './catalogue/aliases.js';
import { Catalogue } from './catalogue/catalogue.js';
import {
  type CollectionSums,
  describeUnserved,
  diskBytesOf,
  pageOf,
  sumCollections,
  toAliasRecord,
  toRecord,
  type UnservedCollection,
} from './catalogue/collection-record.js';
import { type CollectionEntry, Collections, type StorageUse } from './catalogue/collections.js';
import { ExpirySweep } from './catalogue/expiry-sweep.js';
import type { SharedFiles } from './collection/adoption.js';
import type { Collection } from './collection/collection.js';
import { VerificationQueue } from './collection/file-guard.js';
import { type FileToAdd, fileWrite } from './collection/file-write.js';
import { followedWrite } from './collection/follow.js';
import type { SegmentBlocks } from './collection/rows.js';
import type { Followed } from './collection/writer.js';
import { CollectionHandle } from './collection-handle.js';
import type { DatabaseServices } from './database-services.js';
import { FilterCache } from './filters/filter-cache.js';
import { createWordsColumns } from './filters/words-columns.js';
import { keys } from './layout/keys.js';
import { decodeDefinition, type Manifest } from './layout/manifest.js';
import { storeLayout } from './layout/store-layout.js';
import { RowOrders } from './order/row-orders.js';
import { CursorSealer } from './query/cursor.js';
import { openToken } from './query/paging.js';
import { countForPeer, searchForPeer } from './rankings/peer-searches.js';
import {
  NO_PEERS,
  type PeerCountRequest,
  type PeerHits,
  type PeerSearchRequest,
  type Peers,
} from './search/peers.js';
import { SearchScheduler } from './search/search-scheduler.js';

/** Buffers kept for log records that are written to disk at the same time. */
const RECORD_BUFFERS_KEPT_MAX = 4;
const RECORD_BYTES_KEPT_MAX = 64_000_000;

export interface DatabaseOptions {
  readonly store: Store;
  /** The logs that make commits durable; by default those of the store. */
  readonly logs?: CommitLogs;
  readonly engine: Engine;
  /** Why this engine was chosen, for the records of collections. */
  readonly engineReason: string;
  readonly pool: WorkerPool;
  readonly limits: Limits;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Receives metrics; absent for none. */
  readonly observer?: DatabaseObserver;
  /** The nodes that share searches with this one; absent without a cluster. */
  readonly peers?: Peers;
  /** Derives the 32-byte key of cursors from the stored secret, which others may read in the log of a cluster. */
  readonly cursorKey?: (stored: Uint8Array) => Uint8Array;
}

export class Database {
  readonly #services: DatabaseServices;
  readonly apiKeys: ApiKeys;
  readonly audit: AuditLog;
  /** Returns memory of deleted collections and compacted segments to the system. */
  readonly memory: MemoryRelease;
  readonly #sweep: ExpirySweep;
  readonly #verifications: VerificationQueue;
  readonly #stopping = new AbortController();
  /** Resolves when every collection is loaded or has failed, or when the database is closed before that. */
  readonly loaded: Promise<void>;

  private constructor(options: DatabaseOptions, cursorKey: Uint8Array) {
    const { store, engine, pool, clock, limits, logger, observer = SILENT_OBSERVER } = options;
    const { logs = logsOfStore(store) } = options;
    this.memory = new MemoryRelease(pool);
    this.#verifications = new VerificationQueue(pool);
    const recordBytes = new BufferPool((byteCount) => new ArrayBuffer(byteCount), {
      countMax: RECORD_BUFFERS_KEPT_MAX,
      bytesMax: RECORD_BYTES_KEPT_MAX,
    });
    this.memory.onRelease(() => recordBytes.drop());
    const textIndexes = new TextIndexes(pool);
    const sparseIndexes = createSparseIndexes(pool);
    const words = createWordsColumns(textIndexes, (segmentKey) => this.#textOf(segmentKey));
    const filters = new FilterCache({ pool, bytesMax: limits.filterCacheBytesMax, words });
    const unloadSegment = ({ key, blockKeys }: SegmentBlocks) => {
      for (const blockKey of blockKeys) engine.unload(blockKey);
      filters.forget(key);
      this.memory.soon();
    };
    const collections = new Collections({
      ...options,
      logs,
      unloadSegment,
      encoder: engine.rowEncoder,
      ...{ textIndexes, sparseIndexes, indexing: new Lock() },
      observer,
      verifications: this.#verifications,
      stopping: this.#stopping.signal,
    });
    this.apiKeys = new ApiKeys({ store, log: logs.catalogue, clock });
    this.audit = new AuditLog({ store, clock, logger, countMax: limits.auditEventsMax });
    this.#services = {
      collections,
      catalogue: new Catalogue(collections, { ...options, logs }),
      logs,
      engine,
      engineReason: options.engineReason,
      peers: options.peers ?? NO_PEERS,
      scheduler: new SearchScheduler({ engine, waitingMax: limits.queuedQueriesMax, observer }),
      filters,
      rowOrders: new RowOrders({ pool, rowsMax: limits.sortedRowsMax }),
      textIndexes,
      sparseIndexes,
      pool,
      sealer: new CursorSealer(cursorKey),
      idempotencyKeys: new IdempotencyKeys({
        ...{ store, logs, clock },
        keptMs: limits.idempotencyMs,
        countMax: limits.idempotencyKeysMax,
      }),
      scanStats: new ScanStats(),
      recordBytes,
      limits,
      clock,
      observer,
      unloadSegment,
    };
    this.#sweep = new ExpirySweep({ ...options, observer, collections });
    this.loaded = this.#services.collections.loadAll();
    this.#sweep.start();
  }

  /** The collections in a store that no database has open. `replicationFactor` is null for all nodes. */
  static collectionsIn(
    store: Store,
  ): { id: string; incarnation: string; replicationFactor: number | null }[] {
    return [...store.list(keys.collections)].map(({ key, value }) => {
      const { id, incarnation, replicationFactor = null } = decodeDefinition(value, key[1]!);
      return { id, incarnation, replicationFactor };
    });
  }

  static incarnationsIn(store: Store): string[] {
    return Database.collectionsIn(store).map(({ incarnation }) => incarnation);
  }

  static readonly storeLayout = storeLayout;

  /** The secret that seals cursors; null in a new store. */
  static secretIn(store: Store): Uint8Array | null {
    return store.get(keys.cursorSecret) ?? null;
  }

  /** The operations that prepare a new store for a database. */
  static foundation(): StoreOperation[] {
    return [{ kind: 'put', key: keys.cursorSecret, value: randomBytes(32) }];
  }

  /** Rejects with `data_corrupt` if the catalogue or an API key cannot be read. Collections are loaded afterwards. */
  static async open(options: DatabaseOptions): Promise<Database> {
    const { store, logs = logsOfStore(store) } = options;
    if (Database.secretIn(store) === null) await logs.catalogue.commit(Database.foundation());
    const secret = Database.secretIn(store)!;
    return new Database(options, options.cursorKey?.(secret) ?? secret);
  }

  /** Whether the database is being closed. */
  get isStopping(): boolean {
    return this.#stopping.signal.aborted;
  }

  /**
   * Collections that the start has not loaded yet. An operation on one of them makes its
   * load urgent and waits for it.
   */
  get loadingCount(): number {
    return this.#services.collections.startingCount;
  }

  /** Use of the filter cache, for metrics. */
  get filterCacheUse(): Pick<FilterCache, 'bytesUsed' | 'hitCount' | 'missCount'> {
    const { bytesUsed, hitCount, missCount } = this.#services.filters;
    return { bytesUsed, hitCount, missCount };
  }

  /** Searches waiting for the engine, for metrics. */
  get queuedQueryCount(): number {
    return this.#services.scheduler.waitingCount;
  }

  /** Running scans and joins, for metrics. */
  get scanStats(): ScanStats {
    return this.#services.scanStats;
  }

  /** Sums over all collections, for metrics; vectors and memory only of loaded ones. */
  collectionSums(): CollectionSums {
    return sumCollections(this.#services.collections.entries, this.#services);
  }

  /** Sums over all loaded collections, for metrics. */
  storageUse(): StorageUse {
    return this.#services.collections.storageUse();
  }

  async createCollection(
    input: CollectionInput,
    options: {
      /** Whether to return an existing collection with the same vectors and text settings instead of failing. */
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
    if (created) return { record: this.#toRecord(entry), created };
    await this.#services.collections.whenLoaded(entry);
    const { id, incarnation } = entry.definition;
    const loaded = this.#services.collections.requireEntry(id, incarnation);
    return { record: this.#toRecord(loaded), created };
  }

  /** The id of the collection that an alias points to; other names are returned unchanged. */
  resolve(name: string): string {
    return this.#services.collections.find(name)?.definition.id ?? name;
  }

  /** The id of the collection that a cursor belongs to; undefined if it was deleted. Throws `cursor_invalid`. */
  collectionOfCursor(token: string): string | undefined {
    const { collections, sealer } = this.#services;
    return collections.findIncarnation(openToken(token, sealer).incarnation)?.definition.id;
  }

  /** See Catalogue.setAliases. Returns the aliases that were set, in the order of the changes. */
  async setAliases(
    changes: readonly AliasChange[],
    options: Parameters<Catalogue['setAliases']>[1],
  ): Promise<readonly AliasRecord[]> {
    const entries = await this.#services.catalogue.setAliases(changes, options);
    return this.#toAliasRecords(entries);
  }

  /** Undefined if no such alias exists. */
  alias(name: string): AliasRecord | undefined {
    const entry = this.#services.collections.aliases.find(name);
    return entry && toAliasRecord(entry, this.#services.collections);
  }

  /** A page of aliases, sorted by name. Throws `cursor_invalid`. */
  listAliases(request: CollectionsRequest): AliasesPage {
    const { isVisible, cursor, limit = this.#services.limits.pageLimitDefault } = request;
    const visible = this.#toAliasRecords(this.#services.collections.aliases.entries)
      .filter(({ collection }) => isVisible?.(collection) ?? true)
      .sort((a, b) => (a.name < b.name ? -1 : 1));
    const { entries, ...page } = pageOf(visible, ({ name }) => name, { limit, cursor });
    return { aliases: entries, ...page, total: visible.length };
  }

  #toAliasRecords(entries: Iterable<AliasEntry>): AliasRecord[] {
    return [...entries]
      .map((entry) => toAliasRecord(entry, this.#services.collections))
      .filter((record) => record !== undefined);
  }

  /** Looks up a collection by id or alias, once for all operations of a request. Never throws. */
  collection(id: string): CollectionHandle {
    return new CollectionHandle(id, this.#services);
  }

  listCollections(request: CollectionsRequest): CollectionsPage {
    const { isVisible, cursor, limit = this.#services.limits.pageLimitDefault } = request;
    const all = this.#services.collections.entries;
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

  /** The first collections, sorted by id, that this process should serve but does not. */
  unservedCollections({
    isVisible,
    countMax,
  }: {
    readonly isVisible: (id: string) => boolean;
    readonly countMax: number;
  }): UnservedCollection[] {
    const found: UnservedCollection[] = [];
    for (const { definition, state } of this.#services.collections.entries) {
      if (state.kind === 'ready' || state.kind === 'elsewhere' || !isVisible(definition.id))
        continue;
      if (found.push({ id: definition.id, ...describeUnserved(state) }) === countMax) break;
    }
    return found;
  }

  /**
   * Runs `perform` once per key. A reply that is attached to a write is stored in the transaction of the write; a reply
   * that is not attached, such as a refusal, is stored alone. Replies are stored as JSON and replayed unchanged. If
   * `perform` rejects, nothing is stored. Rejects with `idempotency_in_flight` and `idempotency_key_reused`.
   */
  runIdempotent<Reply extends object>(
    request: IdempotencyRequest,
    perform: (attach: AttachReply<Reply>) => Promise<Reply>,
  ): Promise<{ reply: Reply; isReplay: boolean }> {
    const { observer, idempotencyKeys } = this.#services;
    return runIdempotent(idempotencyKeys, observer, request, perform);
  }

  /**
   * Stores and applies commits of other nodes to the log of the catalogue, in the order of the calls. Rejects with
   * `data_corrupt`.
   */
  async followCatalogue(operations: readonly StoreOperation[]): Promise<void> {
    await this.#services.catalogue.follow(operations);
    this.apiKeys.follow(operations);
  }

  /**
   * Stores and applies commits of other nodes to the log of a collection; a commit is applied while it is being stored.
   * Rejects with `collection_not_found`, and with what `Collections.requireReady` throws.
   */
  async followCollection(
    incarnation: string,
    operations: readonly StoreOperation[],
  ): Promise<Followed> {
    const collection = this.#services.collections.requireIncarnation(incarnation);
    return await collection.follow(followedWrite(collection, operations));
  }

  /**
   * Adds the rows of a shared segment file in one write; this process must own the log. Rejects like `fileWrite`, and with
   * what `Collections.requireReady` throws.
   */
  async addFile(incarnation: string, file: FileToAdd): Promise<WriteResult> {
    const { collections, clock, observer } = this.#services;
    const collection = collections.requireIncarnation(incarnation);
    const result = await collection.write(await fileWrite(collection, file, clock));
    observeWritten(observer, collection.definition.id, result);
    return result;
  }

  /**
   * Unloads a collection before its data in the store is replaced or removed. Requests get `starting` until
   * `loadCollection` is called.
   */
  unloadCollection(incarnation: string): Promise<void> {
    return this.#services.collections.unload(incarnation);
  }

  /** Loads a collection from the store, unless the catalogue no longer contains it. */
  loadCollection(incarnation: string): Promise<void> {
    return this.#services.collections.load(incarnation);
  }

  /** Bytes of segment files that a collection has got since it was loaded; 0 unless it is loaded. */
  writtenFileBytes(incarnation: string): number {
    const state = this.#services.collections.findIncarnation(incarnation)?.state;
    return state?.kind === 'ready' ? state.maintenance.writtenBytes : 0;
  }

  /**
   * Uses the segment files of the node that owns the log of a collection; does nothing unless the collection is loaded.
   * `description` is that of `storeLayout.filesOf`, and `digests` are those of its files. Resolves and rejects like
   * `Maintenance.adopt`.
   */
  async adoptFiles(
    incarnation: string,
    {
      description,
      digests,
      ...access
    }: Omit<SharedFiles, 'manifest'> & {
      readonly description: object;
      readonly digests: readonly string[];
    },
  ): Promise<boolean> {
    const state = this.#services.collections.findIncarnation(incarnation)?.state;
    if (state?.kind !== 'ready') return true;
    const { segments, ...rest } = description as Manifest;
    const known = segments.map((entry, i) => ({ ...entry, digest: digests[i]! }));
    return state.maintenance.adopt({ manifest: { ...rest, segments: known }, ...access });
  }

  /** See Catalogue.startHolding. */
  startHolding(incarnation: string): Promise<void> {
    return this.#services.catalogue.startHolding(incarnation);
  }

  /** See Catalogue.stopHolding. */
  stopHolding(incarnation: string): Promise<void> {
    return this.#services.catalogue.stopHolding(incarnation);
  }

  /**
   * Searches a range of rows for another node. Rejects with what
   * `Collections.requireReady` and `searchForPeer` throw.
   */
  searchForPeer(request: PeerSearchRequest, signal: AbortSignal): Promise<readonly PeerHits[]> {
    return this.#answerPeer(request, (collection) =>
      searchForPeer(collection, request, this.#services, signal),
    );
  }

  /** Counts the rows of a range before rank keys for another node; rejects like `searchForPeer`. */
  countForPeer(request: PeerCountRequest, signal: AbortSignal): Promise<Float64Array> {
    return this.#answerPeer(request, (collection) =>
      countForPeer(collection, request, this.#services, signal),
    );
  }

  async #answerPeer<Found>(
    { incarnation }: { readonly incarnation: string },
    find: (collection: Collection) => Promise<Found>,
  ): Promise<Found> {
    const collection = this.#services.collections.requireIncarnation(incarnation);
    await collection.whenVerified();
    const found = await find(collection);
    collection.requireIntact();
    return found;
  }

  /** The incarnation of the collection with this id or alias; undefined if none exists. */
  incarnationOf(name: string): string | undefined {
    return this.#services.collections.find(name)?.definition.incarnation;
  }

  /** The id of the collection with this incarnation; undefined if there is none any more. */
  idOf(incarnation: string): string | undefined {
    return this.#services.collections.findIncarnation(incarnation)?.definition.id;
  }

  /** The incarnations of all collections. */
  get incarnations(): readonly string[] {
    return this.#services.collections.entries.map(({ definition }) => definition.incarnation);
  }

  /** The incarnations of the collections whose rows this process holds. */
  get heldIncarnations(): readonly string[] {
    return this.#services.collections.entries
      .filter(({ state }) => state.kind !== 'elsewhere')
      .map(({ definition }) => definition.incarnation);
  }

  /** Whether the data of a collection is damaged on this node. */
  isFailed(incarnation: string): boolean {
    return this.#services.collections.findIncarnation(incarnation)?.state.kind === 'failed';
  }

  /** The bytes on disk of loaded collections, by incarnation. */
  get heldBytes(): ReadonlyMap<string, number> {
    const bytes = new Map<string, number>();
    for (const { definition, state } of this.#services.collections.entries) {
      if (state.kind !== 'ready') continue;
      bytes.set(definition.incarnation, diskBytesOf(state.maintenance));
    }
    return bytes;
  }

  /** False only for an existing collection, by id or alias, whose rows this process does not hold. */
  holds(name: string): boolean {
    return this.#services.collections.find(name)?.state.kind !== 'elsewhere';
  }

  /** The records of collections that this process holds; null for others, including those that it is still loading. */
  recordsHeld(incarnations: readonly string[]): readonly (CollectionRecord | null)[] {
    const { collections, logs } = this.#services;
    return incarnations.map((incarnation) => {
      const entry = collections.findIncarnation(incarnation);
      if (entry === undefined || entry.state.kind === 'elsewhere') return null;
      return logs.holds(incarnation) ? this.#toRecord(entry) : null;
    });
  }

  /** Deletes the vectors that have expired by now, which otherwise happens within about a second. */
  deleteExpired(): Promise<void> {
    return this.#sweep.run();
  }

  /** Finishes writes and verifications in progress. The caller then closes the engine, the pool and the store. */
  async close(): Promise<void> {
    this.#stopping.abort(new SagittaError('stopping', 'The service is stopping.'));
    await this.loaded;
    await this.#sweep.close();
    await this.#services.catalogue.close();
    await this.#verifications.close();
    await this.audit.close();
    this.memory.close();
  }

  /** The text settings of the collection of a segment; undefined without text. */
  #textOf(segmentKey: string): TextSettings | undefined {
    const incarnation = segmentKey.slice(0, segmentKey.indexOf('/'));
    return this.#services.collections.findIncarnation(incarnation)?.definition.text;
  }

  #toRecord(entry: CollectionEntry): CollectionRecord {
    return toRecord(entry, this.#services);
  }
}
