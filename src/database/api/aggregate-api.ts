// Requests and replies of aggregations: counts of values and summaries of numbers.

import type { JsonNumber, JsonObject } from '../../common/types.js';
import type { Warning } from './warning.js';

/** A scalar of metadata that vectors are counted or grouped by. */
export type FacetValue = string | JsonNumber | boolean;

export interface FacetRequest {
  readonly path: string;
  /** How many values are returned. */
  readonly limit: number;
  /** Whether rows are counted that only conditions of the filter on this path exclude. */
  readonly ignoreOwnFilter?: boolean | undefined;
}

/** Buckets of equal width between two bounds; an absent bound is the least or the greatest number. */
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
  /** The most frequent first; equal counts in the order of values. */
  readonly values: readonly { readonly value: FacetValue; readonly count: number }[];
  readonly distinctCount: number;
  /** Rows without a value. */
  readonly missingCount: number;
}

export interface Histogram {
  readonly buckets: readonly {
    readonly from: number;
    /** Not part of the bucket, except in the last one. */
    readonly to: number;
    readonly count: number;
  }[];
  readonly belowCount: number;
  readonly aboveCount: number;
}

export interface Stats {
  readonly path: string;
  /** Numbers. An array has several. */
  readonly count: number;
  /** Rows without a number. */
  readonly missingCount: number;
  /** These four are absent when there is no number. */
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
  /** Rows that have the path, also with null. */
  readonly count: number;
  /** Rows by the type of their value. */
  readonly types: TypeCounts;
  /** Elements of arrays by their type; undefined without arrays. */
  readonly elementTypes: TypeCounts | undefined;
  /** Distinct strings, numbers and booleans, also in arrays. */
  readonly distinctCount: number;
  /** False when there are at least so many. */
  readonly isDistinctExact: boolean;
  /** The least and the greatest of the numbers; absent without any. */
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
  /** On the first page. */
  readonly warnings?: readonly Warning[] | undefined;
}
