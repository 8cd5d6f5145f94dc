// The operators that the filter editor offers: how each is written in a filter, what it takes, and the
// types of values that it fits. The server's own table is in src/filter/operators.ts.

import type { FoundPath } from '../../../client/client.js';

/** The paths that stand for the vector's id and for its indexed text. */
export const ID_PATH = '$id';
export const TEXT_PATH = '$text';

/**
 * What an operator takes: one scalar, several, a string, a date, a count, a type, JSON with an
 * example, or a fixed operand that its name implies.
 */
type OperandKind = 'scalar' | 'list' | 'string' | 'date' | 'count' | 'type' | 'json' | 'fixed';

/** A type of values, or `id` and `text` for the paths that are not metadata. */
type Fit = 'number' | 'string' | 'boolean' | 'array' | 'object' | 'any' | 'id' | 'text';

export interface FilterOperator {
  /** The members that lead to the operand; two for comparisons inside of `$date` and `$size`. */
  readonly keys: readonly [string] | readonly [string, string];
  readonly label: string;
  readonly kind: OperandKind;
  readonly fits: readonly Fit[];
  /** `$case` applies to it. */
  readonly comparesStrings?: true;
  /** Of `fixed`: the operand. Of `json`: an example to start from. */
  readonly operand?: unknown;
}

const strings = { fits: ['string', 'array', 'id'], comparesStrings: true } as const;
const ranges = { kind: 'scalar', fits: ['number', 'string', 'id'], comparesStrings: true } as const;
const dates = { kind: 'date', fits: ['string'] } as const;
const counts = { kind: 'count', fits: ['array'] } as const;
const BERLIN = { lat: 52.52, lon: 13.405 };

/** By a name that the editor uses for its choices. The order is that of the menu. */
export const FILTER_OPERATORS = {
  $eq: {
    keys: ['$eq'],
    label: 'is',
    kind: 'scalar',
    fits: ['number', 'string', 'boolean', 'array', 'id'],
    comparesStrings: true,
  },
  $ne: {
    keys: ['$ne'],
    label: 'is not',
    kind: 'scalar',
    fits: ['number', 'string', 'boolean', 'array', 'id'],
    comparesStrings: true,
  },
  $in: {
    keys: ['$in'],
    label: 'is one of',
    kind: 'list',
    fits: ['number', 'string', 'array', 'id'],
    comparesStrings: true,
  },
  $nin: {
    keys: ['$nin'],
    label: 'is none of',
    kind: 'list',
    fits: ['number', 'string', 'array', 'id'],
    comparesStrings: true,
  },
  $gt: { keys: ['$gt'], label: 'is greater than', ...ranges },
  $gte: { keys: ['$gte'], label: 'is at least', ...ranges },
  $lt: { keys: ['$lt'], label: 'is less than', ...ranges },
  $lte: { keys: ['$lte'], label: 'is at most', ...ranges },
  $contains: {
    keys: ['$contains'],
    label: 'contains',
    kind: 'scalar',
    fits: ['array'],
    comparesStrings: true,
  },
  $contains_any: {
    keys: ['$contains_any'],
    label: 'contains any of',
    kind: 'list',
    fits: ['array'],
    comparesStrings: true,
  },
  $contains_all: {
    keys: ['$contains_all'],
    label: 'contains all of',
    kind: 'list',
    fits: ['array'],
    comparesStrings: true,
  },
  $prefix: { keys: ['$prefix'], label: 'begins with', kind: 'string', ...strings },
  $suffix: { keys: ['$suffix'], label: 'ends with', kind: 'string', ...strings },
  $like: { keys: ['$like'], label: 'is like (% any text, _ one)', kind: 'string', ...strings },
  $regex: { keys: ['$regex'], label: 'matches the pattern', kind: 'string', ...strings },
  'date:is': { keys: ['$date', '$eq'], label: 'is the date', ...dates },
  'date:gte': { keys: ['$date', '$gte'], label: 'is on or after', ...dates },
  'date:gt': { keys: ['$date', '$gt'], label: 'is after', ...dates },
  'date:lt': { keys: ['$date', '$lt'], label: 'is before', ...dates },
  'date:lte': { keys: ['$date', '$lte'], label: 'is on or before', ...dates },
  $size: { keys: ['$size'], label: 'has elements: exactly', ...counts },
  'size:gte': { keys: ['$size', '$gte'], label: 'has elements: at least', ...counts },
  'size:lte': { keys: ['$size', '$lte'], label: 'has elements: at most', ...counts },
  $elem_match: {
    keys: ['$elem_match'],
    label: 'has an element that',
    kind: 'json',
    fits: ['array'],
    operand: { $gt: 1 },
  },
  $geo_radius: {
    keys: ['$geo_radius'],
    label: 'is near the point',
    kind: 'json',
    fits: ['object'],
    operand: { center: BERLIN, radius_meters: 10_000 },
  },
  $geo_box: {
    keys: ['$geo_box'],
    label: 'is in the box',
    kind: 'json',
    fits: ['object'],
    operand: { top_left: BERLIN, bottom_right: { lat: 52.3, lon: 13.7 } },
  },
  $geo_polygon: {
    keys: ['$geo_polygon'],
    label: 'is in the polygon',
    kind: 'json',
    fits: ['object'],
    operand: { exterior: [BERLIN, { lat: 52.3, lon: 13.7 }, { lat: 52.3, lon: 13.1 }] },
  },
  exists: { keys: ['$exists'], label: 'exists', kind: 'fixed', fits: ['any'], operand: true },
  missing: {
    keys: ['$exists'],
    label: 'does not exist',
    kind: 'fixed',
    fits: ['any'],
    operand: false,
  },
  null: {
    keys: ['$eq'],
    label: 'is null or missing',
    kind: 'fixed',
    fits: ['any'],
    operand: null,
  },
  notNull: {
    keys: ['$ne'],
    label: 'is neither null nor missing',
    kind: 'fixed',
    fits: ['any'],
    operand: null,
  },
  $type: { keys: ['$type'], label: 'has the type', kind: 'type', fits: ['any'] },
  $match: { keys: ['$match'], label: 'has all of the words', kind: 'string', fits: ['text'] },
} as const satisfies Record<string, FilterOperator>;

export type OperatorName = keyof typeof FILTER_OPERATORS;

export const OPERATOR_NAMES = Object.keys(FILTER_OPERATORS) as OperatorName[];

export function operatorOf(name: OperatorName): FilterOperator {
  return FILTER_OPERATORS[name];
}

export const VALUE_TYPES = ['string', 'number', 'boolean', 'array', 'object', 'null'] as const;

/** The operators to choose from at a path, in the order of the menu. All of them where it is unknown. */
export function operatorsFor(path: string, found: FoundPath | undefined): OperatorName[] {
  if (path === ID_PATH) return fitting(new Set(['id']));
  if (path === TEXT_PATH) return fitting(new Set(['text']));
  if (found === undefined) {
    return fitting(new Set(['number', 'string', 'boolean', 'array', 'object', 'any']));
  }
  return fitting(new Set(['any', ...typesAt(found)]));
}

/** The types that values have at a path, the most frequent first. */
export function typesAt({ types }: FoundPath): (keyof FoundPath['types'])[] {
  return (Object.keys(types) as (keyof FoundPath['types'])[])
    .filter((type) => types[type] > 0)
    .sort((a, b) => types[b] - types[a]);
}

function fitting(fits: ReadonlySet<string>): OperatorName[] {
  return OPERATOR_NAMES.filter((name) => operatorOf(name).fits.some((fit) => fits.has(fit)));
}

/** Whether all scalars at the path are strings, so that what is typed needs no quotes. */
export function hasOnlyStrings(path: string, found: FoundPath | undefined): boolean {
  if (path === ID_PATH) return true;
  if (found === undefined) return false;
  const { types, element_types: elements } = found;
  const other = (counts: FoundPath['types']) => counts.number + counts.boolean;
  return (
    types.string + (elements?.string ?? 0) > 0 &&
    other(types) + (elements === undefined ? 0 : other(elements)) === 0
  );
}
