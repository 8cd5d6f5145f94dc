// The catalogue on disk: which collections and aliases exist. Changes of the catalogue happen one at a time, including
// those that other nodes committed. collections.ts is the catalogue in memory.

import { randomUUID } from 'node:crypto';
import { endsWithin } from '../../common/ends-within.js';
import {
  assert,
  field,
  type IssueLocation,
  SagittaError,
  validationError,
} from '../../common/errors.js';
import { Lock } from '../../common/lock.js';
import type { FieldShapes } from '../../common/types.js';
import { UNNAMED } from '../../common/vectors.js';
import { type CommitLog, MaybeCommittedError } from '../../storage/commit-log.js';
import type { StoreOperation } from '../../storage/store.js';
import type {
  AliasChange,
  CloneInput,
  CollectionChange,
  CollectionInput,
} from '../api/database-api.js';
import { declareTypes } from '../collection/declared-types.js';
import type { LoadOptions } from '../collection/recovery.js';
import { changedVectors, describeShape } from '../collection/vector-changes.js';
import { changesUnder, keys } from '../layout/keys.js';
import {
  type CollectionDefinition,
  decodeDefinition,
  encodeJson,
  FORMAT_VERSION,
} from '../layout/manifest.js';
import { type AliasEntry, aliasOperations } from './aliases.js';
import {
  type CollectionEntry,
  type Collections,
  dataRemovalOf,
  ELSEWHERE,
  notHeld,
} from './collections.js';

/** The number of aliases that an error names; the list of aliases contains all. */
const ALIASES_NAMED_MAX = 3;
/** How long the error of a failed creation waits until its log is removed. */
const DROP_MS_MAX = 1_000;

/** Creates operations that are committed in the same transaction as a change of a collection. */
export type CommitWithEntry = (entry: CollectionEntry) => readonly StoreOperation[];

/** A collection that a request looked up. */
interface CollectionAddress {
  /** The name that the request used. */
  readonly id: string;
  /** Undefined if no such collection existed. */
  readonly incarnation: string | undefined;
}

type CatalogueOptions = Pick<LoadOptions, 'store' | 'logs' | 'limits' | 'clock' | 'logger'>;

export class Catalogue {
  readonly #collections: Collections;
  readonly #options: CatalogueOptions;
  /** The ids of clones in progress. */
  readonly #reservedIds = new Set<string>();
  readonly #lock = new Lock();

  constructor(collections: Collections, options: CatalogueOptions) {
    this.#collections = collections;
    this.#options = options;
  }

  get #log(): CommitLog {
    return this.#options.logs.catalogue;
  }

  create(
    input: CollectionInput,
    options: { ifNotExists: boolean; alsoCommit: CommitWithEntry },
  ): Promise<{ entry: CollectionEntry; created: boolean }> {
    return this.#lock.run(async () => {
      const id = input.id ?? randomUUID();
      const existing = this.#collections.find(id);
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
        vectors: input.vectors,
        description: input.description,
        labels: input.labels,
        text: input.text,
        ttlSeconds: input.ttlSeconds ?? null,
        schema: input.schema ?? null,
        embed: input.embed ?? null,
        replicationFactor: input.replicationFactor ?? null,
        createdAtMs: now,
        updatedAtMs: now,
      };
      const entry = await this.#withLog(definition, { isCopied: false }, async (placing) => {
        const { incarnation } = definition;
        const isHeld = this.#options.logs.holds(incarnation);
        if (!isHeld) await this.#markAbsent(incarnation);
        const state: CollectionEntry['state'] = isHeld
          ? await this.#collections.read(definition)
          : { kind: 'elsewhere', isNew: true };
        const made: CollectionEntry = { definition, state };
        await this.#commitMade(made, placing, options.alsoCommit);
        return made;
      });
      const { state } = entry;
      this.#collections.put({ definition, state: state.kind === 'elsewhere' ? ELSEWHERE : state });
      return { entry, created: true };
    });
  }

  /** Throws `collection_exists` if a collection, an alias or a clone in progress has the id. */
  #requireFree(id: string): void {
    if (this.#collections.aliases.find(id) !== undefined) {
      throw new SagittaError('collection_exists', `"${id}" is the name of an alias.`);
    }
    if (this.#collections.get(id) !== undefined) {
      throw new SagittaError('collection_exists', `Collection "${id}" already exists.`);
    }
    if (this.#reservedIds.has(id)) {
      throw new SagittaError('collection_exists', `A clone with the id "${id}" is in progress.`);
    }
  }

  /** Throws `limit_exceeded`. */
  #requireRoom(): void {
    const { collectionsMax } = this.#options.limits;
    const count = this.#collections.count + this.#reservedIds.size;
    if (count < collectionsMax) return;
    const detail = `Expected at most ${collectionsMax} collections; found ${count + 1}.`;
    const bound = { expected: collectionsMax, actual: count + 1 };
    throw validationError([{ location: field(), code: 'limit_exceeded', detail, ...bound }]);
  }

  /**
   * Creates a collection with the current vectors of another one. Other changes of the catalogue do not wait for it.
   * Rejects like `requireReady` and with `collection_not_found`, `collection_exists` and `limit_exceeded`.
   */
  async clone(
    source: CollectionAddress,
    input: CloneInput,
    alsoCommit: CommitWithEntry,
  ): Promise<CollectionEntry> {
    // No await when nothing is to be waited for, so that ids are reserved in the order of the calls.
    for (const waiting of [this.#whenLoaded(source), this.#collections.whenCleaned()]) {
      if (waiting !== undefined) await waiting;
    }
    const id = input.id ?? randomUUID();
    const incarnation = randomUUID();
    const { maintenance, copiedFrom } = await this.#lock.run(async () => {
      const entry = this.#collections.requireEntry(source.id, source.incarnation);
      const { incarnation: copiedFrom } = this.#collections.requireHeld(entry);
      assert(entry.state.kind === 'ready', 'the collection is ready');
      this.#requireFree(id);
      this.#requireRoom();
      this.#reservedIds.add(id);
      return { maintenance: entry.state.maintenance, copiedFrom };
    });
    try {
      await this.#options.logs.whenCurrent(copiedFrom);
      // If the collection moved away, its log may have been closed before it was current.
      this.#collections.requireHeld(this.#collections.requireEntry(source.id, copiedFrom));
      const copied = await maintenance.copyTo(incarnation);
      const definition = this.#cloneDefinition(copied, { ...input, id, incarnation });
      return await this.#withLog(definition, { isCopied: true }, async (placing) => {
        const entry = { definition, state: await this.#collections.read(definition) };
        await this.#lock.run(async () => {
          await this.#commitMade(entry, placing, alsoCommit);
          this.#collections.put(entry);
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

  #cloneDefinition(
    source: CollectionDefinition,
    input: CloneInput & Pick<CollectionDefinition, 'id' | 'incarnation'>,
  ): CollectionDefinition {
    const { id, incarnation, description = source.description, labels = source.labels } = input;
    const now = this.#options.clock.now();
    const times = { createdAtMs: now, updatedAtMs: now };
    return { ...source, id, incarnation, description, labels, ...times };
  }

  /** Throws `collection_not_found`, `collection_exists` and `starting`. */
  async rename(
    source: CollectionAddress,
    id: string,
    alsoCommit: CommitWithEntry,
  ): Promise<CollectionEntry> {
    return this.#change(source, async () => {
      const entry = this.#collections.requireEntry(source.id, source.incarnation);
      if (entry.state.kind === 'loading') this.#collections.requireReady(entry);
      this.#requireFree(id);
      const oldId = entry.definition.id;
      const definition = { ...entry.definition, id, updatedAtMs: this.#options.clock.now() };
      const renamed: CollectionEntry = { ...entry, definition };
      await this.#log.commit([
        { kind: 'remove', key: keys.collection(oldId) },
        putOf(definition),
        ...alsoCommit(renamed),
      ]);
      return this.#putDefinition(definition);
    });
  }

  /**
   * Creates, moves and removes aliases, all or none. `authorize` is called with every collection that an alias points
   * to before or after the change, and with the name that the caller used for it. Rejects with `collection_not_found`,
   * `collection_exists` for the id of a collection, `limit_exceeded`, and with what `authorize` throws.
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
        const before = this.#collections.find(name);
        if (this.#collections.get(name) !== undefined || this.#reservedIds.has(name)) {
          const detail = `"${name}" is the id of a collection; an alias needs a name of its own.`;
          const location = options.locate(index, 'name');
          throw validationError([{ location, code: 'collection_exists', detail }]);
        }
        if (before !== undefined) options.authorize(before.definition.id, name);
        if (collection === null) return { name, incarnation: null };
        const after = this.#collections.find(collection);
        options.authorize(after?.definition.id ?? collection, collection);
        if (after !== undefined) return { name, incarnation: after.definition.incarnation };
        const detail = `There is no collection with the id "${collection}".`;
        const location = options.locate(index, 'collection');
        throw validationError([{ location, code: 'collection_not_found', detail }]);
      });
      const planned = this.#collections.aliases.plan(targets, this.#options.clock.now());
      const operations = aliasOperations(planned);
      await this.#log.commit(operations);
      this.#collections.aliases.follow(operations);
      return [...planned.values()].filter((entry) => entry !== null);
    });
  }

  /**
   * Rejects with `collection_not_found`, with `invalid_metadata` for a vector that does not fit a new schema, with
   * `limit_exceeded`, and with `invalid_request` for a model without unnamed vectors or other than that of the
   * vectors, and for invalid changes of vectors.
   */
  async update(address: CollectionAddress, change: CollectionChange): Promise<CollectionEntry> {
    return this.#change(address, async () => {
      const entry = this.#collections.requireEntry(address.id, address.incarnation);
      requireUnnamed(entry.definition, change);
      requireSameModel(entry, change);
      const { description, labels, ttlSeconds, schema, embed, replicationFactor } = change;
      const settings = { description, labels, ttlSeconds, schema, embed, replicationFactor };
      const sent = Object.entries(settings).filter(([, value]) => value !== undefined);
      const definition: CollectionDefinition = {
        ...entry.definition,
        ...Object.fromEntries(sent),
        ...changedVectors(entry.definition, change, this.#options.limits),
        updatedAtMs: this.#options.clock.now(),
      };
      const { logs } = this.#options;
      const placing =
        change.replicationFactor === undefined
          ? []
          : logs.replicate(definition.incarnation, change.replicationFactor);
      if (change.schema !== undefined) {
        const collection = this.#collections.requireHeld(entry);
        await logs.acquire(collection.incarnation);
        const commit = { log: this.#log, alsoCommit: placing };
        await collection.write(declareTypes(collection, definition, change.schema, commit));
      } else {
        await this.#log.commit([putOf(definition), ...placing]);
      }
      return this.#putDefinition(definition);
    });
  }

  /** Replaces the definition, and keeps the current state, which may have changed since the entry was read. */
  #putDefinition(definition: CollectionDefinition): CollectionEntry {
    const entry = this.#collections.findIncarnation(definition.incarnation);
    assert(entry !== undefined, 'the collection is removed under the lock only');
    if (entry.state.kind === 'ready') entry.state.collection.redefine(definition);
    const redefined = { ...entry, definition };
    this.#collections.put(redefined);
    return redefined;
  }

  /**
   * Deletes a collection, even one that cannot be served. Rejects with `collection_not_found`, with `starting`, and
   * with `collection_aliased` while an alias points to it.
   */
  async delete(address: CollectionAddress): Promise<{ vectorCount: number }> {
    return this.#change(address, async () => {
      let entry = this.#collections.requireEntry(address.id, address.incarnation);
      const { state } = entry;
      const { id, incarnation } = entry.definition;
      if (state.kind === 'loading') this.#collections.requireReady(entry);
      const aliases = this.#collections.aliases.namesOf(incarnation);
      if (aliases.length > 0) throw aliased(id, aliases);
      let vectorCount = 0;
      if (state.kind === 'ready') {
        // Submitted writes are finished first, so that every acknowledged write takes effect; later writes are refused.
        const { logs } = this.#options;
        if (logs.holds(incarnation)) await logs.acquire(incarnation);
        // The collection may have been loaded again since.
        entry = this.#collections.requireEntry(id, incarnation);
        const { collection, maintenance } = entry.state.kind === 'ready' ? entry.state : state;
        await maintenance.close();
        await collection.closeWriter(deleted(id));
        vectorCount = collection.rows.liveCount;
      }
      try {
        await this.#log.commit(this.#removalOf(entry.definition));
      } catch (error) {
        // The writer and the maintenance of the collection are closed.
        await this.#collections.reload(entry);
        throw error;
      }
      await this.#collections.forget(entry);
      await this.#options.logs.drop(incarnation);
      return { vectorCount };
    });
  }

  /** Changes a collection under the lock, once the start has loaded it. Rejects like `#whenLoaded`. */
  async #change<Result>(address: CollectionAddress, make: () => Promise<Result>): Promise<Result> {
    const waiting = this.#whenLoaded(address);
    if (waiting !== undefined) await waiting;
    return this.#lock.run(make);
  }

  /** Throws `collection_not_found`; rejects like `Collections.whenLoaded`. */
  #whenLoaded({ id, incarnation }: CollectionAddress): Promise<void> | undefined {
    return this.#collections.whenLoaded(this.#collections.requireEntry(id, incarnation));
  }

  #removalOf(definition: Pick<CollectionDefinition, 'id' | 'incarnation'>) {
    return [...removalOf(definition), ...this.#options.logs.removal(definition.incarnation)];
  }

  /**
   * Must precede the commit that names a collection of other nodes, so that every start
   * knows that its rows are absent.
   */
  #markAbsent(incarnation: string): Promise<void> {
    return this.#options.store.commit([absenceOf(incarnation)]);
  }

  /**
   * Creates the log of a collection, and removes it again if `make` fails. `make` receives the operations to commit
   * with the definition.
   */
  async #withLog<Made>(
    { incarnation, replicationFactor = null }: CollectionDefinition,
    { isCopied }: { readonly isCopied: boolean },
    make: (placing: readonly StoreOperation[]) => Promise<Made>,
  ): Promise<Made> {
    const { logs, logger } = this.#options;
    try {
      return await make(await logs.create(incarnation, { isCopied, replicationFactor }));
    } catch (error) {
      // The catalogue may name the collection after all, which this process learns by following the log.
      if (error instanceof MaybeCommittedError) throw error;
      const dropped = logs.drop(incarnation).catch((err: unknown) => {
        logger.warn({ err, incarnation }, 'the log of a collection that was not created remains');
      });
      // The servers of the log may be what failed, and the client has waited for them already.
      await endsWithin(dropped, DROP_MS_MAX);
      throw error;
    }
  }

  async #commitMade(
    entry: CollectionEntry,
    placing: readonly StoreOperation[],
    alsoCommit: CommitWithEntry,
  ): Promise<void> {
    const { definition, state } = entry;
    try {
      await this.#log.commit([putOf(definition), ...placing, ...alsoCommit(entry)]);
    } catch (error) {
      // If the commit took effect after all, the collection is loaded when the commit is read.
      if (state.kind === 'ready') await state.maintenance.close();
      throw error;
    }
  }

  /** Stores and applies a commit of another node to the log of the catalogue. Rejects with `data_corrupt`. */
  follow(operations: readonly StoreOperation[]): Promise<void> {
    return this.#lock.run(async () => {
      const after = new Map<string, CollectionDefinition>();
      const removed: CollectionEntry[] = [];
      for (const { key, value } of changesUnder(keys.collections, operations)) {
        const id = key[1]!;
        if (value === null) {
          const entry = this.#collections.get(id);
          if (entry !== undefined) removed.push(entry);
          // An earlier operation of the commit may have put a collection there.
          for (const [incarnation, definition] of after) {
            if (definition.id === id) after.delete(incarnation);
          }
          continue;
        }
        const definition = decodeDefinition(value, id);
        after.set(definition.incarnation, definition);
      }
      // A renamed collection is removed under one id and put under another.
      const gone = removed.filter(({ definition }) => !after.has(definition.incarnation));
      for (const { definition, state } of gone) {
        if (state.kind !== 'ready') continue;
        // Ends writes in progress, which would wait for a log that no longer exists.
        this.#options.logs.end(definition.incarnation);
        await state.maintenance.close();
        await state.collection.closeWriter(deleted(definition.id));
      }
      const absences = [...after.keys()].filter(
        (incarnation) =>
          this.#collections.findIncarnation(incarnation) === undefined &&
          !this.#options.logs.holds(incarnation),
      );
      await this.#options.store.commit([...operations, ...absences.map(absenceOf)]);
      for (const entry of gone) await this.#collections.forget(entry);
      this.#redefine([...after.values()]);
      for (const definition of after.values()) await this.#followNew(definition);
      this.#collections.aliases.follow(operations);
    });
  }

  /** Redefines collections together, because one may take the id of another. */
  #redefine(definitions: readonly CollectionDefinition[]): void {
    const redefined = definitions.flatMap((definition) => {
      const known = this.#collections.findIncarnation(definition.incarnation);
      return known === undefined ? [] : { ...known, definition };
    });
    for (const entry of redefined) {
      if (entry.state.kind === 'ready') entry.state.collection.redefine(entry.definition);
      this.#collections.put(entry);
    }
  }

  /** Adds a collection that another node created. */
  async #followNew(definition: CollectionDefinition): Promise<void> {
    const { incarnation } = definition;
    if (this.#collections.findIncarnation(incarnation) !== undefined) return;
    if (!this.#options.logs.holds(incarnation)) {
      this.#collections.put({ definition, state: ELSEWHERE });
      return;
    }
    await this.#options.logs.prepare(incarnation);
    this.#collections.put({ definition, state: await this.#collections.read(definition) });
  }

  /** Starts to hold a collection: loads it empty, and its log brings in the rows. */
  startHolding(incarnation: string): Promise<void> {
    return this.#lock.run(async () => {
      const entry = this.#collections.findIncarnation(incarnation);
      if (entry?.state.kind !== 'elsewhere') return;
      const { definition } = entry;
      await this.#options.store.commit([{ kind: 'remove', key: keys.absence(incarnation) }]);
      this.#collections.put({ definition, state: await this.#collections.read(definition) });
    });
  }

  /** Stops holding a collection. The caller then removes its data from the store. */
  stopHolding(incarnation: string): Promise<void> {
    return this.#lock.run(async () => {
      const entry = this.#collections.findIncarnation(incarnation);
      if (entry === undefined || entry.state.kind === 'elsewhere') return;
      await this.#collections.unloadTo(ELSEWHERE, entry, notHeld(entry.definition.id));
      await this.#markAbsent(incarnation);
    });
  }

  /** Removes the data of a failed clone. If that fails as well, the next start removes it. */
  async #removeData(definition: Pick<CollectionDefinition, 'id' | 'incarnation'>): Promise<void> {
    try {
      await this.#options.store.commit(this.#removalOf(definition));
      await this.#collections.removeBlobs(definition.incarnation);
    } catch (error) {
      const { logger } = this.#options;
      logger.warn({ err: error, collection: definition.id }, 'a failed clone left data');
    }
  }

  /** Finishes submitted writes, then checkpoints collections with a long log. */
  async close(): Promise<void> {
    const stopping = new SagittaError('stopping', 'The service is stopping.', {
      retryAfterSeconds: 5,
    });
    await this.#lock.run(async () => {
      for (const { state } of this.#collections.entries) {
        if (state.kind !== 'ready') continue;
        await state.collection.closeWriter(stopping);
        await state.maintenance.closeWithCheckpoint();
      }
    });
  }
}

function putOf(definition: CollectionDefinition): StoreOperation {
  const key = keys.collection(definition.id);
  return { kind: 'put', key, value: encodeJson(definition) };
}

/** The operations that remove a collection from the store. */
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

function absenceOf(incarnation: string): StoreOperation {
  return { kind: 'put', key: keys.absence(incarnation), value: new Uint8Array() };
}

function deleted(id: string): SagittaError {
  return new SagittaError('collection_not_found', `Collection "${id}" was deleted.`);
}

function aliased(id: string, aliases: readonly string[]): SagittaError {
  const names = aliases.slice(0, ALIASES_NAMED_MAX).map((name) => `"${name}"`);
  const others = aliases.length > names.length ? ' and others' : '';
  return new SagittaError(
    'collection_aliased',
    `Collection "${id}" has the aliases ${names.join(', ')}${others}; remove them or point them to another collection first.`,
  );
}

/** Throws `invalid_request` for a model, which creates unnamed vectors, if the collection has none. */
function requireUnnamed({ vectors }: CollectionDefinition, { embed }: CollectionChange): void {
  if (embed == null || Object.hasOwn(vectors, UNNAMED)) return;
  const detail =
    'Expected a collection with a dimension, since texts become unnamed vectors; this one was created without.';
  throw validationError([{ location: field('embed'), code: 'invalid_request', detail }]);
}

/** Throws `invalid_request` for another model while the collection has vectors, which would not be comparable. */
function requireSameModel(
  { definition, state }: CollectionEntry,
  { embed }: CollectionChange,
): void {
  const { embed: current } = definition;
  if (embed == null || current === null || embed.model === current.model) return;
  if (state.kind === 'ready' && state.collection.rows.liveCount === 0) return;
  const detail = `Expected the model "${current.model}", which made the vectors of the collection; found "${embed.model}". Create a collection for the other model and load the texts into it.`;
  throw validationError([{ location: field('embed'), code: 'invalid_request', detail }]);
}

function checkExisting(existing: CollectionDefinition, input: CollectionInput): void {
  const found = describeVectors(existing.vectors);
  const requested = describeVectors(input.vectors);
  if (found === requested) {
    const isSameText = JSON.stringify(existing.text) === JSON.stringify(input.text);
    if (isSameText && existing.embed?.model === input.embed?.model) return;
    throw new SagittaError(
      'collection_exists',
      `Collection "${input.id}" already exists with other settings of "${isSameText ? 'embed' : 'text'}".`,
    );
  }
  throw new SagittaError(
    'collection_exists',
    `Collection "${input.id}" already exists with ${found}; the request has ${requested}.`,
  );
}

/** A text that is equal for equal vectors in any order. */
function describeVectors(vectors: FieldShapes): string {
  const { [UNNAMED]: unnamed, ...named } = vectors;
  const described = Object.entries(named).map(([name, shape]) => {
    const kind = { dense: '', multi: 'multi-vectors ', sparse: 'sparse ' }[shape.kind];
    return `${kind}"${name}"${describeShape(shape)}`;
  });
  const first = unnamed === undefined ? 'no dimension' : describeShape(unnamed).replace(' of ', '');
  return [first, ...described.sort()].join(', ');
}
