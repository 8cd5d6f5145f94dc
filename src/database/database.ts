// The service without HTTP: the catalogue of collections and, for each of them, reads, writes and
// queries. Opens at once and loads in the background; a collection whose data is damaged answers
// with an error of its own and the others serve.

import { randomBytes } from 'node:crypto';
import type { Clock } from '../common/clock.js';
import type { Limits } from '../common/limits.js';
import type { Logger } from '../common/logger.js';
import type { JsonObject, VectorBatch } from '../common/types.js';
import type { Engine } from '../engine/core/engine.js';
import type { WorkerPool } from '../platform/pool.js';
import type { Store } from '../storage/store.js';
import type {
  CallOptions,
  CollectionInput,
  CollectionRecord,
  CollectionsPage,
  CollectionsRequest,
  CommitTogether,
  DatabaseService,
  DeleteOptions,
  DeleteResult,
  DeleteSelection,
  IdempotencyRequest,
  Include,
  ListReply,
  ListRequest,
  OnCommitted,
  StoredReply,
  VectorPatch,
  VectorRecord,
  WriteMode,
  WriteOptions,
  WriteResult,
  WriteStream,
} from './api.js';
import { ApiKeys } from './api-keys.js';
import type { Join, JoinRequest } from './bulk/join.js';
import type { Scan, ScanRequest } from './bulk/scan.js';
import { ScanService, type ScanServiceOptions } from './bulk/scan-service.js';
import type { ScanStats } from './bulk/scan-stats.js';
import { Catalogue, type CollectionEntry } from './catalogue.js';
import { vectorNotFound } from './collection/collection.js';
import { countSelected } from './collection/count.js';
import { runList } from './collection/list.js';
import { openWriteStream } from './collection/write-stream.js';
import { deleteIds, deleteSelected, patchVector, writeVectors } from './collection/writes.js';
import { pageOf, toRecord } from './collection-record.js';
import { runIdempotent } from './idempotency.js';
import { IdempotencyClaims } from './idempotency-claims.js';
import { keys } from './keys.js';
import {
  type DatabaseObserver,
  observeIdempotent,
  observePage,
  SILENT_OBSERVER,
} from './observer.js';
import { CursorSealer } from './query/cursor.js';
import { FilterCache } from './query/filter-cache.js';
import { Queries } from './query/queries.js';
import type {
  QueryReply,
  QueryRequest,
  QuerySession,
  RecallReply,
  RecallRequest,
} from './query/query-api.js';
import { createSearchQueue, type SearchQueue } from './query/search.js';
import { inTurns } from './query/turns.js';

export interface DatabaseOptions {
  readonly store: Store;
  readonly engine: Engine;
  /** Why this engine: shown in every collection's record. */
  readonly engineReason: string;
  readonly pool: WorkerPool;
  readonly limits: Limits;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Who measures it; nobody when absent. */
  readonly observer?: DatabaseObserver;
}

export class Database implements DatabaseService {
  readonly #options: DatabaseOptions;
  readonly #catalogue: Catalogue;
  readonly #claims: IdempotencyClaims;
  readonly #sealer: CursorSealer;
  readonly #searches: SearchQueue;
  readonly #queries: Queries;
  readonly #observer: DatabaseObserver;
  readonly #filters: FilterCache;
  readonly #wholeReads: ScanService;
  readonly #reads: Omit<ScanServiceOptions, 'unloadBlock'>;
  readonly apiKeys: ApiKeys;
  #isStopping = false;
  /** Resolves when every collection is loaded or has failed. */
  readonly loaded: Promise<void>;

  private constructor(options: DatabaseOptions, cursorSecret: Uint8Array) {
    const { store, engine, pool, clock, limits, observer = SILENT_OBSERVER } = options;
    this.#options = options;
    this.#observer = observer;
    this.#sealer = new CursorSealer(cursorSecret);
    this.apiKeys = new ApiKeys({ store, clock });
    this.#claims = new IdempotencyClaims({ store, clock, keptMs: limits.idempotencyMs });
    this.#searches = createSearchQueue(engine, { waitingMax: limits.queuedQueriesMax, observer });
    this.#filters = new FilterCache({ pool, bytesMax: limits.filterCacheBytesMax });
    const unloadBlock = (key: string) => {
      engine.unload(key);
      this.#filters.forget(key);
    };
    const encoder = engine.rowEncoder;
    this.#catalogue = new Catalogue({ ...options, unloadBlock, encoder, observer });
    this.#reads = {
      filters: this.#filters,
      limits,
      submitAll: inTurns(this.#searches.submitAll),
      isServing: (collection) => this.#catalogue.isServing(collection.definition.id, collection),
    };
    this.#queries = new Queries({
      ...this.#reads,
      sealer: this.#sealer,
      engineName: engine.name,
      observer,
      now: () => clock.now(),
    });
    this.#wholeReads = new ScanService({ ...this.#reads, unloadBlock });
    this.loaded = this.#catalogue.load();
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
    return this.#catalogue.isLoaded ? 'ready' : 'starting';
  }

  /** Bytes and counts of the results of filters that are kept, for metrics. */
  get filterCacheUse(): Pick<FilterCache, 'bytesUsed' | 'hitCount' | 'missCount'> {
    const { bytesUsed, hitCount, missCount } = this.#filters;
    return { bytesUsed, hitCount, missCount };
  }

  /** Queries that wait for the engine. */
  get queuedQueryCount(): number {
    return this.#searches.waitingCount;
  }

  /** Scans and joins under way, for metrics. */
  get readings(): ScanStats {
    return this.#wholeReads.readings;
  }

  /** Sums over all collections that are served, for metrics. */
  storageUse(): { segmentCount: number; rowCount: number; logBytes: number } {
    return this.#catalogue.storageUse();
  }

  async createCollection(
    input: CollectionInput,
    options: {
      ifNotExists?: boolean;
      alsoCommit?: CommitTogether<CollectionRecord> | undefined;
    } = {},
  ): Promise<{ record: CollectionRecord; created: boolean }> {
    const { alsoCommit } = options;
    const { entry, created } = await this.#catalogue.create(input, {
      ifNotExists: options.ifNotExists ?? false,
      alsoCommit: alsoCommit && ((made) => alsoCommit(this.#toRecord(made))),
    });
    return { record: this.#toRecord(entry), created };
  }

  getVectorShape(id: string): Pick<CollectionRecord, 'dimension' | 'metric'> {
    const { dimension, metric } = this.#catalogue.requireEntry(id).definition;
    return { dimension, metric };
  }

  getCollection(id: string): CollectionRecord {
    return this.#toRecord(this.#catalogue.requireEntry(id));
  }

  listCollections(request: CollectionsRequest): CollectionsPage {
    const { isVisible, cursor, limit = this.#options.limits.pageLimitDefault } = request;
    const all = this.#catalogue.entries;
    const entries =
      isVisible === undefined ? all : all.filter(({ definition }) => isVisible(definition.id));
    const { entries: found, ...page } = pageOf(entries, { limit, cursor });
    return {
      collections: found.map((entry) => this.#toRecord(entry)),
      ...page,
      total: entries.length,
    };
  }

  async updateCollection(
    id: string,
    change: {
      description?: string | null | undefined;
      labels?: Readonly<Record<string, string>> | undefined;
    },
  ): Promise<CollectionRecord> {
    return this.#toRecord(await this.#catalogue.update(id, change));
  }

  deleteCollection(id: string): Promise<{ vectorCount: number }> {
    return this.#catalogue.delete(id);
  }

  async writeVectors(
    collectionId: string,
    batch: VectorBatch,
    options: WriteOptions,
  ): Promise<WriteResult> {
    const collection = this.#catalogue.require(collectionId);
    const { mode, alsoCommit, onCommitted } = options;
    const { clock } = this.#options;
    const result = await collection.write(
      writeVectors(collection, batch, { mode, clock, alsoCommit }),
      onCommitted,
    );
    this.#observer.vectorsWritten(result.insertedCount, result.updatedCount);
    return result;
  }

  openWriteStream(
    collectionId: string,
    options: { mode: WriteMode; idempotency?: IdempotencyRequest | undefined },
  ): WriteStream {
    const collection = this.#catalogue.require(collectionId);
    const { mode, idempotency } = options;
    const { clock } = this.#options;
    return openWriteStream({
      collection,
      mode,
      clock,
      observer: this.#observer,
      claims: this.#claims,
      idempotency,
    });
  }

  async patchVector(
    collectionId: string,
    vectorId: string,
    change: VectorPatch,
  ): Promise<{ sequence: number; version: string }> {
    const collection = this.#catalogue.require(collectionId);
    const { metadata: metadataPatch, values, ifVersion, onCommitted } = change;
    const { sequence } = await collection.write(
      patchVector(collection, vectorId, { metadataPatch, values, ifVersion }, this.#options),
      onCommitted,
    );
    this.#observer.vectorsWritten(0, 1);
    return { sequence, version: collection.versionOf(sequence) };
  }

  async deleteVector(
    collectionId: string,
    vectorId: string,
    options: { onCommitted?: OnCommitted | undefined } = {},
  ): Promise<{ sequence: number }> {
    const collection = this.#catalogue.require(collectionId);
    const { clock } = this.#options;
    const { deletedCount, sequence } = await collection.write(
      deleteIds(collection, [vectorId], { clock, alsoCommit: undefined }),
      options.onCommitted,
    );
    if (deletedCount === 0) throw vectorNotFound(collectionId, vectorId);
    this.#observer.vectorsDeleted(deletedCount);
    return { sequence };
  }

  async deleteVectors(
    collectionId: string,
    selection: DeleteSelection,
    options: DeleteOptions,
  ): Promise<DeleteResult> {
    const collection = this.#catalogue.require(collectionId);
    if (options.dryRun) {
      const deletedCount = await countSelected(collection, selection, this.#reads);
      return { deletedCount, sequence: collection.sequence };
    }
    const { clock, limits } = this.#options;
    const context = { clock, limits, filters: this.#filters, alsoCommit: options.alsoCommit };
    const result = await collection.write(
      deleteSelected(collection, selection, context),
      options.onCommitted,
    );
    this.#observer.vectorsDeleted(result.deletedCount);
    return result;
  }

  getVector(collectionId: string, vectorId: string, include: Include): VectorRecord {
    const collection = this.#catalogue.require(collectionId);
    const address = collection.find(vectorId);
    if (address === undefined) throw vectorNotFound(collectionId, vectorId);
    return collection.record(address.segment, address.row, include);
  }

  fetchVectors(
    collectionId: string,
    ids: readonly string[],
    include: Include,
  ): { vectors: readonly VectorRecord[]; notFound: readonly string[] } {
    const collection = this.#catalogue.require(collectionId);
    const vectors: VectorRecord[] = [];
    const notFound: string[] = [];
    for (const id of ids) {
      const address = collection.find(id);
      if (address === undefined) notFound.push(id);
      else vectors.push(collection.record(address.segment, address.row, include));
    }
    return { vectors, notFound };
  }

  async listVectors(collectionId: string, request: ListRequest): Promise<ListReply> {
    const collection = this.#catalogue.require(collectionId);
    const { limits, clock } = this.#options;
    const answering = runList(collection, request, {
      filters: this.#filters,
      limits,
      sealer: this.#sealer,
      now: clock.now(),
    });
    return observePage(this.#observer, request.cursor, answering);
  }

  async countVectors(collectionId: string, filter: JsonObject | undefined): Promise<number> {
    const collection = this.#catalogue.require(collectionId);
    const selection: DeleteSelection =
      filter === undefined ? { kind: 'all' } : { kind: 'filter', filter };
    return countSelected(collection, selection, this.#reads);
  }

  async query(
    collectionId: string,
    request: QueryRequest,
    options: CallOptions = {},
  ): Promise<QueryReply> {
    return this.#queries.one(this.#catalogue.require(collectionId), request, options);
  }

  async openQueries(
    collectionId: string,
    options: CallOptions & { minSequence?: number | undefined } = {},
  ): Promise<QuerySession> {
    return this.#queries.open(this.#catalogue.require(collectionId), options);
  }

  async recall(
    collectionId: string,
    request: RecallRequest,
    options: CallOptions = {},
  ): Promise<RecallReply> {
    return this.#queries.recall(this.#catalogue.require(collectionId), request, options);
  }

  runIdempotent(
    request: IdempotencyRequest,
    perform: (
      attach: <Result>(encode: (result: Result) => StoredReply) => CommitTogether<Result>,
    ) => Promise<StoredReply>,
  ): Promise<{ reply: StoredReply; isReplay: boolean }> {
    return observeIdempotent(this.#observer, runIdempotent(this.#claims, request, perform));
  }

  async scan(collectionId: string, request: ScanRequest, options: CallOptions = {}): Promise<Scan> {
    return this.#wholeReads.scan(this.#catalogue.require(collectionId), request, options);
  }

  async join(collectionId: string, request: JoinRequest, options: CallOptions = {}): Promise<Join> {
    const collection = this.#catalogue.require(collectionId);
    const searched =
      request.with === undefined ? collection : this.#catalogue.require(request.with);
    return this.#wholeReads.join(collection, searched, request, options);
  }

  /** Finishes what is under way. The caller closes engine, pool and store after it. */
  async close(): Promise<void> {
    this.#isStopping = true;
    await this.loaded;
    await this.#catalogue.close();
  }

  #toRecord(entry: CollectionEntry): CollectionRecord {
    return toRecord(entry, this.#options);
  }
}
