// Parses operands from JSON to the operands of the filter tree. A parser reports what is wrong and then returns
// undefined.

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
import { describeJson, type IssueList, type Location, within } from './issues.js';
import { checkPattern } from './pattern.js';

/** What parsers of operands need from the parser of the filter. */
export interface OperandContext {
  readonly limits: Limits;
  readonly issues: IssueList;
  /** Counts a `$regex`. Returns false, after reporting it, if the filter contains too many. */
  countPattern(location: Location): boolean;
  parseElements(value: Json, location: Location): ElementFilter | undefined;
}

type OperandParser<Operand> = (
  value: Json,
  location: Location,
  context: OperandContext,
) => Operand | undefined;

/** The type of an operand, or of its elements. */
interface ValueType<Accepted extends Value> {
  readonly expected: string;
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
  return (value, location, { issues }) => parseValue(type, value, location, issues);
}

function list<Accepted extends Value>(
  type: ValueType<Accepted>,
): OperandParser<readonly Accepted[]> {
  return (values, location, { issues, limits }) => {
    if (!Array.isArray(values)) {
      issues.reportType(location, `an array in which each value is ${type.expected}`, values);
      return undefined;
    }
    const max = limits.filterValuesMax;
    if (values.length > max) {
      issues.reportBound(location, 'values in one operator', max, values.length);
      return undefined;
    }
    return values
      .map((value, i) => parseValue(type, value, within(location, i), issues))
      .filter((value) => value !== undefined);
  };
}

function parseValue<Accepted extends Value>(
  { accepts, expected }: ValueType<Accepted>,
  value: Json,
  location: Location,
  issues: IssueList,
): Accepted | undefined {
  if (!accepts(value)) {
    issues.reportType(location, expected, value);
    return undefined;
  }
  if (typeof value === 'string' && !value.isWellFormed()) {
    issues.report(location, 'text that UTF-8 can encode', 'half of a surrogate pair');
    return undefined;
  }
  // Turns -0 into 0.
  return value === 0 ? (0 as Accepted) : value;
}

function isFiniteNumber(value: Json | undefined): value is number {
  return Number.isFinite(value);
}

const parseWords: OperandParser<string> = (value, location, { issues, limits }) => {
  const words = parseValue(STRING, value, location, issues);
  const max = limits.textQueryCharactersMax;
  if (words === undefined || words.length <= max) return words;
  issues.reportBound(location, 'characters in $match', max, words.length);
  return undefined;
};

const parseLikePattern: OperandParser<string> = (value, location, context) => {
  const pattern = parsePatternText(value, location, context);
  // A pair of backslashes stands for a literal one.
  if (pattern === undefined || !/(^|[^\\])(\\\\)*\\$/.test(pattern)) return pattern;
  const expected = 'a character after each backslash';
  context.issues.report(location, expected, 'a single backslash at the end of the pattern');
  return undefined;
};

const parseRegex: OperandParser<string> = (value, location, context) => {
  const pattern = parsePatternText(value, location, context);
  if (pattern === undefined || !context.countPattern(location)) return undefined;
  const { issues, limits } = context;
  const max = limits.filterPatternInstructionsMax;
  const checked = checkPattern(pattern, max);
  if ('problem' in checked) {
    issues.report(location, 'a regular expression in RE2 syntax', checked.problem);
    return undefined;
  }
  if (checked.instructionCount > max) {
    const what = 'instructions in the compiled pattern, with repetitions expanded';
    issues.reportBound(location, what, max, checked.instructionCount);
    return undefined;
  }
  return pattern;
};

const parsePatternText: OperandParser<string> = (value, location, { issues, limits }) => {
  const pattern = parseValue(STRING, value, location, issues);
  const max = limits.filterPatternCharactersMax;
  if (pattern === undefined || pattern.length <= max) return pattern;
  issues.reportBound(location, 'characters in a pattern', max, pattern.length);
  return undefined;
};

/** The type of the bounds of an interval: values that each have a successor. */
interface BoundType<Bound> {
  readonly expected: string;
  read(value: Json): Bound | null;
  next(bound: Bound): Bound;
  compare(a: Bound, b: Bound): number;
}

const COUNT: BoundType<number> = {
  expected: 'a non-negative integer',
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

/** Parses a bound, which is then the only value of the interval, or an object of comparisons. */
function interval<Bound>(type: BoundType<Bound>): OperandParser<Interval<Bound>> {
  return (value, location, { issues }) => {
    if (!isJsonObject(value)) return narrowInterval(type, WHOLE, '$eq', value, location, issues);
    const comparisons = Object.entries(value);
    if (comparisons.length === 0) {
      issues.report(location, 'at least one comparison', 'an empty object');
      return undefined;
    }
    let result: Interval<Bound> | undefined = WHOLE;
    for (const [name, bound] of comparisons) {
      if (!COMPARISONS.includes(name)) {
        reportUnknown(issues, location, name, COMPARISONS);
        return undefined;
      }
      result &&= narrowInterval(type, result, name, bound, within(location, name), issues);
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
  location: Location,
  issues: IssueList,
): Interval<Bound> | undefined {
  const bound = read(value);
  if (bound === null) {
    const actual = typeof value === 'string' ? JSON.stringify(value.slice(0, 40)) : shown(value);
    issues.report(location, expected, actual);
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

/** Parses the name of a JSON type or an array of such names. */
const parseTypes: OperandParser<readonly JsonType[]> = (value, location, { issues }) => {
  const names: readonly Json[] = Array.isArray(value) ? value : [value];
  const known: readonly Json[] = JSON_TYPES;
  const wrong = names.findIndex((name) => !known.includes(name));
  if (wrong === -1 && names.length > 0) return JSON_TYPES.filter((type) => names.includes(type));
  const at = Array.isArray(value) && names.length > 0 ? within(location, wrong) : location;
  const found = names[wrong] ?? value;
  const actual = typeof found === 'string' ? found.slice(0, 40) : describeJson(found);
  issues.report(at, `one of ${JSON_TYPES.join(', ')}`, actual);
  return undefined;
};

const parseCircle: OperandParser<Circle> = (value, location, { issues }) => {
  const circle = parseMembers(value, ['center', 'radius_meters'], location, issues);
  if (circle === undefined) return undefined;
  const center = parsePoint(circle.center, within(location, 'center'), issues);
  const radius = circle.radius_meters;
  if (!isFiniteNumber(radius) || radius < 0) {
    const at = within(location, 'radius_meters');
    issues.report(at, 'a non-negative number of meters', shown(radius ?? null));
    return undefined;
  }
  return center && { center, radius_meters: radius + 0 };
};

const parseBox: OperandParser<Box> = (value, location, { issues }) => {
  const box = parseMembers(value, ['top_left', 'bottom_right'], location, issues);
  if (box === undefined) return undefined;
  const topLeft = parsePoint(box.top_left, within(location, 'top_left'), issues);
  const bottomRight = parsePoint(box.bottom_right, within(location, 'bottom_right'), issues);
  if (topLeft === undefined || bottomRight === undefined) return undefined;
  if (topLeft.lat < bottomRight.lat) {
    const at = within(within(location, 'top_left'), 'lat');
    const expected = `at least ${bottomRight.lat}, the latitude of bottom_right`;
    issues.report(at, expected, topLeft.lat);
    return undefined;
  }
  return { top_left: topLeft, bottom_right: bottomRight };
};

const parsePolygon: OperandParser<Polygon> = (value, location, { issues, limits }) => {
  const polygon = parseMembers(value, ['exterior', 'interiors'], location, issues, ['interiors']);
  if (polygon === undefined) return undefined;
  const { exterior, interiors = [] } = polygon;
  if (!Array.isArray(interiors)) {
    issues.reportType(within(location, 'interiors'), 'an array of rings', interiors);
    return undefined;
  }
  const max = limits.filterPolygonPointsMax;
  const pointCount = [exterior, ...interiors].reduce<number>(
    (sum, ring) => sum + (Array.isArray(ring) ? ring.length : 0),
    0,
  );
  if (pointCount > max) {
    issues.reportBound(location, 'points in one polygon', max, pointCount);
    return undefined;
  }
  const outer = parseRing(exterior, within(location, 'exterior'), issues);
  const holes = interiors
    .map((ring, i) => parseRing(ring, within(within(location, 'interiors'), i), issues))
    .filter((ring) => ring !== undefined);
  return outer && holes.length === interiors.length
    ? { exterior: outer, interiors: holes }
    : undefined;
};

/** Parsers by the kind of operand that FILTER_OPERATORS names. */
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
  elements: (value, location, context) => context.parseElements(value, location),
  circle: parseCircle,
  box: parseBox,
  polygon: parsePolygon,
  words: parseWords,
};

/** Returns undefined after reporting what is wrong with the operand. */
export function parseOperand<Kind extends OperandKind>(
  kind: Kind,
  value: Json,
  location: Location,
  context: OperandContext,
): ParsedOperands[Kind] | undefined {
  return PARSERS[kind](value, location, context);
}

/** Parses a ring, whose first point may be repeated at the end. */
function parseRing(
  value: Json | undefined,
  location: Location,
  issues: IssueList,
): Ring | undefined {
  if (!Array.isArray(value)) {
    issues.reportType(location, 'an array of points', value ?? null);
    return undefined;
  }
  const points = value
    .map((point, i) => parsePoint(point, within(location, i), issues))
    .filter((point) => point !== undefined);
  if (points.length < value.length) return undefined;
  const first = points[0];
  const last = points.at(-1);
  const isClosed = points.length > 1 && first?.lat === last?.lat && first?.lon === last?.lon;
  const ring = isClosed ? points.slice(0, -1) : points;
  if (ring.length < 3) {
    issues.report(location, 'at least 3 points', ring.length);
    return undefined;
  }
  if (enclosesPole(ring)) {
    const expected = 'edges that return to their first point without going around a pole';
    issues.report(location, expected, 'edges that go around the globe');
    return undefined;
  }
  return ring;
}

function parsePoint(
  value: Json | undefined,
  location: Location,
  issues: IssueList,
): Point | undefined {
  const point = parseMembers(value, ['lat', 'lon'], location, issues);
  if (point === undefined) return undefined;
  const coordinates = [
    { name: 'lat', isValid: isLatitude, expected: 'a latitude of -90 to 90 degrees' },
    { name: 'lon', isValid: isLongitude, expected: 'a longitude of -180 to 180 degrees' },
  ].map(({ name, isValid, expected }) => {
    const degrees = point[name] ?? null;
    if (typeof degrees === 'number' && isValid(degrees)) return degrees + 0;
    issues.report(within(location, name), expected, shown(degrees));
    return undefined;
  });
  const [lat, lon] = coordinates;
  return lat === undefined || lon === undefined ? undefined : { lat, lon };
}

/** Returns a number itself, because its type is not what is wrong with it, and the type of any other value. */
function shown(value: Json): string | number {
  return isFiniteNumber(value) ? value : describeJson(value);
}

/** Returns an object with these members and no others. Members in `optional` may be missing. */
function parseMembers(
  value: Json | undefined,
  names: readonly string[],
  location: Location,
  issues: IssueList,
  optional: readonly string[] = [],
): JsonObject | undefined {
  const expected = `an object with ${names.join(' and ')}`;
  if (!isJsonObject(value)) {
    issues.reportType(location, expected, value ?? null);
    return undefined;
  }
  const unknown = Object.keys(value).find((name) => !names.includes(name));
  if (unknown !== undefined) {
    reportUnknown(issues, location, unknown, names);
    return undefined;
  }
  const missing = names.find((name) => !Object.hasOwn(value, name) && !optional.includes(name));
  if (missing === undefined) return value;
  issues.report(location, expected, `no ${missing}`);
  return undefined;
}

/** Reports the name at its object, because the name itself may be too long for a path. */
function reportUnknown(
  issues: IssueList,
  location: Location,
  name: string,
  known: readonly string[],
): void {
  issues.report(location, `one of ${known.join(', ')}`, name.slice(0, 40));
}
