// The operators that the filter editor offers, in menu order: those of the API, and ready-made conditions for some of
// them. Their labels and types are in src/common/filter-operators.ts.

import type { FoundPath } from '@sagitta/client';
import {
  FILTER_OPERATORS,
  type FilterOperatorEntry,
  type FilterOperatorName,
  ID_PATH,
  type OperandKind,
  type OperatorFit,
  TEXT_PATH,
} from '../../../../../src/common/filter-operators.js';

/** The kinds of operand inputs; a `fixed` operand is implied by the menu item. */
type InputKind = 'scalar' | 'list' | 'string' | 'date' | 'count' | 'type' | 'json' | 'fixed';

const INPUTS: Readonly<Record<OperandKind, InputKind>> = {
  value: 'scalar',
  values: 'list',
  ordered: 'scalar',
  flag: 'fixed',
  text: 'string',
  like: 'string',
  regex: 'string',
  instants: 'date',
  counts: 'count',
  types: 'type',
  elements: 'json',
  circle: 'json',
  box: 'json',
  polygon: 'json',
  words: 'string',
};

interface MenuItem {
  /** The keys that lead to the operand; two for comparisons inside `$date` and `$size`. */
  readonly keys: readonly [string] | readonly [string, string];
  readonly label: string;
  readonly kind: InputKind;
  readonly fits: readonly OperatorFit[];
  /** Whether `$case` applies. */
  readonly comparesStrings: boolean;
  /** For `fixed`, the operand; for `json`, an example to start from. */
  readonly operand?: unknown;
}

const dates = { kind: 'date', fits: ['string'], comparesStrings: false } as const;
const counts = { kind: 'count', fits: ['array'], comparesStrings: false } as const;
const fixed = { kind: 'fixed', fits: ['any'], comparesStrings: false } as const;

/** The menu items that replace some operators. */
const REPLACEMENTS = {
  $date: {
    'date:is': { keys: ['$date', '$eq'], label: 'is the date', ...dates },
    'date:gte': { keys: ['$date', '$gte'], label: 'is on or after', ...dates },
    'date:gt': { keys: ['$date', '$gt'], label: 'is after', ...dates },
    'date:lt': { keys: ['$date', '$lt'], label: 'is before', ...dates },
    'date:lte': { keys: ['$date', '$lte'], label: 'is on or before', ...dates },
  },
  $size: {
    $size: { keys: ['$size'], label: FILTER_OPERATORS.$size.label, ...counts },
    'size:gte': { keys: ['$size', '$gte'], label: 'has elements: at least', ...counts },
    'size:lte': { keys: ['$size', '$lte'], label: 'has elements: at most', ...counts },
  },
  $exists: {
    exists: { keys: ['$exists'], label: 'exists', operand: true, ...fixed },
    missing: { keys: ['$exists'], label: 'does not exist', operand: false, ...fixed },
    null: { keys: ['$eq'], label: 'is null or missing', operand: null, ...fixed },
    notNull: { keys: ['$ne'], label: 'is neither null nor missing', operand: null, ...fixed },
  },
} as const satisfies Partial<Record<FilterOperatorName, Record<string, MenuItem>>>;

type Replaced = keyof typeof REPLACEMENTS;
/** The name of a menu item. */
export type OperatorName =
  | Exclude<FilterOperatorName, Replaced>
  | { [name in Replaced]: keyof (typeof REPLACEMENTS)[name] }[Replaced];

const MENU = new Map<string, MenuItem>(
  Object.entries<FilterOperatorEntry>(FILTER_OPERATORS).flatMap(([name, entry]) =>
    Object.entries<MenuItem>(REPLACEMENTS[name as Replaced] ?? { [name]: itemOf(name, entry) }),
  ),
);

function itemOf(name: string, entry: FilterOperatorEntry): MenuItem {
  const { label, takes, fits, comparesStrings, example } = entry;
  return { keys: [name], label, kind: INPUTS[takes], fits, comparesStrings, operand: example };
}

export const OPERATOR_NAMES = [...MENU.keys()] as OperatorName[];

export function operatorOf(name: OperatorName): MenuItem {
  return MENU.get(name)!;
}

export const VALUE_TYPES = ['string', 'number', 'boolean', 'array', 'object', 'null'] as const;

/** The operators that fit the types at a path, in menu order; nearly all of them if the path is unknown. */
export function operatorsFor(path: string, found: FoundPath | undefined): OperatorName[] {
  if (path === ID_PATH) return fitting(new Set(['id']));
  if (path === TEXT_PATH) return fitting(new Set(['text']));
  if (found === undefined) {
    return fitting(new Set(['number', 'string', 'boolean', 'array', 'object', 'any']));
  }
  return fitting(new Set(['any', ...typesAt(found)]));
}

/** The types of the values at a path, most frequent first. */
export function typesAt({ types }: FoundPath): (keyof FoundPath['types'])[] {
  return (Object.keys(types) as (keyof FoundPath['types'])[])
    .filter((type) => types[type] > 0)
    .sort((a, b) => types[b] - types[a]);
}

function fitting(fits: ReadonlySet<string>): OperatorName[] {
  return OPERATOR_NAMES.filter((name) => operatorOf(name).fits.some((fit) => fits.has(fit)));
}

/** Whether all scalars at the path are strings, so that input needs no quotes. */
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
