// Where commits become durable. On one machine that is the store. On several it is a log that the nodes share, of
// a collection or of the catalogue; the store of each node then has what was committed there.

import { SagittaError } from '../common/errors.js';
import type { Store, StoreOperation } from './store.js';

/** Thrown for a commit that took effect, or may have, although it could not be carried through here. */
export class MaybeCommittedError extends SagittaError {}

export interface CommitLog {
  /**
   * Like `Store.commit`, whatever the operations are about. With several nodes it also throws `no_leader` where
   * another node has taken over, and then nothing was written, and MaybeCommittedError.
   */
  commit(operations: readonly StoreOperation[]): Promise<void>;
  /**
   * Resolves when the store of this process has everything that was committed before the call; undefined when it has.
   * A shared log may be ahead of it for a moment. Rejects when the store could not take it.
   */
  whenStored(): Promise<void> | undefined;
  /** Whether this process may commit at the moment. */
  readonly isWritable: boolean;
}

export interface CollectionPlacement {
  /** The names of the nodes that hold it. */
  readonly nodes: readonly string[];
  /** The node that brings it in; null for none. */
  readonly joining: string | null;
  /** The node whose place that one takes; null for none. */
  readonly leaving: string | null;
}

export interface NewLogOptions {
  readonly isCopied: boolean;
  /** How many nodes are to hold the collection; null for all. */
  readonly replicationFactor: number | null;
}

export interface CommitLogs {
  /** Of what is not part of a collection: which collections there are, aliases, API keys. */
  readonly catalogue: CommitLog;
  /** Of a collection that is loaded here. Commits throw `no_leader` where this process no longer has the log. */
  ofCollection(incarnation: string): CommitLog;
  /**
   * To which this process commits replies to requests about a collection: its log, or that of the catalogue where this
   * process does not have it, as the collection is gone or other nodes hold it.
   */
  ofReplies(incarnation: string): CommitLog;
  /** Whether the process is alone, and so has all collections. */
  readonly isAlone: boolean;
  /** Whether this process is to have the rows of a collection. */
  holds(incarnation: string): boolean;
  /** Where a collection is; null where all nodes have it. */
  placementOf(incarnation: string): CollectionPlacement | null;
  /** What the catalogue commits together with another replication factor; null for all nodes. */
  replicate(incarnation: string, factor: number | null): readonly StoreOperation[];
  /**
   * Called before the catalogue names a new collection, which gets the operations together with it.
   * `isCopied`: the store has it already, and nothing else has; nothing changes it meanwhile. It then stays here, too.
   */
  create(incarnation: string, options: NewLogOptions): Promise<readonly StoreOperation[]>;
  /** What the catalogue commits together with the removal of a collection. */
  removal(incarnation: string): readonly StoreOperation[];
  /** Called before a collection is loaded that another process has created. */
  prepare(incarnation: string): Promise<void>;
  /** Called when the catalogue no longer names a collection, and when it never came to name a new one. */
  drop(incarnation: string): Promise<void>;
  /** Ends what is under way at the log of a collection that another process has removed. */
  end(incarnation: string): void;
  /**
   * Afterwards this process has everything that was committed to the log of a collection, and no other one can
   * commit to it: for changes of the catalogue that no write may overlap. Throws `no_leader`.
   */
  acquire(incarnation: string): Promise<void>;
  /** Resolves when this process has what was committed to the log of a collection before the call. */
  whenCurrent(incarnation: string): Promise<void>;
}

/** The logs of a process that is alone: all of them are the store. */
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
