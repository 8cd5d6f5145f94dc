// The operators that the filter editor offers, in the order of the menu: those of the API, and ready-made conditions with
// some of them. What each is called and fits is in src/common/filter-operators.ts.

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

/** What the editor has an input for; a `fixed` operand is implied by what the menu says. */
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
  /** The members that lead to the operand; two for comparisons inside of `$date` and `$size`. */
  readonly keys: readonly [string] | readonly [string, string];
  readonly label: string;
  readonly kind: InputKind;
  readonly fits: readonly OperatorFit[];
  /** `$case` applies to it. */
  readonly comparesStrings: boolean;
  /** Of `fixed`: the operand. Of `json`: an example to start from. */
  readonly operand?: unknown;
}

const dates = { kind: 'date', fits: ['string'], comparesStrings: false } as const;
const counts = { kind: 'count', fits: ['array'], comparesStrings: false } as const;
const fixed = { kind: 'fixed', fits: ['any'], comparesStrings: false } as const;

/** What the menu has in place of an operator. */
const INSTEAD = {
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

type Replaced = keyof typeof INSTEAD;
/** A name that the editor uses for its choices. */
export type OperatorName =
  | Exclude<FilterOperatorName, Replaced>
  | { [name in Replaced]: keyof (typeof INSTEAD)[name] }[Replaced];

const MENU = new Map<string, MenuItem>(
  Object.entries<FilterOperatorEntry>(FILTER_OPERATORS).flatMap(([name, entry]) =>
    Object.entries<MenuItem>(INSTEAD[name as Replaced] ?? { [name]: itemOf(name, entry) }),
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
