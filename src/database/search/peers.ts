// The requests of the nodes of a cluster to each other, by which they search together (scattered-search.ts).

import type { RankKey } from '../../common/rank-key.js';
import type { JsonObject, Metric } from '../../common/types.js';
import type { SearchQuery } from '../../engine/core/engine.js';
import type { Formula } from '../../engine/core/example-search.js';

/** The rows that writes from the sequence `from` to before `to` have inserted. */
export interface SequenceRange {
  readonly from: number;
  readonly to: number;
}

/** A ranking as cursors and other nodes get it: without what is made again of the rest. */
export interface SealedRanking {
  readonly kind: string;
}

/** One that scores every row with vectors. */
export interface SealedVectors extends SealedRanking {
  readonly kind: 'vector' | 'examples' | 'multi';
  readonly vector: Float32Array;
  readonly metric: Metric;
  /** The name of the vector that is searched; '' for the unnamed one. */
  readonly using: string;
  /** Where the segments have it, if not under its name. */
  readonly column?: string | undefined;
  /** The formula of a ranking by examples. */
  readonly formula?: Formula | undefined;
  readonly excludedIds: readonly string[];
  /** A digest of what the ranking was made of, where that cannot be seen in it. */
  readonly digest: string | null;
}

/** The rows that pass all filters and have the vector that is searched. */
interface RankedRows {
  readonly ranking: SealedVectors;
  readonly filters: readonly JsonObject[];
}

export type PeerQuery = RankedRows & Pick<SearchQuery, 'k' | 'after' | 'scoreMin'>;

/** A part of the rows of a snapshot. */
interface Part extends SequenceRange {
  readonly incarnation: string;
  readonly sequence: number;
}

export interface PeerSearchRequest extends Part {
  readonly kind: 'search';
  readonly queries: readonly PeerQuery[];
}

/** The number of rows that come before each rank key. */
export interface PeerCountRequest extends Part {
  readonly kind: 'count';
  readonly query: RankedRows;
  readonly rankKeys: readonly RankKey[];
}

/** The best rows of a part for one query, best first. */
export interface PeerHits {
  readonly ids: readonly string[];
  /** The sequences of the writes that inserted the rows. */
  readonly sequences: readonly number[];
  /** Unrounded, as in `SearchHits`. */
  readonly scores: Float64Array;
  readonly scannedCount: number;
  readonly rescoredCount: number;
}

/** Why the search of a part is aborted when this node searches the part itself. */
export const PEER_TIMEOUT = new Error('The other node did not answer in time.');

/** Why it is aborted when this node has failed. */
export const SEARCH_FAILED = new Error('The search has failed.');

/** Another node. Rejects when the node does not answer, and with the signal's reason. */
export interface Peer {
  /** One result a query. */
  search(request: PeerSearchRequest, signal: AbortSignal): Promise<readonly PeerHits[]>;
  /** One count a rank key. */
  count(request: PeerCountRequest, signal: AbortSignal): Promise<Float64Array>;
}

export interface Peers {
  /**
   * The nodes that hold a collection and answer at the moment, this one as null, in an order that is the same on all of
   * them; none for a service that is alone.
   */
  holding(incarnation: string): readonly (Peer | null)[];
  /** Searches of fewer values are not worth the requests; infinity for a service that is alone. */
  readonly valuesMin: number;
}

/** The peers of a service that is alone, and of a search on behalf of another node. */
export const NO_PEERS: Peers = { holding: () => [], valuesMin: Number.POSITIVE_INFINITY };
