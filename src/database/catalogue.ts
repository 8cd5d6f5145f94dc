// The catalogue: which collections exist and what they are called, on disk and in memory. Creating,
// changing and deleting collections and aliases happens one at a time; everything else is the business
// of each collection.

import { randomUUID } from 'node:crypto';
import {
  assert,
  collectionNotFound,
  field,
  type IssueLocation,
  SagittaError,
  validationError,
} from '../common/errors.js';
import { collectGarbageSoon } from '../common/garbage.js';
import type { StoreOperation } from '../storage/store.js';
import { type AliasEntry, Aliases, aliasOperations } from './aliases.js';
import type {
  AliasChange,
  CloneInput,
  CollectionChange,
  CollectionInput,
  CollectionShape,
} from './api.js';
import type { Collection } from './collection/collection.js';
import { declareTypes } from './collection/declared-types.js';
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

export interface StorageUse {
  readonly segmentCount: number;
  readonly rowCount: number;
  readonly fileBytes: number;
  readonly logBytes: number;
}

/** Aliases that an error names; the list of aliases has all. */
const ALIASES_NAMED_MAX = 3;

/** Operations that are committed in one transaction with a change of a collection. */
export type CommitWithEntry = (entry: CollectionEntry) => readonly StoreOperation[];

export class Catalogue {
  readonly #options: LoadOptions;
  readonly #aliases: Aliases;
  readonly #entries = new Map<string, CollectionEntry>();
  /** Ids by incarnation, since a collection may get another id. */
  readonly #idOf = new Map<string, string>();
  /** The ids of clones that are being made. */
  readonly #reservedIds = new Set<string>();
  /** The entries in id order; null after a change. */
  #sortedEntries: readonly CollectionEntry[] | null = null;
  readonly #lock = new Lock();

  constructor(options: LoadOptions) {
    this.#options = options;
    this.#aliases = new Aliases(options.store);
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
    for (const segment of state.collection.rows.segments) this.#options.unloadSegment(segment);
  }

  #loadOptions({ incarnation }: CollectionDefinition): Parameters<typeof loadCollection>[1] {
    const onDamaged = (error: SagittaError) => {
      const entry = this.findIncarnation(incarnation);
      // One that is still being loaded fails when it is loaded; one that was deleted is gone.
      if (entry?.state.kind === 'ready') this.#fail(entry.definition, error);
    };
    return { ...this.#options, onDamaged };
  }

  /** The collection with this id, or the one that the alias of this name points to. */
  find(name: string): CollectionEntry | undefined {
    const alias = this.#aliases.find(name);
    return alias === undefined ? this.#entries.get(name) : this.findIncarnation(alias.incarnation);
  }

  findIncarnation(incarnation: string): CollectionEntry | undefined {
    const id = this.#idOf.get(incarnation);
    return id === undefined ? undefined : this.#entries.get(id);
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

  create(
    input: CollectionInput,
    options: { ifNotExists: boolean; alsoCommit: CommitWithEntry },
  ): Promise<{ entry: CollectionEntry; created: boolean }> {
    return this.#lock.run(async () => {
      const id = input.id ?? randomUUID();
      const existing = this.find(id);
      if (existing !== undefined && options.ifNotExists) {
        checkExisting(existing.definition, input);
        return { entry: existing, created: false };
      }
      this.#requireFree(id);
      this.#requireRoom();
      const now = this.#options.clock.now();
      const definition: CollectionDefinition = {
        formatVersion: FORMAT_VERSION,
        incarnation: randomUUID(),
        id,
        dimension: input.dimension,
        metric: input.metric,
        ...(input.vectors === undefined ? {} : { vectors: input.vectors }),
        ...(input.sparseVectors === undefined ? {} : { sparseVectors: input.sparseVectors }),
        ...(input.multiVectors === undefined ? {} : { multiVectors: input.multiVectors }),
        description: input.description,
        labels: input.labels,
        text: input.text,
        ttlSeconds: input.ttlSeconds ?? null,
        schema: input.schema ?? null,
        embedding: input.embedding ?? null,
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

  /** Throws `collection_exists` when a collection or an alias has the id, or a clone is about to. */
  #requireFree(id: string): void {
    if (this.#aliases.find(id) !== undefined) {
      throw new SagittaError('collection_exists', `"${id}" is the name of an alias.`);
    }
    if (this.#entries.has(id)) {
      throw new SagittaError('collection_exists', `Collection "${id}" already exists.`);
    }
    if (this.#reservedIds.has(id)) {
      throw new SagittaError('collection_exists', `Collection "${id}" is being made by a clone.`);
    }
  }

  /** Throws `limit_exceeded`. */
  #requireRoom(): void {
    const { collectionsMax } = this.#options.limits;
    const count = this.#entries.size + this.#reservedIds.size;
    if (count < collectionsMax) return;
    const detail = `There are ${count} collections, the limit is ${collectionsMax}.`;
    const bound = { expected: collectionsMax, actual: count + 1 };
    throw validationError([{ location: field(), code: 'limit_exceeded', detail, ...bound }]);
  }

  /**
   * Makes a collection with the vectors that another one has now. Other changes of the catalogue do not
   * wait for it. Throws as `requireReady`, `collection_not_found`, `collection_exists` and `limit_exceeded`.
   */
  async clone(
    source: { readonly id: string; readonly incarnation: string | undefined },
    input: CloneInput,
    alsoCommit: CommitWithEntry,
  ): Promise<CollectionEntry> {
    const id = input.id ?? randomUUID();
    const incarnation = randomUUID();
    const maintenance = await this.#lock.run(async () => {
      const entry = this.requireEntry(source.id, source.incarnation);
      this.requireReady(entry);
      assert(entry.state.kind === 'ready', 'the collection is ready');
      this.#requireFree(id);
      this.#requireRoom();
      this.#reservedIds.add(id);
      return entry.state.maintenance;
    });
    try {
      const copied = await maintenance.copyTo(incarnation);
      const definition = this.#cloned(copied, { ...input, id, incarnation });
      const loaded = await loadCollection(definition, this.#loadOptions(definition));
      const entry: CollectionEntry = { definition, state: { kind: 'ready', ...loaded } };
      await this.#lock.run(async () => {
        await this.#options.store.commit([
          { kind: 'put', key: keys.collection(id), value: encodeJson(definition) },
          ...alsoCommit(entry),
        ]);
        this.#put(id, entry);
      });
      return entry;
    } catch (error) {
      await this.#removeData({ id, incarnation });
      throw error;
    } finally {
      this.#reservedIds.delete(id);
    }
  }

  #cloned(
    source: CollectionDefinition,
    input: CloneInput & Pick<CollectionDefinition, 'id' | 'incarnation'>,
  ): CollectionDefinition {
    const { id, incarnation, description = source.description, labels = source.labels } = input;
    const now = this.#options.clock.now();
    const times = { createdAtMs: now, updatedAtMs: now };
    return { ...source, id, incarnation, description, labels, ...times };
  }

  /** Throws `collection_not_found` and `collection_exists`. */
  rename(
    source: { readonly id: string; readonly incarnation: string | undefined },
    id: string,
    alsoCommit: CommitWithEntry,
  ): Promise<CollectionEntry> {
    return this.#lock.run(async () => {
      const entry = this.requireEntry(source.id, source.incarnation);
      if (entry.state.kind === 'loading') this.requireReady(entry);
      this.#requireFree(id);
      const oldId = entry.definition.id;
      const definition = { ...entry.definition, id, updatedAtMs: this.#options.clock.now() };
      const renamed: CollectionEntry = { ...entry, definition };
      await this.#options.store.commit([
        { kind: 'remove', key: keys.collection(oldId) },
        { kind: 'put', key: keys.collection(id), value: encodeJson(definition) },
        ...alsoCommit(renamed),
      ]);
      if (entry.state.kind === 'ready') entry.state.collection.redefine(definition);
      this.#entries.delete(oldId);
      this.#put(id, renamed);
      return renamed;
    });
  }

  findAlias(name: string): AliasEntry | undefined {
    return this.#aliases.find(name);
  }

  /** In no particular order. */
  get aliases(): Iterable<AliasEntry> {
    return this.#aliases.entries;
  }

  /**
   * Makes, moves and removes aliases, all or none. `authorize` is called with every collection that an
   * alias points to before or after the change, and with the caller's name for it. Throws
   * `collection_not_found`, `collection_exists` for the id of a collection, `limit_exceeded`, and what
   * `authorize` throws.
   */
  setAliases(
    changes: readonly AliasChange[],
    options: {
      authorize: (collectionId: string, name: string) => void;
      locate: (index: number, member: 'name' | 'collection') => IssueLocation;
    },
  ): Promise<readonly AliasEntry[]> {
    return this.#lock.run(async () => {
      const targets = changes.map(({ name, collection }, index) => {
        const before = this.find(name);
        if (this.#entries.has(name) || this.#reservedIds.has(name)) {
          const detail = `"${name}" is the id of a collection; an alias needs a name of its own.`;
          const location = options.locate(index, 'name');
          throw validationError([{ location, code: 'collection_exists', detail }]);
        }
        if (before !== undefined) options.authorize(before.definition.id, name);
        if (collection === null) return { name, incarnation: null };
        const after = this.find(collection);
        options.authorize(after?.definition.id ?? collection, collection);
        if (after !== undefined) return { name, incarnation: after.definition.incarnation };
        const detail = `There is no collection with the id "${collection}".`;
        const location = options.locate(index, 'collection');
        throw validationError([{ location, code: 'collection_not_found', detail }]);
      });
      const planned = this.#aliases.plan(targets, this.#options.clock.now());
      await this.#options.store.commit(aliasOperations(planned));
      this.#aliases.apply(planned);
      return [...planned.values()].filter((entry) => entry !== null);
    });
  }

  /**
   * Throws `collection_not_found`, `invalid_metadata` when a vector does not fit a new schema, and
   * `invalid_request` for an endpoint whose vectors the collection cannot have.
   */
  update(
    id: string,
    incarnation: string | undefined,
    change: CollectionChange,
  ): Promise<CollectionEntry> {
    return this.#lock.run(async () => {
      const entry = this.requireEntry(id, incarnation);
      requireUnnamed(entry.definition, change);
      const definition: CollectionDefinition = {
        ...entry.definition,
        description:
          change.description === undefined ? entry.definition.description : change.description,
        labels: change.labels ?? entry.definition.labels,
        ttlSeconds:
          change.ttlSeconds === undefined
            ? (entry.definition.ttlSeconds ?? null)
            : change.ttlSeconds,
        schema: change.schema === undefined ? (entry.definition.schema ?? null) : change.schema,
        embedding:
          change.embedding === undefined ? (entry.definition.embedding ?? null) : change.embedding,
        updatedAtMs: this.#options.clock.now(),
      };
      const updated = { ...entry, definition };
      if (change.schema !== undefined) {
        const collection = this.requireReady(entry);
        await collection.write(declareTypes(collection, definition, change.schema));
      } else {
        await this.#options.store.commit([
          { kind: 'put', key: keys.collection(definition.id), value: encodeJson(definition) },
        ]);
        if (entry.state.kind === 'ready') entry.state.collection.redefine(definition);
      }
      this.#put(definition.id, updated);
      return updated;
    });
  }

  /**
   * Also deletes a collection that cannot be served. Throws `collection_not_found`, `starting`, and
   * `collection_aliased` while an alias points to it.
   */
  delete(name: string, expected: string | undefined): Promise<{ vectorCount: number }> {
    return this.#lock.run(async () => {
      const entry = this.requireEntry(name, expected);
      const { state } = entry;
      const { id, incarnation } = entry.definition;
      if (state.kind === 'loading') this.requireReady(entry);
      const aliases = this.#aliases.namesOf(incarnation);
      if (aliases.length > 0) throw aliased(id, aliases);
      let vectorCount = 0;
      if (state.kind === 'ready') {
        // Writes under way end first, so that every acknowledged write was made; later ones are refused.
        await state.maintenance.close();
        await state.collection.closeWriter(
          new SagittaError('collection_not_found', `Collection "${id}" was deleted.`),
        );
        vectorCount = state.collection.rows.liveCount;
      }
      await this.#removeEntry(entry.definition);
      this.#entries.delete(id);
      this.#idOf.delete(incarnation);
      this.#sortedEntries = null;
      if (state.kind === 'ready') {
        for (const segment of state.collection.rows.segments) this.#options.unloadSegment(segment);
      }
      await this.#removeBlobs(blobsOf(incarnation), () => true);
      collectGarbageSoon();
      return { vectorCount };
    });
  }

  /** Removes what a clone that failed has stored; what is left after another failure, the next start removes. */
  async #removeData(definition: Pick<CollectionDefinition, 'id' | 'incarnation'>): Promise<void> {
    try {
      await this.#removeEntry(definition);
      await this.#removeBlobs(blobsOf(definition.incarnation), () => true);
    } catch (error) {
      const { logger } = this.#options;
      logger.warn({ err: error, collection: definition.id }, 'a clone that failed left data');
    }
  }

  #removeEntry({
    id,
    incarnation,
  }: Pick<CollectionDefinition, 'id' | 'incarnation'>): Promise<void> {
    return this.#options.store.commit([
      { kind: 'remove', key: keys.collection(id) },
      { kind: 'remove', key: keys.manifest(incarnation) },
      { kind: 'removeUnder', prefix: keys.deletionsOfCollection(incarnation) },
      { kind: 'removeUnder', prefix: keys.expiriesOfCollection(incarnation) },
      { kind: 'dropLog', log: logName(incarnation) },
    ]);
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
        { kind: 'removeUnder', prefix: keys.expiriesOfCollection(incarnation) },
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
    this.#idOf.set(entry.definition.incarnation, id);
    this.#sortedEntries = null;
  }
}

/** Why a collection is unavailable. Paths of the host are not shown: the log has them. */
export function reasonForClients(error: SagittaError): string {
  const namesPath = /(^|[\s"'(])([A-Za-z]:\\|\/)/.test(error.message);
  return namesPath
    ? 'Its data cannot be read. The log of the service has the cause. Run "sagitta verify" to find all damage, and restore a backup.'
    : error.message;
}

function aliased(id: string, aliases: readonly string[]): SagittaError {
  const names = aliases.slice(0, ALIASES_NAMED_MAX).map((name) => `"${name}"`);
  const others = aliases.length > names.length ? ' and others' : '';
  return new SagittaError(
    'collection_aliased',
    `Collection "${id}" has the aliases ${names.join(', ')}${others}; remove them or point them to another collection first.`,
  );
}

/** Throws `invalid_request` for an embedding endpoint, whose vectors are the unnamed ones, without these. */
function requireUnnamed({ dimension }: CollectionShape, { embedding }: CollectionChange): void {
  if (dimension !== undefined || embedding == null) return;
  const detail =
    'Texts become unnamed vectors, which the collection does not have: it was created without dimension.';
  throw validationError([{ location: field('embedding'), code: 'invalid_request', detail }]);
}

function checkExisting(existing: CollectionDefinition, input: CollectionInput): void {
  const [found, requested] = [describeVectors(existing), describeVectors(input)];
  if (found === requested) {
    if (JSON.stringify(existing.text) === JSON.stringify(input.text)) return;
    throw new SagittaError(
      'collection_exists',
      `Collection "${input.id}" already exists with other settings of "text".`,
    );
  }
  throw new SagittaError(
    'collection_exists',
    `Collection "${input.id}" already exists with ${found}; the request has ${requested}.`,
  );
}

/** The same text for the same vectors, in whatever order they are named. */
function describeVectors(shape: CollectionShape): string {
  const { dimension, metric, vectors = {}, multiVectors = {}, sparseVectors = {} } = shape;
  const byName = ([a]: [string, unknown], [b]: [string, unknown]) => (a < b ? -1 : 1);
  const named = Object.entries(vectors).sort(byName);
  const multi = Object.entries(multiVectors).sort(byName);
  return [
    dimension === undefined ? 'no dimension' : `dimension ${dimension} and metric ${metric}`,
    ...named.map(
      ([name, vector]) => `"${name}" of dimension ${vector.dimension} and metric ${vector.metric}`,
    ),
    ...multi.map(
      ([name, { dimension: length, metric: by }]) =>
        `multi-vectors "${name}" of dimension ${length} and metric ${by}`,
    ),
    ...Object.keys(sparseVectors)
      .sort()
      .map((name) => `sparse "${name}"`),
  ].join(', ');
}
