// The model of a query. A draft is what the form shows; `query-request.ts` turns it into the request and back. The
// address of the view, the history and the request pane hold requests, which never contain a credential.

import type {
  CollectionRecord,
  Discover,
  Fusion,
  JsonObject,
  Metric,
  QueryMembers,
  QueryRequest,
  Recommend,
} from '@sagitta/client';
import { parseExactJson, stringifyExactJson } from '../../../../../src/common/exact-json.js';
import { isJsonObject } from '../../../../../src/common/metadata-path.js';
import { pictureShape } from '../vectors/preview.js';

/** The ways to rank, with their labels. */
export const RANKINGS = {
  hybrid: 'Words and meaning',
  text: 'Words',
  embed: 'Meaning',
  id: 'Id',
  vector: 'Vector',
  multi_vector: 'List of vectors',
  sparse: 'Sparse vector',
  recommend: 'Examples',
  discover: 'Pairs of examples',
} as const;
export type QueryBy = keyof typeof RANKINGS;

/** The maximum number of examples in a query. */
export const EXAMPLES_MAX = 64;

/** The strategies for examples, with their labels. */
export const STRATEGIES = {
  average_vector: 'The mean of the examples',
  best_score: 'The nearest example',
  sum_scores: 'The sum over the examples',
} as const satisfies Record<NonNullable<Recommend['strategy']>, string>;

/** One ranking: the whole query, a part of a fusion, or the first stage. */
export interface Ranking {
  /** Recognized from the input if absent. */
  readonly by?: QueryBy;
  /** What was typed, pasted or dropped: words, an id, or numbers. */
  readonly input: string;
  readonly recommend?: Recommend;
  readonly discover?: Discover;
  readonly match?: 'any' | 'all';
  /** The named vector to search, instead of the unnamed one. */
  readonly using?: string;
  readonly metric?: Metric;
  /** Only in a fusion. */
  readonly weight?: number;
  /** The weight of the meaning in `hybrid`, where `weight` is that of the words. */
  readonly meaningWeight?: number;
  /** Only in a fusion or a first stage. */
  readonly filter?: JsonObject;
  readonly limit?: number;
}

/** The members of a request that do not rank, as in the API. */
export type QueryOptions = Omit<
  QueryMembers,
  keyof Ranking | Exclude<QueryBy, 'hybrid'> | 'fusion' | 'prefetch' | 'cursor'
> &
  Pick<QueryMembers, 'filter' | 'limit'>;

export type FusionOptions = Omit<Fusion, 'parts'>;

export interface QueryDraft {
  /** At least one; several are fused. */
  readonly rankings: readonly Ranking[];
  readonly fusion: FusionOptions;
  /** A first stage, whose best vectors the query searches. */
  readonly prefetch?: Ranking;
  readonly options: QueryOptions;
  /** A request that the form cannot express. It replaces everything else. */
  readonly custom?: JsonObject;
}

/** Members to change; undefined removes them. */
export type Change<Shape> = { readonly [Name in keyof Shape]?: Shape[Name] | undefined };

export function changed<Shape extends object>(shape: Shape, change: Change<Shape>): Shape {
  const members = Object.entries({ ...shape, ...change });
  return Object.fromEntries(members.filter(([, value]) => value !== undefined)) as Shape;
}

/** The number of matches per page, unless the user chooses another. */
export const LIMIT_DEFAULT = 10;

export function newOptions(collection: CollectionRecord): QueryOptions {
  return {
    limit: LIMIT_DEFAULT,
    include_metadata: true,
    ...(pictureShape(collection) !== undefined && { include_values: true }),
    explain: true,
  };
}

export function newDraft(collection: CollectionRecord): QueryDraft {
  return { rankings: [{ input: '' }], fusion: {}, options: newOptions(collection) };
}

/** The requests of one run: the query and, in a comparison, a second one. */
export interface QueryPair {
  readonly request: QueryRequest;
  readonly other?: QueryRequest | undefined;
}

/** Browsers and chat programs accept links of 2 000 characters, so longer queries are kept in memory. */
const SEGMENT_CHARACTERS_MAX = 1_800;
const KEPT_PREFIX = '~';

/** Bounds memory; the oldest query is dropped. */
const KEPT_MAX = 50;

/** Queries that are too long for an address, by name. They are lost when the page is closed. */
const kept = new Map<string, QueryPair>();
let nextKept = 1;

/** The last segment of the view's address: a request as JSON, or an array of two that are compared. */
export function encodeQuery(pair: QueryPair): string {
  const { request, other } = pair;
  const text = encodeURIComponent(stringifyExactJson(other ? [request, other] : request));
  if (text.length <= SEGMENT_CHARACTERS_MAX) return text;
  const name = `${KEPT_PREFIX}${nextKept++}`;
  kept.set(name, pair);
  for (const oldest of kept.keys()) {
    if (kept.size <= KEPT_MAX) break;
    kept.delete(oldest);
  }
  return name;
}

/** Undefined if the segment is not a query, or names one that was kept by a page that has been closed. */
export function decodeQuery(segment: string): QueryPair | undefined {
  if (segment.startsWith(KEPT_PREFIX)) return kept.get(segment);
  try {
    return readPair(parseExactJson(decodeURIComponent(segment)));
  } catch {
    return undefined;
  }
}

/** Members are not checked: the form shows what it knows, and the server explains what is wrong with the rest. */
function readPair(found: unknown): QueryPair | undefined {
  const [request, other, ...more] = Array.isArray(found) ? found : [found];
  const isPair = isJsonObject(request) && (other === undefined || isJsonObject(other));
  return isPair && more.length === 0 ? ({ request, other } as unknown as QueryPair) : undefined;
}
