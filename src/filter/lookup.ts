// Lookups hold the answers of an operator for the scalars of a column, prepared once as small tables by kind and by
// dictionary code, an interval of numbers and a sorted list. Callers handle arrays and rows.

import { KIND, type MetadataColumn, numberAt } from '../common/columns.js';
import { isJsonNumber, nextBelow } from '../common/exact-json.js';
import type { JsonNumber } from '../common/types.js';
import { compareStrings, findStrings, type Passing, testStrings } from './dictionary.js';
import type { Operands, TestOperator, Value } from './filter-node.js';
import type { StringTest } from './string-tests.js';

/** An entry of `byKind` for kinds whose answer depends on the value. */
export const BY_VALUE = -1;

/** Answers are 0 for no and 1 for yes. An equality answers which of its values matched, 1 to `valueCount`. */
export interface Lookup {
  /** [8]: the answer by KIND, or BY_VALUE. */
  readonly byKind: Int32Array;
  /** Numbers match if they are in the closed interval low..high and in `numbers`. */
  readonly low: number;
  readonly high: number;
  /** Null if the interval alone decides; the answer is then 1. */
  readonly numbers: NumberList | null;
  /**
   * The answer for a number that passes as a float64, in a column with residues; otherwise null. A range needs it only
   * at the ends of its interval.
   */
  readonly exact: ((number: JsonNumber) => number) | null;
  /** The answer for strings, by dictionary code. */
  readonly byCode: Int32Array;
  /** The number of distinct values of an equality; 0 for other operators. */
  readonly valueCount: number;
}

/** The kinds with a single value. */
const SINGLE_VALUES = [
  [null, KIND.null],
  [false, KIND.false],
  [true, KIND.true],
] as const;

/** Creates a lookup of the index of the equal value; equal values count once. */
export function createEquality(values: readonly Value[], column: MetadataColumn): Lookup {
  const distinct = [...new Set(values)];
  const strings = distinct.filter((value) => typeof value === 'string');
  const exactNumbers = distinct.filter((value) => isJsonNumber(value));
  const hasResidues = column.residues !== null;
  // A column without residues contains no bigint.
  const comparable = hasResidues ? exactNumbers : exactNumbers.filter(isFloat64);
  const numbers = Float64Array.from(new Set(comparable.map(Number))).sort();
  const firstAnswer = strings.length + 1;
  const answers = new Map(exactNumbers.map((value, i) => [value, firstAnswer + i]));
  const byKind = new Int32Array(8);
  if (column.dictionary !== null && strings.length > 0) byKind[KIND.string] = BY_VALUE;
  if (column.numbers !== null && numbers.length > 0) byKind[KIND.number] = BY_VALUE;
  let next = firstAnswer + exactNumbers.length;
  for (const [value, kind] of SINGLE_VALUES) {
    if (distinct.includes(value)) byKind[kind] = next++;
  }
  return {
    byKind,
    low: numbers[0] ?? 0,
    high: numbers.at(-1) ?? 0,
    numbers: distinct.length > 1 ? indexNumbers(numbers, firstAnswer) : null,
    exact: hasResidues ? (number) => answers.get(number) ?? 0 : null,
    byCode: findCodes(column, strings),
    valueCount: distinct.length,
  };
}

function isFloat64(value: JsonNumber): value is number {
  return typeof value === 'number';
}

export type RangeOperator = '$gt' | '$gte' | '$lt' | '$lte';

const PASSING: { readonly [name in RangeOperator]: Passing } = {
  $gt: { below: 0, equal: 0, above: 1 },
  $gte: { below: 0, equal: 1, above: 1 },
  $lt: { below: 1, equal: 0, above: 0 },
  $lte: { below: 1, equal: 1, above: 0 },
};

export function isRangeOperator(operator: TestOperator): operator is RangeOperator {
  return Object.hasOwn(PASSING, operator);
}

/** Creates a lookup of the numbers or strings that satisfy the operator. */
export function createRange(
  operator: RangeOperator,
  bound: Operands[RangeOperator],
  column: MetadataColumn,
): Lookup {
  const { numbers, residues, dictionary, dictionaryCount } = column;
  const passing = PASSING[operator];
  const nothing = createUniform(0);
  const byKind = new Int32Array(8);
  if (typeof bound !== 'string' && numbers !== null) {
    byKind[KIND.number] = BY_VALUE;
    if (residues === null) {
      const [low, high] = intervalOf(bound, passing);
      return { ...nothing, byKind, low, high };
    }
    const [low, high] = intervalOf(Number(bound), { ...passing, equal: 1 });
    const exact = (number: JsonNumber) => {
      if (number < bound) return passing.below;
      return number > bound ? passing.above : passing.equal;
    };
    return { ...nothing, byKind, low, high, exact };
  }
  if (typeof bound === 'string' && dictionary !== null) {
    byKind[KIND.string] = BY_VALUE;
    const byCode = compareStrings(dictionary, dictionaryCount, Buffer.from(bound), passing);
    return { ...nothing, byKind, byCode };
  }
  return nothing;
}

/** Creates a lookup of the strings that pass the test. */
export function createStringLookup(
  test: StringTest,
  { dictionary, dictionaryCount }: MetadataColumn,
  isStopped: () => boolean,
): Lookup {
  const nothing = createUniform(0);
  if (dictionary === null) return nothing;
  nothing.byKind[KIND.string] = BY_VALUE;
  return { ...nothing, byCode: testStrings(dictionary, dictionaryCount, test, isStopped) };
}

/** Combines two ranges over a column; both must be satisfied. */
export function intersectRanges(a: Lookup, b: Lookup): Lookup {
  return {
    ...a,
    byKind: a.byKind.map((answer, kind) => (b.byKind[kind] === answer ? answer : 0)),
    low: Math.max(a.low, b.low),
    high: Math.min(a.high, b.high),
    exact: a.exact && b.exact && bothOf(a.exact, b.exact),
    byCode: a.byCode.map((answer, code) => answer & b.byCode[code]),
  };
}

type Exact = NonNullable<Lookup['exact']>;

function bothOf(a: Exact, b: Exact): Exact {
  return (number) => a(number) & b(number);
}

/** Creates a lookup with the same answer for every kind. */
export function createUniform(answer: 0 | 1): Lookup {
  const byKind = new Int32Array(8).fill(answer);
  const byCode = new Int32Array(0);
  return { byKind, low: 0, high: 0, numbers: null, exact: null, byCode, valueCount: 0 };
}

/** Returns the answer for a row; BY_VALUE for an array whose elements decide. */
export function lookUp(lookup: Lookup, column: MetadataColumn, row: number): number {
  const kind = column.kinds[row];
  const answer = lookup.byKind[kind];
  if (answer !== BY_VALUE) return answer;
  if (kind === KIND.string) return lookup.byCode[column.codes![row]];
  return kind === KIND.number ? lookUpNumber(lookup, column, row) : BY_VALUE;
}

function lookUpNumber(lookup: Lookup, column: MetadataColumn, row: number): number {
  const number = column.numbers![row];
  if (!(number >= lookup.low && number <= lookup.high)) return 0;
  const answer = lookup.numbers === null ? 1 : findNumber(lookup.numbers, number);
  return answer === 0 ? 0 : answerExactly(lookup, column, row, answer);
}

/** Returns the exact answer for a number whose answer as a float64 is `answer`. */
export function answerExactly(
  { low, high, exact, valueCount }: Lookup,
  column: MetadataColumn,
  row: number,
  answer: number,
): number {
  if (exact === null) return answer;
  const number = column.numbers![row];
  const isDecided = valueCount === 0 && number > low && number < high;
  return isDecided ? answer : exact(numberAt(column, row));
}

function findCodes(column: MetadataColumn, strings: readonly string[]): Int32Array {
  const { dictionary, dictionaryCount } = column;
  if (dictionary === null || strings.length === 0) return new Int32Array(0);
  const encoded = strings.map((string) => Buffer.from(string));
  return findStrings(dictionary, dictionaryCount, encoded);
}

/** Sorted numbers in buckets of equal width. If the numbers are spread evenly, a bucket holds at most a few. */
export interface NumberList {
  /** Ascending, distinct. */
  readonly numbers: Float64Array;
  /** Bucket b holds `numbers[starts[b]..starts[b + 1])`. */
  readonly starts: Int32Array;
  readonly bucketsPerUnit: number;
  /** The answer for `numbers[0]`; the answers for the next numbers follow. */
  readonly firstAnswer: number;
}

function indexNumbers(numbers: Float64Array, firstAnswer: number): NumberList {
  const bucketCount = Math.max(256, 4 * numbers.length);
  // It is Infinity for a single number and 0 for numbers that are very far apart; one bucket then holds all.
  const bucketsPerUnit = bucketCount / (numbers[numbers.length - 1] - numbers[0]);
  const starts = new Int32Array(bucketCount + 2);
  for (const number of numbers) starts[bucketOf(number, numbers[0], bucketsPerUnit) + 1]++;
  for (let i = 1; i < starts.length; i++) starts[i] += starts[i - 1];
  return { numbers, starts, bucketsPerUnit, firstAnswer };
}

/** Returns the bucket, 0 to the bucket count, of a number between the least and the greatest. */
function bucketOf(number: number, least: number, bucketsPerUnit: number): number {
  return ((number - least) * bucketsPerUnit) | 0;
}

/** Returns the answer for a number between the least and the greatest of the list. */
export function findNumber(
  { numbers, starts, bucketsPerUnit, firstAnswer }: NumberList,
  number: number,
): number {
  const bucket = bucketOf(number, numbers[0], bucketsPerUnit);
  let from = starts[bucket];
  let to = starts[bucket + 1];
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (numbers[middle] === number) return firstAnswer + middle;
    if (numbers[middle] < number) from = middle + 1;
    else to = middle;
  }
  return 0;
}

/** Returns the closed interval of the float64 values that pass a comparison with `bound`. */
function intervalOf(bound: JsonNumber, { below, equal }: Passing): readonly [number, number] {
  const nearest = Number(bound);
  if (below === 1) {
    const passes = nearest < bound || (nearest === bound && equal === 1);
    return [Number.NEGATIVE_INFINITY, passes ? nearest : nextBelow(nearest)];
  }
  const passes = nearest > bound || (nearest === bound && equal === 1);
  return [passes ? nearest : -nextBelow(-nearest), Number.POSITIVE_INFINITY];
}
