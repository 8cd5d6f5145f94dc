// Which collections there are and what they are called, in memory, and what is loaded of each: all of it, or why not. The
// catalogue (catalogue.ts) changes which there are.

import { collectionNotFound, SagittaError } from '../common/errors.js';
import { collectGarbageSoon } from '../common/garbage.js';
import type { StoreOperation } from '../storage/store.js';
import { Aliases } from './aliases.js';
import type { Collection } from './collection/collection.js';
import type { Maintenance } from './collection/maintenance.js';
import { type CollectionDefinition, decodeDefinition } from './collection/manifest.js';
import { type LoadOptions, type LoadProgress, loadCollection } from './collection/recovery.js';
import { ElsewhereError } from './elsewhere.js';
import { blobsOf, keys, storedParts } from './keys.js';

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
  /** The entries in id order; null after a change. */
  #sortedEntries: readonly CollectionEntry[] | null = null;
  /** Collections that were unloaded, so that others may have taken the places of their files. */
  #unloadCount = 0;
  #isLoaded = false;

  /** Throws `data_corrupt`. Nothing is loaded yet. */
  constructor(options: LoadOptions) {
    this.#options = options;
    this.aliases = new Aliases(options.store);
    for (const { key, value } of options.store.list(keys.collections)) {
      const definition = decodeDefinition(value, key[1]!);
      this.put({ definition, state: this.#stateAtStart(definition) });
    }
    this.#isLoaded = this.entries.every(({ state }) => state.kind !== 'loading');
  }

  #stateAtStart({ id, incarnation }: CollectionDefinition): CollectionEntry['state'] {
    const { store, logs } = this.#options;
    if (store.get(keys.absence(incarnation)) === undefined) return loading();
    return logs.isAlone ? { kind: 'failed', error: absent(id) } : ELSEWHERE;
  }

  /** Whether everything was loaded once: a collection may be loaded anew later, while the others are served. */
  get isLoaded(): boolean {
    return this.#isLoaded;
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
    this.#sortedEntries ??= [...this.#entries.values()].sort((a, b) =>
      Buffer.compare(Buffer.from(a.definition.id), Buffer.from(b.definition.id)),
    );
    return this.#sortedEntries;
  }

  /**
   * Loads every collection, until the service stops. A failure is logged, and its collection becomes
   * unavailable.
   */
  async loadAll(): Promise<void> {
    await this.#removeLeftovers();
    const isEmpty = this.#entries.size === 0;
    for (const { definition, state } of this.#entries.values()) {
      if (state.kind === 'loading') await this.load(definition.incarnation);
      if (this.#options.stopping.aborted) return;
    }
    this.#isLoaded = true;
    if (!isEmpty) collectGarbageSoon();
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
      this.#options.logger.info(
        {
          collection: definition.id,
          vectorCount: loaded.collection.rows.liveCount,
          sequence: loaded.collection.sequence,
          milliseconds: Math.round(performance.now() - startedAt),
        },
        'collection loaded',
      );
    } catch (error) {
      if (error === this.#options.stopping.reason) return;
      this.#fail(incarnation, failureOf(error));
    }
  }

  /** The collection as the store has it, which becomes unavailable when it turns out to be damaged. Throws `data_corrupt`. */
  async read(definition: CollectionDefinition, progress?: LoadProgress): Promise<Ready> {
    const { incarnation } = definition;
    const onDamaged = (error: SagittaError) => {
      // One that is still being loaded fails when it is loaded; one that was deleted is gone.
      if (this.findIncarnation(incarnation)?.state.kind === 'ready') this.#fail(incarnation, error);
    };
    const options = { ...this.#options, onDamaged, generation: this.#unloadCount };
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
   * Throws as `requireReady`, and ElsewhereError for a collection that this process brings in, or is about to drop: it
   * has some of the rows, or a log that may be closed at any moment.
   */
  requireHeld(entry: CollectionEntry): Collection {
    const { id, incarnation } = entry.definition;
    if (!this.#options.logs.holds(incarnation)) throw new ElsewhereError([id]);
    return this.requireReady(entry);
  }

  /**
   * Throws `starting` while the collection is being loaded, `collection_unavailable` when that failed, and
   * ElsewhereError for one that other nodes hold.
   */
  requireReady({ definition: { id }, state }: CollectionEntry): Collection {
    if (state.kind === 'ready') return state.collection;
    if (state.kind === 'elsewhere') throw new ElsewhereError([id]);
    if (state.kind === 'loading') {
      throw new SagittaError('starting', `Collection "${id}" is being loaded. Retry after 1 s.`, {
        retryAfterSeconds: 1,
      });
    }
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

  /** Whether the collection still exists. */
  isServing(collection: Collection): boolean {
    const state = this.#entries.get(collection.definition.id)?.state;
    return state?.kind === 'ready' && state.collection === collection;
  }

  /** In the place of what there is of its incarnation. */
  put(entry: CollectionEntry): void {
    const { id, incarnation } = entry.definition;
    if (this.#idOf.get(incarnation) !== id) this.#removeId(incarnation);
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
    if (this.#entries.get(id)?.definition.incarnation === incarnation) this.#entries.delete(id);
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

  /** Removes data of collections that were deleted by a process that died before their files were gone. */
  async #removeLeftovers(): Promise<void> {
    const held = [...this.#entries.values()].filter(({ state }) => state.kind === 'loading');
    const incarnations = new Set(held.map(({ definition }) => definition.incarnation));
    for (const { key } of [...this.#options.store.list(keys.manifests)]) {
      const incarnation = key[1]!;
      if (incarnations.has(incarnation)) continue;
      await this.#options.store.commit(dataRemovalOf(incarnation));
    }
    await this.#removeBlobs('', (name) => !incarnations.has(name.slice(0, name.indexOf('/'))));
  }

  /** Those of one collection. */
  async removeBlobs(incarnation: string): Promise<void> {
    await this.#removeBlobs(blobsOf(incarnation), () => true);
  }

  async #removeBlobs(prefix: string, isGone: (name: string) => boolean): Promise<void> {
    for (const name of await this.#options.store.listBlobs(prefix)) {
      if (isGone(name)) await this.#options.store.removeBlob(name);
    }
  }
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
