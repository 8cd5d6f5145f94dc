// The cluster as the server sees it. `src/cluster` implements the interface, and the entry point passes it in.

import type { Changes } from '../../common/changes.js';
import type { ServiceProblem } from '../../common/problems.js';
import type { LogPositions } from '../wire/consistency.js';

export interface ClusterMember {
  /** Identifies the process; a node gets a new one at each start. */
  readonly instance: string;
  /** The configured name. */
  readonly node: string;
  readonly url: string;
  readonly version: string;
  readonly state: 'joining' | 'serving' | 'leaving';
  /** The number of collections whose writes it carries out. */
  readonly collectionCount: number;
  /** The failure domain; empty if none is configured. */
  readonly zone: string;
}

export interface ClusterMemberStatus extends Omit<ClusterMember, 'state'> {
  /** `absent`: not heard from recently, although it did not leave. */
  readonly state: ClusterMember['state'] | 'absent';
  /** How long it has not been heard from, if it is absent; otherwise 0. */
  readonly silentSeconds: number;
  readonly problems: readonly ServiceProblem[];
  readonly drain: 'none' | 'draining' | 'drained';
  /** The number of collections that it holds. */
  readonly heldCount: number;
}

interface ClusterStatus {
  readonly self: ClusterMember;
  readonly leader: ClusterMember | null;
  readonly members: readonly ClusterMemberStatus[];
  /** Collections with problems that the node as a whole does not have. */
  readonly collections: readonly (Pick<ServiceProblem, 'code' | 'detail'> & {
    readonly incarnation: string;
  })[];
  /** The servers that store the log of the catalogue; empty if unknown. */
  readonly servers: readonly {
    readonly name: string;
    readonly isLeader: boolean;
    readonly silentMs: number;
    readonly lag: number;
  }[];
  readonly durability: {
    readonly state: 'verified' | 'unverified' | 'insufficient';
    readonly detail: string;
  } | null;
}

/** The cluster that this process is a node of. */
export interface Cluster {
  readonly progress: ClusterProgress;
  readonly health: {
    /** For operators; computing it visits every collection. */
    readonly status: ClusterStatus;
    /** What is wrong with this node at the moment. */
    readonly problems: readonly ServiceProblem[];
  };
  readonly self: ClusterMember;
  /** The nodes that announced themselves recently, including this one. */
  readonly present: readonly ClusterMember[];
  /**
   * The current time of another process's monotonic clock in milliseconds, derived from its last announcement; null if
   * it has not announced itself recently.
   */
  clockOf(instance: string): number | null;
  /** Whether this node carries out the writes of a collection, or of the catalogue if null. */
  owns(incarnation: string | null): boolean;
  /** Marks the start of a write on this node. Returns the function that ends it. */
  beginWrite(incarnation: string | null): () => void;
  /**
   * The node that carries out the writes of the catalogue, or of a collection that this node holds; null if this node
   * knows none.
   */
  ownerOf(incarnation: string | null): ClusterMember | null;
  /** The names of the nodes that keep a whole segment file with a key; null for all that hold it. */
  keepersOf(incarnation: string, homeKey: string): readonly string[] | null;
  /** Changes of members, and of owners of logs. */
  readonly changes: Pick<Changes, 'until'>;
  /** Whether this node holds the rows of a collection. Also true for a deleted one, whose placement is gone. */
  holds(incarnation: string): boolean;
  /** The names of the nodes that hold a collection; null if all nodes do. */
  placementOf(incarnation: string): { readonly nodes: readonly string[] } | null;
  /** Marks the start of a read of rows on this node. Returns the function that ends it. */
  beginRead(incarnation: string): () => void;
  /**
   * Starts to move a collection. Throws `node_not_found`, `invalid_request`, and `no_leader` unless this node
   * leads.
   */
  move(
    incarnation: string,
    nodes: { readonly from: string; readonly to: string },
  ): Promise<unknown>;
  /** Makes this node the owner of the catalogue. */
  acquireCatalogue(): Promise<void>;
  /** Drains a node or ends the drain; null for an unknown node. Throws `no_leader` unless this node leads. */
  drain(node: string, isOn: boolean): Promise<ClusterMemberStatus | null>;
  /** Reads the logs and the shared files and reports damage. */
  verifyFiles(signal: AbortSignal): Promise<readonly VerifiedFiles[]>;
}

/** How far this node has applied the logs of the catalogue and of collections. */
interface ClusterProgress {
  readonly cataloguePositions: LogPositions;
  /**
   * Positions of the logs that this node has written to since a time (`performance.now`), and of those of these
   * collections.
   */
  writtenSince(startedAtMs: number, incarnations: readonly string[]): LogPositions;
  /** Positions of the logs of these collections, as far as this node holds them. */
  positionsOf(incarnations: readonly string[]): LogPositions;
  /**
   * Resolves when this node has applied every write of a collection, or the catalogue, acknowledged before the
   * call.
   */
  whenCurrent(incarnation: string | null, signal: AbortSignal): Promise<void>;
  /** The same for the catalogue and all collections. */
  whenAllCurrent(signal: AbortSignal): Promise<void>;
  /** Resolves when this node has applied the logs up to the positions. Rejects with the reason of the signal. */
  whenApplied(positions: LogPositions, signal: AbortSignal): Promise<void>;
  /**
   * Resolves when this node has applied what a client has seen of a collection or the catalogue. A client may name any
   * position, so the wait ends at the end of the log.
   */
  whenSeen(incarnation: string | null, positions: LogPositions, signal: AbortSignal): Promise<void>;
  /** The same for all logs that the client has seen. */
  whenAllSeen(positions: LogPositions, signal: AbortSignal): Promise<void>;
}

/** A log, or a group of shared files that belong together. */
interface VerifiedFiles {
  readonly kind: 'log' | 'archive' | 'snapshot' | 'origin';
  readonly name: string;
  /** Records of a log, chunks of an archive, or files. */
  readonly count: number;
  readonly byteCount: number;
  /** Null if nothing is damaged. */
  readonly problem: string | null;
}
