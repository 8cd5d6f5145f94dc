// The interfaces of rankings. Each kind of ranking is one module: a kind checks requests and plans
// rankings from them, a ranking is opened in a snapshot, and an open ranking searches its rows.

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
  /** The issues of a request that can be found without its collection. */
  check(request: TargetRequest, context: CheckContext): readonly ValidationIssue[];
  /**
   * @param path the path of the request within the body.
   * Throws `invalid_request`, `dimension_mismatch`, `invalid_vector`, `limit_exceeded` and `invalid_filter`, and
   * `vector_not_found` at the id.
   */
  plan(request: TargetRequest, context: RankingContext, path: FieldPath): Ranking;
  /**
   * Restores a ranking. Throws `cursor_expired` if its vector was dropped, and what `plan` throws if limits have
   * changed.
   */
  unseal(sealed: SealedRanking, context: RankingContext, path: FieldPath): Ranking;
}

/** Everything that decides the order of rows. */
export abstract class Ranking {
  abstract readonly kind: string;
  abstract readonly repeats: Repeats;

  /** The ids of stored vectors that the request names, which are excluded from the result. */
  get excludedIds(): readonly string[] {
    return [];
  }

  /** How rows are scored by vectors, for statistics and diversity; null for rankings without such scores. */
  get scoring(): Scoring | null {
    return null;
  }

  /** Whether scores are derived from distances. */
  get hasDistance(): boolean {
    return false;
  }

  /** The name of the engine or method that searches, for `explain`. */
  searcher(_engine: Pick<Engine, 'name'>): string {
    return this.kind;
  }

  /** The unrounded score that replies show. */
  shownScore(score: number): number {
    return score;
  }

  /** The form of the ranking for cursors and other nodes, without anything that can be derived from the rest. */
  abstract seal(collection: Collection): SealedRanking;

  /** Rejects with `overloaded` and with the signal's reason. */
  abstract open(rows: PassingRows): Promise<OpenRanking>;
}

/** Tests whether a member sent with a cursor equals that of the first page; a member without a test never does. */
export type Repeats = {
  readonly [Member in keyof Pick<QueryRequest, keyof TargetRequest | 'prefetch'>]?: (
    sent: NonNullable<QueryRequest[Member]>,
  ) => boolean;
};

export interface Scoring {
  /** The query vector, or with a formula the vectors of all examples, row-major. */
  readonly vector: Float32Array;
  readonly metric: Metric;
  readonly formula: Formula | null;
}

/** A ranking in a snapshot. */
export interface OpenRanking {
  /** Views restricted to the ranked rows, without empty views. Engines recognize the array. */
  readonly views: readonly SegmentView[];
  /** The best rows in the views of the query. Rejects with `overloaded`. */
  search(query: RowQuery): Promise<SearchHits>;
  /** The number of rows of the views that come before each rank key. */
  countBefore(views: readonly SegmentView[], rankKeys: readonly RankKey[]): Promise<Float64Array>;
  /** The search to send to the engine, which searches many queries together; absent if the engine is not used. */
  engineSearch?(query: RowQuery): EngineSearch;
}

/** Selects rows of a ranking. */
export interface RowQuery extends Pick<SearchQuery, 'k' | 'after' | 'scoreMin'> {
  readonly views: readonly SegmentView[];
}

export type Locate = (...path: FieldPath) => IssueLocation;

export interface CheckContext {
  readonly limits: Limits;
  readonly locate: Locate;
  /** Finds the issues of a part of a ranking. */
  checkPart(request: TargetRequest, locate: Locate): readonly ValidationIssue[];
}

export interface RankingContext {
  readonly view: SnapshotView;
  readonly limits: Limits;
  /** Throws `invalid_filter` at the path. Equal filters get the same node, so that they are evaluated once. */
  readonly parseFilter: (filter: JsonObject, path: FieldPath) => FilterNode;
  /** Plans a ranking that is part of another one. */
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

/** The request member that a ranking was planned from, or its digest, by which a cursor recognizes it. */
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

/** The issues of members that apply to vectors only, in a request that ranks by something else. */
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
