// Placeholders and generators in cases, so that a case with 10 001 vectors is one line.
//
//   "{{name}}"                                    a saved value, as text inside longer text
//   "{{repeat:ab:3}}"                             repeated text
//   {"$times": 3, "of": {"id": "v{{index}}"}}     an array
//   {"$members": 3, "name": "n{{index}}", "of": 1}  an object
//   {"$nested": 3, "in": {"$not": "{{inner}}"}, "of": {"a": 1}}  levels around a core
//   {"$float32": [1, 2.5, "NaN"]}                 base64 of little-endian float32
//
// In files with kinds, these are replaced first, once for each kind that the case runs for:
//
//   "{{kind.name}}"                               a value of the kind, as text inside longer text
//   {"id": "a", "...": "{{kind.name}}"}           the members of a value of the kind, among others
//   [1, {"...": "{{kind.name}}"}]                 the elements of a value of the kind, among others

import type { Json, JsonObject } from '../../src/common/types.js';

const SPREAD = '...';

export type Variables = Readonly<Record<string, Json>>;

export function expand(value: Json, variables: Variables): Json {
  if (typeof value === 'string') return expandText(value, variables);
  if (Array.isArray(value)) return value.map((element) => expand(element, variables));
  if (typeof value !== 'object' || value === null) return value;
  return generate(value, variables) ?? expandMembers(value, variables);
}

/** Expands placeholders inside text. */
export function expandString(text: string, variables: Variables): string {
  return text.replace(/\{\{([^{}]+)\}\}/g, (_whole, expression: string) => {
    const found = evaluate(expression, variables);
    return typeof found === 'string' ? found : JSON.stringify(found);
  });
}

/** Replaces the placeholders for values of a kind and leaves the others. */
export function fillIn(value: Json, kind: JsonObject): Json {
  if (typeof value === 'string') return fillText(value, kind);
  if (Array.isArray(value)) {
    return value.flatMap((element) =>
      isSpread(element) ? (fillIn(element[SPREAD]!, kind) as Json[]) : [fillIn(element, kind)],
    );
  }
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, member]): [string, Json][] => {
      const filled = fillIn(member, kind);
      return name === SPREAD
        ? Object.entries(filled as JsonObject)
        : [[String(fillText(name, kind)), filled]];
    }),
  );
}

function isSpread(value: Json): value is JsonObject {
  return typeof value === 'object' && value !== null && Object.keys(value).join() === SPREAD;
}

function fillText(text: string, kind: JsonObject): Json {
  const valueNamed = (name: string): Json => {
    if (Object.hasOwn(kind, name)) return kind[name]!;
    throw new Error(`the kind has no value "${name}"`);
  };
  const whole = /^\{\{kind\.(\w+)\}\}$/.exec(text);
  if (whole !== null) return valueNamed(whole[1]!);
  return text.replace(/\{\{kind\.(\w+)\}\}/g, (_whole, name: string) => {
    const found = valueNamed(name);
    return typeof found === 'string' ? found : JSON.stringify(found);
  });
}

function expandText(text: string, variables: Variables): Json {
  const whole = /^\{\{([^{}]+)\}\}$/.exec(text);
  return whole === null ? expandString(text, variables) : evaluate(whole[1]!, variables);
}

function evaluate(expression: string, variables: Variables): Json {
  const repeat = /^repeat:(.+):(\d+)$/s.exec(expression);
  if (repeat !== null) return repeat[1]!.repeat(Number(repeat[2]));
  if (Object.hasOwn(variables, expression)) return variables[expression]!;
  throw new Error(`the case uses {{${expression}}}, which no step saved`);
}

/** Builds the object from entries, not by assignment, because a member may be named `__proto__`. */
function expandMembers(value: JsonObject, variables: Variables): JsonObject {
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      expandString(name, variables),
      expand(member, variables),
    ]),
  );
}

function generate(value: JsonObject, variables: Variables): Json | undefined {
  const { $times, $members, $nested, $float32, of = null, name = null, in: around = null } = value;
  const at = (index: number) => ({ ...variables, index });
  if (typeof $times === 'number') {
    return Array.from({ length: $times }, (_, index) => expand(of, at(index)));
  }
  if (typeof $members === 'number') {
    return Object.fromEntries(
      Array.from({ length: $members }, (_, index) => [
        expandString(String(name), at(index)),
        expand(of, at(index)),
      ]),
    );
  }
  if (typeof $nested === 'number') {
    let inner = expand(of, variables);
    for (let i = 0; i < $nested; i++) inner = expand(around, { ...variables, inner });
    return inner;
  }
  if (Array.isArray($float32)) {
    const elements = Float32Array.from($float32, (element) => Number(expand(element, variables)));
    return Buffer.from(elements.buffer).toString('base64');
  }
  return undefined;
}
