// Where commits become durable: the store itself on a single machine, and a shared log per collection plus one for the
// catalogue in a cluster. There, the store of each node follows the shared logs.

import { SagittaError } from '../common/errors.js';
import type { BlockRange } from '../platform/blocks.js';
import type { Store, StoreOperation } from './store.js';

/** Thrown when a commit took effect, or may have, but could not be applied here. */
export class MaybeCommittedError extends SagittaError {}

export interface CommitLog {
  /**
   * Works like `Store.commit`. In a cluster it also throws `no_leader` if another node has taken over and nothing was
   * written, and MaybeCommittedError.
   */
  commit(operations: readonly StoreOperation[]): Promise<void>;
  /**
   * Resolves when the store of this process holds everything that was committed before the call; undefined if it
   * already does. A shared log may be briefly ahead of the store. Rejects if the store could not apply a commit.
   */
  whenStored(): Promise<void> | undefined;
  /** Whether this process may currently commit. */
  readonly isWritable: boolean;
}

/** A file that a log is going to name. */
export interface FileToShare {
  readonly byteLength: number;
  /** See `digestOfBlocks`. */
  readonly digest: string;
  /** The blocks that a process keeps which does not keep all of the file. */
  readonly kept: readonly BlockRange[];
  /** By which the processes are chosen that keep all of it. */
  readonly homeKey: string;
}

/** A file that the processes of a cluster have, with the bytes of its rows. */
export interface PresentFile {
  readonly homeKey: string;
  readonly dataBytes: number;
}

/** How the processes of a cluster share files that their logs name. */
export interface FileSharing {
  /**
   * A key for a new file of a collection, by which this process keeps all of it unless it keeps more than its share of the
   * bytes of the present ones, and otherwise processes that keep less.
   */
  homeKeyFor(incarnation: string, present: readonly PresentFile[]): string;
  /** Resolves with the name of the file in the shared files when it is durable there. */
  upload(
    incarnation: string,
    file: FileToShare,
    content: { readonly parts: readonly Uint8Array[]; readonly blockDigests: Uint8Array },
  ): Promise<string>;
  /**
   * Writes a file to the store of this process under a name: all of it, or what this process keeps. `parts` are its bytes;
   * null reads the shared file. Rejects with `data_corrupt` if that is damaged or missing.
   */
  fetch(
    incarnation: string,
    file: FileToShare & { readonly blob: string },
    target: { readonly name: string; readonly parts: readonly Uint8Array[] | null },
  ): Promise<void>;
  /** Whether a log may still name the file: files that it does not name are removed when newer snapshots exist. */
  mayName(incarnation: string, blob: string): boolean;
  /** Removes a file that no log names. */
  remove(blob: string): Promise<void>;
}

export interface CollectionPlacement {
  /** Names of the nodes that hold the collection. */
  readonly nodes: readonly string[];
  /** The node that is being added; null for none. */
  readonly joining: string | null;
  /** The node that `joining` replaces; null for none. */
  readonly leaving: string | null;
}

export interface NewLogOptions {
  readonly isCopied: boolean;
  /** Number of nodes that should hold the collection; null for all of them. */
  readonly replicationFactor: number | null;
}

export interface CommitLogs {
  /** The log of everything outside collections: the list of collections, aliases and API keys. */
  readonly catalogue: CommitLog;
  /**
   * The log of a collection that is loaded here. Its commits throw `no_leader` if this process no longer owns the log.
   */
  ofCollection(incarnation: string): CommitLog;
  /**
   * The log for replies to requests about a collection. This is the collection's log, or the catalogue's if the
   * collection is gone or held only by other nodes.
   */
  ofReplies(incarnation: string): CommitLog;
  /** Whether the process runs without a cluster and thus holds all collections. */
  readonly isAlone: boolean;
  /** Null without a cluster. */
  readonly files: FileSharing | null;
  /** Whether this process should hold the rows of the collection. */
  holds(incarnation: string): boolean;
  /** The placement of a collection; null if all nodes hold it. */
  placementOf(incarnation: string): CollectionPlacement | null;
  /** Operations for the catalogue that change the replication factor; a null factor means all nodes. */
  replicate(incarnation: string, factor: number | null): readonly StoreOperation[];
  /**
   * Called before the catalogue names a new collection; the returned operations are committed with it. `isCopied` means
   * that the data already exists in this store only, where it stays, and does not change during the call.
   */
  create(incarnation: string, options: NewLogOptions): Promise<readonly StoreOperation[]>;
  /** Operations for the catalogue that go with the removal of a collection. */
  removal(incarnation: string): readonly StoreOperation[];
  /** Called before loading a collection that another process created. */
  prepare(incarnation: string): Promise<void>;
  /** Called when the catalogue no longer names a collection, or never came to name a new one. */
  drop(incarnation: string): Promise<void>;
  /** Cancels running work on the log of a collection that another process removed. */
  end(incarnation: string): void;
  /**
   * Resolves when this process holds everything that was committed to the collection's log and no other process can
   * commit to it. Used for catalogue changes that must not overlap with a write. Throws `no_leader`.
   */
  acquire(incarnation: string): Promise<void>;
  /** Resolves when this process holds everything that was committed to the collection's log before the call. */
  whenCurrent(incarnation: string): Promise<void>;
}

/** The logs of a process without a cluster: all of them are the store. */
export function logsOfStore(store: Store): CommitLogs {
  const log: CommitLog = {
    commit: (operations) => store.commit(operations),
    whenStored: () => undefined,
    isWritable: true,
  };
  const nothing = async () => {};
  return {
    catalogue: log,
    isAlone: true,
    files: null,
    holds: () => true,
    placementOf: () => null,
    replicate: () => [],
    ofCollection: () => log,
    ofReplies: () => log,
    create: async () => [],
    removal: () => [],
    prepare: nothing,
    drop: nothing,
    end: () => {},
    acquire: nothing,
    whenCurrent: nothing,
  };
}
