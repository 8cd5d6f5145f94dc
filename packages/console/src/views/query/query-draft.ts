// What a query is made of before it is sent: as it was typed, complete or not. Short drafts are a
// segment of the view's address, so that a link can be shared; they never hold a credential.

import type { JsonObject, Metric, Recommend } from '@sagitta/client';
import { parseExactJson, stringifyExactJson } from '../../../../../src/common/exact-json.js';
import { isJsonObject } from '../../../../../src/common/metadata-path.js';
import { METRICS } from '../../../../../src/common/types.js';

/** What the query can rank by, in words. */
export const RANKINGS = {
  id: 'Id',
  vector: 'Vector',
  text: 'Words',
  examples: 'Examples',
} as const;
export type QueryBy = keyof typeof RANKINGS;

/** Examples that one query takes. */
export const EXAMPLES_MAX = 64;

/** How examples are used, in words. */
export const STRATEGIES = {
  average_vector: 'The mean of the examples',
  best_score: 'The nearest example',
  sum_scores: 'The sum over the examples',
} as const satisfies Record<NonNullable<Recommend['strategy']>, string>;
type Strategy = keyof typeof STRATEGIES;

export interface QueryDraft {
  readonly by?: QueryBy;
  readonly id?: string;
  /** The numbers as typed: a JSON array, base64 of float32, or numbers between anything else. */
  readonly vector?: string;
  readonly words?: string;
  /** Ids of examples that the result is to be near to. */
  readonly positive?: readonly string[];
  readonly negative?: readonly string[];
  readonly strategy?: Strategy;
  /** A named vector in place of the unnamed one. */
  readonly using?: string;
  readonly metric?: Metric;
  readonly filter?: JsonObject;
  readonly k?: number;
  readonly threshold?: number;
  /** A second query, beside this one. */
  readonly other?: QueryDraft;
}

/** Members to change; undefined removes them. */
export type DraftChange = { readonly [Name in keyof QueryDraft]?: QueryDraft[Name] | undefined };

export function changedDraft(draft: QueryDraft, change: DraftChange): QueryDraft {
  const members = Object.entries({ ...draft, ...change });
  return Object.fromEntries(members.filter(([, value]) => value !== undefined));
}

/** The longest segment that goes into an address: browsers and chat programs keep links of 2 000 characters. */
const SEGMENT_CHARACTERS_MAX = 1_800;
const KEPT_MARK = '~';

/** A bound of the memory of the page: the oldest is dropped. */
const KEPT_MAX = 50;

/** Drafts that are too long for an address, by their name; they end with the page. */
const kept = new Map<string, QueryDraft>();
let nextKept = 1;

/** The last segment of the view's address for the draft. */
export function encodeDraft(draft: QueryDraft): string {
  const text = encodeURIComponent(stringifyExactJson(draft));
  if (text.length <= SEGMENT_CHARACTERS_MAX) return text;
  const name = `${KEPT_MARK}${nextKept++}`;
  kept.set(name, draft);
  for (const oldest of kept.keys()) {
    if (kept.size <= KEPT_MAX) break;
    kept.delete(oldest);
  }
  return name;
}

/** Undefined when the segment is no draft, or one that was kept by a page that is gone. */
export function decodeDraft(segment: string): QueryDraft | undefined {
  if (segment.startsWith(KEPT_MARK)) return kept.get(segment);
  try {
    const draft: unknown = parseExactJson(decodeURIComponent(segment));
    return isJsonObject(draft) ? readDraft(draft) : undefined;
  } catch {
    return undefined;
  }
}

/** Only members of a draft with values of their types: an address may hold anything. */
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

/** What the query ranks by, also when the draft does not say so. */
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
