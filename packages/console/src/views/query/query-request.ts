// Turns a draft into a request, or says what is missing, and turns a request back into a draft.

import type { CollectionRecord, JsonObject, QueryRequest } from '@sagitta/client';
import { stringifyExactJson } from '../../../../../src/common/exact-json.js';
import { isJsonObject } from '../../../../../src/common/metadata-path.js';
import { UNNAMED } from '../../../../../src/common/vectors.js';
import { parseVector } from './parse-vector.js';
import {
  changed,
  type FusionOptions,
  newDraft,
  type QueryBy,
  type QueryDraft,
  type QueryOptions,
  type Ranking,
} from './query-draft.js';
import { idOf, parseJson, recognizeInput } from './recognize-input.js';
import { searchedVector, vectorsFor } from './searchable.js';

const LIMIT_MAX = 10_000;
/** The vectors that a first stage passes on, unless the user chooses another number. */
export const STAGE_LIMIT_DEFAULT = 100;

export type BuiltRequest =
  | { readonly request: QueryRequest; readonly problem?: never }
  | { readonly request?: never; readonly problem: string };

/** `isStored` says whether the input of the first ranking is the id of a stored vector. */
export function buildRequest(
  collection: CollectionRecord,
  draft: QueryDraft,
  isStored = false,
): BuiltRequest {
  if (draft.custom !== undefined) return { request: draft.custom as unknown as QueryRequest };
  const { limit } = draft.options;
  if (limit !== undefined && !isLimit(limit)) {
    return { problem: `Found ${limit} results; expected a whole number from 1 to ${LIMIT_MAX}.` };
  }
  const parts: JsonObject[] = [];
  for (const [at, ranking] of draft.rankings.entries()) {
    const built = rankBy(collection, ranking, at === 0 && isStored);
    if (built.problem === undefined) parts.push(...built.parts);
    else return { problem: at === 0 ? built.problem : `Ranking ${at + 1}: ${built.problem}` };
  }
  const stage = draft.prefetch && rankBy(collection, draft.prefetch, false);
  if (stage?.problem !== undefined) return { problem: `First stage: ${stage.problem}` };
  return {
    request: {
      ...(parts.length === 1 && withoutPartMembers(parts[0]!)),
      ...(parts.length > 1 && { fusion: { ...draft.fusion, parts } }),
      ...(stage && { prefetch: writeStage(stage.parts, draft.prefetch!) }),
      ...draft.options,
    } as unknown as QueryRequest,
  };
}

function isLimit(limit: number): boolean {
  return Number.isInteger(limit) && limit >= 1 && limit <= LIMIT_MAX;
}

/** A query of one ranking has its own filter and limit, and no weight. */
function withoutPartMembers({ weight: _, filter: _filter, limit: _limit, ...rest }: JsonObject) {
  return rest;
}

function writeStage(parts: readonly JsonObject[], { filter, limit }: Ranking) {
  const ranked = parts.length === 1 ? withoutPartMembers(parts[0]!) : { fusion: { parts } };
  return {
    ...ranked,
    ...(filter !== undefined && { filter }),
    limit: limit ?? STAGE_LIMIT_DEFAULT,
  };
}

type RankedParts =
  | { readonly parts: readonly JsonObject[]; readonly problem?: never }
  | { readonly parts?: never; readonly problem: string };

/** The ranking as the parts of a fusion: two for words and meaning, otherwise one. */
function rankBy(collection: CollectionRecord, ranking: Ranking, isStored: boolean): RankedParts {
  const by = kindOf(collection, ranking, isStored);
  const { weight, meaningWeight, filter, limit, match } = ranking;
  const members = (own: Ranking['weight']) =>
    changed<object>({}, { weight: own, filter, limit } as object);
  const words = ranking.input.trim();
  const text = { text: { query: words, ...(match !== undefined && { match }) } };
  const space = spaceOf(collection, by, ranking);
  const one = (ranked: object): RankedParts => ({
    parts: [{ ...ranked, ...space, ...members(weight) } as JsonObject],
  });
  switch (by) {
    case 'hybrid':
      if (words === '') return { problem: 'Enter words to search for.' };
      return {
        parts: [
          { ...text, ...members(weight) } as JsonObject,
          { embed: words, ...space, ...members(meaningWeight) } as JsonObject,
        ],
      };
    case 'text':
    case 'embed':
      if (words === '') return { problem: 'Enter words to search for.' };
      return one(by === 'text' ? text : { embed: words });
    case 'id':
      return words === '' ? { problem: 'Enter the id of a vector.' } : one({ id: idOf(words) });
    case 'vector': {
      if (words === '') return { problem: 'Paste the numbers of a vector.' };
      const dimension = searchedVector(collection, by, ranking.using)?.dimension ?? 0;
      const { values, problem } = parseVector(words, dimension);
      return values === undefined ? { problem } : one({ vector: values });
    }
    case 'multi_vector':
    case 'sparse': {
      const value = by === 'sparse' ? sparseIn(words) : listsIn(words);
      return value === undefined ? { problem: EXPECTED[by] } : one({ [by]: value });
    }
    case 'recommend':
      return isEnough(ranking.recommend)
        ? one({ recommend: ranking.recommend })
        : { problem: 'Add an example that matches should be near to.' };
    case 'discover': {
      const { target, context = [] } = ranking.discover ?? {};
      return target === undefined && context.length === 0
        ? { problem: 'Add a pair of examples, or a target.' }
        : one({ discover: ranking.discover });
    }
  }
}

const EXPECTED = {
  multi_vector: 'Paste a JSON array of vectors, such as [[0.5, 1], [0, 1]].',
  sparse: 'Paste a sparse vector as JSON, such as {"indices": [17, 40], "values": [1, 0.5]}.',
};

function isEnough(recommend: Ranking['recommend']): boolean {
  const { positive = [], negative = [], strategy = 'average_vector' } = recommend ?? {};
  return positive.length > 0 || (negative.length > 0 && strategy !== 'average_vector');
}

function sparseIn(text: string): object | undefined {
  const json = parseJson(text);
  return isJsonObject(json) && Array.isArray(json.indices) ? json : undefined;
}

function listsIn(text: string): readonly unknown[] | undefined {
  const json = parseJson(text);
  return Array.isArray(json) && json.every(Array.isArray) ? json : undefined;
}

/** The members that choose the vector to search and how to compare. */
function spaceOf(collection: CollectionRecord, by: QueryBy, { using, metric }: Ranking): object {
  if (by === 'text') return {};
  const name = using ?? vectorsFor(collection, by)[0]?.name ?? UNNAMED;
  return {
    ...(name !== UNNAMED && { using: name }),
    ...(metric !== undefined && by !== 'sparse' && { metric }),
  };
}

/** How a ranking ranks: as chosen, or as recognized from its input. */
export function kindOf(collection: CollectionRecord, ranking: Ranking, isStored: boolean): QueryBy {
  return ranking.by ?? recognizeInput(collection, ranking.input, isStored);
}

/** The draft that gives the request; a custom one if the form cannot express it. */
export function readRequest(collection: CollectionRecord, request: JsonObject): QueryDraft {
  const custom = { ...newDraft(collection), custom: request };
  const draft = draftOf(request);
  if (draft === undefined) return custom;
  const { request: built } = buildRequest(collection, draft);
  return built !== undefined && textOf(built) === textOf(request) ? draft : custom;
}

/** The rankings of a request, to describe it; undefined if the form does not know them. */
export function rankingsOfRequest(request: JsonObject): readonly Ranking[] | undefined {
  return draftOf(request)?.rankings;
}

function draftOf(request: JsonObject): QueryDraft | undefined {
  const { fusion, prefetch, ...rest } = request;
  const [ranked, options] = splitRanking(rest);
  const fused = fusion === undefined ? undefined : partsOf(fusion);
  const parts = fused?.parts ?? [ranked];
  if (parts.length === 0 || (fused === undefined) !== (fusion === undefined)) return undefined;
  const rankings = rankingsOf(parts);
  const stages = prefetch === undefined ? [] : stageOf(prefetch);
  if (rankings === undefined || stages === undefined) return undefined;
  return changed<QueryDraft>(
    { rankings, fusion: (fused?.rest ?? {}) as FusionOptions, options: options as QueryOptions },
    { prefetch: stages[0] },
  );
}

const RANKING_MEMBERS = new Set([
  'id',
  'vector',
  'multi_vector',
  'embed',
  'recommend',
  'discover',
  'text',
  'sparse',
  'using',
  'metric',
]);

/** Separates the members that rank from the others. */
function splitRanking(members: JsonObject): [JsonObject, JsonObject] {
  const split = (isRanking: boolean) =>
    Object.fromEntries(
      Object.entries(members).filter(([name]) => RANKING_MEMBERS.has(name) === isRanking),
    ) as JsonObject;
  return [split(true), split(false)];
}

function partsOf(fusion: unknown): { parts: readonly JsonObject[]; rest: object } | undefined {
  if (!isJsonObject(fusion)) return undefined;
  const { parts, ...rest } = fusion as Record<string, unknown>;
  return Array.isArray(parts) && parts.every(isJsonObject)
    ? { parts: parts as JsonObject[], rest }
    : undefined;
}

/** Words and meaning of the same text are one ranking. */
function rankingsOf(parts: readonly JsonObject[]): readonly Ranking[] | undefined {
  const rankings: Ranking[] = [];
  for (let at = 0; at < parts.length; at++) {
    const ranking = rankingOf(parts[at]!);
    const next = parts[at + 1] && rankingOf(parts[at + 1]!);
    if (ranking === undefined) return undefined;
    const isHybrid =
      ranking.by === 'text' && next?.by === 'embed' && next.input === ranking.input && at === 0;
    if (isHybrid) {
      const { by: _, weight: meaningWeight, ...members } = next;
      rankings.push(changed<Ranking>({ ...ranking, ...members, by: 'hybrid' }, { meaningWeight }));
      at++;
    } else rankings.push(ranking);
  }
  return rankings;
}

function stageOf(prefetch: unknown): readonly Ranking[] | undefined {
  if (!isJsonObject(prefetch)) return undefined;
  const { fusion, filter, limit, ...rest } = prefetch as JsonObject;
  const parts = fusion === undefined ? [rest] : partsOf(fusion)?.parts;
  const rankings = parts && rankingsOf(parts);
  if (rankings?.length !== 1) return undefined;
  return [changed<Ranking>(rankings[0]!, { filter, limit } as Partial<Ranking>)];
}

/** Undefined if the part has no ranking that the form knows. */
function rankingOf(part: JsonObject): Ranking | undefined {
  const { id, vector, multi_vector, embed, recommend, discover, text, sparse, ...members } = part;
  const own = members as Omit<Ranking, 'input'>;
  if (typeof id === 'string') return { ...own, by: 'id', input: id };
  if (typeof embed === 'string') return { ...own, by: 'embed', input: embed };
  if (isJsonObject(text) && typeof text.query === 'string') {
    const { query, match } = text as { query: string; match?: 'any' | 'all' };
    return { ...own, by: 'text', input: query, ...(match !== undefined && { match }) };
  }
  const numbers = { vector, multi_vector, sparse };
  for (const by of ['vector', 'multi_vector', 'sparse'] as const) {
    const value = numbers[by];
    if (typeof value === 'object' && value !== null) {
      return { ...own, by, input: stringifyExactJson(value) };
    }
  }
  if (isJsonObject(recommend) && hasOnlyIds([recommend.positive, recommend.negative])) {
    return {
      ...own,
      by: 'recommend',
      input: '',
      recommend: recommend as Ranking['recommend'] & {},
    };
  }
  if (isJsonObject(discover) && isJsonObject({ ...discover })) {
    const { target, context = [] } = discover as { target?: unknown; context?: unknown };
    const pairs = Array.isArray(context) ? context.map((pair) => Object.values({ ...pair })) : [];
    if (!hasOnlyIds([target === undefined ? [] : [target], ...pairs])) return undefined;
    return { ...own, by: 'discover', input: '', discover: discover as Ranking['discover'] & {} };
  }
  return undefined;
}

/** Examples may also be arrays of numbers, which the form does not show. */
function hasOnlyIds(lists: readonly unknown[]): boolean {
  return lists.every(
    (list = []) => Array.isArray(list) && list.every((one) => typeof one === 'string'),
  );
}

/** JSON with sorted members, so that equal requests have equal texts. */
function textOf(value: object): string {
  return stringifyExactJson(sorted(value));
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isJsonObject(value)) return value;
  const names = Object.keys(value).sort();
  return Object.fromEntries(names.map((name) => [name, sorted(value[name as never])]));
}
