// How each operator of FILTER_OPERATORS is evaluated: its meaning as plain code over JSON, the same over columns, and
// its cost. Tests compare the two meanings, which share only the tests of single strings and points.

import type { Bitmap } from '../common/bitmap.js';
import type { MetadataColumn } from '../common/columns.js';
import { isJsonNumber } from '../common/exact-json.js';
import { foldCase } from '../common/fold-case.js';
import { isJsonObject, resolvePath } from '../common/metadata-path.js';
import type { Json, JsonNumber, JsonObject } from '../common/types.js';
import {
  type IsStopped,
  isCountIn,
  type NarrowByElements,
  narrowToOnly,
  narrowToPoints,
  narrowToSize,
  planContains,
  planEquality,
  planExistence,
  planScalarString,
  planStringTest,
  planTypes,
} from './column-plans.js';
import {
  ELEMENT_PATH,
  type ElementFilter,
  type FilterNode,
  type FilterTest,
  isGeoTest,
  type JsonType,
  type Operands,
  type TestOperator,
  testPaths,
  type Value,
} from './filter-node.js';
import { type GeoOperator, type PointTest, type Shapes, shapeTest } from './geo.js';
import { createRange, type RangeOperator } from './lookup.js';
import type { RowTest } from './row-loops.js';
import { STRING_TESTS, type StringTest } from './string-tests.js';

// The meaning by the value of a document at the path. Every operator answers yes or no, never "unknown".
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
//   $contains_only […]  no       no    no               every element equals  no
//                                                       one of the values
//   $prefix $suffix     no       no    a string and so  an element is         no
//   $like $regex        no       no    a string and so  an element is         no
//   $date …             no       no    an instant in it no                    no
//   $size …             no       no    no               so many elements      no
//   $type …             no       is it is it            is it                 is it
//   $elem_match …       no       no    no               an element is so      no
//   $geo_…              no       no    no               no                    a point in it
//   $match words        only at $text: the indexed text of the vector contains all words
//
// "Same" is the same JSON type: 1 is neither true nor "1". A range on an array is false, because an array is
// neither a number nor a string. Elements that are arrays or objects equal nothing. Numbers are float64 and the
// integers of int64 and uint64, compared by value, and -0 equals 0. Strings are equal if their code points are,
// and are ordered by code point, which is the order of their UTF-8 bytes. The point at path p consists of the
// latitude at p.lat and the longitude at p.lon.

/** How conditions with an operator are evaluated over JSON and over columns, and what they cost. */
interface Operator<Operand> {
  /**
   * Whether a value satisfies the operator.
   * @param value is undefined if the path is missing. For a shape it is the array of latitude and longitude.
   */
  matches(value: Json | undefined, operand: Operand): boolean;
  readonly overColumns: OverColumns<Operand>;
  /** Returns the cost of `count` strings or points in cells (see `cost.ts`), beyond that of reading them. */
  cells?(operand: Operand, count: number, byteCount: number): number;
}

/**
 * Either a plan for the loops over rows, or a loop of its own, which clears the rows that do not satisfy the operator
 * and gets one column for each path of the condition.
 */
type OverColumns<Operand> =
  | { plan(operand: Operand, column: MetadataColumn, isStopped: IsStopped): RowTest }
  | {
      narrow(
        rows: Bitmap,
        operand: Operand,
        columns: readonly MetadataColumn[],
        narrowByElements: NarrowByElements,
      ): void;
    };

export const OPERATORS: { readonly [name in TestOperator]: Operator<Operands[name]> } = {
  $eq: {
    matches: (value, x) => equals(value, (e) => e === x),
    overColumns: { plan: (x, column) => planEquality([x], column) },
  },
  $in: {
    matches: (value, x) => equals(value, isIn(x)),
    overColumns: { plan: planEquality },
  },
  $gt: { matches: (value, x) => compare(value, x) > 0, overColumns: range('$gt') },
  $gte: { matches: (value, x) => compare(value, x) >= 0, overColumns: range('$gte') },
  $lt: { matches: (value, x) => compare(value, x) < 0, overColumns: range('$lt') },
  $lte: { matches: (value, x) => compare(value, x) <= 0, overColumns: range('$lte') },
  $exists: {
    matches: (value, x) => (value !== undefined) === x,
    overColumns: { plan: planExistence },
  },
  $contains: {
    matches: (value, x) => contains(value, (e) => e === x),
    overColumns: { plan: (x, column) => planContains([x], 'any', column) },
  },
  $contains_any: {
    matches: (value, x) => contains(value, isIn(x)),
    overColumns: { plan: (x, column) => planContains(x, 'any', column) },
  },
  $contains_all: {
    matches: containsAll,
    overColumns: { plan: (x, column) => planContains(x, 'all', column) },
  },
  $contains_only: {
    matches: (value, x) => Array.isArray(value) && value.every(isIn(x)),
    overColumns: { narrow: narrowToOnly },
  },
  $prefix: onStrings(STRING_TESTS.$prefix),
  $suffix: onStrings(STRING_TESTS.$suffix),
  $like: {
    ...onStrings(STRING_TESTS.$like),
    // Every byte may be compared with the whole pattern.
    cells: (pattern, _, byteCount) => byteCount * pattern.length,
  },
  $regex: {
    ...onStrings(STRING_TESTS.$regex),
    cells: (_pattern, _count, byteCount) => byteCount * CELLS_PER_PATTERN_BYTE,
  },
  $date: {
    matches: (value, x) => typeof value === 'string' && passes(value, STRING_TESTS.$date(x)),
    overColumns: { plan: (x, ...where) => planScalarString(STRING_TESTS.$date(x), ...where) },
    cells: (_, count) => count * CELLS_PER_DATE,
  },
  $size: {
    matches: (value, x) => Array.isArray(value) && isCountIn(value.length, x),
    overColumns: { narrow: narrowToSize },
  },
  $type: {
    matches: (value, types) => value !== undefined && types.includes(typeOf(value)),
    overColumns: { plan: planTypes },
  },
  $elem_match: {
    matches: matchesElement,
    overColumns: {
      narrow: (rows, x, [column], narrowByElements) => narrowByElements(rows, x, column),
    },
  },
  $match: {
    // The column at the path of the words holds what the index found.
    matches: (value) => value === true,
    overColumns: { plan: (_, column) => planEquality([true], column) },
  },
  $geo_radius: onPoints('$geo_radius', () => 0),
  $geo_box: onPoints('$geo_box', () => 0),
  $geo_polygon: onPoints('$geo_polygon', ({ exterior, interiors }) =>
    // A point is compared with every edge.
    [exterior, ...interiors].reduce((sum, ring) => sum + ring.length, 0),
  ),
};

/** 64 ns, the time of a pattern without a table of states. Most patterns take a tenth of it. */
const CELLS_PER_PATTERN_BYTE = 64;
const CELLS_PER_DATE = 32;
const CELLS_PER_POINT = 32;

function range(operator: RangeOperator): OverColumns<string | JsonNumber> {
  return {
    plan: (x, column) => ({ lookup: createRange(operator, x, column), elementTest: null }),
  };
}

/** Matches strings that pass and arrays that contain one. */
function onStrings(prepare: (operand: string) => StringTest): Operator<string> {
  return {
    matches: (value, x) => someString(value, prepare(x)),
    overColumns: { plan: (x, ...where) => planStringTest(prepare(x), ...where) },
  };
}

/**
 * Matches points in a shape.
 * @param edges returns the number of edges that a point is compared with.
 */
function onPoints<Name extends GeoOperator>(
  name: Name,
  edges: (shape: Shapes[Name]) => number,
): Operator<Shapes[Name]> {
  return {
    matches: (point, x) => isPointIn(point, shapeTest(name, x)),
    overColumns: {
      narrow: (rows, x, [lats, lons]) => narrowToPoints(rows, shapeTest(name, x), lats, lons),
    },
    cells: (x, count) => count * (CELLS_PER_POINT + edges(x)),
  };
}

/**
 * Evaluates a filter on one document. This is the definition that columns must agree with, and is used for paths
 * without a column. The filter must not contain conditions on the vector's id.
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

/** Sets are cached per list, not built per document, because a list may hold thousands of values. */
const SETS = new WeakMap<readonly Value[], ReadonlySet<Json>>();

function isIn(values: readonly Value[]): IsWanted {
  let set = SETS.get(values);
  if (set === undefined) {
    set = new Set<Json>(values);
    SETS.set(values, set);
  }
  return (value) => set.has(value);
}

/** Returns a negative number, 0 or a positive number if `value` is below, equal to or above `operand`; NaN if unordered. */
function compare(value: Json | undefined, operand: string | JsonNumber): number {
  if (isJsonNumber(value) && isJsonNumber(operand)) {
    return value < operand ? -1 : Number(value > operand);
  }
  if (typeof value === 'string' && typeof operand === 'string') {
    return Buffer.compare(Buffer.from(value), Buffer.from(operand));
  }
  return Number.NaN;
}

/** Whether the value is a string that passes or an array that contains one. */
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
