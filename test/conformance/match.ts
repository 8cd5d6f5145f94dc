// Compares a reply with the expectation of a case. Objects match in part (other members are allowed), arrays as a
// whole. An object whose members begin with `$` is a condition.

import type { Json, JsonObject } from '../../src/common/types.js';

type Condition = (found: Json | undefined, operand: Json) => boolean;

const CONDITIONS: Readonly<Record<string, Condition>> = {
  $type: (found, type) => typeOf(found) === type,
  $match: (found, pattern) => typeof found === 'string' && new RegExp(String(pattern)).test(found),
  $absent: (found) => found === undefined,
  /** Numbers that are equal when rounded to float32. */
  $float: (found, wanted) =>
    typeof found === 'number' && Math.fround(found) === Math.fround(Number(wanted)),
  $length: (found, length) =>
    (Array.isArray(found) || typeof found === 'string') && found.length === length,
  $gt: (found, bound) => typeof found === 'number' && found > Number(bound),
  $gte: (found, bound) => typeof found === 'number' && found >= Number(bound),
  $lte: (found, bound) => typeof found === 'number' && found <= Number(bound),
  /** An array that contains a matching element, or text that contains the text. */
  $has: (found, wanted) =>
    Array.isArray(found)
      ? found.some((element) => differences(element, wanted).length === 0)
      : typeof found === 'string' && found.includes(String(wanted)),
  /** An array with these elements in any order. */
  $unordered: (found, wanted) =>
    Array.isArray(found) &&
    Array.isArray(wanted) &&
    found.length === wanted.length &&
    wanted.every((one) => found.some((element) => differences(element, one).length === 0)),
  $not: (found, wanted) => differences(found, wanted).length > 0,
  /** Exactly the same JSON. */
  $exact: (found, wanted) => canonical(found) === canonical(wanted),
};

/** The differences, each with its location; empty if `found` matches `wanted`. */
export function differences(found: Json | undefined, wanted: Json, place = ''): string[] {
  if (Array.isArray(wanted)) {
    if (!Array.isArray(found) || found.length !== wanted.length) {
      return [complain(place, `an array of ${wanted.length}: ${show(wanted)}`, found)];
    }
    return wanted.flatMap((element, i) => differences(found[i], element, `${place}/${i}`));
  }
  if (typeof wanted !== 'object' || wanted === null) {
    return Object.is(found, wanted) ? [] : [complain(place, show(wanted), found)];
  }
  const names = Object.keys(wanted);
  if (names.length > 0 && names.every((name) => name.startsWith('$'))) {
    return names
      .filter((name) => !conditionOf(name)(found, wanted[name]!))
      .map((name) => complain(place, `${name} ${show(wanted[name]!)}`, found));
  }
  if (typeOf(found) !== 'object') return [complain(place, show(wanted), found)];
  return names.flatMap((name) =>
    differences(memberOf(found as JsonObject, name), wanted[name]!, `${place}/${name}`),
  );
}

/** The value at a JSON pointer, or undefined. */
export function valueAt(json: Json | undefined, pointer: string): Json | undefined {
  if (pointer === '') return json;
  return pointer
    .slice(1)
    .split('/')
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce<Json | undefined>(
      (at, token) =>
        typeof at === 'object' && at !== null ? memberOf(at as JsonObject, token) : undefined,
      json,
    );
}

function conditionOf(name: string): Condition {
  const condition = CONDITIONS[name];
  if (condition === undefined) throw new Error(`a case uses the unknown condition ${name}`);
  return condition;
}

function memberOf(object: JsonObject, name: string): Json | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

function typeOf(value: Json | undefined): string {
  if (Number.isInteger(value)) return 'integer';
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

function canonical(value: Json | undefined): string {
  return JSON.stringify(value, (_name, member: unknown) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
}

function complain(place: string, wanted: string, found: Json | undefined): string {
  return `${place === '' ? 'the whole' : place}: expected ${wanted}, found ${show(found)}`;
}

function show(value: Json | undefined): string {
  if (Object.is(value, -0)) return '-0';
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length <= 300 ? text : `${text.slice(0, 300)}…`;
}
