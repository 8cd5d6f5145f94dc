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
import { type CommitLog, MaybeCommittedError } from '../storage/commit-log.js';
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
  decodeDefinition,
  encodeJson,
  FORMAT_VERSION,
} from './collection/manifest.js';
import { type LoadOptions, type LoadProgress, loadCollection } from './collection/recovery.js';
import { ElsewhereError } from './elsewhere.js';
import { blobsOf, changesUnder, keys, storedParts } from './keys.js';
import { Lock } from './lock.js';

export interface CollectionEntry {
  readonly definition: CollectionDefinition;
  readonly state:
    | { readonly kind: 'loading'; readonly progress: LoadProgress }
    | { readonly kind: 'ready'; readonly collection: Collection; readonly maintenance: Maintenance }
    | { readonly kind: 'failed'; readonly error: SagittaError }
    /** Other nodes of the cluster hold it. `isNew`: it has no rows yet. */
    | { readonly kind: 'elsewhere'; readonly isNew: boolean };
}

const ELSEWHERE = { kind: 'elsewhere', isNew: false } as const;

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
  /** Collections that were unloaded, so that others may have taken the places of their files. */
  #unloadCount = 0;
  #isLoaded = false;

  constructor(options: LoadOptions) {
    this.#options = options;
    this.#aliases = new Aliases(options.store);
    for (const { key, value } of options.store.list(keys.collections)) {
      const id = key[1]!;
      const definition = decodeDefinition(value, id);
      this.#put(id, { definition, state: this.#stateAtStart(definition) });
    }
    this.#isLoaded = [...this.#entries.values()].every(({ state }) => state.kind !== 'loading');
  }

  #stateAtStart({ id, incarnation }: CollectionDefinition): CollectionEntry['state'] {
    const { store, logs } = this.#options;
    if (store.get(keys.absence(incarnation)) === undefined) {
      return { kind: 'loading', progress: { segmentCount: 0, loadedSegmentCount: 0 } };
    }
    return logs.isAlone ? { kind: 'failed', error: absent(id) } : ELSEWHERE;
  }

  get #log(): CommitLog {
    return this.#options.logs.catalogue;
  }

  /** Whether everything was loaded once: a collection may be loaded anew later, while the others are served. */
  get isLoaded(): boolean {
    return this.#isLoaded;
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
      if (state.kind !== 'loading') continue;
      const startedAt = performance.now();
      const { progress } = state;
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
        this.#fail(definition, failureOf(error));
      }
    }
    this.#isLoaded = true;
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
    return { ...this.#options, onDamaged, generation: this.#unloadCount };
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

  /**
   * Throws as `requireReady`, and ElsewhereError for a collection that this process brings in, or is about to drop: it
   * has some of the rows, or a log that may be closed at any moment.
   */
  #requireHeld(entry: CollectionEntry): Collection {
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
        ...(input.replicationFactor == null ? {} : { replicationFactor: input.replicationFactor }),
        createdAtMs: now,
        updatedAtMs: now,
      };
      const entry = await this.#withLog(definition, { isCopied: false }, async (placing) => {
        const { incarnation } = definition;
        const isHeld = this.#options.logs.holds(incarnation);
        if (!isHeld) await this.#markAbsent(incarnation);
        const state: CollectionEntry['state'] = isHeld
          ? {
              kind: 'ready',
              ...(await loadCollection(definition, this.#loadOptions(definition))),
            }
          : { kind: 'elsewhere', isNew: true };
        const made: CollectionEntry = { definition, state };
        await this.#commitMade(made, [
          { kind: 'put', key: keys.collection(id), value: encodeJson(definition) },
          ...placing,
          ...options.alsoCommit(made),
        ]);
        return made;
      });
      this.#put(id, entry.state.kind === 'elsewhere' ? { ...entry, state: ELSEWHERE } : entry);
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
    const { maintenance, copiedFrom } = await this.#lock.run(async () => {
      const entry = this.requireEntry(source.id, source.incarnation);
      const { incarnation: copiedFrom } = this.#requireHeld(entry);
      assert(entry.state.kind === 'ready', 'the collection is ready');
      this.#requireFree(id);
      this.#requireRoom();
      this.#reservedIds.add(id);
      return { maintenance: entry.state.maintenance, copiedFrom };
    });
    try {
      await this.#options.logs.whenCurrent(copiedFrom);
      // Of one that has moved away meanwhile, the log may have been closed too early for that.
      this.#requireHeld(this.requireEntry(source.id, copiedFrom));
      const copied = await maintenance.copyTo(incarnation);
      const definition = this.#cloned(copied, { ...input, id, incarnation });
      return await this.#withLog(definition, { isCopied: true }, async (placing) => {
        const loaded = await loadCollection(definition, this.#loadOptions(definition));
        const entry: CollectionEntry = { definition, state: { kind: 'ready', ...loaded } };
        await this.#lock.run(async () => {
          await this.#commitMade(entry, [
            { kind: 'put', key: keys.collection(id), value: encodeJson(definition) },
            ...placing,
            ...alsoCommit(entry),
          ]);
          this.#put(id, entry);
        });
        return entry;
      });
    } catch (error) {
      if (!(error instanceof MaybeCommittedError)) await this.#removeData({ id, incarnation });
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
      await this.#log.commit([
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
      await this.#log.commit(aliasOperations(planned));
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
        ...(change.replicationFactor === undefined
          ? {}
          : { replicationFactor: change.replicationFactor }),
        updatedAtMs: this.#options.clock.now(),
      };
      const updated = { ...entry, definition };
      const { logs } = this.#options;
      const placing =
        change.replicationFactor === undefined
          ? []
          : logs.replicate(definition.incarnation, change.replicationFactor);
      if (change.schema !== undefined) {
        const collection = this.#requireHeld(entry);
        await logs.acquire(collection.incarnation);
        const commit = { log: this.#log, alsoCommit: placing };
        await collection.write(declareTypes(collection, definition, change.schema, commit));
      } else {
        await this.#log.commit([
          { kind: 'put', key: keys.collection(definition.id), value: encodeJson(definition) },
          ...placing,
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
      let entry = this.requireEntry(name, expected);
      const { state } = entry;
      const { id, incarnation } = entry.definition;
      if (state.kind === 'loading') this.requireReady(entry);
      const aliases = this.#aliases.namesOf(incarnation);
      if (aliases.length > 0) throw aliased(id, aliases);
      let vectorCount = 0;
      if (state.kind === 'ready') {
        // Writes under way end first, so that every acknowledged write was made; later ones are refused.
        const { logs } = this.#options;
        if (logs.holds(incarnation)) await logs.acquire(incarnation);
        // It may have been loaded anew meanwhile.
        entry = this.requireEntry(id, incarnation);
        const { collection, maintenance } = entry.state.kind === 'ready' ? entry.state : state;
        await maintenance.close();
        await collection.closeWriter(deleted(id));
        vectorCount = collection.rows.liveCount;
      }
      try {
        await this.#log.commit(this.#removalOf(entry.definition));
      } catch (error) {
        // Its writer and its maintenance are closed.
        await this.#reload(entry);
        throw error;
      }
      await this.#forget(entry);
      await this.#options.logs.drop(incarnation);
      return { vectorCount };
    });
  }

  /** Of an entry that was removed from the store: what is in memory and in files. */
  async #forget({ definition, state }: CollectionEntry): Promise<void> {
    const { id, incarnation } = definition;
    // Another one may have the id by now.
    if (this.#entries.get(id)?.definition.incarnation === incarnation) this.#entries.delete(id);
    this.#idOf.delete(incarnation);
    this.#sortedEntries = null;
    if (state.kind === 'ready') {
      for (const segment of state.collection.rows.segments) this.#options.unloadSegment(segment);
    }
    await this.#removeBlobs(blobsOf(incarnation), () => true);
    collectGarbageSoon();
  }

  /** Ends the use of what the store has of a collection: its requests get `starting` until it is loaded again. */
  async unload(incarnation: string): Promise<void> {
    const entry = this.findIncarnation(incarnation);
    if (entry === undefined) return;
    const { definition, state } = entry;
    const progress = { segmentCount: 0, loadedSegmentCount: 0 };
    this.#unloadCount++;
    this.#put(definition.id, { definition, state: { kind: 'loading', progress } });
    if (state.kind !== 'ready') return;
    await state.maintenance.close();
    await state.collection.closeWriter(loadedAnew(definition.id));
    for (const segment of state.collection.rows.segments) this.#options.unloadSegment(segment);
    collectGarbageSoon();
  }

  /** Reads a collection that was unloaded from the store. Does nothing for one that is gone. */
  async loadAgain(incarnation: string): Promise<void> {
    const entry = this.findIncarnation(incarnation);
    if (entry === undefined) return;
    const { definition, state } = entry;
    const progress = state.kind === 'loading' ? state.progress : undefined;
    let loaded: Awaited<ReturnType<typeof loadCollection>>;
    try {
      loaded = await loadCollection(definition, this.#loadOptions(definition), progress);
    } catch (error) {
      this.#fail(definition, failureOf(error));
      return;
    }
    // It may have been renamed meanwhile, or deleted.
    const current = this.findIncarnation(incarnation)?.definition;
    if (current === undefined) {
      await loaded.maintenance.close();
      return;
    }
    loaded.collection.redefine(current);
    this.#put(current.id, { definition: current, state: { kind: 'ready', ...loaded } });
  }

  /** Reads a collection that stays from the store again. */
  async #reload({ definition, state }: CollectionEntry): Promise<void> {
    if (state.kind !== 'ready') return;
    for (const segment of state.collection.rows.segments) this.#options.unloadSegment(segment);
    await this.loadAgain(definition.incarnation);
  }

  #removalOf(definition: Pick<CollectionDefinition, 'id' | 'incarnation'>) {
    return [...removalOf(definition), ...this.#options.logs.removal(definition.incarnation)];
  }

  /** Before the catalogue names a collection that other nodes hold: whoever opens the store then knows it. */
  #markAbsent(incarnation: string): Promise<void> {
    return this.#options.store.commit([absenceOf(incarnation)]);
  }

  /** The log is removed again when `make` fails. It gets what is to be committed with the definition. */
  async #withLog<Made>(
    { incarnation, replicationFactor = null }: CollectionDefinition,
    { isCopied }: { readonly isCopied: boolean },
    make: (placing: readonly StoreOperation[]) => Promise<Made>,
  ): Promise<Made> {
    const { logs, logger } = this.#options;
    try {
      return await make(await logs.create(incarnation, { isCopied, replicationFactor }));
    } catch (error) {
      // The catalogue may name the collection then, which this process finds out when it follows.
      if (error instanceof MaybeCommittedError) throw error;
      await logs.drop(incarnation).catch((err: unknown) => {
        logger.warn({ err, incarnation }, 'the log of a collection that was not made is left');
      });
      throw error;
    }
  }

  async #commitMade(
    { state }: CollectionEntry,
    operations: readonly StoreOperation[],
  ): Promise<void> {
    try {
      await this.#log.commit(operations);
    } catch (error) {
      // Where the collection is there nevertheless, it is loaded when the commit is read.
      if (state.kind === 'ready') await state.maintenance.close();
      throw error;
    }
  }

  /**
   * Stores and applies what another node has committed to the log of the catalogue: collections that were made,
   * changed, renamed and deleted, and aliases. Throws `data_corrupt`.
   */
  follow(operations: readonly StoreOperation[]): Promise<void> {
    return this.#lock.run(async () => {
      const after = new Map<string, CollectionDefinition>();
      const removed: CollectionEntry[] = [];
      for (const { key, value } of changesUnder(keys.collections, operations)) {
        const id = key[1]!;
        if (value === null) {
          const entry = this.#entries.get(id);
          if (entry !== undefined) removed.push(entry);
          continue;
        }
        const definition = decodeDefinition(value, id);
        after.set(definition.incarnation, definition);
      }
      // One that was renamed is removed under one id and stored under another.
      const gone = removed.filter(({ definition }) => !after.has(definition.incarnation));
      for (const { definition, state } of gone) {
        if (state.kind !== 'ready') continue;
        await state.maintenance.close();
        await state.collection.closeWriter(deleted(definition.id));
      }
      const absences = [...after.keys()].filter(
        (incarnation) =>
          this.findIncarnation(incarnation) === undefined && !this.#options.logs.holds(incarnation),
      );
      await this.#options.store.commit([...operations, ...absences.map(absenceOf)]);
      for (const entry of gone) await this.#forget(entry);
      for (const definition of after.values()) await this.#followDefinition(definition);
      this.#aliases.follow(operations);
    });
  }

  /** Of a collection that another node has made or changed. */
  async #followDefinition(definition: CollectionDefinition): Promise<void> {
    const { id, incarnation } = definition;
    const known = this.findIncarnation(incarnation);
    if (known === undefined) {
      if (!this.#options.logs.holds(incarnation)) {
        this.#put(id, { definition, state: ELSEWHERE });
        return;
      }
      await this.#options.logs.prepare(incarnation);
      const loaded = await loadCollection(definition, this.#loadOptions(definition));
      this.#put(id, { definition, state: { kind: 'ready', ...loaded } });
      return;
    }
    if (known.state.kind === 'ready') known.state.collection.redefine(definition);
    const oldId = known.definition.id;
    if (this.#entries.get(oldId)?.definition.incarnation === incarnation) {
      this.#entries.delete(oldId);
    }
    this.#put(id, { ...known, definition });
  }

  /** Loads a collection whose rows this node is to have from now on. Its log brings them in. */
  takeIn(incarnation: string): Promise<void> {
    return this.#lock.run(async () => {
      const entry = this.findIncarnation(incarnation);
      if (entry?.state.kind !== 'elsewhere') return;
      const { definition } = entry;
      await this.#options.store.commit([{ kind: 'remove', key: keys.absence(incarnation) }]);
      const loaded = await loadCollection(definition, this.#loadOptions(definition));
      this.#put(definition.id, { definition, state: { kind: 'ready', ...loaded } });
    });
  }

  /** For a collection that other nodes hold from now on: the caller then removes what the store has of it. */
  letGo(incarnation: string): Promise<void> {
    return this.#lock.run(async () => {
      const entry = this.findIncarnation(incarnation);
      if (entry === undefined || entry.state.kind === 'elsewhere') return;
      const { definition, state } = entry;
      this.#unloadCount++;
      this.#put(definition.id, { definition, state: ELSEWHERE });
      if (state.kind === 'ready') {
        await state.maintenance.close();
        await state.collection.closeWriter(new ElsewhereError([definition.id]));
      }
      await this.#markAbsent(incarnation);
      if (state.kind !== 'ready') return;
      for (const segment of state.collection.rows.segments) this.#options.unloadSegment(segment);
      collectGarbageSoon();
    });
  }

  /** Removes what a clone that failed has stored; what is left after another failure, the next start removes. */
  async #removeData(definition: Pick<CollectionDefinition, 'id' | 'incarnation'>): Promise<void> {
    try {
      await this.#options.store.commit(this.#removalOf(definition));
      await this.#removeBlobs(blobsOf(definition.incarnation), () => true);
    } catch (error) {
      const { logger } = this.#options;
      logger.warn({ err: error, collection: definition.id }, 'a clone that failed left data');
    }
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
    const held = [...this.#entries.values()].filter(({ state }) => state.kind === 'loading');
    const incarnations = new Set(held.map(({ definition }) => definition.incarnation));
    for (const { key } of [...this.#options.store.list(keys.manifests)]) {
      const incarnation = key[1]!;
      if (incarnations.has(incarnation)) continue;
      await this.#options.store.commit(dataRemovalOf(incarnation));
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

function failureOf(error: unknown): SagittaError {
  if (error instanceof SagittaError) return error;
  return new SagittaError('internal', 'The collection could not be loaded.', { cause: error });
}

/** What removes a collection from the store. */
function removalOf({
  id,
  incarnation,
}: Pick<CollectionDefinition, 'id' | 'incarnation'>): readonly StoreOperation[] {
  return [
    { kind: 'remove', key: keys.collection(id) },
    { kind: 'remove', key: keys.absence(incarnation) },
    ...dataRemovalOf(incarnation),
  ];
}

function dataRemovalOf(incarnation: string): readonly StoreOperation[] {
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

function absenceOf(incarnation: string): StoreOperation {
  return { kind: 'put', key: keys.absence(incarnation), value: new Uint8Array() };
}

/** For a service that is alone. */
function absent(id: string): SagittaError {
  return new SagittaError(
    'collection_unavailable',
    `Its rows are not in this data directory: the node of a cluster that it is from, or was copied from, did not hold the collection "${id}". Restore a backup of a node that did, or delete the collection.`,
  );
}

function deleted(id: string): SagittaError {
  return new SagittaError('collection_not_found', `Collection "${id}" was deleted.`);
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
