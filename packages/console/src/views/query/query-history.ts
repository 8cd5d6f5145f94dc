// The queries that were run in a collection, newest first: a list of bounded length, and its form in
// the browser's storage. Queries contain no credential.

import { parseExactJson, stringifyExactJson } from '../../../../../src/common/exact-json.js';
import { isJsonObject } from '../../../../../src/common/metadata-path.js';
import { type QueryPair, RANKINGS } from './query-draft.js';
import { rankingsOfRequest } from './query-request.js';

export interface PastQuery extends QueryPair {
  /** Given by the user; named queries are kept until they are removed. */
  readonly name?: string;
  /** ISO 8601. */
  readonly ranAt: string;
}

/** Unnamed queries; the oldest are forgotten. */
const UNNAMED_MAX = 30;
const NAMED_MAX = 100;
/** Browsers offer a page 5 MB in all. A longer query, with a long vector or several, is not remembered. */
const QUERY_CHARACTERS_MAX = 20_000;
export const NAME_CHARACTERS_MAX = 80;

/** The list with the query at its beginning; if it was run before, it moves there and keeps its name. */
export function withRun(
  list: readonly PastQuery[],
  { request, other }: QueryPair,
  ranAt: string,
): readonly PastQuery[] {
  const key = keyOf({ request, other });
  if (key.length > QUERY_CHARACTERS_MAX) return list;
  const known = list.find((past) => keyOf(past) === key);
  return bounded([
    { ...known, request, ...(other !== undefined && { other }), ranAt },
    ...list.filter((past) => past !== known),
  ]);
}

/** An empty name makes the query an unnamed one again. */
export function withName(
  list: readonly PastQuery[],
  past: PastQuery,
  name: string,
): readonly PastQuery[] {
  const { name: _, ...rest } = past;
  const text = name.trim().slice(0, NAME_CHARACTERS_MAX);
  const renamed = text === '' ? rest : { ...rest, name: text };
  return bounded(list.map((one) => (one === past ? renamed : one)));
}

function bounded(list: readonly PastQuery[]): readonly PastQuery[] {
  let [named, unnamed] = [0, 0];
  return list.filter(({ name }) =>
    name === undefined ? ++unnamed <= UNNAMED_MAX : ++named <= NAMED_MAX,
  );
}

/** Equal queries have equal keys. */
export function keyOf({ request, other }: QueryPair): string {
  return stringifyExactJson([request, other ?? null]);
}

const INPUT_CHARACTERS_MAX = 60;

/** A short description, such as `small animals (Words, filter, groups)`. */
export function describeQuery({ request, other }: QueryPair): string {
  const [ranking, ...more] = rankingsOfRequest(request as never) ?? [];
  if (ranking?.by === undefined) return 'A custom request';
  const { by, input, recommend } = ranking;
  const examples = [...(recommend?.positive ?? []), ...(recommend?.negative ?? [])];
  const text = recommend === undefined ? input : examples.join(', ');
  const isNumbers = by === 'vector' || by === 'multi_vector' || by === 'sparse';
  const shown = isNumbers || text === '' ? '' : shortened(text);
  const notes = [
    RANKINGS[by],
    ...(more.length > 0 ? ['fused'] : []),
    ...Object.entries(NOTED).flatMap(([member, note]) => (member in request ? [note] : [])),
    ...(other === undefined ? [] : ['compared']),
  ];
  return shown === '' ? notes.join(', ') : `${shown} (${notes.join(', ')})`;
}

const NOTED = {
  filter: 'filter',
  prefetch: 'first stage',
  group_by: 'groups',
  facets: 'facets',
  mmr: 'varied',
  sort: 'sorted',
};

function shortened(text: string): string {
  const characters = Array.from(text);
  if (characters.length <= INPUT_CHARACTERS_MAX) return text;
  return `${characters.slice(0, INPUT_CHARACTERS_MAX).join('')}…`;
}

/** Checks the types, because another version of the page may have stored anything. */
export function readHistory(text: string | null): readonly PastQuery[] {
  try {
    const list: unknown = parseExactJson(text ?? '[]');
    return Array.isArray(list) ? list.filter(isPastQuery) : [];
  } catch {
    return [];
  }
}

function isPastQuery(found: unknown): found is PastQuery {
  if (!isJsonObject(found)) return false;
  const { name, ranAt, request, other } = found as Partial<Record<keyof PastQuery, unknown>>;
  const isNamed = name === undefined || typeof name === 'string';
  const isPair = isJsonObject(request) && (other === undefined || isJsonObject(other));
  return isNamed && isPair && typeof ranAt === 'string' && !Number.isNaN(Date.parse(ranAt));
}
