// The cluster that a process is a node of, as the routes and the other files of this folder see it; `cluster` and
// the entry point provide it.

import type { LogPositions } from '../wire/consistency.js';

export interface ClusterMember {
  /** The process: another one after each start. */
  readonly instance: string;
  /** Its name. */
  readonly node: string;
  readonly url: string;
  readonly version: string;
  readonly state: 'joining' | 'serving' | 'leaving';
  /** Of how many collections it carries out the writes. */
  readonly collectionCount: number;
  /** Where it may fail together with others; empty where that is not configured. */
  readonly zone: string;
}

export interface ClusterMemberStatus extends ClusterMember {
  readonly drain: 'none' | 'draining' | 'drained';
  /** How many collections it holds. */
  readonly heldCount: number;
}

interface ClusterStatus {
  readonly self: ClusterMember;
  readonly leader: ClusterMember | null;
  readonly members: readonly ClusterMemberStatus[];
  readonly durability: {
    readonly state: 'verified' | 'unverified' | 'insufficient';
    readonly detail: string;
  } | null;
}

/** The cluster that this process is a node of. */
export interface Cluster {
  readonly progress: ClusterProgress;
  /** For operators: it looks at every collection. */
  readonly status: ClusterStatus;
  /** This node. */
  readonly self: ClusterMember;
  /** The nodes that were heard of lately, with this one. */
  readonly present: readonly ClusterMember[];
  /**
   * What the monotonic clock of a process shows now, in milliseconds, by its last announcement; null for one that is not
   * heard of.
   */
  clockOf(instance: string): number | null;
  /** Whether this node carries out the writes of a collection, or with null those of the catalogue. */
  owns(incarnation: string | null): boolean;
  /** A write begins on this node. Returns the function that ends it. */
  beginWrite(incarnation: string | null): () => void;
  /**
   * The node that does, as far as this one knows; null for none. For a collection that this node does not hold, one
   * that does.
   */
  ownerOf(incarnation: string | null): ClusterMember | null;
  /** Resolves with that node when there is one. Rejects with the reason of the signal. */
  findOwner(incarnation: string | null, signal: AbortSignal): Promise<ClusterMember>;
  /** Whether this node has the rows of a collection. Also true of one that is deleted: no record says where it is. */
  holds(incarnation: string): boolean;
  /** The names of the nodes that do; null where all do. */
  placementOf(incarnation: string): { readonly nodes: readonly string[] } | null;
  /** A request for rows of a collection begins on this node. Returns the function that ends it. */
  beginRead(incarnation: string): () => void;
  /** Begins to move a collection. Throws `node_not_found`, `invalid_request`, and `no_leader` unless this node leads. */
  move(
    incarnation: string,
    nodes: { readonly from: string; readonly to: string },
  ): Promise<unknown>;
  /** From now on this node carries out the changes of the catalogue. */
  acquireCatalogue(): Promise<void>;
  /** Drains a node, or ends that; null for an unknown one. Throws `no_leader` unless this node leads. */
  drain(node: string, isOn: boolean): Promise<ClusterMemberStatus | null>;
  /** Reads the logs and the shared files, and tells what is wrong with them. */
  verifyFiles(signal: AbortSignal): Promise<readonly VerifiedFiles[]>;
}

/** Up to where the node has the logs of the catalogue and of collections. */
interface ClusterProgress {
  /** Up to where this node has the log of the catalogue. */
  readonly cataloguePositions: LogPositions;
  /** Of the logs that this node has written to since a time (`performance.now`), and of collections. */
  writtenSince(startedAtMs: number, incarnations: readonly string[]): LogPositions;
  /** Up to where this node has the logs of collections that it holds. */
  positionsOf(incarnations: readonly string[]): LogPositions;
  /** Resolves when everything is applied here that any node has acknowledged before, of a collection or the catalogue. */
  whenCurrent(incarnation: string | null, signal: AbortSignal): Promise<void>;
  /** The same for everything. */
  whenAllCurrent(signal: AbortSignal): Promise<void>;
  /** Resolves when this node has applied the logs up to there. Rejects with the reason of the signal. */
  whenApplied(positions: LogPositions, signal: AbortSignal): Promise<void>;
  /**
   * Resolves when this node has what a client has seen of a collection or the catalogue, as far as the log has it: the client
   * may name any position.
   */
  whenSeen(incarnation: string | null, positions: LogPositions, signal: AbortSignal): Promise<void>;
  /** The same for everything that the client has seen. */
  whenAllSeen(positions: LogPositions, signal: AbortSignal): Promise<void>;
}

/** What belongs together among the logs and the shared files. */
interface VerifiedFiles {
  readonly kind: 'log' | 'archive' | 'checkpoint' | 'origin';
  readonly name: string;
  /** Records of a log, chunks of an archive, files of the others. */
  readonly count: number;
  readonly byteCount: number;
  /** Null when everything is as it was written. */
  readonly problem: string | null;
}
