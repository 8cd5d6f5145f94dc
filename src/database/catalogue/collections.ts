// The catalogue in memory: which collections and aliases exist, and for each collection whether it
// is loaded or why not. catalogue.ts changes it.

import { setTimeout as sleep } from 'node:timers/promises';
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

/** The share of its time limit that a request may wait for its collection; the rest is left for its answer. */
const WAITING_SHARE_MAX = 0.9;
/** The pause before a collection is loaded again whose files could not be read. */
const LOAD_AGAIN_MS = 1_000;
/** Loads that take longer are logged as info; there may be thousands of shorter ones. */
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
    /** Only other nodes of the cluster hold it. `isNew` means that it has no rows yet. */
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
  /** Ids by incarnation, because collections can be renamed. */
  readonly #idOf = new Map<string, string>();
  /** The sorted ids; null after an id was added or removed. */
  #sortedIds: readonly string[] | null = null;
  /** The entries in the order of their ids; null after a change. */
  #sortedEntries: readonly CollectionEntry[] | null = null;
  /** Counts unloaded collections, whose files may be replaced by others with the same names. */
  #unloadCount = 0;
  /** The collections that the start loads. */
  readonly #startQueue: LoadQueue;
  /** The blobs of each incarnation that the start loads, once they have been listed. */
  #blobsAtStart: ReadonlyMap<string, readonly string[]> | null = null;
  /** Resolves when the leftovers of earlier processes are removed; undefined if they are. */
  #cleaned: Promise<void> | undefined;

  /** Loads nothing yet. Throws `data_corrupt`. */
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
    this.#startQueue = new LoadQueue(incarnations, { load, stopping });
  }

  /** Collections that the start has not loaded yet. Collections that are loaded again later are not counted. */
  get startingCount(): number {
    return this.#startQueue.count;
  }

  get count(): number {
    return this.#entries.size;
  }

  /** Sums over all loaded collections. */
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
   * Loads all collections, those that requests wait for first, until the service stops. A collection that cannot be
   * loaded becomes unavailable, which is logged.
   */
  async loadAll(): Promise<void> {
    const startedAt = performance.now();
    const { count } = this.#startQueue;
    this.#cleaned = this.#removeLeftovers();
    await this.#cleaned;
    this.#cleaned = undefined;
    await this.#startQueue.run();
    this.#blobsAtStart = null;
    if (this.#options.stopping.aborted || count === 0) return;
    this.#options.logger.info(
      { count, milliseconds: Math.round(performance.now() - startedAt) },
      'collections loaded',
    );
    collectGarbageSoon();
  }

  /**
   * Resolves when blobs of collections that are not in the catalogue yet may be written;
   * undefined if they may be now.
   */
  whenCleaned(): Promise<void> | undefined {
    return this.#cleaned;
  }

  /**
   * Makes the load of a collection urgent and waits for it; undefined if it is loaded. Rejects with `starting` if it
   * takes too long, and with `stopping`.
   */
  whenLoaded(entry: CollectionEntry): Promise<void> | undefined {
    if (entry.state.kind !== 'loading') return undefined;
    const ended = this.#startQueue.whenEnded(entry.definition.incarnation);
    return ended && this.#waitForLoad(ended, entry);
  }

  async #waitForLoad(ended: Promise<void>, entry: CollectionEntry): Promise<void> {
    const { limits, stopping } = this.#options;
    if (!(await endsWithin(ended, limits.requestMsMax * WAITING_SHARE_MAX))) {
      throw notLoaded(entry.definition.id, entry.state);
    }
    stopping.throwIfAborted();
  }

  /** Loads a collection from the store, unless it was deleted. A failure is logged. */
  async load(incarnation: string): Promise<void> {
    const entry = this.findIncarnation(incarnation);
    if (entry === undefined) return;
    const startedAt = performance.now();
    try {
      const progress = entry.state.kind === 'loading' ? entry.state.progress : undefined;
      const loaded = await this.read(entry.definition, progress);
      // The collection may have been renamed or deleted during the load.
      const definition = this.findIncarnation(incarnation)?.definition;
      if (definition === undefined) {
        await loaded.maintenance.close();
        return;
      }
      loaded.collection.redefine(definition);
      this.put({ definition, state: loaded });
      // Damage may have been found during the load.
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

  /**
   * Reads a collection from the store. It becomes unavailable if damage is found later.
   * Rejects with `data_corrupt`.
   */
  async read(definition: CollectionDefinition, progress?: LoadProgress): Promise<Ready> {
    const { incarnation } = definition;
    const onDamaged = (error: SagittaError) => {
      // A collection that is still being loaded fails at the end of its load.
      if (this.findIncarnation(incarnation)?.state.kind !== 'ready') return;
      if (error.code === 'collection_unavailable') void this.#loadLater(incarnation, error);
      else this.#fail(incarnation, error);
    };
    const generation = this.#unloadCount;
    const blobNames = this.#blobsAtStart && (this.#blobsAtStart.get(incarnation) ?? []);
    const options = { ...this.#options, onDamaged, generation, blobNames };
    return { kind: 'ready', ...(await loadCollection(definition, options, progress)) };
  }

  /** Loads a collection again whose files could not be read for the moment. What was made from them is not used. */
  async #loadLater(incarnation: string, error: SagittaError): Promise<void> {
    const { logger, stopping } = this.#options;
    const collection = this.#idOf.get(incarnation);
    logger.warn(
      { collection, err: error },
      'a collection is loaded again: its files were unavailable',
    );
    await this.unload(incarnation);
    const isStopping = await sleep(LOAD_AGAIN_MS, false, { signal: stopping }).catch(() => true);
    if (!isStopping) await this.load(incarnation);
  }

  /** Makes a collection unavailable, unless it was deleted. */
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

  /** The collection with this id, which is not an alias. */
  get(id: string): CollectionEntry | undefined {
    return this.#entries.get(id);
  }

  /** The collection with this id or alias. */
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
   * The collection that a request looked up earlier, by its incarnation, which is undefined if none existed. Throws
   * `collection_not_found` if it was deleted or replaced.
   */
  requireEntry(id: string, incarnation: string | undefined): CollectionEntry {
    const entry = incarnation === undefined ? undefined : this.findIncarnation(incarnation);
    if (entry !== undefined) return entry;
    if (!this.#entries.has(id)) throw collectionNotFound(id);
    throw new SagittaError(
      'collection_not_found',
      'The collection was created or replaced while the request was read; send the request again.',
    );
  }

  /**
   * Throws like `requireReady`, and `no_holder` for a collection that this node is loading from others or about to
   * drop: it has only some of the rows, or a log that may be closed at any moment.
   */
  requireHeld(entry: CollectionEntry): Collection {
    const { id, incarnation } = entry.definition;
    if (!this.#options.logs.holds(incarnation)) throw notHeld(id);
    return this.requireReady(entry);
  }

  /**
   * Throws `starting` while the collection is being loaded, `collection_unavailable` if that failed, and `no_holder`
   * if only other nodes hold it.
   */
  requireReady({ definition: { id }, state }: CollectionEntry): Collection {
    if (state.kind === 'ready') return state.collection;
    if (state.kind === 'elsewhere') throw notHeld(id);
    if (state.kind === 'loading') throw notLoaded(id, state);
    throw new SagittaError(
      'collection_unavailable',
      `Collection "${id}" is unavailable: ${reasonForClients(state.error)}`,
    );
  }

  /** Throws like `requireReady`, and `collection_not_found`. */
  requireIncarnation(incarnation: string): Collection {
    const entry = this.findIncarnation(incarnation);
    if (entry === undefined) throw collectionNotFound(incarnation);
    return this.requireReady(entry);
  }

  /** The collection with this id or alias. Throws like `requireReady`, and `collection_not_found`. */
  require(name: string): Collection {
    const entry = this.find(name);
    if (entry === undefined) throw collectionNotFound(name);
    return this.requireReady(entry);
  }

  /** The collection with this id or alias, once it is loaded. Rejects like `require` and `whenLoaded`. */
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

  /** Adds an entry, or replaces that of its incarnation. */
  put(entry: CollectionEntry): void {
    const { id, incarnation } = entry.definition;
    if (this.#idOf.get(incarnation) !== id) this.#removeId(incarnation);
    if (!this.#entries.has(id)) this.#sortedIds = null;
    this.#entries.set(id, entry);
    this.#idOf.set(incarnation, id);
    this.#sortedEntries = null;
  }

  /** Removes an entry from memory and deletes its files, after it was removed from the store. */
  async forget({ definition: { incarnation }, state }: CollectionEntry): Promise<void> {
    this.#removeId(incarnation);
    this.#idOf.delete(incarnation);
    this.#sortedEntries = null;
    if (state.kind === 'ready') this.#unloadSegments(state);
    await this.removeBlobs(incarnation);
    collectGarbageSoon();
  }

  /** Removes the id of an incarnation, unless another collection has it now. */
  #removeId(incarnation: string): void {
    const id = this.#idOf.get(incarnation);
    if (id === undefined) return;
    if (this.#entries.get(id)?.definition.incarnation !== incarnation) return;
    this.#entries.delete(id);
    this.#sortedIds = null;
  }

  /**
   * Unloads a collection so that its data in the store can be replaced. Requests get `starting` until it is loaded
   * again.
   */
  async unload(incarnation: string): Promise<void> {
    const entry = this.findIncarnation(incarnation);
    if (entry === undefined) return;
    await this.unloadTo(loading(), entry, loadedAgain(entry.definition.id));
  }

  /** Unloads a collection and sets its next state; writes in progress reject with `error`. */
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

  /** Loads a collection again after its writer was closed. */
  async reload({ definition, state }: CollectionEntry): Promise<void> {
    if (state.kind !== 'ready') return;
    this.#unloadSegments(state);
    await this.load(definition.incarnation);
  }

  #unloadSegments({ collection }: Ready): void {
    for (const segment of collection.rows.segments) this.#options.unloadSegment(segment);
  }

  /**
   * Removes data of deleted collections that earlier processes did not finish removing. Requests are served during
   * this, so that new collections may be created.
   */
  async #removeLeftovers(): Promise<void> {
    const { store } = this.#options;
    const held = new Set<string>();
    const absent = new Set<string>();
    for (const { definition, state } of this.#entries.values()) {
      (state.kind === 'loading' ? held : absent).add(definition.incarnation);
    }
    // Listed before the first request, so that no data of a new collection is among them.
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

  async removeBlobs(incarnation: string): Promise<void> {
    const { store } = this.#options;
    for (const name of await store.listBlobs(blobsOf(incarnation))) await store.removeBlob(name);
  }
}

/** Sorts by UTF-8 bytes, like the store. */
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
  const found = state.kind === 'loading' ? ` ${describeLoad(state.progress)}` : '';
  const detail = `Collection "${id}" is not ready.${found} Retry after 1 s.`;
  return new SagittaError('starting', detail, { retryAfterSeconds: 1 });
}

/** The progress of a load, as a sentence. */
export function describeLoad({ segmentCount, loadedSegmentCount }: LoadProgress): string {
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

/** The operations that remove the rows of a collection from the store. */
export function dataRemovalOf(incarnation: string): readonly StoreOperation[] {
  const { prefixes, log } = storedParts(incarnation);
  return [
    ...prefixes.map((prefix): StoreOperation => ({ kind: 'removeUnder', prefix })),
    { kind: 'dropLog', log },
  ];
}

function loadedAgain(id: string): SagittaError {
  return new SagittaError(
    'starting',
    `Collection "${id}" is being loaded from a checkpoint of the cluster. Retry after 1 s.`,
    { retryAfterSeconds: 1 },
  );
}

/** The error of a collection whose rows only other nodes hold. Requests are sent to these nodes before they get here. */
export function notHeld(id: string): SagittaError {
  return new SagittaError('no_holder', `This node does not hold "${id}". Retry after 1 s.`, {
    retryAfterSeconds: 1,
  });
}

/** The error of a collection whose rows are absent although the service is not part of a cluster. */
function absent(id: string): SagittaError {
  return new SagittaError(
    'collection_unavailable',
    `The rows of collection "${id}" are not in this data directory, because the node of a cluster that the directory comes from did not hold them. Restore a backup of a node that did, or delete the collection.`,
  );
}

/** Why a collection is unavailable. Paths of the host are not shown; the log contains them. */
export function reasonForClients(error: SagittaError): string {
  const namesPath = /(^|[\s"'(])([A-Za-z]:\\|\/)/.test(error.message);
  return namesPath
    ? 'Its data cannot be read. The log of the service has the cause. Run "sagitta verify" to find all damage, and restore a backup.'
    : error.message;
}
