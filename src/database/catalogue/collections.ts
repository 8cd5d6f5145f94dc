// Which collections there are and what they are called, in memory, and what is loaded of each: all of it, or why not. The
// catalogue (catalogue.ts) changes which there are.

import { endsWithin } from '../../common/ends-within.js';
import { collectionNotFound, SagittaError } from '../../common/errors.js';
import { collectGarbageSoon } from '../../common/garbage.js';
import type { CommitLogs } from '../../storage/commit-log.js';
import type { StoreOperation } from '../../storage/store.js';
import type { Collection } from '../collection/collection.js';
import type { Maintenance } from '../collection/maintenance.js';
import { type LoadOptions, type LoadProgress, loadCollection } from '../collection/recovery.js';
import { blobsOf, keys, storedParts } from '../layout/keys.js';
import { type CollectionDefinition, decodeDefinition } from '../layout/manifest.js';
import { Aliases } from './aliases.js';
import { LoadQueue } from './load-queue.js';
import { NotHeldError } from './not-held-error.js';

/** The share of its time that a request may wait for its collection; the rest is left for its answer. */
const WAITING_SHARE_MAX = 0.9;
/** Loads that take longer are logged one by one, in milliseconds; of the others there may be thousands. */
const LONG_LOAD_MS = 1_000;

interface Ready {
  readonly kind: 'ready';
  readonly collection: Collection;
  readonly maintenance: Maintenance;
}

export interface CollectionEntry {
  readonly definition: CollectionDefinition;
  readonly state:
    | { readonly kind: 'loading'; readonly progress: LoadProgress }
    | Ready
    | { readonly kind: 'failed'; readonly error: SagittaError }
    /** Other nodes of the cluster hold it. `isNew`: it has no rows yet. */
    | { readonly kind: 'elsewhere'; readonly isNew: boolean };
}

export const ELSEWHERE = { kind: 'elsewhere', isNew: false } as const;

export interface StorageUse {
  readonly segmentCount: number;
  readonly rowCount: number;
  readonly fileBytes: number;
  readonly logBytes: number;
}

export class Collections {
  readonly aliases: Aliases;
  readonly #options: LoadOptions;
  readonly #entries = new Map<string, CollectionEntry>();
  /** Ids by incarnation, since a collection may get another id. */
  readonly #idOf = new Map<string, string>();
  /** The ids, sorted; null after one was added or removed. */
  #sortedIds: readonly string[] | null = null;
  /** The entries in the order of their ids; null after a change. */
  #sortedEntries: readonly CollectionEntry[] | null = null;
  /** Collections that were unloaded, so that others may have taken the places of their files. */
  #unloadCount = 0;
  /** Those that the start loads. */
  readonly #starting: LoadQueue;
  /** The blobs of each incarnation that is loaded by the start, once they have been listed. */
  #blobsAtStart: ReadonlyMap<string, readonly string[]> | null = null;
  /** Resolves when what earlier processes have left is removed; undefined when it is. */
  #tidied: Promise<void> | undefined;

  /** Throws `data_corrupt`. Nothing is loaded yet. */
  constructor(options: LoadOptions) {
    this.#options = options;
    const { store, logs, stopping } = options;
    this.aliases = new Aliases(store);
    const absent = new Set([...store.list(keys.absences)].map(({ key }) => key[1]!));
    for (const { key, value } of store.list(keys.collections)) {
      const definition = decodeDefinition(value, key[1]!);
      const isAbsent = absent.has(definition.incarnation);
      this.put({ definition, state: isAbsent ? stateOfAbsent(definition, logs) : loading() });
    }
    const incarnations = [...this.#entries.values()].flatMap(({ definition, state }) =>
      state.kind === 'loading' ? definition.incarnation : [],
    );
    const load = (incarnation: string) => this.load(incarnation);
    this.#starting = new LoadQueue(incarnations, { load, stopping });
  }

  /** Collections that the start has not loaded yet. One that is loaded anew later is not counted. */
  get startingCount(): number {
    return this.#starting.count;
  }

  get count(): number {
    return this.#entries.size;
  }

  /** Sums over the collections that are loaded. */
  storageUse(): StorageUse {
    const sums = { segmentCount: 0, rowCount: 0, fileBytes: 0, logBytes: 0 };
    for (const { state } of this.#entries.values()) {
      if (state.kind !== 'ready') continue;
      const { collection, maintenance } = state;
      sums.segmentCount += collection.rows.segments.length;
      for (const { rowCount } of collection.rows.segments) sums.rowCount += rowCount;
      for (const byteCount of maintenance.fileBytes.values()) sums.fileBytes += byteCount;
      sums.logBytes += maintenance.logBytes;
    }
    return sums;
  }

  /** In id order. */
  get entries(): readonly CollectionEntry[] {
    this.#sortedIds ??= sortedByBytes(this.#entries.keys());
    this.#sortedEntries ??= this.#sortedIds.map((id) => this.#entries.get(id)!);
    return this.#sortedEntries;
  }

  /**
   * Loads every collection, until the service stops; first those that requests wait for. A failure is logged, and its
   * collection becomes unavailable.
   */
  async loadAll(): Promise<void> {
    const startedAt = performance.now();
    const { count } = this.#starting;
    this.#tidied = this.#removeLeftovers();
    await this.#tidied;
    this.#tidied = undefined;
    await this.#starting.run();
    this.#blobsAtStart = null;
    if (this.#options.stopping.aborted || count === 0) return;
    this.#options.logger.info(
      { count, milliseconds: Math.round(performance.now() - startedAt) },
      'collections loaded',
    );
    collectGarbageSoon();
  }

  /** Resolves when blobs may be made for collections that the catalogue does not know yet; undefined when they may. */
  whenTidied(): Promise<void> | undefined {
    return this.#tidied;
  }

  /**
   * Waits for a collection that the start is to load, which then goes before others; undefined when there is nothing to
   * wait for. Throws `starting` when it takes too long, and `stopping`.
   */
  whenLoaded(entry: CollectionEntry): Promise<void> | undefined {
    if (entry.state.kind !== 'loading') return undefined;
    const ended = this.#starting.whenEnded(entry.definition.incarnation);
    return ended && this.#waitForLoad(ended, entry);
  }

  async #waitForLoad(ended: Promise<void>, entry: CollectionEntry): Promise<void> {
    const { limits, stopping } = this.#options;
    if (!(await endsWithin(ended, limits.requestMsMax * WAITING_SHARE_MAX))) {
      throw notLoaded(entry.definition.id, entry.state);
    }
    stopping.throwIfAborted();
  }

  /** Reads what the store has of a collection. Does nothing for one that is gone. A failure is logged. */
  async load(incarnation: string): Promise<void> {
    const entry = this.findIncarnation(incarnation);
    if (entry === undefined) return;
    const startedAt = performance.now();
    try {
      const progress = entry.state.kind === 'loading' ? entry.state.progress : undefined;
      const loaded = await this.read(entry.definition, progress);
      // It may have been renamed meanwhile, or deleted.
      const definition = this.findIncarnation(incarnation)?.definition;
      if (definition === undefined) {
        await loaded.maintenance.close();
        return;
      }
      loaded.collection.redefine(definition);
      this.put({ definition, state: loaded });
      // Damage that was found while it was loaded.
      loaded.collection.requireIntact();
      this.#logLoaded(loaded.collection, performance.now() - startedAt);
    } catch (error) {
      if (error === this.#options.stopping.reason) return;
      this.#fail(incarnation, failureOf(error));
    }
  }

  #logLoaded({ definition, rows, sequence }: Collection, durationMs: number): void {
    const { logger } = this.#options;
    const level = durationMs < LONG_LOAD_MS ? 'debug' : 'info';
    logger[level](
      {
        collection: definition.id,
        vectorCount: rows.liveCount,
        sequence,
        milliseconds: Math.round(durationMs),
      },
      'collection loaded',
    );
  }

  /** The collection as the store has it, which becomes unavailable when it turns out to be damaged. Throws `data_corrupt`. */
  async read(definition: CollectionDefinition, progress?: LoadProgress): Promise<Ready> {
    const { incarnation } = definition;
    const onDamaged = (error: SagittaError) => {
      // One that is still being loaded fails when it is loaded; one that was deleted is gone.
      if (this.findIncarnation(incarnation)?.state.kind === 'ready') this.#fail(incarnation, error);
    };
    const generation = this.#unloadCount;
    const blobNames = this.#blobsAtStart && (this.#blobsAtStart.get(incarnation) ?? []);
    const options = { ...this.#options, onDamaged, generation, blobNames };
    return { kind: 'ready', ...(await loadCollection(definition, options, progress)) };
  }

  /** Makes a collection unavailable. Does nothing for one that is gone. */
  #fail(incarnation: string, error: SagittaError): void {
    const entry = this.findIncarnation(incarnation);
    if (entry === undefined) return;
    const { definition, state } = entry;
    this.put({ definition, state: { kind: 'failed', error } });
    this.#options.logger.error(
      { collection: definition.id, code: error.code, err: error },
      `collection unavailable: ${error.message}`,
    );
    if (state.kind !== 'ready') return;
    void state.maintenance.close();
    void state.collection.closeWriter(error);
    this.#unloadSegments(state);
  }

  /** The collection with this id; aliases are not looked up. */
  get(id: string): CollectionEntry | undefined {
    return this.#entries.get(id);
  }

  /** The collection with this id, or the one that the alias of this name points to. */
  find(name: string): CollectionEntry | undefined {
    const alias = this.aliases.find(name);
    return alias === undefined ? this.#entries.get(name) : this.findIncarnation(alias.incarnation);
  }

  findIncarnation(incarnation: string): CollectionEntry | undefined {
    const id = this.#idOf.get(incarnation);
    const entry = id === undefined ? undefined : this.#entries.get(id);
    return entry?.definition.incarnation === incarnation ? entry : undefined;
  }

  /**
   * The collection that was found under the id before, by its incarnation; undefined when there was
   * none. Throws `collection_not_found` when it is gone or another one has taken its place.
   */
  requireEntry(id: string, incarnation: string | undefined): CollectionEntry {
    const entry = incarnation === undefined ? undefined : this.findIncarnation(incarnation);
    if (entry !== undefined) return entry;
    if (!this.#entries.has(id)) throw collectionNotFound(id);
    throw new SagittaError(
      'collection_not_found',
      'The collection was created or replaced while the request was read; send it again.',
    );
  }

  /**
   * Throws as `requireReady`, and NotHeldError for a collection that this process brings in, or is about to drop: it
   * has some of the rows, or a log that may be closed at any moment.
   */
  requireHeld(entry: CollectionEntry): Collection {
    const { id, incarnation } = entry.definition;
    if (!this.#options.logs.holds(incarnation)) throw new NotHeldError([id]);
    return this.requireReady(entry);
  }

  /**
   * Throws `starting` while the collection is being loaded, `collection_unavailable` when that failed, and
   * NotHeldError for one that other nodes hold.
   */
  requireReady({ definition: { id }, state }: CollectionEntry): Collection {
    if (state.kind === 'ready') return state.collection;
    if (state.kind === 'elsewhere') throw new NotHeldError([id]);
    if (state.kind === 'loading') throw notLoaded(id, state);
    throw new SagittaError(
      'collection_unavailable',
      `Collection "${id}" is unavailable: ${reasonForClients(state.error)}`,
    );
  }

  /** Throws as `requireReady`, and `collection_not_found`. */
  requireIncarnation(incarnation: string): Collection {
    const entry = this.findIncarnation(incarnation);
    if (entry === undefined) throw collectionNotFound(incarnation);
    return this.requireReady(entry);
  }

  /** The collection with this id or alias now. Throws as `requireReady`, and `collection_not_found`. */
  require(name: string): Collection {
    const entry = this.find(name);
    if (entry === undefined) throw collectionNotFound(name);
    return this.requireReady(entry);
  }

  /** The same, when the start has loaded it. Also throws as `whenLoaded`. */
  async requireLoaded(name: string): Promise<Collection> {
    const entry = this.find(name);
    if (entry === undefined) throw collectionNotFound(name);
    await this.whenLoaded(entry);
    return this.require(name);
  }

  /** Whether the collection still exists. */
  isServing(collection: Collection): boolean {
    const state = this.#entries.get(collection.definition.id)?.state;
    return state?.kind === 'ready' && state.collection === collection;
  }

  /** In the place of what there is of its incarnation. */
  put(entry: CollectionEntry): void {
    const { id, incarnation } = entry.definition;
    if (this.#idOf.get(incarnation) !== id) this.#removeId(incarnation);
    if (!this.#entries.has(id)) this.#sortedIds = null;
    this.#entries.set(id, entry);
    this.#idOf.set(incarnation, id);
    this.#sortedEntries = null;
  }

  /** Of an entry that was removed from the store: what is in memory and in files. */
  async forget({ definition: { incarnation }, state }: CollectionEntry): Promise<void> {
    this.#removeId(incarnation);
    this.#idOf.delete(incarnation);
    this.#sortedEntries = null;
    if (state.kind === 'ready') this.#unloadSegments(state);
    await this.removeBlobs(incarnation);
    collectGarbageSoon();
  }

  /** Another collection may have its id by now. */
  #removeId(incarnation: string): void {
    const id = this.#idOf.get(incarnation);
    if (id === undefined) return;
    if (this.#entries.get(id)?.definition.incarnation !== incarnation) return;
    this.#entries.delete(id);
    this.#sortedIds = null;
  }

  /** Ends the use of what the store has of a collection: its requests get `starting` until it is loaded again. */
  async unload(incarnation: string): Promise<void> {
    const entry = this.findIncarnation(incarnation);
    if (entry === undefined) return;
    await this.unloadTo(loading(), entry, loadedAnew(entry.definition.id));
  }

  /** The same with another state of the collection afterwards, and the error for the requests under way. */
  async unloadTo(
    next: CollectionEntry['state'],
    { definition, state }: CollectionEntry,
    error: SagittaError,
  ): Promise<void> {
    this.#unloadCount++;
    this.put({ definition, state: next });
    if (state.kind !== 'ready') return;
    await state.maintenance.close();
    await state.collection.closeWriter(error);
    this.#unloadSegments(state);
    collectGarbageSoon();
  }

  /** Reads a collection that stays, and whose writer was closed, from the store again. */
  async reload({ definition, state }: CollectionEntry): Promise<void> {
    if (state.kind !== 'ready') return;
    this.#unloadSegments(state);
    await this.load(definition.incarnation);
  }

  #unloadSegments({ collection }: Ready): void {
    for (const segment of collection.rows.segments) this.#options.unloadSegment(segment);
  }

  /**
   * Removes data of collections that were deleted by a process that died before their files were gone. Requests are
   * served meanwhile, so that further collections may be there by then.
   */
  async #removeLeftovers(): Promise<void> {
    const { store } = this.#options;
    const held = new Set<string>();
    const absent = new Set<string>();
    for (const { definition, state } of this.#entries.values()) {
      (state.kind === 'loading' ? held : absent).add(definition.incarnation);
    }
    // All of them before the first request: nothing else is written under these incarnations later.
    const left = [...store.list(keys.manifests)]
      .map(({ key }) => key[1]!)
      .filter((incarnation) => !held.has(incarnation));
    for (const incarnation of left) await store.commit(dataRemovalOf(incarnation));
    const blobs = new Map<string, string[]>();
    for (const name of await store.listBlobs()) {
      const incarnation = name.slice(0, name.indexOf('/'));
      if (held.has(incarnation)) {
        const names = blobs.get(incarnation);
        if (names === undefined) blobs.set(incarnation, [name]);
        else names.push(name);
      } else if (absent.has(incarnation) || this.findIncarnation(incarnation) === undefined) {
        await store.removeBlob(name);
      }
    }
    this.#blobsAtStart = blobs;
  }

  /** Those of one collection. */
  async removeBlobs(incarnation: string): Promise<void> {
    const { store } = this.#options;
    for (const name of await store.listBlobs(blobsOf(incarnation))) await store.removeBlob(name);
  }
}

/** In the order of their UTF-8 bytes, which is that of the store. */
function sortedByBytes(texts: Iterable<string>): string[] {
  return [...texts]
    .map((text) => ({ text, bytes: Buffer.from(text) }))
    .sort((a, b) => Buffer.compare(a.bytes, b.bytes))
    .map(({ text }) => text);
}

function stateOfAbsent({ id }: CollectionDefinition, logs: CommitLogs): CollectionEntry['state'] {
  return logs.isAlone ? { kind: 'failed', error: absent(id) } : ELSEWHERE;
}

function notLoaded(id: string, state: CollectionEntry['state']): SagittaError {
  const found = state.kind === 'loading' ? ` ${describeProgress(state.progress)}` : '';
  const detail = `Collection "${id}" is not ready.${found} Retry after 1 s.`;
  return new SagittaError('starting', detail, { retryAfterSeconds: 1 });
}

/** How far the load of a collection has come, as a sentence. */
export function describeProgress({ segmentCount, loadedSegmentCount }: LoadProgress): string {
  return segmentCount === 0
    ? 'It is waiting to be loaded, or its log is being read.'
    : `It is being loaded: ${loadedSegmentCount} of ${segmentCount} segments read; the log follows.`;
}

function loading(): CollectionEntry['state'] {
  return { kind: 'loading', progress: { segmentCount: 0, loadedSegmentCount: 0 } };
}

function failureOf(error: unknown): SagittaError {
  if (error instanceof SagittaError) return error;
  return new SagittaError('internal', 'The collection could not be loaded.', { cause: error });
}

/** What removes the rows of a collection from the store. */
export function dataRemovalOf(incarnation: string): readonly StoreOperation[] {
  const { prefixes, log } = storedParts(incarnation);
  return [
    ...prefixes.map((prefix): StoreOperation => ({ kind: 'removeUnder', prefix })),
    { kind: 'dropLog', log },
  ];
}

function loadedAnew(id: string): SagittaError {
  return new SagittaError(
    'starting',
    `Collection "${id}" is being loaded from a checkpoint of the cluster. Retry after 1 s.`,
    { retryAfterSeconds: 1 },
  );
}

/** For a service that is alone. */
function absent(id: string): SagittaError {
  return new SagittaError(
    'collection_unavailable',
    `Its rows are not in this data directory: the node of a cluster that it is from, or was copied from, did not hold the collection "${id}". Restore a backup of a node that did, or delete the collection.`,
  );
}

/** Why a collection is unavailable. Paths of the host are not shown: the log has them. */
export function reasonForClients(error: SagittaError): string {
  const namesPath = /(^|[\s"'(])([A-Za-z]:\\|\/)/.test(error.message);
  return namesPath
    ? 'Its data cannot be read. The log of the service has the cause. Run "sagitta verify" to find all damage, and restore a backup.'
    : error.message;
}
