// The catalogue: which collections exist, on disk and in memory. Creating, changing and deleting
// collections happens one at a time; everything else is the business of each collection.

import { randomUUID } from 'node:crypto';
import { collectionNotFound, field, SagittaError, validationError } from '../common/errors.js';
import { collectGarbageSoon } from '../common/garbage.js';
import type { StoreOperation } from '../storage/store.js';
import type { CollectionInput } from './api.js';
import type { Collection } from './collection/collection.js';
import type { Maintenance } from './collection/maintenance.js';
import {
  type CollectionDefinition,
  decodeJson,
  encodeJson,
  FORMAT_VERSION,
} from './collection/manifest.js';
import { type LoadOptions, type LoadProgress, loadCollection } from './collection/recovery.js';
import { blobsOf, keys, logName } from './keys.js';
import { Lock } from './lock.js';

export interface CollectionEntry {
  readonly definition: CollectionDefinition;
  readonly state:
    | { readonly kind: 'loading'; readonly progress: LoadProgress }
    | { readonly kind: 'ready'; readonly collection: Collection; readonly maintenance: Maintenance }
    | { readonly kind: 'failed'; readonly error: SagittaError };
}

export class Catalogue {
  readonly #options: LoadOptions;
  readonly #entries = new Map<string, CollectionEntry>();
  /** The entries in id order; null after a change. */
  #sortedEntries: readonly CollectionEntry[] | null = null;
  readonly #lock = new Lock();

  constructor(options: LoadOptions) {
    this.#options = options;
    for (const { key, value } of options.store.list(keys.collections)) {
      const id = key[1]!;
      const definition = decodeJson<CollectionDefinition>(
        value,
        `The catalogue's entry of collection "${id}"`,
      );
      const progress = { segmentCount: 0, loadedSegmentCount: 0 };
      this.#put(id, { definition, state: { kind: 'loading', progress } });
    }
  }

  get isLoaded(): boolean {
    for (const { state } of this.#entries.values()) if (state.kind === 'loading') return false;
    return true;
  }

  /** Sums over the collections that are loaded. */
  storageUse(): { segmentCount: number; rowCount: number; logBytes: number } {
    const sums = { segmentCount: 0, rowCount: 0, logBytes: 0 };
    for (const { definition, state } of this.#entries.values()) {
      if (state.kind !== 'ready') continue;
      const { segments } = state.collection.rows;
      sums.segmentCount += segments.length;
      for (const { rowCount } of segments) sums.rowCount += rowCount;
      sums.logBytes += this.#options.store.logBytes(logName(definition.incarnation));
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

  /** Loads every collection. A failure is logged, and its collection becomes unavailable. */
  async load(): Promise<void> {
    await this.#removeLeftovers();
    for (const [id, { definition, state }] of this.#entries) {
      const startedAt = performance.now();
      const progress = state.kind === 'loading' ? state.progress : undefined;
      try {
        const loaded = await loadCollection(definition, this.#loadOptions(definition), progress);
        this.#put(id, { definition, state: { kind: 'ready', ...loaded } });
        // Damage that was found while it was loaded.
        loaded.collection.requireIntact();
        this.#options.logger.info(
          {
            collection: id,
            vectorCount: loaded.collection.rows.liveCount,
            sequence: loaded.collection.sequence,
            milliseconds: Math.round(performance.now() - startedAt),
          },
          'collection loaded',
        );
      } catch (error) {
        const failure =
          error instanceof SagittaError
            ? error
            : new SagittaError('internal', 'The collection could not be loaded.', { cause: error });
        this.#fail(definition, failure);
      }
    }
    collectGarbageSoon();
  }

  /** Makes a collection unavailable. */
  #fail(definition: CollectionDefinition, error: SagittaError): void {
    const { id } = definition;
    const state = this.#entries.get(id)?.state;
    this.#put(id, { definition, state: { kind: 'failed', error } });
    this.#options.logger.error(
      { collection: id, code: error.code, err: error },
      `collection unavailable: ${error.message}`,
    );
    if (state?.kind !== 'ready') return;
    void state.maintenance.close();
    void state.collection.closeWriter(error);
    for (const { key } of state.collection.rows.segments) this.#options.unloadBlock(key);
  }

  #loadOptions({ id, incarnation }: CollectionDefinition): Parameters<typeof loadCollection>[1] {
    const onDamaged = (error: SagittaError) => {
      const entry = this.#entries.get(id);
      // One that is still being loaded fails when it is loaded; one that was deleted is gone.
      if (entry?.state.kind !== 'ready' || entry.definition.incarnation !== incarnation) return;
      this.#fail(entry.definition, error);
    };
    return { ...this.#options, onDamaged };
  }

  find(id: string): CollectionEntry | undefined {
    return this.#entries.get(id);
  }

  /**
   * The collection that was found under the id before, by its incarnation; undefined when there was
   * none. Throws `collection_not_found` when it is gone or another one has taken its place.
   */
  requireEntry(id: string, incarnation: string | undefined): CollectionEntry {
    const entry = this.#entries.get(id);
    if (entry === undefined) throw collectionNotFound(id);
    if (entry.definition.incarnation === incarnation) return entry;
    throw new SagittaError(
      'collection_not_found',
      'The collection was created or replaced while the request was read; send it again.',
    );
  }

  /** Throws `starting` while the collection is being loaded, `collection_unavailable` when that failed. */
  requireReady({ definition: { id }, state }: CollectionEntry): Collection {
    if (state.kind === 'ready') return state.collection;
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

  /** The collection that has this id now. Throws as `requireReady`, and `collection_not_found`. */
  require(id: string): Collection {
    const entry = this.#entries.get(id);
    if (entry === undefined) throw collectionNotFound(id);
    return this.requireReady(entry);
  }

  /** Whether the collection still exists. */
  isServing(collection: Collection): boolean {
    const state = this.#entries.get(collection.definition.id)?.state;
    return state?.kind === 'ready' && state.collection === collection;
  }

  create(
    input: CollectionInput,
    options: {
      ifNotExists: boolean;
      alsoCommit: (entry: CollectionEntry) => readonly StoreOperation[];
    },
  ): Promise<{ entry: CollectionEntry; created: boolean }> {
    return this.#lock.run(async () => {
      const id = input.id ?? randomUUID();
      const existing = this.#entries.get(id);
      if (existing !== undefined) {
        checkExisting(existing.definition, input, options.ifNotExists);
        return { entry: existing, created: false };
      }
      const { collectionsMax } = this.#options.limits;
      if (this.#entries.size >= collectionsMax) {
        const detail = `There are ${this.#entries.size} collections, the limit is ${collectionsMax}.`;
        const bound = { expected: collectionsMax, actual: this.#entries.size + 1 };
        throw validationError([{ location: field(), code: 'limit_exceeded', detail, ...bound }]);
      }
      const now = this.#options.clock.now();
      const definition: CollectionDefinition = {
        formatVersion: FORMAT_VERSION,
        incarnation: randomUUID(),
        id,
        dimension: input.dimension,
        metric: input.metric,
        description: input.description,
        labels: input.labels,
        createdAtMs: now,
        updatedAtMs: now,
      };
      const loaded = await loadCollection(definition, this.#loadOptions(definition));
      const entry: CollectionEntry = { definition, state: { kind: 'ready', ...loaded } };
      await this.#options.store.commit([
        { kind: 'put', key: keys.collection(id), value: encodeJson(definition) },
        ...options.alsoCommit(entry),
      ]);
      this.#put(id, entry);
      return { entry, created: true };
    });
  }

  /** Throws `collection_not_found`. */
  update(
    id: string,
    incarnation: string | undefined,
    change: {
      description?: string | null | undefined;
      labels?: Readonly<Record<string, string>> | undefined;
    },
  ): Promise<CollectionEntry> {
    return this.#lock.run(async () => {
      const entry = this.requireEntry(id, incarnation);
      const definition: CollectionDefinition = {
        ...entry.definition,
        description:
          change.description === undefined ? entry.definition.description : change.description,
        labels: change.labels ?? entry.definition.labels,
        updatedAtMs: this.#options.clock.now(),
      };
      await this.#options.store.commit([
        { kind: 'put', key: keys.collection(id), value: encodeJson(definition) },
      ]);
      const updated = { ...entry, definition };
      if (entry.state.kind === 'ready') entry.state.collection.redefine(definition);
      this.#put(id, updated);
      return updated;
    });
  }

  /** Also deletes a collection that cannot be served. Throws `collection_not_found`, `starting`. */
  delete(id: string, expected: string | undefined): Promise<{ vectorCount: number }> {
    return this.#lock.run(async () => {
      const entry = this.requireEntry(id, expected);
      const { state } = entry;
      const { incarnation } = entry.definition;
      if (state.kind === 'loading') this.requireReady(entry);
      let vectorCount = 0;
      if (state.kind === 'ready') {
        // Writes under way end first, so that every acknowledged write was made; later ones are refused.
        await state.maintenance.close();
        await state.collection.closeWriter(
          new SagittaError('collection_not_found', `Collection "${id}" was deleted.`),
        );
        vectorCount = state.collection.rows.liveCount;
      }
      await this.#options.store.commit([
        { kind: 'remove', key: keys.collection(id) },
        { kind: 'remove', key: keys.manifest(incarnation) },
        { kind: 'removeUnder', prefix: keys.deletionsOfCollection(incarnation) },
        { kind: 'dropLog', log: logName(incarnation) },
      ]);
      this.#entries.delete(id);
      this.#sortedEntries = null;
      if (state.kind === 'ready') {
        for (const { key } of state.collection.rows.segments) this.#options.unloadBlock(key);
      }
      await this.#removeBlobs(blobsOf(incarnation), () => true);
      collectGarbageSoon();
      return { vectorCount };
    });
  }

  /** Finishes the writes under way, then checkpoints collections with a long log. */
  async close(): Promise<void> {
    const stopping = new SagittaError('stopping', 'The service is stopping.', {
      retryAfterSeconds: 5,
    });
    await this.#lock.run(async () => {
      for (const { state } of this.#entries.values()) {
        if (state.kind !== 'ready') continue;
        await state.collection.closeWriter(stopping);
        await state.maintenance.closeWithCheckpoint();
      }
    });
  }

  /** Removes data of collections that were deleted by a process that died before their files were gone. */
  async #removeLeftovers(): Promise<void> {
    const incarnations = new Set(
      [...this.#entries.values()].map(({ definition }) => definition.incarnation),
    );
    for (const { key } of [...this.#options.store.list(keys.manifests)]) {
      const incarnation = key[1]!;
      if (incarnations.has(incarnation)) continue;
      await this.#options.store.commit([
        { kind: 'remove', key },
        { kind: 'removeUnder', prefix: keys.deletionsOfCollection(incarnation) },
        { kind: 'dropLog', log: logName(incarnation) },
      ]);
    }
    await this.#removeBlobs('', (name) => !incarnations.has(name.slice(0, name.indexOf('/'))));
  }

  async #removeBlobs(prefix: string, isGone: (name: string) => boolean): Promise<void> {
    for (const name of await this.#options.store.listBlobs(prefix)) {
      if (isGone(name)) await this.#options.store.removeBlob(name);
    }
  }

  #put(id: string, entry: CollectionEntry): void {
    this.#entries.set(id, entry);
    this.#sortedEntries = null;
  }
}

/** Why a collection is unavailable. Paths of the host are not shown: the log has them. */
export function reasonForClients(error: SagittaError): string {
  const namesPath = /(^|[\s"'(])([A-Za-z]:\\|\/)/.test(error.message);
  return namesPath
    ? 'Its data cannot be read. The log of the service has the cause.'
    : error.message;
}

function checkExisting(
  existing: CollectionDefinition,
  input: CollectionInput,
  ifNotExists: boolean,
): void {
  if (!ifNotExists) {
    throw new SagittaError('collection_exists', `Collection "${input.id}" already exists.`);
  }
  if (existing.dimension === input.dimension && existing.metric === input.metric) return;
  throw new SagittaError(
    'collection_exists',
    `Collection "${input.id}" already exists with dimension ${existing.dimension} and metric ${existing.metric}; the request has ${input.dimension} and ${input.metric}.`,
  );
}
