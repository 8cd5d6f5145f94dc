// The input of a query, complete or not. Short drafts form a segment of the view's address, so that links can be
// shared; they never contain a credential.

import type { JsonObject, Metric, Recommend } from '@sagitta/client';
import { parseExactJson, stringifyExactJson } from '../../../../../src/common/exact-json.js';
import { isJsonObject } from '../../../../../src/common/metadata-path.js';
import { METRICS } from '../../../../../src/common/types.js';

/** The ways to rank, with their labels. */
export const RANKINGS = {
  id: 'Id',
  vector: 'Vector',
  text: 'Words',
  examples: 'Examples',
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
type Strategy = keyof typeof STRATEGIES;

export interface QueryDraft {
  readonly by?: QueryBy;
  readonly id?: string;
  /** The user's input: a JSON array, base64 of float32, or numbers with any separators. */
  readonly vector?: string;
  readonly words?: string;
  /** Ids of examples that matches should be near to. */
  readonly positive?: readonly string[];
  readonly negative?: readonly string[];
  readonly strategy?: Strategy;
  /** The named vector to search, instead of the unnamed one. */
  readonly using?: string;
  readonly metric?: Metric;
  readonly filter?: JsonObject;
  readonly k?: number;
  readonly threshold?: number;
  /** A second query to compare with. */
  readonly other?: QueryDraft;
}

/** Members to change; undefined removes them. */
export type DraftChange = { readonly [Name in keyof QueryDraft]?: QueryDraft[Name] | undefined };

export function changedDraft(draft: QueryDraft, change: DraftChange): QueryDraft {
  const members = Object.entries({ ...draft, ...change });
  return Object.fromEntries(members.filter(([, value]) => value !== undefined));
}

/** Browsers and chat programs accept links of 2 000 characters, so longer drafts are kept in memory. */
const SEGMENT_CHARACTERS_MAX = 1_800;
const KEPT_PREFIX = '~';

/** Bounds memory; the oldest draft is dropped. */
const KEPT_MAX = 50;

/** Drafts that are too long for an address, by name. They are lost when the page is closed. */
const kept = new Map<string, QueryDraft>();
let nextKept = 1;

/** The draft as the last segment of the view's address. */
export function encodeDraft(draft: QueryDraft): string {
  const text = encodeURIComponent(stringifyExactJson(draft));
  if (text.length <= SEGMENT_CHARACTERS_MAX) return text;
  const name = `${KEPT_PREFIX}${nextKept++}`;
  kept.set(name, draft);
  for (const oldest of kept.keys()) {
    if (kept.size <= KEPT_MAX) break;
    kept.delete(oldest);
  }
  return name;
}

/** Undefined if the segment is not a draft, or names one that was kept by a page that has been closed. */
export function decodeDraft(segment: string): QueryDraft | undefined {
  if (segment.startsWith(KEPT_PREFIX)) return kept.get(segment);
  try {
    const draft: unknown = parseExactJson(decodeURIComponent(segment));
    return isJsonObject(draft) ? readDraft(draft) : undefined;
  } catch {
    return undefined;
  }
}

/** Ignores unknown members and wrong types, because an address may contain anything. */
function readDraft(found: Readonly<Record<string, unknown>>): QueryDraft {
  const draft = {
    by: oneOf(found.by, Object.keys(RANKINGS) as QueryBy[]),
    id: stringIn(found.id),
    vector: stringIn(found.vector),
    words: stringIn(found.words),
    positive: stringsIn(found.positive),
    negative: stringsIn(found.negative),
    strategy: oneOf(found.strategy, Object.keys(STRATEGIES) as Strategy[]),
    using: stringIn(found.using),
    metric: oneOf(found.metric, METRICS),
    filter: isJsonObject(found.filter) ? (found.filter as JsonObject) : undefined,
    k: numberIn(found.k),
    threshold: numberIn(found.threshold),
    other: isJsonObject(found.other) ? readDraft(found.other) : undefined,
  };
  return changedDraft({}, draft);
}

/** The ranking of a draft, inferred from its members if `by` is absent. */
export function rankingOf({ by, id, vector, words, positive }: QueryDraft): QueryBy {
  if (by !== undefined) return by;
  if (id === undefined && vector !== undefined) return 'vector';
  if (id === undefined && words !== undefined) return 'text';
  return id === undefined && positive !== undefined ? 'examples' : 'id';
}

function oneOf<Value>(found: unknown, values: readonly Value[]): Value | undefined {
  return values.find((value) => value === found);
}

function stringIn(found: unknown): string | undefined {
  return typeof found === 'string' ? found : undefined;
}

function numberIn(found: unknown): number | undefined {
  return typeof found === 'number' && Number.isFinite(found) ? found : undefined;
}

function stringsIn(found: unknown): readonly string[] | undefined {
  return Array.isArray(found) && found.every((one) => typeof one === 'string') ? found : undefined;
}
