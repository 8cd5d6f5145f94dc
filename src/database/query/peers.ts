// What the nodes of a cluster ask each other for, to search together (scattered-search.ts).

import type { JsonObject } from '../../common/types.js';
import type { Position, SearchQuery } from '../../engine/core/engine.js';
import type { ExampleRanking, MultiRanking, VectorRanking } from './ranking.js';

/** The rows that writes from the sequence `from` to before `to` have inserted. */
export interface SequenceRange {
  readonly from: number;
  readonly to: number;
}

/** How rows are scored with the vectors of a query. */
export type Scoring =
  | Pick<VectorRanking, 'kind' | 'using'>
  | Pick<ExampleRanking, 'kind' | 'using' | 'formula'>
  | Pick<MultiRanking, 'kind' | 'using'>;

/** The rows that pass all filters and have the vector that is searched. */
export interface RankedRows {
  readonly scoring: Scoring;
  /** Where the segments have the vector that is searched; null for the unnamed one. */
  readonly column: string | null;
  readonly filters: readonly JsonObject[];
}

export type PartQuery = RankedRows & Omit<SearchQuery, 'views'>;

/** A part of the rows of a snapshot. */
interface Part extends SequenceRange {
  readonly incarnation: string;
  readonly sequence: number;
}

export interface SearchRequest extends Part {
  readonly kind: 'search';
  readonly queries: readonly PartQuery[];
}

/** The number of rows that come before each position. */
export interface CountRequest extends Part {
  readonly kind: 'count';
  readonly query: RankedRows & Pick<SearchQuery, 'vector' | 'metric'>;
  readonly positions: readonly Position[];
}

/** The best rows of a part for one query, best first. */
export interface PartHits {
  readonly ids: readonly string[];
  /** Of the writes that inserted the rows. */
  readonly sequences: readonly number[];
  /** Unrounded, as in `SearchHits`. */
  readonly scores: Float64Array;
  readonly scannedCount: number;
  readonly rescoredCount: number;
}

/** Why the search of a part is aborted when this node searches the part itself. */
export const TOO_LATE = new Error('The other node did not answer in time.');

/** Why it is aborted when this node has failed. */
export const NOT_NEEDED = new Error('The search has failed.');

/** Another node. Rejects when the node does not answer, and with the signal's reason. */
export interface Peer {
  /** One result a query. */
  search(request: SearchRequest, signal: AbortSignal): Promise<readonly PartHits[]>;
  /** One count a position. */
  count(request: CountRequest, signal: AbortSignal): Promise<Float64Array>;
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
