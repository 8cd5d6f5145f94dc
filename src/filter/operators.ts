// The table of filter operators: their operands and their meaning, as plain code over JSON.
// `column-test.ts` evaluates the same operators on columns; tests compare the two.

import type { Json } from '../common/types.js';

// Meaning, by the value of a document at the path. Every operator answers yes or no, never "unknown".
//
//                       missing  null  scalar           array                 object
//   $eq x               no       no    same and equal   an element equals x   no
//   $eq null            yes      yes   no               an element is null    no
//   $in [x, …]          as $eq of any of the values; [] matches nothing
//   $ne x, $nin [x, …]  the complement of $eq x, $in [x, …]: so yes on missing, and [] everything
//   $gt $gte $lt $lte   no       no    same and so      no                    no
//   $exists true        no       yes   yes              yes                   yes
//   $exists false       the complement of $exists true
//   $contains x         no       no    no               an element equals x   no
//   $contains_any […]   as $contains of any of the values; [] matches nothing
//   $contains_all […]   as $contains of every value; [] matches every array, the empty one too
//
// "Same" is the same JSON type: 1 is neither true nor "1". A range on an array is false, since an array
// is neither a number nor a string. Elements that are arrays or objects equal nothing. Numbers are
// float64, and -0 equals 0. Strings are equal when their code points are, and are ordered by code
// point, which is the order of their UTF-8 bytes. Lone surrogates have no UTF-8 form and count as
// U+FFFD.

type Scalar = string | number | boolean;
export type Value = Scalar | null;

/** The parsed operand of each operator. Strings are well formed, numbers finite and never -0. */
export interface Operands {
  readonly $eq: Value;
  readonly $in: readonly Value[];
  readonly $gt: string | number;
  readonly $gte: string | number;
  readonly $lt: string | number;
  readonly $lte: string | number;
  readonly $exists: boolean;
  readonly $contains: Scalar;
  readonly $contains_any: readonly Scalar[];
  readonly $contains_all: readonly Scalar[];
}

export type TestOperator = keyof Operands;

/** The type of an operand, or of its elements. */
interface ValueType {
  readonly expected: string;
  accepts(value: Json): boolean;
}

interface Operator<Operand> {
  readonly takes: 'one' | 'list';
  readonly of: ValueType;
  /** Whether `value`, undefined where the path is missing, satisfies the operator. */
  matches(value: Json | undefined, operand: Operand): boolean;
}

const SCALAR: ValueType = {
  expected: 'a string, a number or a boolean',
  accepts: (value) => typeof value === 'boolean' || ORDERED.accepts(value),
};
const SCALAR_OR_NULL: ValueType = {
  expected: 'a string, a number, a boolean or null',
  accepts: (value) => value === null || SCALAR.accepts(value),
};
const ORDERED: ValueType = {
  expected: 'a number or a string',
  // JSON.parse reads 1e999 as Infinity, which JSON cannot represent.
  accepts: (value) => typeof value === 'string' || Number.isFinite(value),
};
const BOOLEAN: ValueType = {
  expected: 'true or false',
  accepts: (value) => typeof value === 'boolean',
};

export const OPERATORS: { readonly [name in TestOperator]: Operator<Operands[name]> } = {
  $eq: { takes: 'one', of: SCALAR_OR_NULL, matches: (value, x) => equals(value, (e) => e === x) },
  $in: { takes: 'list', of: SCALAR_OR_NULL, matches: (value, list) => equals(value, isIn(list)) },
  $gt: { takes: 'one', of: ORDERED, matches: (value, x) => compare(value, x) > 0 },
  $gte: { takes: 'one', of: ORDERED, matches: (value, x) => compare(value, x) >= 0 },
  $lt: { takes: 'one', of: ORDERED, matches: (value, x) => compare(value, x) < 0 },
  $lte: { takes: 'one', of: ORDERED, matches: (value, x) => compare(value, x) <= 0 },
  $exists: { takes: 'one', of: BOOLEAN, matches: (value, x) => (value !== undefined) === x },
  $contains: { takes: 'one', of: SCALAR, matches: (value, x) => contains(value, (e) => e === x) },
  $contains_any: {
    takes: 'list',
    of: SCALAR,
    matches: (value, list) => contains(value, isIn(list)),
  },
  $contains_all: { takes: 'list', of: SCALAR, matches: containsAll },
};

/** Operators that are the complements of others; the parser turns them into `not`. */
export const COMPLEMENTS = { $ne: '$eq', $nin: '$in' } as const satisfies Record<
  string,
  TestOperator
>;

/** Replaces lone surrogates by U+FFFD, as encoding to UTF-8 does. */
export function wellFormed(text: string): string {
  return text.replace(/\p{Surrogate}/gu, '\ufffd');
}

type IsWanted = (value: Json) => boolean;

function equals(value: Json | undefined, isWanted: IsWanted): boolean {
  return Array.isArray(value) ? contains(value, isWanted) : isWanted(comparable(value ?? null));
}

function contains(value: Json | undefined, isWanted: IsWanted): boolean {
  return Array.isArray(value) && value.some((element) => isWanted(comparable(element)));
}

function containsAll(value: Json | undefined, list: readonly Scalar[]): boolean {
  if (!Array.isArray(value)) return false;
  const elements = new Set(value.map(comparable));
  return list.every((wanted) => elements.has(wanted));
}

/** One set per list, not per document: a list may have thousands of values. */
const SETS = new WeakMap<readonly Value[], ReadonlySet<Json>>();

function isIn(list: readonly Value[]): IsWanted {
  let set = SETS.get(list);
  if (set === undefined) {
    set = new Set<Json>(list);
    SETS.set(list, set);
  }
  return (value) => set.has(value);
}

function comparable(value: Json): Json {
  return typeof value === 'string' ? wellFormed(value) : value;
}

/** Negative, 0 or positive if value is below, equal to or above operand; NaN if they have no order. */
function compare(value: Json | undefined, operand: string | number): number {
  if (typeof value === 'number' && typeof operand === 'number') {
    return value < operand ? -1 : Number(value > operand);
  }
  if (typeof value === 'string' && typeof operand === 'string') {
    return Buffer.compare(Buffer.from(value), Buffer.from(operand));
  }
  return Number.NaN;
}
