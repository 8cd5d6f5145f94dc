// The table of filter operators: their operands and their meaning, as plain code over JSON.
// `column-test.ts` evaluates the same operators on columns; tests compare the two.

import { isJsonNumber } from '../common/exact-json.js';
import { foldCase } from '../common/fold-case.js';
import { isJsonObject, resolvePath } from '../common/metadata-path.js';
import type { Json, JsonNumber, JsonObject } from '../common/types.js';
import {
  ELEMENT_PATH,
  type ElementFilter,
  type FilterNode,
  type FilterTest,
  type Interval,
  isGeoTest,
  type JsonType,
  type Operands,
  type TestOperator,
  testPaths,
  type Value,
} from './filter-node.js';
import { type PointTest, shapeTest } from './geo.js';
import {
  BOOLEAN,
  list,
  type OperandParser,
  ORDERED,
  one,
  parseBox,
  parseCircle,
  parseCounts,
  parseInstants,
  parseLikePattern,
  parsePolygon,
  parseRegex,
  parseTypes,
  parseWords,
  SCALAR_OR_NULL,
  STRING,
} from './operands.js';
import { STRING_TESTS, type StringTest } from './string-tests.js';

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
//   $prefix $suffix     no       no    a string and so  an element is         no
//   $like $regex        no       no    a string and so  an element is         no
//   $date …             no       no    an instant in it no                    no
//   $size …             no       no    no               so many elements      no
//   $type …             no       is it is it            is it                 is it
//   $elem_match …       no       no    no               an element is so      no
//   $geo_…              no       no    no               no                    a point in it
//   $match words        at $text only: the indexed text of the vector has all of the words
//
// "Same" is the same JSON type: 1 is neither true nor "1". A range on an array is false, since an array
// is neither a number nor a string. Elements that are arrays or objects equal nothing. Numbers are
// float64 and the integers of int64 and uint64, compared by value, and -0 equals 0. Strings are equal when
// their code points are, and are ordered by code point, which is the order of their UTF-8 bytes. The point
// at the path p has the latitude at p.lat and the longitude at p.lon.

interface Operator<Operand> {
  readonly parse: OperandParser<Operand>;
  /** Whether it compares strings, so that `$case` applies to it. */
  readonly comparesStrings: boolean;
  /**
   * Whether `value`, undefined where the path is missing, satisfies the operator. For a shape, `value` is
   * the array of latitude and longitude.
   */
  matches(value: Json | undefined, operand: Operand): boolean;
}

const comparesStrings = true;

export const OPERATORS: { readonly [name in TestOperator]: Operator<Operands[name]> } = {
  $eq: {
    parse: one(SCALAR_OR_NULL),
    comparesStrings,
    matches: (value, x) => equals(value, (e) => e === x),
  },
  $in: {
    parse: list(SCALAR_OR_NULL),
    comparesStrings,
    matches: (value, x) => equals(value, isIn(x)),
  },
  $gt: { parse: one(ORDERED), comparesStrings, matches: (value, x) => compare(value, x) > 0 },
  $gte: { parse: one(ORDERED), comparesStrings, matches: (value, x) => compare(value, x) >= 0 },
  $lt: { parse: one(ORDERED), comparesStrings, matches: (value, x) => compare(value, x) < 0 },
  $lte: { parse: one(ORDERED), comparesStrings, matches: (value, x) => compare(value, x) <= 0 },
  $exists: {
    parse: one(BOOLEAN),
    comparesStrings: false,
    matches: (value, x) => (value !== undefined) === x,
  },
  $contains: {
    parse: one(SCALAR_OR_NULL),
    comparesStrings,
    matches: (value, x) => contains(value, (e) => e === x),
  },
  $contains_any: {
    parse: list(SCALAR_OR_NULL),
    comparesStrings,
    matches: (value, x) => contains(value, isIn(x)),
  },
  $contains_all: { parse: list(SCALAR_OR_NULL), comparesStrings, matches: containsAll },
  $prefix: {
    parse: one(STRING),
    comparesStrings,
    matches: (value, x) => someString(value, STRING_TESTS.$prefix(x)),
  },
  $suffix: {
    parse: one(STRING),
    comparesStrings,
    matches: (value, x) => someString(value, STRING_TESTS.$suffix(x)),
  },
  $like: {
    parse: parseLikePattern,
    comparesStrings,
    matches: (value, x) => someString(value, STRING_TESTS.$like(x)),
  },
  $regex: {
    parse: parseRegex,
    comparesStrings,
    matches: (value, x) => someString(value, STRING_TESTS.$regex(x)),
  },
  $date: {
    parse: parseInstants,
    comparesStrings: false,
    matches: (value, x) => typeof value === 'string' && passes(value, STRING_TESTS.$date(x)),
  },
  $size: {
    parse: parseCounts,
    comparesStrings: false,
    matches: (value, x) => Array.isArray(value) && isCountIn(value.length, x),
  },
  $type: {
    parse: parseTypes,
    comparesStrings: false,
    matches: (value, types) => value !== undefined && types.includes(typeOf(value)),
  },
  $elem_match: {
    parse: (value, position, context) => context.parseElements(value, position),
    comparesStrings: false,
    matches: matchesElement,
  },
  $match: {
    parse: parseWords,
    comparesStrings: false,
    // What the index has found stands at the path of the words.
    matches: (value) => value === true,
  },
  $geo_radius: {
    parse: parseCircle,
    comparesStrings: false,
    matches: (point, x) => isPointIn(point, shapeTest('$geo_radius', x)),
  },
  $geo_box: {
    parse: parseBox,
    comparesStrings: false,
    matches: (point, x) => isPointIn(point, shapeTest('$geo_box', x)),
  },
  $geo_polygon: {
    parse: parsePolygon,
    comparesStrings: false,
    matches: (point, x) => isPointIn(point, shapeTest('$geo_polygon', x)),
  },
};

/** Operators that are the complements of others; the parser turns them into `not`. */
export const COMPLEMENTS = { $ne: '$eq', $nin: '$in' } as const satisfies Record<
  string,
  TestOperator
>;

/**
 * Evaluates a filter on one document: the definition that columns must agree with, used for what has no
 * column. The filter has no conditions on the vector's id.
 */
export function matchesDocument(node: FilterNode, document: JsonObject): boolean {
  switch (node.kind) {
    case 'test':
      return matchesTest(node, document);
    case 'and':
      return node.children.every((child) => matchesDocument(child, document));
    case 'or':
      return node.children.some((child) => matchesDocument(child, document));
    case 'not':
      return !matchesDocument(node.child, document);
  }
}

function matchesTest(test: FilterTest, document: JsonObject): boolean {
  const value = isGeoTest(test)
    ? testPaths(test).map((path) => resolvePath(document, path) ?? null)
    : resolvePath(document, test.path);
  const isFolded = test.ignoresCase === true && value !== undefined;
  return matchesValue(test, isFolded ? foldValue(value) : value);
}

function matchesValue<Name extends TestOperator>(
  { operator, operand }: FilterTest<Name>,
  value: Json | undefined,
): boolean {
  return OPERATORS[operator].matches(value, operand);
}

function foldValue(value: Json): Json {
  if (Array.isArray(value)) return value.map((element) => foldString(element));
  return foldString(value);
}

function foldString(value: Json): Json {
  return typeof value === 'string' ? foldCase(value) : value;
}

export function isCountIn(count: number, { from, until }: Interval<number>): boolean {
  return (from === null || count >= from) && (until === null || count < until);
}

type IsWanted = (value: Json) => boolean;

function equals(value: Json | undefined, isWanted: IsWanted): boolean {
  return Array.isArray(value) ? contains(value, isWanted) : isWanted(value ?? null);
}

function contains(value: Json | undefined, isWanted: IsWanted): boolean {
  return Array.isArray(value) && value.some(isWanted);
}

function containsAll(value: Json | undefined, wanted: Operands['$contains_all']): boolean {
  if (!Array.isArray(value)) return false;
  const elements = new Set(value);
  return wanted.every((one) => elements.has(one));
}

/** One set per list, not per document: a list may have thousands of values. */
const SETS = new WeakMap<readonly Value[], ReadonlySet<Json>>();

function isIn(values: readonly Value[]): IsWanted {
  let set = SETS.get(values);
  if (set === undefined) {
    set = new Set<Json>(values);
    SETS.set(values, set);
  }
  return (value) => set.has(value);
}

/** Negative, 0 or positive if value is below, equal to or above operand; NaN if they have no order. */
function compare(value: Json | undefined, operand: string | JsonNumber): number {
  if (isJsonNumber(value) && isJsonNumber(operand)) {
    return value < operand ? -1 : Number(value > operand);
  }
  if (typeof value === 'string' && typeof operand === 'string') {
    return Buffer.compare(Buffer.from(value), Buffer.from(operand));
  }
  return Number.NaN;
}

/** Whether the value is a string that passes, or an array with one. */
function someString(value: Json | undefined, test: StringTest): boolean {
  const values = Array.isArray(value) ? value : [value];
  return values.some((one) => typeof one === 'string' && passes(one, test));
}

function passes(text: string, test: StringTest): boolean {
  const bytes = Buffer.from(text);
  return test(bytes, 0, bytes.length);
}

function typeOf(value: Json): JsonType {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (isJsonNumber(value)) return 'number';
  return typeof value as JsonType;
}

function matchesElement(value: Json | undefined, { hasFields, node }: ElementFilter): boolean {
  if (!Array.isArray(value)) return false;
  return value.some((element) => {
    if (!hasFields) return matchesDocument(node, { [ELEMENT_PATH]: element });
    return isJsonObject(element) && matchesDocument(node, element);
  });
}

function isPointIn(point: Json | undefined, isInShape: PointTest): boolean {
  if (!Array.isArray(point)) return false;
  const [lat, lon] = point;
  return typeof lat === 'number' && typeof lon === 'number' && isInShape(lat, lon);
}
