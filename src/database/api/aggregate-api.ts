// Requests and replies of aggregations: counts of values and summaries of numbers.

import type { JsonNumber, JsonObject } from '../../common/types.js';
import type { Warning } from './warning.js';

/** A scalar metadata value that vectors are counted or grouped by. */
export type FacetValue = string | JsonNumber | boolean;

export interface FacetRequest {
  readonly path: string;
  /** The number of values to return. */
  readonly limit: number;
  /** Whether to ignore the filter's conditions on this path. */
  readonly ignoreOwnFilter?: boolean | undefined;
}

/** Buckets of equal width between two bounds, which by default are the least and the greatest number. */
export interface HistogramRequest {
  readonly bucketCount: number;
  readonly min?: number | undefined;
  readonly max?: number | undefined;
}

export interface StatsRequest {
  readonly path: string;
  readonly histogram?: HistogramRequest | undefined;
}

/** Facets and stats to compute for the rows that pass a filter. */
export interface AggregationRequest {
  readonly facets?: readonly FacetRequest[] | undefined;
  readonly stats?: readonly StatsRequest[] | undefined;
}

export interface AggregateRequest extends AggregationRequest {
  readonly filter?: JsonObject | undefined;
  readonly minSequence?: number | undefined;
}

export interface Facet {
  readonly path: string;
  /** By descending count; equal counts in the order of their values. */
  readonly values: readonly { readonly value: FacetValue; readonly count: number }[];
  readonly distinctCount: number;
  /** Rows without a value. */
  readonly missingCount: number;
}

export interface Histogram {
  readonly buckets: readonly {
    readonly from: number;
    /** Exclusive, except in the last bucket. */
    readonly to: number;
    readonly count: number;
  }[];
  readonly belowCount: number;
  readonly aboveCount: number;
}

export interface Stats {
  readonly path: string;
  /** The number of numbers; an array counts each of its own. */
  readonly count: number;
  /** Rows without a number. */
  readonly missingCount: number;
  /** Absent, like the next three, when no row has a number. */
  readonly min?: JsonNumber | undefined;
  readonly max?: JsonNumber | undefined;
  readonly sum?: JsonNumber | undefined;
  readonly mean?: number | undefined;
  readonly histogram?: Histogram | undefined;
}

/** Absent members were not requested. */
export interface Aggregations {
  readonly facets?: readonly Facet[] | undefined;
  readonly stats?: readonly Stats[] | undefined;
}

export interface AggregateReply extends Aggregations {
  readonly warnings?: readonly Warning[] | undefined;
  /** Rows that pass the filter. */
  readonly count: number;
  readonly sequence: number;
}

export interface SchemaRequest {
  readonly filter?: JsonObject | undefined;
  readonly limit?: number | undefined;
  /** Only paths after this one. */
  readonly after?: string | undefined;
}

export interface TypeCounts {
  readonly null: number;
  readonly boolean: number;
  readonly number: number;
  readonly string: number;
  readonly array: number;
  readonly object: number;
}

export interface FoundPath {
  readonly path: string;
  /** Rows that have the path, including those with null. */
  readonly count: number;
  /** Rows by the type of their value. */
  readonly types: TypeCounts;
  /** Elements of arrays by their type; undefined without arrays. */
  readonly elementTypes: TypeCounts | undefined;
  /** Distinct strings, numbers and booleans, including those in arrays. */
  readonly distinctCount: number;
  /** Whether `distinctCount` is exact; otherwise it is a lower bound. */
  readonly isDistinctExact: boolean;
  /** The least number; absent, like the greatest, without any. */
  readonly min?: JsonNumber;
  readonly max?: JsonNumber;
}

export interface FoundSchema {
  /** In the order of UTF-16 code units. */
  readonly paths: readonly FoundPath[];
  readonly hasMore: boolean;
  /** The `after` of the next page. */
  readonly nextAfter: string | undefined;
  /** Rows that pass the filter. */
  readonly count: number;
  readonly sequence: number;
  /** Present on the first page only. */
  readonly warnings?: readonly Warning[] | undefined;
}
