// An independent implementation of filters, written from the API contract without code of src/filter/. It
// reads the filter as the client sent it.

import type { Json, JsonObject } from '../../src/common/types.js';

export function saysYes(filter: JsonObject, document: JsonObject): boolean {
  return Object.entries(filter).every(([name, value]) => {
    if (name === '$and') return filtersIn(value).every((part) => saysYes(part, document));
    if (name === '$or') return filtersIn(value).some((part) => saysYes(part, document));
    if (name === '$not') return !saysYes(value as JsonObject, document);
    const held = find(document, name);
    return isObject(value) ? holdsAll(held, value) : holds(held, '$eq', value);
  });
}

function holdsAll(held: readonly Json[], operators: JsonObject): boolean {
  return Object.entries(operators).every(([operator, operand]) => holds(held, operator, operand));
}

/** `held` has the value of the document at the path, if there is one. */
function holds(held: readonly Json[], operator: string, operand: Json): boolean {
  const [value] = held;
  const isMissing = held.length === 0;
  switch (operator) {
    case '$not':
      return !holdsAll(held, operand as JsonObject);
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
  if (typeof a === 'number' && typeof b === 'number') {
    return a === b ? 'same' : a < b ? 'before' : 'after';
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
