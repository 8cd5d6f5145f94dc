// The requests that nodes of a cluster send each other to share a search (scattered-search.ts).

import type { RankKey } from '../../common/rank-key.js';
import type { JsonObject, Metric } from '../../common/types.js';
import type { SearchQuery } from '../../engine/core/engine.js';
import type { Formula } from '../../engine/core/example-search.js';

/** Rows that were inserted by writes with a sequence from `from` to before `to`. */
export interface SequenceRange {
  readonly from: number;
  readonly to: number;
}

/** A ranking as cursors and other nodes receive it: without anything that can be derived from the rest. */
export interface SealedRanking {
  readonly kind: string;
}

/** A sealed ranking that scores every row by its vectors. */
export interface SealedVectors extends SealedRanking {
  readonly kind: 'vector' | 'examples' | 'multi';
  readonly vector: Float32Array;
  readonly metric: Metric;
  /** The name of the vector that is searched; '' for the unnamed one. */
  readonly using: string;
  /** The column of the vector in the segments, if it differs from the name. */
  readonly column?: string | undefined;
  /** The formula of a ranking by examples. */
  readonly formula?: Formula | undefined;
  readonly excludedIds: readonly string[];
  /** A digest of the request, when the sealed ranking does not show all of it; null otherwise. */
  readonly digest: string | null;
}

/** Rows that pass all filters and have the searched vector, and their ranking. */
interface RankedRows {
  readonly ranking: SealedVectors;
  readonly filters: readonly JsonObject[];
}

export type PeerQuery = RankedRows & Pick<SearchQuery, 'k' | 'after' | 'scoreMin'>;

/** Some of the rows of a snapshot. */
interface SnapshotRows {
  readonly incarnation: string;
  readonly sequence: number;
  /** Ascending, without overlaps. */
  readonly ranges: readonly SequenceRange[];
}

export interface PeerSearchRequest extends SnapshotRows {
  readonly kind: 'search';
  readonly queries: readonly PeerQuery[];
}

/** Asks for the number of rows that come before each rank key. */
export interface PeerCountRequest extends SnapshotRows {
  readonly kind: 'count';
  readonly query: RankedRows;
  readonly rankKeys: readonly RankKey[];
}

/** The best of the rows for one query, best first. */
export interface PeerHits {
  readonly ids: readonly string[];
  /** The sequences of the writes that inserted the rows. */
  readonly sequences: readonly number[];
  /** Unrounded, as in `SearchHits`. */
  readonly scores: Float64Array;
  readonly scannedCount: number;
  readonly rescoredCount: number;
}

/** The reason of the abort when this node searches the rows itself. */
export const PEER_TIMEOUT = new Error('The other node did not answer in time.');

/** The reason of the abort when the search has failed on this node. */
export const SEARCH_FAILED = new Error('The search has failed.');

/** Another node. Its methods reject when the node does not answer, and with the signal's reason. */
export interface Peer {
  /** Returns one result per query. */
  search(request: PeerSearchRequest, signal: AbortSignal): Promise<readonly PeerHits[]>;
  /** Returns one count per rank key. */
  count(request: PeerCountRequest, signal: AbortSignal): Promise<Float64Array>;
}

/** A node that holds a collection; `peer` is null for this one. */
export interface Holder {
  readonly node: string;
  readonly peer: Peer | null;
}

export interface Peers {
  /** The reachable nodes that hold a collection, in an order that is the same on all nodes; empty without a cluster. */
  holding(incarnation: string): readonly Holder[];
  /** The names of the nodes that keep the whole file of a segment with a key; null for all holders. */
  keeping(incarnation: string, homeKey: string): readonly string[] | null;
  /** Searches of fewer values are not worth the requests; infinity without a cluster. */
  readonly valuesMin: number;
}

/** Used without a cluster, and by a search for another node. */
export const NO_PEERS: Peers = {
  holding: () => [],
  keeping: () => null,
  valuesMin: Number.POSITIVE_INFINITY,
};
