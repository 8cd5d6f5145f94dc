// The database: the service without HTTP. It opens at once and loads its collections in the
// background, first those that operations wait for. A collection whose data is damaged is unavailable; the others are not affected.

import { randomBytes } from 'node:crypto';
import { BufferPool } from '../common/buffer-pool.js';
import type { Clock } from '../common/clock.js';
import { SagittaError } from '../common/errors.js';
import type { Limits } from '../common/limits.js';
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
} from './api/database-api.js';
import { type DatabaseObserver, SILENT_OBSERVER } from './api/observer.js';
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
import type { Collection } from './collection/collection.js';
import { VerificationQueue } from './collection/file-guard.js';
import { followedWrite } from './collection/follow.js';
import type { SegmentBlocks } from './collection/rows.js';
import type { Followed } from './collection/writer.js';
import { CollectionHandle } from './collection-handle.js';
import type { DatabaseServices } from './database-services.js';
import { FilterCache } from './filters/filter-cache.js';
import { createWordsColumns } from './filters/words-columns.js';
import { keys } from './layout/keys.js';
import { decodeDefinition } from './layout/manifest.js';
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

/** Records that are written to disk at the same time, each at most a body; usually far less. */
const RECORD_BUFFERS_KEPT_MAX = 4;
const RECORD_BYTES_KEPT_MAX = 64_000_000;

export interface DatabaseOptions {
  readonly store: Store;
  /** Where commits become durable; by default in the store. */
  readonly logs?: CommitLogs;
  readonly engine: Engine;
  /** Why this engine: shown in every collection's record. */
  readonly engineReason: string;
  readonly pool: WorkerPool;
  readonly limits: Limits;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Absent: nothing is reported. */
  readonly observer?: DatabaseObserver;
  /** Nodes that search together with this one; absent for a service that is alone. */
  readonly peers?: Peers;
  /** The key of cursors, 32 bytes, by what the store has: others can read the log of a cluster, and its stores. */
  readonly cursorKey?: (stored: Uint8Array) => Uint8Array;
}

export class Database {
  readonly #services: DatabaseServices;
  readonly apiKeys: ApiKeys;
  readonly audit: AuditLog;
  /** Gives memory of deleted collections and compacted segments back to the system. */
  readonly memory: MemoryRelease;
  readonly #sweep: ExpirySweep;
  readonly #verifications: VerificationQueue;
  readonly #stopping = new AbortController();
  /** Resolves when every collection is loaded or has failed, and when the database is closed before. */
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
      sparseIndexes: createSparseIndexes(pool),
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

  /** The collections in a store on which no database is open. Their factors are null for all nodes. */
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

  /** Where a store has what was committed to which log. */
  static readonly storeLayout = storeLayout;

  /** What seals cursors; null in a new store. */
  static secretIn(store: Store): Uint8Array | null {
    return store.get(keys.cursorSecret) ?? null;
  }

  /** What a new store gets before a database is opened on it. */
  static foundation(): StoreOperation[] {
    return [{ kind: 'put', key: keys.cursorSecret, value: randomBytes(32) }];
  }

  /** Throws `data_corrupt` when the catalogue or an API key cannot be read. Collections load after it returns. */
  static async open(options: DatabaseOptions): Promise<Database> {
    const { store, logs = logsOfStore(store) } = options;
    if (Database.secretIn(store) === null) await logs.catalogue.commit(Database.foundation());
    const secret = Database.secretIn(store)!;
    return new Database(options, options.cursorKey?.(secret) ?? secret);
  }

  /** Whether it takes nothing new, since it is being closed. */
  get isStopping(): boolean {
    return this.#stopping.signal.aborted;
  }

  /** Collections that are not loaded since the start; operations on one of them have it loaded next, and wait for it. */
  get loadingCount(): number {
    return this.#services.collections.startingCount;
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

  /** Sums over all collections, for metrics; vectors and memory of those that are loaded. */
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
    if (created) return { record: this.#toRecord(entry), created };
    await this.#services.collections.whenLoaded(entry);
    const { id, incarnation } = entry.definition;
    const loaded = this.#services.collections.requireEntry(id, incarnation);
    return { record: this.#toRecord(loaded), created };
  }

  /** The id of the collection that an alias points to; other names are returned as they are. */
  resolve(name: string): string {
    return this.#services.collections.find(name)?.definition.id ?? name;
  }

  /** The collection that a list or query began with; undefined when it is gone. Throws `cursor_invalid`. */
  collectionOfCursor(token: string): string | undefined {
    const { collections, sealer } = this.#services;
    return collections.findIncarnation(openToken(token, sealer).incarnation)?.definition.id;
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
    const entry = this.#services.collections.aliases.find(name);
    return entry && toAliasRecord(entry, this.#services.collections);
  }

  /** In the order of their names. Throws `cursor_invalid`. */
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

  /** Looks the collection up once, by id or alias, for all operations of a request. Throws nothing. */
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

  /** The first collections that are not served here although they are to be, in the order of their ids. */
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

  /**
   * Stores and applies what another node has committed to the log of the catalogue. In the order of the
   * calls. Throws `data_corrupt`.
   */
  async followCatalogue(operations: readonly StoreOperation[]): Promise<void> {
    await this.#services.catalogue.follow(operations);
    this.apiKeys.follow(operations);
  }

  /**
   * The same for the log of a collection, which is applied while it is being stored. Throws `collection_not_found` for one that the catalogue does not
   * have, and what `Collections.requireReady` throws.
   */
  async followCollection(
    incarnation: string,
    operations: readonly StoreOperation[],
  ): Promise<Followed> {
    const collection = this.#services.collections.requireIncarnation(incarnation);
    return await collection.follow(followedWrite(collection, operations));
  }

  /**
   * Ends the use of what the store has of a collection, before that is replaced or removed. Until `loadCollection` is
   * called, requests get `starting`.
   */
  unloadCollection(incarnation: string): Promise<void> {
    return this.#services.collections.unload(incarnation);
  }

  /** Loads a collection from the store. One that the catalogue no longer has is left alone. */
  loadCollection(incarnation: string): Promise<void> {
    return this.#services.collections.load(incarnation);
  }

  /** See Catalogue.startHolding. */
  startHolding(incarnation: string): Promise<void> {
    return this.#services.catalogue.startHolding(incarnation);
  }

  /** See Catalogue.stopHolding. */
  stopHolding(incarnation: string): Promise<void> {
    return this.#services.catalogue.stopHolding(incarnation);
  }

  /** Searches a part of a collection for another node. Throws what `Collections.requireReady` and `searchForPeer` throw. */
  searchForPeer(part: PeerSearchRequest, signal: AbortSignal): Promise<readonly PeerHits[]> {
    return this.#ofPart(part, (collection) =>
      searchForPeer(collection, part, this.#services, signal),
    );
  }

  /** The same for the rows before rank keys. */
  countForPeer(part: PeerCountRequest, signal: AbortSignal): Promise<Float64Array> {
    return this.#ofPart(part, (collection) =>
      countForPeer(collection, part, this.#services, signal),
    );
  }

  async #ofPart<Found>(
    { incarnation }: { readonly incarnation: string },
    find: (collection: Collection) => Promise<Found>,
  ): Promise<Found> {
    const collection = this.#services.collections.requireIncarnation(incarnation);
    await collection.whenVerified();
    const found = await find(collection);
    collection.requireIntact();
    return found;
  }

  /** What the data of a collection is stored under; undefined when there is none of that id or alias. */
  incarnationOf(name: string): string | undefined {
    return this.#services.collections.find(name)?.definition.incarnation;
  }

  /** The incarnations of all collections. */
  get incarnations(): readonly string[] {
    return this.#services.collections.entries.map(({ definition }) => definition.incarnation);
  }

  /** The same of those whose rows this process has. */
  get heldIncarnations(): readonly string[] {
    return this.#services.collections.entries
      .filter(({ state }) => state.kind !== 'elsewhere')
      .map(({ definition }) => definition.incarnation);
  }

  /** Whether the data of a collection is damaged here. */
  isFailed(incarnation: string): boolean {
    return this.#services.collections.findIncarnation(incarnation)?.state.kind === 'failed';
  }

  /** How many bytes those have on disk that are loaded, by incarnation. */
  get heldBytes(): ReadonlyMap<string, number> {
    const bytes = new Map<string, number>();
    for (const { definition, state } of this.#services.collections.entries) {
      if (state.kind !== 'ready') continue;
      bytes.set(definition.incarnation, diskBytesOf(state.maintenance));
    }
    return bytes;
  }

  /** Whether this process has the rows of the collection with this id or alias, or there is none. */
  holds(name: string): boolean {
    return this.#services.collections.find(name)?.state.kind !== 'elsewhere';
  }

  /** The records of collections that this process holds; null for others, also for those that it brings in. */
  recordsHeld(incarnations: readonly string[]): readonly (CollectionRecord | null)[] {
    const { collections, logs } = this.#services;
    return incarnations.map((incarnation) => {
      const entry = collections.findIncarnation(incarnation);
      if (entry === undefined || entry.state.kind === 'elsewhere') return null;
      return logs.holds(incarnation) ? this.#toRecord(entry) : null;
    });
  }

  /** Deletes the vectors that have expired by now; otherwise they go within about a second. */
  deleteExpired(): Promise<void> {
    return this.#sweep.run();
  }

  /** Finishes the writes and verifications under way. The caller then closes the engine, the pool and the store. */
  async close(): Promise<void> {
    this.#stopping.abort(new SagittaError('stopping', 'The service is stopping.'));
    await this.loaded;
    await this.#sweep.close();
    await this.#services.catalogue.close();
    await this.#verifications.close();
    await this.audit.close();
    this.memory.close();
  }

  /** Undefined for a collection without text. */
  #textOf(segmentKey: string): TextSettings | undefined {
    const incarnation = segmentKey.slice(0, segmentKey.indexOf('/'));
    return this.#services.collections.findIncarnation(incarnation)?.definition.text;
  }

  #toRecord(entry: CollectionEntry): CollectionRecord {
    return toRecord(entry, this.#services);
  }
}
