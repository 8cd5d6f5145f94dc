// An independent implementation of filters, written from the API contract without code from src/filter/. It
// reads the filter as the client sent it.

import type { Json, JsonObject } from '../../src/common/types.js';

export function saysYes(filter: JsonObject, document: JsonObject, id = ''): boolean {
  return Object.entries(filter).every(([name, value]) => {
    if (name === '$and') return filtersIn(value).every((part) => saysYes(part, document, id));
    if (name === '$or') return filtersIn(value).some((part) => saysYes(part, document, id));
    if (name === '$not') return !saysYes(value as JsonObject, document, id);
    const held = name === '$id' ? [id] : find(document, name);
    return isObject(value)
      ? holdsAll(held, value, (member) => find(document, `${name}.${member}`))
      : holds(held, '$eq', value);
  });
}

/** Finds a member of the object at the path; a literal name with a dot may denote it. */
type MemberFinder = (member: string) => readonly Json[];

function holdsAll(held: readonly Json[], operators: JsonObject, memberOf: MemberFinder): boolean {
  const { $case, ...others } = operators;
  const entries = Object.entries(others);
  if ($case !== 'insensitive') {
    return entries.every(([operator, operand]) => holds(held, operator, operand, memberOf));
  }
  return entries.every(([operator, operand]) => {
    if (operator === '$not' || operator.startsWith('$geo') || operator === '$elem_match') {
      return holds(held, operator, operand, memberOf);
    }
    if (operator === '$regex') return holds(held, operator, `(?i)${operand}`);
    if (operator === '$date' || operator === '$type') return holds(held, operator, operand);
    return holds(held.map(withoutCase), operator, withoutCase(operand));
  });
}

/** Replaces each character by one that represents all that JavaScript's regular expressions equate without case. */
function withoutCase(value: Json): Json {
  if (Array.isArray(value)) return value.map(withoutCase);
  if (typeof value !== 'string') return value;
  return Array.from(value, (character) => {
    const isLetter = (letter: string) => new RegExp(`^${letter}$`, 'iu').test(character);
    return LETTERS.find(isLetter) ?? character;
  }).join('');
}

/** The letters in the strings of tests. */
const LETTERS = [...'abcdefghijklmnopqrstuvwxyzéασⱥ'];

/** @param held the value of the document at the path; empty if there is none. */
function holds(
  held: readonly Json[],
  operator: string,
  operand: Json,
  memberOf: MemberFinder = () => [],
): boolean {
  const [value] = held;
  const isMissing = held.length === 0;
  switch (operator) {
    case '$not':
      return !holdsAll(held, operand as JsonObject, memberOf);
    case '$exists':
      return isMissing !== operand;
    case '$ne':
      return !holds(held, '$eq', operand);
    case '$nin':
      return !holds(held, '$in', operand);
    case '$in':
      return (operand as Json[]).some((one) => holds(held, '$eq', one));
    case '$eq':
      if (isMissing) return operand === null;
      return isSame(value, operand) || holds(held, '$contains', operand);
    case '$contains':
      return Array.isArray(value) && value.some((element) => isSame(element, operand));
    case '$contains_any':
      return (operand as Json[]).some((one) => holds(held, '$contains', one));
    case '$contains_all':
      return (
        Array.isArray(value) && (operand as Json[]).every((one) => holds(held, '$contains', one))
      );
    case '$contains_only':
      return (
        Array.isArray(value) &&
        value.every((element) => (operand as Json[]).some((one) => isSame(element, one)))
      );
    case '$prefix':
    case '$suffix':
    case '$like':
    case '$regex': {
      const strings = Array.isArray(value) ? value : held;
      return strings.some((one) => typeof one === 'string' && isLike(one, operator, operand));
    }
    case '$date':
      return typeof value === 'string' && isDateIn(value, operand);
    case '$size':
      return Array.isArray(value) && inBounds(value.length, operand, (a, b) => a - b);
    case '$type':
      return !isMissing && [operand].flat().includes(typeNameOf(value));
    case '$elem_match':
      return Array.isArray(value) && value.some((one) => isElement(one, operand as JsonObject));
    case '$geo_radius':
    case '$geo_box':
    case '$geo_polygon': {
      const [lat, lon] = [...memberOf('lat').slice(0, 1), ...memberOf('lon').slice(0, 1)];
      if (typeof lat !== 'number' || typeof lon !== 'number') return false;
      return isInShape({ lat, lon }, operator, operand as unknown as Shape);
    }
    default: {
      if (isMissing) return false;
      const order = orderOf(value, operand);
      if (operator === '$gt') return order === 'after';
      if (operator === '$gte') return order === 'after' || order === 'same';
      if (operator === '$lt') return order === 'before';
      if (operator === '$lte') return order === 'before' || order === 'same';
      throw new Error(`the oracle does not know ${operator}`);
    }
  }
}

/** The longest literal key takes precedence, level by level. */
function find(document: JsonObject, path: string): Json[] {
  const keys = Object.keys(document).sort((a, b) => b.length - a.length);
  for (const key of keys) {
    if (key === path) return [document[key]];
    const child = document[key];
    if (path.startsWith(`${key}.`) && isObject(child)) {
      const found = find(child, path.substring(key.length + 1));
      if (found.length > 0) return found;
    }
  }
  return [];
}

function isSame(a: Json, b: Json): boolean {
  return a === b || orderOf(a, b) === 'same';
}

function orderOf(a: Json, b: Json): 'before' | 'same' | 'after' | 'none' {
  if (typeNameOf(a) === 'number' && typeNameOf(b) === 'number') {
    return a === b ? 'same' : a! < b! ? 'before' : 'after';
  }
  if (typeof a !== 'string' || typeof b !== 'string') return 'none';
  const left = codePoints(a);
  const right = codePoints(b);
  for (let i = 0; i < left.length && i < right.length; i++) {
    if (left[i] !== right[i]) return left[i] < right[i] ? 'before' : 'after';
  }
  if (left.length === right.length) return 'same';
  return left.length < right.length ? 'before' : 'after';
}

function codePoints(text: string): number[] {
  return Array.from(text, (character) => {
    const point = character.codePointAt(0)!;
    return point >= 0xd800 && point <= 0xdfff ? 0xfffd : point;
  });
}

function isObject(value: Json): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function filtersIn(value: Json): JsonObject[] {
  return value as JsonObject[];
}

function isLike(text: string, operator: string, operand: Json): boolean {
  const points = codePoints(text);
  const wanted = codePoints(operand as string);
  switch (operator) {
    case '$prefix':
      return wanted.every((point, i) => points[i] === point);
    case '$suffix':
      return wanted.every((point, i) => points[points.length - wanted.length + i] === point);
    case '$like':
      return isLikeFrom(points, 0, wanted, 0);
    default: {
      // The patterns of tests mean the same in JavaScript.
      const source = operand as string;
      const pattern = new RegExp(
        source.replace(/^\(\?i\)/, ''),
        source.startsWith('(?i)') ? 'iu' : 'u',
      );
      return pattern.test(String.fromCodePoint(...points));
    }
  }
}

/** Follows the definition: "%" matches nothing, or one character and then the rest with "%" again. */
function isLikeFrom(text: number[], at: number, pattern: number[], from: number): boolean {
  if (from === pattern.length) return at === text.length;
  const symbol = String.fromCodePoint(pattern[from]);
  if (symbol === '%') {
    return (
      isLikeFrom(text, at, pattern, from + 1) ||
      (at < text.length && isLikeFrom(text, at + 1, pattern, from))
    );
  }
  if (at === text.length) return false;
  if (symbol === '_') return isLikeFrom(text, at + 1, pattern, from + 1);
  const literal = symbol === '\\' ? from + 1 : from;
  return text[at] === pattern[literal] && isLikeFrom(text, at + 1, pattern, literal + 1);
}

const DATE =
  /^(\d{4}-\d{2}-\d{2})(?:[Tt ](\d{2}:\d{2}):(\d{2})(?:\.(\d{1,9}))?([Zz]|[+-]\d{2}:\d{2})?)?$/;

/** Returns nanoseconds since 1970, computed with JavaScript dates. */
function nanosecondsOf(text: string): bigint | null {
  const [, day, minutes = '00:00', second = '00', fraction = '', zone = 'Z'] =
    DATE.exec(text) ?? [];
  if (day === undefined || Number(second) > 60 || !isDay(day)) return null;
  const start = Date.parse(`${day}T${minutes}:00${zone.toUpperCase()}`);
  const hours = [minutes, zone.slice(1)].map((time) => Number(time.slice(0, 2)));
  if (Number.isNaN(start) || hours.some((hour) => hour > 23)) return null;
  const nanoseconds = BigInt(fraction.padEnd(9, '0'));
  return BigInt(start) * 1_000_000n + BigInt(second) * 1_000_000_000n + nanoseconds;
}

/** Whether the day exists. Date.parse accepts February 30. */
function isDay(day: string): boolean {
  const milliseconds = Date.parse(`${day}T00:00:00Z`);
  return !Number.isNaN(milliseconds) && new Date(milliseconds).toISOString().startsWith(day);
}

function isDateIn(text: string, operand: Json): boolean {
  const instant = nanosecondsOf(text);
  if (instant === null) return false;
  return inBounds(instant, operand, (a, b) => {
    const bound = nanosecondsOf(b as string)!;
    return a < bound ? -1 : Number(a > bound);
  });
}

function inBounds<Held>(held: Held, bounds: Json, orderOf: (a: Held, b: never) => number): boolean {
  const comparisons = isObject(bounds) ? bounds : { $eq: bounds };
  return Object.entries(comparisons).every(([name, bound]) => {
    const order = orderOf(held, bound as never);
    if (name === '$eq') return order === 0;
    if (name === '$gt') return order > 0;
    if (name === '$gte') return order >= 0;
    return name === '$lt' ? order < 0 : order <= 0;
  });
}

function typeNameOf(value: Json): string {
  if (value === null) return 'null';
  if (typeof value === 'bigint') return 'number';
  return Array.isArray(value) ? 'array' : typeof value;
}

function isElement(element: Json, operand: JsonObject): boolean {
  if (isOperators(operand)) {
    return holdsAll([element], operand, (member) =>
      isObject(element) ? find(element, member) : [],
    );
  }
  return isObject(element) && saysYes(operand, element);
}

const BESIDE_FIELDS = ['$and', '$or'];

function isOperators(operand: JsonObject): boolean {
  const entries = Object.entries(operand);
  if (entries.length === 0) return false;
  return entries.every(([name, value]) =>
    name === '$not'
      ? isOperators(value as JsonObject)
      : name.startsWith('$') && !BESIDE_FIELDS.includes(name),
  );
}

interface Place {
  readonly lat: number;
  readonly lon: number;
}

interface Shape {
  readonly center: Place;
  readonly radius_meters: number;
  readonly top_left: Place;
  readonly bottom_right: Place;
  readonly exterior: readonly Place[];
  readonly interiors?: readonly (readonly Place[])[];
}

function isInShape(place: Place, operator: string, shape: Shape): boolean {
  if (Math.abs(place.lat) > 90 || Math.abs(place.lon) > 180) return false;
  switch (operator) {
    case '$geo_radius':
      return distanceOf(place, shape.center) <= shape.radius_meters;
    case '$geo_box': {
      const { top_left, bottom_right } = shape;
      if (place.lat > top_left.lat || place.lat < bottom_right.lat) return false;
      const width = (bottom_right.lon - top_left.lon + 360) % 360;
      const isWhole = width === 0 && top_left.lon < bottom_right.lon;
      return isWhole || (place.lon - top_left.lon + 360) % 360 <= width;
    }
    default: {
      const { exterior, interiors = [] } = shape;
      const isInHole = interiors.some((ring) => sideOf(ring, place) === 'inside');
      return sideOf(exterior, place) !== 'outside' && !isInHole;
    }
  }
}

/** Uses the angle between the vectors from the center of the Earth instead of the haversine formula. */
function distanceOf(a: Place, b: Place): number {
  const [x, y] = [a, b].map(({ lat, lon }) => {
    const [phi, lambda] = [(lat * Math.PI) / 180, (lon * Math.PI) / 180];
    return [Math.cos(phi) * Math.cos(lambda), Math.cos(phi) * Math.sin(lambda), Math.sin(phi)];
  });
  const cross = [x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]];
  const dot = x[0] * y[0] + x[1] * y[1] + x[2] * y[2];
  return 6_371_008.8 * Math.atan2(Math.hypot(...cross), dot);
}

/** Adds the angles at which the point sees the edges. A straight angle means that the point is on the edge. */
function sideOf(ring: readonly Place[], place: Place): 'inside' | 'border' | 'outside' {
  const turn = (degrees: number) => ((degrees + 540) % 360) - 180;
  let angle = 0;
  // Longitudes are relative to the point and do not jump between the ends of an edge.
  let east = turn(ring[0].lon - place.lon);
  for (let i = 0; i < ring.length; i++) {
    const from = ring[i];
    const to = ring[(i + 1) % ring.length];
    const nextEast = east + turn(to.lon - from.lon);
    const [fromNorth, toNorth] = [from.lat - place.lat, to.lat - place.lat];
    const cross = east * toNorth - nextEast * fromNorth;
    const dot = east * nextEast + fromNorth * toNorth;
    if (cross === 0 && dot <= 0) return 'border';
    angle += Math.atan2(cross, dot);
    east = nextEast;
  }
  return Math.abs(angle) > Math.PI ? 'inside' : 'outside';
}
