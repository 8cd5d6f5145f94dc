// What the rows of a query are ranked by. Each kind of ranking is one module, behind the interfaces of this file: a kind
// checks requests and plans rankings from them, a ranking is opened in a snapshot, and an open ranking searches its rows.

import { createHash } from 'node:crypto';
import type { FieldPath, IssueLocation, ValidationIssue, Violation } from '../../common/errors.js';
import { stringifyExactJson } from '../../common/exact-json.js';
import type { Limits } from '../../common/limits.js';
import type { RankKey } from '../../common/rank-key.js';
import type { JsonObject, Metric } from '../../common/types.js';
import type { Engine, SearchHits, SearchQuery } from '../../engine/core/engine.js';
import type { Formula } from '../../engine/core/example-search.js';
import type { FilterNode } from '../../filter/filter-node.js';
import type { QueryRequest, TargetRequest } from '../api/query-api.js';
import type { Collection } from '../collection/collection.js';
import type { SegmentView } from '../collection/snapshot.js';
import type { SnapshotView } from '../collection/snapshot-view.js';
import type { SealedRanking } from '../search/peers.js';
import type { EngineSearch } from '../search/scattered-search.js';
import type { Filter, PassingRows } from './passing-rows.js';

export interface RankingKind {
  readonly kind: string;
  /** The issues of a request that show without its collection. */
  check(request: TargetRequest, context: CheckContext): readonly ValidationIssue[];
  /**
   * @param path of the request within the body.
   * Throws `invalid_request`, `dimension_mismatch`, `invalid_vector`, `limit_exceeded` and `invalid_filter`, and
   * `vector_not_found` at the id.
   */
  plan(request: TargetRequest, context: RankingContext, path: FieldPath): Ranking;
  /** Makes the ranking of its sealed form. Throws `cursor_expired` where its vector was dropped, and what `plan` throws where limits have changed. */
  unseal(sealed: SealedRanking, context: RankingContext, path: FieldPath): Ranking;
}

/** Has everything that decides the order of rows. */
export abstract class Ranking {
  abstract readonly kind: string;
  abstract readonly repeats: Repeats;

  /** Stored vectors that the request names, which are left out of the result. */
  get excludedIds(): readonly string[] {
    return [];
  }

  /** The single vectors that it compares, of whose scores there are statistics and diversity; null for other rankings. */
  get scoring(): Scoring | null {
    return null;
  }

  /** Whether its scores are made of distances. */
  get hasDistance(): boolean {
    return false;
  }

  /** The name of the engine or of the method that searches for it, as `explain` tells. */
  searcher(_engine: Pick<Engine, 'name'>): string {
    return this.kind;
  }

  /** The score as users see it, before it is rounded. */
  shownScore(score: number): number {
    return score;
  }

  /** Its form for a cursor and other nodes of a cluster, without what is made again of the rest. */
  abstract seal(collection: Collection): SealedRanking;

  /** Rejects with `overloaded` and with the signal's reason. */
  abstract open(rows: PassingRows): Promise<OpenRanking>;
}

/** Whether a member that is sent with a cursor is what the ranking was made of; a member without a test never is. */
export type Repeats = {
  readonly [Member in keyof Pick<QueryRequest, keyof TargetRequest | 'prefetch'>]?: (
    sent: NonNullable<QueryRequest[Member]>,
  ) => boolean;
};

export interface Scoring {
  /** With a formula the examples, row-major. */
  readonly vector: Float32Array;
  readonly metric: Metric;
  readonly formula: Formula | null;
}

/** A ranking in a snapshot. */
export interface OpenRanking {
  /** With only the rows that it ranks, and without views that then have none. Engines recognize the array. */
  readonly views: readonly SegmentView[];
  /** Its best rows in the views of the query. Rejects with `overloaded`. */
  search(query: RowQuery): Promise<SearchHits>;
  /** The number of rows of the views that come before each rank key. */
  countBefore(views: readonly SegmentView[], rankKeys: readonly RankKey[]): Promise<Float64Array>;
  /** The search of the engine, which searches for many queries together; absent for rankings that it does not search. */
  engineSearch?(query: RowQuery): EngineSearch;
}

/** Which rows of a ranking are asked for. */
export interface RowQuery extends Pick<SearchQuery, 'k' | 'after' | 'scoreMin'> {
  readonly views: readonly SegmentView[];
}

export type Locate = (...path: FieldPath) => IssueLocation;

export interface CheckContext {
  readonly limits: Limits;
  readonly locate: Locate;
  /** The issues of a part of a ranking. */
  checkPart(request: TargetRequest, locate: Locate): readonly ValidationIssue[];
}

export interface RankingContext {
  readonly view: SnapshotView;
  readonly limits: Limits;
  /** Throws `invalid_filter` at the path of the filter. Equal filters get the same node, which is then evaluated once. */
  readonly parseFilter: (filter: JsonObject, path: FieldPath) => FilterNode;
  /** A ranking that is a part of another one. */
  plan(request: TargetRequest, path: FieldPath): Ranking;
  unseal(sealed: SealedRanking, path: FieldPath): Ranking;
}

/** The filter of a part of a ranking. */
export function partFilter(
  filter: JsonObject | null | undefined,
  { parseFilter }: RankingContext,
  path: FieldPath,
): Filter {
  if (filter == null) return { filter: null, filterNode: null };
  return { filter, filterNode: parseFilter(filter, [...path, 'filter']) };
}

/** A member of a request that a ranking was made of, or its digest, by which a cursor recognizes it. */
export type Origin = object | string | null;

export function digestOf(origin: Origin): string | null {
  if (origin === null || typeof origin === 'string') return origin;
  const text = stringifyExactJson(origin, (value) =>
    value instanceof Float32Array || value instanceof Uint32Array ? [...value] : value,
  );
  return createHash('sha256').update(text).digest('base64url');
}

export function tooManyVectors(actual: number, { queryVectorsMax: expected }: Limits): Violation {
  const detail = `Expected at most ${expected} vectors to search with; found ${actual}.`;
  return { code: 'limit_exceeded', detail, expected, actual };
}

/** The issues of members that compare vectors and do not go with a ranking by something else. */
export function findMisplaced<Name extends string>(
  request: Partial<Record<Name, unknown>>,
  names: readonly Name[],
  other: string,
  locate: Locate,
): ValidationIssue[] {
  return names.flatMap((name) => {
    if (request[name] === undefined) return [];
    const detail = `${name} is for queries by vectors; found it with ${other}.`;
    return [{ location: locate(name), code: 'invalid_request', detail }];
  });
}
