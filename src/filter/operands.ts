// Parsers of operands, from JSON to the operands of the filter tree. A parser reports what is wrong and
// then returns undefined.

import type { OperandKind } from '../common/filter-operators.js';
import type { Limits } from '../common/limits.js';
import { isJsonObject } from '../common/metadata-path.js';
import type { Json, JsonNumber, JsonObject } from '../common/types.js';
import {
  type ElementFilter,
  type Interval,
  JSON_TYPES,
  type JsonType,
  type ParsedOperands,
  type Value,
} from './filter-node.js';
import {
  type Box,
  type Circle,
  enclosesPole,
  isLatitude,
  isLongitude,
  type Point,
  type Polygon,
  type Ring,
} from './geo.js';
import {
  compareInstants,
  INSTANT_EXPECTED,
  type Instant,
  nextInstant,
  parseInstant,
} from './instant.js';
import { describeType, type IssueList, type Position, within } from './issues.js';
import { checkPattern } from './pattern.js';

/** What parsers of operands need of the parser of the filter. */
export interface OperandContext {
  readonly limits: Limits;
  readonly issues: IssueList;
  /** Counts a `$regex`; false if the filter has too many of them. */
  countPattern(position: Position): boolean;
  parseElements(value: Json, position: Position): ElementFilter | undefined;
}

type OperandParser<Operand> = (
  value: Json,
  position: Position,
  context: OperandContext,
) => Operand | undefined;

/** The type of an operand, or of its elements. */
interface ValueType<Accepted extends Value> {
  readonly expected: string;
  /** Only values of the type Accepted pass. */
  accepts(value: Json): value is Accepted;
}

const STRING: ValueType<string> = {
  expected: 'a string',
  accepts: (value) => typeof value === 'string',
};
const BOOLEAN: ValueType<boolean> = {
  expected: 'true or false',
  accepts: (value) => typeof value === 'boolean',
};
const ORDERED: ValueType<JsonNumber | string> = {
  expected: 'a number or a string',
  // JSON.parse reads 1e999 as Infinity, which JSON cannot represent.
  accepts: (value) =>
    typeof value === 'string' || typeof value === 'bigint' || isFiniteNumber(value),
};
const SCALAR: ValueType<JsonNumber | string | boolean> = {
  expected: 'a string, a number or a boolean',
  accepts: (value) => BOOLEAN.accepts(value) || ORDERED.accepts(value),
};
const SCALAR_OR_NULL: ValueType<Value> = {
  expected: 'a string, a number, a boolean or null',
  accepts: (value) => value === null || SCALAR.accepts(value),
};

function one<Accepted extends Value>(type: ValueType<Accepted>): OperandParser<Accepted> {
  return (value, position, { issues }) => parseValue(type, value, position, issues);
}

function list<Accepted extends Value>(
  type: ValueType<Accepted>,
): OperandParser<readonly Accepted[]> {
  return (values, position, { issues, limits }) => {
    if (!Array.isArray(values)) {
      const expected = `an array, each value ${type.expected}`;
      issues.reportType(position, 'the operator takes', expected, values);
      return undefined;
    }
    const max = limits.filterValuesMax;
    if (values.length > max) {
      issues.reportBound(position, 'values in one operator', max, values.length);
      return undefined;
    }
    return values
      .map((value, i) => parseValue(type, value, within(position, i), issues))
      .filter((value) => value !== undefined);
  };
}

function parseValue<Accepted extends Value>(
  { accepts, expected }: ValueType<Accepted>,
  value: Json,
  position: Position,
  issues: IssueList,
): Accepted | undefined {
  if (!accepts(value)) {
    issues.reportType(position, 'the value is', expected, value);
    return undefined;
  }
  if (typeof value === 'string' && !value.isWellFormed()) {
    const found = 'half of a surrogate pair, which no stored string has';
    issues.report(position, 'the value is', 'text that UTF-8 can hold', found);
    return undefined;
  }
  // Numbers stay numbers.
  return value === 0 ? (0 as Accepted) : value;
}

function isFiniteNumber(value: Json | undefined): value is number {
  return Number.isFinite(value);
}

/** The words of `$match`. */
const parseWords: OperandParser<string> = (value, position, { issues, limits }) => {
  const words = parseValue(STRING, value, position, issues);
  const max = limits.textQueryCharactersMax;
  if (words === undefined || words.length <= max) return words;
  issues.reportBound(position, 'characters in $match', max, words.length);
  return undefined;
};

/** A pattern of `$like`. */
const parseLikePattern: OperandParser<string> = (value, position, context) => {
  const pattern = parsePatternText(value, position, context);
  // A pair of backslashes is a literal one.
  if (pattern === undefined || !/(^|[^\\])(\\\\)*\\$/.test(pattern)) return pattern;
  const expected = 'a character after each backslash';
  context.issues.report(position, 'a pattern has', expected, 'a single backslash at its end');
  return undefined;
};

/** A pattern of `$regex`. */
const parseRegex: OperandParser<string> = (value, position, context) => {
  const pattern = parsePatternText(value, position, context);
  if (pattern === undefined || !context.countPattern(position)) return undefined;
  const { issues, limits } = context;
  const max = limits.filterPatternInstructionsMax;
  const checked = checkPattern(pattern, max);
  if ('problem' in checked) {
    issues.report(position, 'the pattern is', 'a regular expression of RE2', checked.problem);
    return undefined;
  }
  if (checked.instructionCount > max) {
    const what = 'instructions of a compiled pattern, in which repetitions are written out';
    issues.reportBound(position, what, max, checked.instructionCount);
    return undefined;
  }
  return pattern;
};

const parsePatternText: OperandParser<string> = (value, position, { issues, limits }) => {
  const pattern = parseValue(STRING, value, position, issues);
  const max = limits.filterPatternCharactersMax;
  if (pattern === undefined || pattern.length <= max) return pattern;
  issues.reportBound(position, 'characters in a pattern', max, pattern.length);
  return undefined;
};

/** Bounds of an interval: integers, or other values of which each has a next one. */
interface BoundType<Bound> {
  readonly expected: string;
  read(value: Json): Bound | null;
  next(bound: Bound): Bound;
  compare(a: Bound, b: Bound): number;
}

const COUNT: BoundType<number> = {
  expected: 'an integer from 0 on',
  read: (value) => (Number.isSafeInteger(value) && Number(value) >= 0 ? Number(value) + 0 : null),
  next: (count) => count + 1,
  compare: (a, b) => a - b,
};

const INSTANT: BoundType<Instant> = {
  expected: INSTANT_EXPECTED,
  read: (value) => (typeof value === 'string' ? parseInstant(value) : null),
  next: nextInstant,
  compare: compareInstants,
};

const parseCounts = interval(COUNT);
const parseInstants = interval(INSTANT);

const COMPARISONS = ['$eq', '$gt', '$gte', '$lt', '$lte'];

/** A bound, which is the only value of the interval, or an object of comparisons. */
function interval<Bound>(type: BoundType<Bound>): OperandParser<Interval<Bound>> {
  return (value, position, { issues }) => {
    if (!isJsonObject(value)) return narrowInterval(type, WHOLE, '$eq', value, position, issues);
    const comparisons = Object.entries(value);
    if (comparisons.length === 0) {
      issues.report(position, 'the operator takes', 'a comparison', 'an empty object');
      return undefined;
    }
    let result: Interval<Bound> | undefined = WHOLE;
    for (const [name, bound] of comparisons) {
      if (!COMPARISONS.includes(name)) {
        reportUnknown(issues, position, name, COMPARISONS);
        return undefined;
      }
      result &&= narrowInterval(type, result, name, bound, within(position, name), issues);
    }
    return result;
  };
}

const WHOLE = { from: null, until: null };

function narrowInterval<Bound>(
  { read, expected, next, compare }: BoundType<Bound>,
  { from, until }: Interval<Bound>,
  comparison: string,
  value: Json,
  position: Position,
  issues: IssueList,
): Interval<Bound> | undefined {
  const bound = read(value);
  if (bound === null) {
    const actual = typeof value === 'string' ? JSON.stringify(value.slice(0, 40)) : shown(value);
    issues.report(position, 'the value is', expected, actual);
    return undefined;
  }
  const low = comparison === '$gt' ? next(bound) : bound;
  const high = comparison === '$lt' ? bound : next(bound);
  const hasLow = ['$eq', '$gt', '$gte'].includes(comparison);
  const hasHigh = ['$eq', '$lt', '$lte'].includes(comparison);
  return {
    from: hasLow && (from === null || compare(low, from) > 0) ? low : from,
    until: hasHigh && (until === null || compare(high, until) < 0) ? high : until,
  };
}

/** A type of JSON or several. */
const parseTypes: OperandParser<readonly JsonType[]> = (value, position, { issues }) => {
  const names: readonly Json[] = Array.isArray(value) ? value : [value];
  const known: readonly Json[] = JSON_TYPES;
  const wrong = names.findIndex((name) => !known.includes(name));
  if (wrong === -1 && names.length > 0) return JSON_TYPES.filter((type) => names.includes(type));
  const at = Array.isArray(value) && names.length > 0 ? within(position, wrong) : position;
  const found = names[wrong] ?? value;
  const actual = typeof found === 'string' ? found.slice(0, 40) : describeType(found);
  issues.report(at, 'the type is', `one of ${JSON_TYPES.join(', ')}`, actual);
  return undefined;
};

const parseCircle: OperandParser<Circle> = (value, position, { issues }) => {
  const circle = parseMembers(value, ['center', 'radius_meters'], position, issues);
  if (circle === undefined) return undefined;
  const center = parsePoint(circle.center, within(position, 'center'), issues);
  const radius = circle.radius_meters;
  if (!isFiniteNumber(radius) || radius < 0) {
    const at = within(position, 'radius_meters');
    const expected = 'a number of meters from 0 on';
    issues.report(at, 'the radius is', expected, shown(radius ?? null));
    return undefined;
  }
  return center && { center, radius_meters: radius + 0 };
};

const parseBox: OperandParser<Box> = (value, position, { issues }) => {
  const box = parseMembers(value, ['top_left', 'bottom_right'], position, issues);
  if (box === undefined) return undefined;
  const topLeft = parsePoint(box.top_left, within(position, 'top_left'), issues);
  const bottomRight = parsePoint(box.bottom_right, within(position, 'bottom_right'), issues);
  if (topLeft === undefined || bottomRight === undefined) return undefined;
  if (topLeft.lat < bottomRight.lat) {
    const at = within(within(position, 'top_left'), 'lat');
    const expected = `at least ${bottomRight.lat}, that of bottom_right`;
    issues.report(at, 'the latitude of top_left is', expected, topLeft.lat);
    return undefined;
  }
  return { top_left: topLeft, bottom_right: bottomRight };
};

const parsePolygon: OperandParser<Polygon> = (value, position, { issues, limits }) => {
  const polygon = parseMembers(value, ['exterior', 'interiors'], position, issues, ['interiors']);
  if (polygon === undefined) return undefined;
  const { exterior, interiors = [] } = polygon;
  if (!Array.isArray(interiors)) {
    const expected = 'an array of rings';
    issues.reportType(within(position, 'interiors'), 'the interiors are', expected, interiors);
    return undefined;
  }
  const max = limits.filterPolygonPointsMax;
  const pointCount = [exterior, ...interiors].reduce<number>(
    (sum, ring) => sum + (Array.isArray(ring) ? ring.length : 0),
    0,
  );
  if (pointCount > max) {
    issues.reportBound(position, 'points in one polygon', max, pointCount);
    return undefined;
  }
  const outer = parseRing(exterior, within(position, 'exterior'), issues);
  const holes = interiors
    .map((ring, i) => parseRing(ring, within(within(position, 'interiors'), i), issues))
    .filter((ring) => ring !== undefined);
  return outer && holes.length === interiors.length
    ? { exterior: outer, interiors: holes }
    : undefined;
};

/** By the kind of operand that FILTER_OPERATORS names. */
const PARSERS: { readonly [kind in OperandKind]: OperandParser<ParsedOperands[kind]> } = {
  value: one(SCALAR_OR_NULL),
  values: list(SCALAR_OR_NULL),
  ordered: one(ORDERED),
  flag: one(BOOLEAN),
  text: one(STRING),
  like: parseLikePattern,
  regex: parseRegex,
  instants: parseInstants,
  counts: parseCounts,
  types: parseTypes,
  elements: (value, position, context) => context.parseElements(value, position),
  circle: parseCircle,
  box: parseBox,
  polygon: parsePolygon,
  words: parseWords,
};

/** Undefined after reporting what is wrong with the operand. */
export function parseOperand<Kind extends OperandKind>(
  kind: Kind,
  value: Json,
  position: Position,
  context: OperandContext,
): ParsedOperands[Kind] | undefined {
  return PARSERS[kind](value, position, context);
}

/** The first point may be repeated at the end. */
function parseRing(
  value: Json | undefined,
  position: Position,
  issues: IssueList,
): Ring | undefined {
  if (!Array.isArray(value)) {
    issues.reportType(position, 'a ring is', 'an array of points', value ?? null);
    return undefined;
  }
  const points = value
    .map((point, i) => parsePoint(point, within(position, i), issues))
    .filter((point) => point !== undefined);
  if (points.length < value.length) return undefined;
  const first = points[0];
  const last = points.at(-1);
  const isClosed = points.length > 1 && first?.lat === last?.lat && first?.lon === last?.lon;
  const ring = isClosed ? points.slice(0, -1) : points;
  if (ring.length < 3) {
    issues.report(position, 'a ring has', 'at least 3 points', ring.length);
    return undefined;
  }
  if (enclosesPole(ring)) {
    const expected = 'return to their first point without going around a pole';
    issues.report(position, 'the edges of a ring', expected, 'a way around the globe');
    return undefined;
  }
  return ring;
}

function parsePoint(
  value: Json | undefined,
  position: Position,
  issues: IssueList,
): Point | undefined {
  const point = parseMembers(value, ['lat', 'lon'], position, issues);
  if (point === undefined) return undefined;
  const coordinates = [
    { name: 'lat', isValid: isLatitude, expected: 'a number of degrees from -90 to 90' },
    { name: 'lon', isValid: isLongitude, expected: 'a number of degrees from -180 to 180' },
  ].map(({ name, isValid, expected }) => {
    const degrees = point[name] ?? null;
    if (typeof degrees === 'number' && isValid(degrees)) return degrees + 0;
    issues.report(within(position, name), `${name} is`, expected, shown(degrees));
    return undefined;
  });
  const [lat, lon] = coordinates;
  return lat === undefined || lon === undefined ? undefined : { lat, lon };
}

/** A number itself, since its type is not what is wrong with it; else the type. */
function shown(value: Json): string | number {
  return isFiniteNumber(value) ? value : describeType(value);
}

/** An object with these members and no others; those in `optional` may be missing. */
function parseMembers(
  value: Json | undefined,
  names: readonly string[],
  position: Position,
  issues: IssueList,
  optional: readonly string[] = [],
): JsonObject | undefined {
  const expected = `an object with ${names.join(' and ')}`;
  if (!isJsonObject(value)) {
    issues.reportType(position, 'the value is', expected, value ?? null);
    return undefined;
  }
  const unknown = Object.keys(value).find((name) => !names.includes(name));
  if (unknown !== undefined) {
    reportUnknown(issues, position, unknown, names);
    return undefined;
  }
  const missing = names.find((name) => !Object.hasOwn(value, name) && !optional.includes(name));
  if (missing === undefined) return value;
  issues.report(position, 'the value is', expected, `no ${missing}`);
  return undefined;
}

/** At the object that has the name, which may be long. */
function reportUnknown(
  issues: IssueList,
  position: Position,
  name: string,
  known: readonly string[],
): void {
  issues.report(position, 'a name here is', `one of ${known.join(', ')}`, name.slice(0, 40));
}
