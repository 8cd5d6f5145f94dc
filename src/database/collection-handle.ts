// The operations on one collection: reads, writes and queries of its vectors, and changes of the collection
// itself. This is the only list of their signatures.

import { assert } from '../common/errors.js';
import type { EmbeddingSource, FieldShapes, JsonObject, VectorBatch } from '../common/types.js';
import type { StoreOperation } from '../storage/store.js';
import type { AttachedReply } from './admin/idempotency.js';
import { runAggregate } from './aggregate/aggregate.js';
import { runSchema } from './aggregate/found-schema.js';
import type {
  AggregateReply,
  AggregateRequest,
  FoundSchema,
  SchemaRequest,
} from './api/aggregate-api.js';
import type {
  CallOptions,
  CloneInput,
  CollectionChange,
  CollectionRecord,
  DeleteResult,
  Include,
  ListReply,
  ListRequest,
  MetadataChange,
  OnCommitted,
  SegmentsPage,
  UpdateResult,
  VectorPatch,
  VectorRecord,
  VectorSelection,
  WriteMode,
  WriteResult,
} from './api/database-api.js';
import { observeWritten } from './api/observer.js';
import type {
  QueryReply,
  QueryRequest,
  QuerySession,
  RecallReply,
  RecallRequest,
} from './api/query-api.js';
import type { Warning } from './api/warning.js';
import { type CollectionDigest, type DigestRequest, runDigest } from './bulk/digest.js';
import { type Join, type JoinRequest, runJoin } from './bulk/join.js';
import { runScan, type Scan, type ScanRequest } from './bulk/scan.js';
import type { CommitWithEntry } from './catalogue/catalogue.js';
import { toRecord, toSegmentsPage } from './catalogue/collection-record.js';
import { BulkStream } from './collection/bulk-stream.js';
import { type Collection, vectorNotFound } from './collection/collection.js';
import type { FileToAdd } from './collection/file-write.js';
import { patchVector, writeBatch } from './collection/patches.js';
import { selectPassing } from './collection/select-passing.js';
import { countVisible } from './collection/snapshot.js';
import { findUnknownPaths } from './collection/unknown-paths.js';
import { updateSelected } from './collection/update-selected.js';
import { type RowStream, WriteStream, type WriteStreamOptions } from './collection/write-stream.js';
import type { Write } from './collection/writer.js';
import {
  type CommitTogether,
  deleteIds,
  deleteSelected,
  type ParsedSelection,
  parseSelection,
} from './collection/writes.js';
import type { DatabaseServices } from './database-services.js';
import { type Projection, type ProjectionRequest, runProjection } from './projection/projection.js';
import { runList } from './query/list.js';
import { type QueryOptions, runQuery } from './query/query.js';
import { openSession, type SessionOptions } from './query/query-session.js';
import { runRecall } from './query/recall.js';

export interface WriteOptions {
  readonly mode: WriteMode;
  /** Stored in the transaction of the write. */
  readonly attachedReply?: AttachedReply<WriteResult> | undefined;
  readonly onCommitted?: OnCommitted | undefined;
}

export interface DeleteOptions {
  readonly dryRun: boolean;
  /** Stored in the transaction of the delete. */
  readonly attachedReply?: AttachedReply<DeleteResult> | undefined;
  readonly onCommitted?: OnCommitted | undefined;
}

/**
 * A collection as `database.collection(id)` found it. Every member except `id` and `exists` throws
 * `collection_not_found` if no such collection existed, or if it was deleted or replaced since. Operations on the rows
 * of a collection that the start has not loaded yet make its load urgent and wait for it; they reject with `starting`
 * if that takes too long. Reads and writes of vectors also reject with `data_corrupt` when they find damaged data, and
 * with `collection_unavailable` after that.
 */
export class CollectionHandle {
  /** The name that the caller used, which may be an alias or a former id. */
  readonly id: string;
  readonly #services: DatabaseServices;
  /** Distinguishes the collection from later ones with the same id; undefined if none existed. */
  readonly #incarnation: string | undefined;

  constructor(id: string, services: DatabaseServices) {
    this.id = id;
    this.#services = services;
    this.#incarnation = services.collections.find(id)?.definition.incarnation;
  }

  /** Whether the collection existed when the handle was created. */
  get exists(): boolean {
    return this.#incarnation !== undefined;
  }

  /** Throws `collection_not_found` unless the collection still exists. */
  requireExists(): void {
    this.#services.collections.requireEntry(this.id, this.#incarnation);
  }

  /** The shapes of the vectors by name. */
  get vectors(): FieldShapes {
    const { collections } = this.#services;
    return collections.requireEntry(this.id, this.#incarnation).definition.vectors;
  }

  /** The service that turns texts into vectors; null for none. */
  get embedding(): EmbeddingSource | null {
    const { collections } = this.#services;
    return collections.requireEntry(this.id, this.#incarnation).definition.embed;
  }

  record(): CollectionRecord {
    const entry = this.#services.collections.requireEntry(this.id, this.#incarnation);
    return toRecord(entry, this.#services);
  }

  /** The record once the start has loaded the collection, or has failed to. */
  async loadedRecord(): Promise<CollectionRecord> {
    await this.#whenLoaded();
    return this.record();
  }

  /** A page of segments, sorted by number. Rejects with `cursor_invalid`. */
  async segments(request: {
    readonly limit?: number | undefined;
    readonly cursor?: string | undefined;
  }): Promise<SegmentsPage> {
    const { collections, limits } = this.#services;
    await this.#whenLoaded();
    const entry = collections.requireEntry(this.id, this.#incarnation);
    collections.requireReady(entry);
    assert(entry.state.kind === 'ready', 'the collection is ready');
    const { limit = limits.pageLimitDefault, cursor } = request;
    return toSegmentsPage(entry.state, { limit, cursor }, this.#services);
  }

  /** Rejects with `invalid_metadata` if a vector does not fit a new schema. */
  async update(change: CollectionChange): Promise<CollectionRecord> {
    const { catalogue } = this.#services;
    return toRecord(await catalogue.update(this.#address, change), this.#services);
  }

  /**
   * Creates another collection with the current vectors of this one, without blocking writes. Rejects with
   * `collection_exists` and `limit_exceeded`.
   */
  async clone(
    input: CloneInput,
    attachedReply?: AttachedReply<CollectionRecord> | undefined,
  ): Promise<CollectionRecord> {
    const alsoCommit = this.#operationsWithRecord(attachedReply);
    const { catalogue } = this.#services;
    return toRecord(await catalogue.clone(this.#address, input, alsoCommit), this.#services);
  }

  /** Gives the collection another id. Rejects with `collection_exists`. */
  async rename(
    id: string,
    attachedReply?: AttachedReply<CollectionRecord> | undefined,
  ): Promise<CollectionRecord> {
    const alsoCommit = this.#operationsWithRecord(attachedReply);
    const { catalogue } = this.#services;
    return toRecord(await catalogue.rename(this.#address, id, alsoCommit), this.#services);
  }

  get #address() {
    return { id: this.id, incarnation: this.#incarnation };
  }

  #operationsWithRecord(reply: AttachedReply<CollectionRecord> | undefined): CommitWithEntry {
    return (entry) => reply?.operations(toRecord(entry, this.#services)) ?? [];
  }

  /** Deletes the collection with its vectors, even an unavailable one. Rejects with `collection_aliased`. */
  async drop(): Promise<{ vectorCount: number }> {
    return this.#services.catalogue.delete(this.#address);
  }

  /**
   * Rejects with an issue per row: `insert` with `vector_exists`, `update` and `patch` with `vector_not_found`, and any
   * mode with `precondition_failed` for a row whose `ifSequences` differs.
   */
  async write(batch: VectorBatch, options: WriteOptions): Promise<WriteResult> {
    const { mode, attachedReply, onCommitted } = options;
    const alsoCommit = operationsOf(attachedReply);
    const result = await this.#use((collection) =>
      collection.write(
        writeBatch(collection, batch, { mode, alsoCommit }, this.#services),
        onCommitted,
      ),
    );
    observeWritten(this.#services.observer, this.id, result);
    return result;
  }

  /**
   * Opens a stream for many batches; a failed batch leaves the previous ones written. The caller closes it. Rejects
   * with `idempotency_in_flight` and `idempotency_key_reused`.
   */
  async openWriteStream(options: WriteStreamOptions): Promise<WriteStream> {
    await this.#whenLoaded();
    const services = this.#services;
    return await WriteStream.open(this.#require(), options, {
      ...services,
      onWritten: (result) => observeWritten(services.observer, this.id, result),
    });
  }

  /**
   * Opens a stream whose rows become segment files here, which `commit` hands to the owner of the log
   * (`Database.addFile`). Only in a cluster.
   */
  async openBulkStream(
    commit: (incarnation: string, file: FileToAdd) => Promise<WriteResult>,
  ): Promise<RowStream> {
    await this.#whenLoaded();
    const collection = this.#require();
    await collection.whenVerified();
    return new BulkStream({
      ...this.#services,
      collection,
      encoder: this.#services.engine.rowEncoder,
      commit: (file) => commit(collection.incarnation, file),
    });
  }

  /** Rejects with `vector_not_found`, `precondition_failed`, `limit_exceeded` and `invalid_metadata`. */
  async patch(
    vectorId: string,
    change: VectorPatch,
  ): Promise<{ sequence: number; version: string }> {
    const { metadata: text, onCommitted, ...rest } = change;
    const metadata = text === undefined ? undefined : ({ kind: 'patch', text } as const);
    const vectorChange = { metadata, ...rest };
    const patched = await this.#use(async (collection) => {
      const { sequence } = await collection.write(
        patchVector(collection, vectorId, vectorChange, this.#services),
        onCommitted,
      );
      return { sequence, version: collection.versionOf(sequence) };
    });
    observeWritten(this.#services.observer, this.id, { insertedCount: 0, updatedCount: 1 });
    return patched;
  }

  /** Deletes the selected vectors, if any. Rejects with `invalid_filter`. */
  async delete(selection: VectorSelection, options: DeleteOptions): Promise<DeleteResult> {
    if (options.dryRun) {
      return this.#use(async (collection) => {
        // Read before the filter is evaluated, because writes continue during that.
        const { sequence } = collection;
        return { ...(await countSelected(collection, selection, this.#services)), sequence };
      });
    }
    const { clock, limits, filters, observer } = this.#services;
    const alsoCommit = operationsOf(options.attachedReply);
    const result = await this.#use((collection) => {
      const parsed = parseSelection(collection, selection, limits);
      const write = withWarnings(collection, parsed, alsoCommit, (alsoCommit) =>
        deleteSelected(collection, parsed, { clock, filters, alsoCommit }),
      );
      return collection.write(write, options.onCommitted);
    });
    observer.count('sagitta_vectors_deleted_total', result.deletedCount);
    return result;
  }

  /**
   * Changes the metadata of the selected vectors, all at one sequence. Rejects with `invalid_filter`,
   * `invalid_metadata`, and with `limit_exceeded` if the changed vectors exceed the limits of one body.
   */
  async updateMetadata(
    selection: VectorSelection,
    options: {
      readonly change: MetadataChange;
      readonly limit?: number | undefined;
      readonly attachedReply?: AttachedReply<UpdateResult> | undefined;
      readonly onCommitted?: OnCommitted | undefined;
    },
  ): Promise<UpdateResult> {
    const { change, limit, attachedReply, onCommitted } = options;
    const alsoCommit = operationsOf(attachedReply);
    const result = await this.#use((collection) => {
      const parsed = parseSelection(collection, selection, this.#services.limits);
      const write = withWarnings(collection, parsed, alsoCommit, (alsoCommit) =>
        updateSelected(collection, parsed, { change, limit, alsoCommit }, this.#services),
      );
      return collection.write(write, onCommitted);
    });
    observeWritten(this.#services.observer, this.id, { ...result, insertedCount: 0 });
    return result;
  }

  /** Rejects with `vector_not_found` and `precondition_failed`. */
  async deleteVector(
    vectorId: string,
    options: {
      readonly ifSequence?: number | undefined;
      readonly onCommitted?: OnCommitted | undefined;
    } = {},
  ): Promise<{ sequence: number }> {
    const { clock, observer } = this.#services;
    const { ifSequence } = options;
    const { deletedCount, sequence } = await this.#use((collection) =>
      collection.write(
        deleteIds(collection, [vectorId], { clock, alsoCommit: undefined, ifSequence }),
        options.onCommitted,
      ),
    );
    if (deletedCount === 0) throw vectorNotFound(this.id, vectorId);
    observer.count('sagitta_vectors_deleted_total', deletedCount);
    return { sequence };
  }

  /** Rejects with `vector_not_found`. */
  async get(vectorId: string, include: Include): Promise<VectorRecord> {
    return this.#use((collection) => {
      const { segment, row } = collection.require(vectorId);
      return collection.record(segment, row, include);
    });
  }

  async fetch(
    ids: readonly string[],
    include: Include,
  ): Promise<{ vectors: readonly VectorRecord[]; notFound: readonly string[] }> {
    return this.#use((collection) => {
      const vectors: VectorRecord[] = [];
      const notFound: string[] = [];
      for (const id of ids) {
        const address = collection.find(id);
        if (address === undefined) notFound.push(id);
        else vectors.push(collection.record(address.segment, address.row, include));
      }
      return { vectors, notFound };
    });
  }

  /** A page of vectors. Rejects with `invalid_filter`, `limit_exceeded` and errors of the cursor. */
  async list(request: ListRequest, options: CallOptions = {}): Promise<ListReply> {
    return this.#use((collection) => runList(collection, request, this.#services, options.signal));
  }

  /** The number of vectors that pass the filter, by default of all. Rejects with `invalid_filter`. */
  async count(filter?: JsonObject | undefined): Promise<number> {
    return (await this.countFound(filter)).count;
  }

  /** The count with warnings about the filter. */
  async countFound(filter?: JsonObject | undefined): Promise<{
    readonly count: number;
    readonly warnings?: readonly Warning[] | undefined;
  }> {
    return this.#use(async (collection) => {
      if (filter === undefined) return { count: collection.rows.liveCount };
      const { views, warnings } = await selectPassing(collection, filter, this.#services);
      return { count: countVisible(views), warnings };
    });
  }

  /**
   * One page of the matches of a query. Rejects with `vector_not_found`, `dimension_mismatch`, `invalid_vector`,
   * `invalid_filter`, `limit_exceeded`, `overloaded` and errors of the cursor.
   */
  async query(request: QueryRequest, options: QueryOptions = {}): Promise<QueryReply> {
    return this.#use((collection) => runQuery(collection, request, this.#services, options));
  }

  /**
   * Opens a session whose queries all read one snapshot that includes the write `minSequence`. The caller or the signal
   * closes the session.
   */
  async openQuerySession(options: SessionOptions = {}): Promise<QuerySession> {
    return this.#use((collection) => openSession(collection, options, this.#services));
  }

  /** Facets and stats of the vectors that pass the filter. Rejects with `invalid_filter` and `overloaded`. */
  async aggregate(request: AggregateRequest, options: CallOptions = {}): Promise<AggregateReply> {
    return this.#use((collection) =>
      runAggregate(collection, request, this.#services, options.signal),
    );
  }

  /** The metadata paths of the vectors that pass the filter. Rejects with `invalid_filter` and `overloaded`. */
  async schema(request: SchemaRequest, options: CallOptions = {}): Promise<FoundSchema> {
    return this.#use((collection) =>
      runSchema(collection, request, this.#services, options.signal),
    );
  }

  /** The share of the given ids that are among the exact nearest vectors; equal scores count. */
  async recall(request: RecallRequest, options: CallOptions = {}): Promise<RecallReply> {
    return this.#use((collection) =>
      runRecall(collection, request, this.#services, options.signal),
    );
  }

  /** See `runDigest`. */
  async digest(request: DigestRequest, options: CallOptions = {}): Promise<CollectionDigest> {
    return this.#use((collection) =>
      runDigest(collection, request, this.#services, options.signal),
    );
  }

  /** All rows as columns, from one snapshot. Rejects with `invalid_filter`. */
  async scan(request: ScanRequest, options: CallOptions = {}): Promise<Scan> {
    return this.#use((collection) => runScan(collection, request, this.#services, options.signal));
  }

  /** See `runJoin`. */
  async join(request: JoinRequest, options: CallOptions = {}): Promise<Join> {
    return this.#use((collection) => runJoin(collection, request, this.#services, options.signal));
  }

  /** See `runProjection`. */
  async project(request: ProjectionRequest, options: CallOptions = {}): Promise<Projection> {
    return this.#use((collection) =>
      runProjection(collection, request, this.#services, options.signal),
    );
  }

  /**
   * Runs an operation once the files of the collection are verified. Rejects with `data_corrupt` instead of its result
   * or error if a file is found to be damaged.
   */
  async #use<Result>(
    operation: (collection: Collection) => Result | Promise<Result>,
  ): Promise<Result> {
    // No await when the collection is loaded, so that operations begin in the order of the calls.
    const loading = this.#whenLoaded();
    if (loading !== undefined) await loading;
    const collection = this.#require();
    await collection.whenVerified();
    const { segments } = collection.rows;
    try {
      return await operation(collection);
    } finally {
      collection.requireIntact();
      // A compaction may have replaced the segments that the operation read.
      if (collection.rows.segments !== segments) collection.requireIntact(segments);
    }
  }

  #require(): Collection {
    const { collections } = this.#services;
    return collections.requireReady(collections.requireEntry(this.id, this.#incarnation));
  }

  /** Undefined if the collection is loaded. */
  #whenLoaded(): Promise<void> | undefined {
    const { collections } = this.#services;
    return collections.whenLoaded(collections.requireEntry(this.id, this.#incarnation));
  }
}

function operationsOf<Result>(
  reply: AttachedReply<Result> | undefined,
): ((result: Result) => readonly StoreOperation[]) | undefined {
  return reply && ((result) => reply.operations(result));
}

/** Counts the vectors of a selection, with warnings about its filter. Rejects with `invalid_filter`. */
async function countSelected(
  collection: Collection,
  selection: VectorSelection,
  services: DatabaseServices,
): Promise<Omit<DeleteResult, 'sequence'>> {
  switch (selection.kind) {
    case 'all':
      return { deletedCount: collection.rows.liveCount };
    case 'ids': {
      const found = selection.ids.filter((id) => collection.find(id) !== undefined);
      return { deletedCount: new Set(found).size };
    }
    case 'filter': {
      const { views, warnings } = await selectPassing(collection, selection.filter, services);
      return { deletedCount: countVisible(views), warnings };
    }
  }
}

/**
 * Adds warnings about the filter to the result of a write, and to the stored reply. They refer to the state before the
 * write, because the paths of deleted rows may be unknown afterwards.
 */
function withWarnings<Result extends { readonly warnings?: readonly Warning[] | undefined }>(
  collection: Collection,
  selection: ParsedSelection,
  alsoCommit: CommitTogether<Result> | undefined,
  writeOf: (alsoCommit: CommitTogether<Result> | undefined) => Write<Result>,
): Write<Result> {
  if (selection.kind !== 'filter') return writeOf(alsoCommit);
  const { filter } = selection;
  let warnings: readonly Warning[] | undefined;
  const write = writeOf(alsoCommit && ((result) => alsoCommit({ ...result, warnings })));
  return {
    ...write,
    async prepare(sequence, pending) {
      warnings = findUnknownPaths(collection, collection.snapshot().views, { filter });
      const prepared = await write.prepare(sequence, pending);
      if (warnings === undefined) return prepared;
      return { ...prepared, result: { ...prepared.result, warnings } };
    },
  };
}
