// Brings what a node does not have of a log into its store: the newest snapshot, from where the archive and the log go
// on. Also for a log that has been cut beyond what the node has: what it has is then replaced. The database may be
// open, and serves other collections meanwhile. A store without a place in a log has nothing of it that counts.

import { SagittaError } from '../../common/errors.js';
import type { Logger } from '../../common/logger.js';
import type { Store, StoreOperation } from '../../storage/store.js';
import type { Blobs } from '../blobs/blobs.js';
import { findAppliedPosition, startPositionOperation } from '../logs/applied-position.js';
import { isDamage } from '../logs/collection-log.js';
import { CATALOGUE } from '../logs/store-keys.js';
import { removeState, type StoreLayout, stateOf } from './log-state.js';
import { SnapshotFiles, type SnapshotIndex } from './snapshot-files.js';

/** The database of the node, as far as the state of collections is replaced. */
export interface ReloadingDatabase {
  /** Nothing reads from the store what it has of the collection, or writes there, when this resolves. */
  unloadCollection(incarnation: string): Promise<void>;
  loadCollection(incarnation: string): Promise<void>;
}

export interface StateLoaderOptions {
  readonly store: Store;
  readonly blobs: Blobs;
  readonly layout: StoreLayout;
  /** Null until one is open. */
  readonly database: () => ReloadingDatabase | null;
  /** Stores operations in one transaction and applies them, as those of the log of the catalogue. */
  readonly applyCatalogue: (operations: readonly StoreOperation[]) => Promise<void>;
  readonly logger: Logger;
}

export class StateLoader {
  readonly #options: StateLoaderOptions;

  constructor(options: StateLoaderOptions) {
    this.#options = options;
  }

  /**
   * Replaces what the store has of a log by the newest snapshot that reaches farther. The log must not be followed
   * meanwhile. Where the store has no place in the log, and there is no snapshot, it gets the place at the start.
   * Throws `data_corrupt` when there is nothing to go on with, and the reason of the signal; a log without a place is
   * to be loaded again then.
   */
  async load(log: string, signal: AbortSignal): Promise<void> {
    const { store, blobs, logger } = this.#options;
    const files = new SnapshotFiles(blobs, log);
    const before = findAppliedPosition(store, log)?.position ?? -1;
    const damages = new Map<string, Error>();
    for (;;) {
      const listed = (await files.list()).filter(({ position }) => position > before);
      const next = listed.findLast(({ name }) => !damages.has(name));
      if (next === undefined && listed.length === 0 && before < 0) {
        await store.commit([startPositionOperation(log)]);
        return;
      }
      if (next === undefined) throw nothingToBeginWith(log, before, [...damages.values()]);
      try {
        const index = await files.read(next.name);
        await this.#replace(index, files, signal);
        logger.info({ log, snapshot: next.name }, 'the state of a log was loaded from a snapshot');
        return;
      } catch (error) {
        if (!isDamage(error)) throw error;
        // It may have been removed in the meantime, for a newer one.
        damages.set(next.name, error as Error);
        logger.warn(
          { log, snapshot: next.name, err: error },
          'a snapshot cannot be used; another one is looked for',
        );
      }
    }
  }

  /** Removes what the store has of a collection, and its place in the log, which must not be followed. */
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
    const { store, database } = this.#options;
    await this.remove(index.log);
    for (const file of index.files) {
      signal.throwIfAborted();
      await store.writeBlob(file.name, [await files.readFile(file)]);
    }
    for await (const operations of files.readState(index)) {
      signal.throwIfAborted();
      await store.commit(operations);
    }
    await database()?.loadCollection(index.log);
  }

  /** As what others have committed since: a database that is open goes on with it. */
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
        // A collection may have got the name of another one that is gone.
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

function nothingToBeginWith(
  log: string,
  position: number,
  damages: readonly Error[],
): SagittaError {
  const after = position < 0 ? 'from its beginning' : `after position ${position}`;
  const found =
    damages.length === 0
      ? 'there is no snapshot of it that reaches farther.'
      : `its snapshots cannot be used: ${damages.map(({ message }) => message).join(' ')}`;
  return new SagittaError(
    'data_corrupt',
    `This node needs the log ${log} ${after}, and ${found} Restore SAGITTA_BLOBS, or start another cluster from the data directory of a node that has everything, or from a backup (SAGITTA_CLUSTER_FOUND).`,
  );
}
