// Loads the newest snapshot of a log into the store of a node, from where the archive and the log go on: for a node that
// has nothing of the log, or one that was away while the log was trimmed, whose state is then replaced. The database may
// be open and serves other collections meanwhile. Without an applied position, what a store holds of a log does not count.

import { SagittaError } from '../../common/errors.js';
import type { Logger } from '../../common/logger.js';
import type { Store, StoreOperation } from '../../storage/store.js';
import type { SealedBlobs } from '../blobs/sealed-blobs.js';
import { findAppliedPosition, startPositionOperation } from '../logs/applied-position.js';
import { isDamage } from '../logs/collection-log.js';
import { CATALOGUE } from '../logs/store-entries.js';
import type { FileFetcher } from './file-fetcher.js';
import { removeState, type StoreLayout, stateOf } from './log-state.js';
import { SnapshotFiles, type SnapshotIndex } from './snapshot-files.js';
import { hasOrigin } from './snapshot-record.js';

/** The methods of the node's database for replacing the state of collections. */
export interface ReloadingDatabase {
  /** Resolves when the database neither reads nor writes the collection in the store. */
  unloadCollection(incarnation: string): Promise<void>;
  loadCollection(incarnation: string): Promise<void>;
}

export interface StateLoaderOptions {
  readonly store: Store;
  readonly blobs: SealedBlobs;
  readonly layout: StoreLayout;
  readonly fetcher: FileFetcher;
  /** Null until it is open. */
  readonly database: () => ReloadingDatabase | null;
  /** Stores operations in one transaction, and applies them like commits to the log of the catalogue. */
  readonly applyCatalogue: (operations: readonly StoreOperation[]) => Promise<void>;
  readonly logger: Logger;
}

export class StateLoader {
  readonly #options: StateLoaderOptions;

  constructor(options: StateLoaderOptions) {
    this.#options = options;
  }

  /**
   * Replaces the state of a log in the store by the newest snapshot that reaches farther. The log must not be followed
   * meanwhile. A store without an applied position starts at the beginning of the log if no snapshot exists and the log
   * does not continue one. Throws `data_corrupt` when neither is possible, and the reason of the signal; a log without a
   * position must then be loaded again.
   */
  async load(log: string, signal: AbortSignal): Promise<void> {
    const { store, blobs, logger } = this.#options;
    const files = new SnapshotFiles(blobs, log);
    const before = findAppliedPosition(store, log)?.position ?? -1;
    const damages = new Map<string, Error>();
    for (;;) {
      const listed = (await files.list()).filter(({ position }) => position > before);
      const next = listed.findLast(({ name }) => !damages.has(name));
      if (next === undefined && listed.length === 0 && before < 0 && !hasOrigin(store, log)) {
        await store.commit([startPositionOperation(log)]);
        return;
      }
      if (next === undefined) throw noUsableSnapshot(log, before, [...damages.values()]);
      try {
        const index = await files.read(next.name);
        await this.#replace(index, files, signal);
        logger.info({ log, snapshot: next.name }, 'the state of a log was loaded from a snapshot');
        return;
      } catch (error) {
        if (!isDamage(error)) throw error;
        // A newer snapshot may have replaced it in the meantime.
        damages.set(next.name, error as Error);
        logger.warn(
          { log, snapshot: next.name, err: error },
          'a snapshot cannot be used; another one is tried',
        );
      }
    }
  }

  /** Removes the state of a collection from the store. Its log must not be followed. */
  async remove(incarnation: string): Promise<void> {
    await this.#options.database()?.unloadCollection(incarnation);
    await removeState(this.#options.store, this.#options.layout, incarnation);
  }

  async #replace(index: SnapshotIndex, files: SnapshotFiles, signal: AbortSignal): Promise<void> {
    if (index.log === CATALOGUE) await this.#replaceCatalogue(index, files);
    else await this.#replaceCollection(index, files, signal);
  }

  async #replaceCollection(
    index: SnapshotIndex,
    files: SnapshotFiles,
    signal: AbortSignal,
  ): Promise<void> {
    const { store, fetcher, database } = this.#options;
    await this.remove(index.log);
    for (const file of index.files) {
      await fetcher.fetch(index.log, file, { name: file.name, parts: null, signal });
    }
    for await (const operations of files.readState(index)) {
      signal.throwIfAborted();
      await store.commit(operations);
    }
    await database()?.loadCollection(index.log);
  }

  /** Applies the differences like commits of other nodes, so that an open database goes on. */
  async #replaceCatalogue(index: SnapshotIndex, files: SnapshotFiles): Promise<void> {
    const { store, layout, applyCatalogue } = this.#options;
    const found = new Map<string, Extract<StoreOperation, { kind: 'put' | 'append' }>>();
    for (const operation of stateOf(store, layout, CATALOGUE)) {
      found.set(keyOf(operation), operation);
    }
    const changes: StoreOperation[] = [];
    for await (const operations of files.readState(index)) {
      for (const operation of operations) {
        const before = found.get(keyOf(operation));
        found.delete(keyOf(operation));
        if (before !== undefined && isSame(before, operation)) continue;
        // A collection may have the name of a deleted one, which must be removed first.
        if (before?.kind === 'put') changes.push({ kind: 'remove', key: before.key });
        changes.push(operation);
      }
    }
    for (const operation of found.values()) {
      if (operation.kind === 'put') changes.push({ kind: 'remove', key: operation.key });
    }
    await applyCatalogue(changes);
  }
}

function keyOf(operation: StoreOperation): string {
  return operation.kind === 'put' ? JSON.stringify(operation.key) : '';
}

function isSame(a: StoreOperation, b: StoreOperation): boolean {
  return a.kind === 'put' && b.kind === 'put' && Buffer.compare(a.value, b.value) === 0;
}

function noUsableSnapshot(log: string, position: number, damages: readonly Error[]): SagittaError {
  const after = position < 0 ? 'from its beginning' : `after position ${position}`;
  const found =
    damages.length === 0
      ? 'no snapshot reaches farther.'
      : `its snapshots cannot be used: ${damages.map(({ message }) => message).join(' ')}`;
  return new SagittaError(
    'data_corrupt',
    `This node needs the log ${log} ${after}, but ${found} Restore SAGITTA_BLOBS, or found another cluster with the data directory of a node that holds everything, or with a backup (SAGITTA_CLUSTER_FOUND).`,
  );
}
