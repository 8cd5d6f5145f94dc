// JSON for requests. A value that JSON.stringify would silently drop or change is an error that says where it is, before
// anything is sent: a filter that lost its only condition would select every vector.

import { isStoredInteger, stringifyExactJson } from '../../../src/common/exact-json.js';
import { SagittaClientError } from './error.js';
import { isInvalidDate, pointerTo, unexpected } from './values.js';

/**
 * Members that hold the program's own data. Inside them `undefined` is a mistake; elsewhere it means that an option is
 * absent.
 */
const CONTENTS: ReadonlySet<string> = new Set([
  'filter',
  'with_filter',
  'metadata',
  'patch',
  'labels',
  'schema',
]);

/** Far deeper than the nesting that the server accepts. */
const DEPTH_MAX = 500;

/**
 * Throws SagittaClientError (`invalid_argument`). `pointer` is the JSON pointer of the value in the request. If
 * `isContent`, no member may be undefined.
 */
export function encodeRequestJson(value: unknown, pointer = '', isContent = false): string {
  requireJson(value, pointer, isContent, 0);
  return stringifyExactJson(value);
}

/** A filter as JSON text, for query strings. */
export function encodeFilter(filter: object | undefined): string | undefined {
  return filter === undefined ? undefined : encodeRequestJson(filter, '/filter', true);
}

function requireJson(value: unknown, pointer: string, isContent: boolean, depth: number): void {
  if (typeof value === 'string' || typeof value === 'boolean' || value === null) return;
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw unfit(value, pointer, 'a finite number, or null');
    return;
  }
  if (typeof value === 'bigint' && isContent) {
    if (isStoredInteger(value)) return;
    throw unfit(value, pointer, 'a bigint of 64 bits, or a string');
  }
  if (typeof value !== 'object') throw unfit(value, pointer, ADVICE[typeof value]);
  if (depth > DEPTH_MAX) {
    const detail = `the value at ${pointer.slice(0, 100)}… contains itself, or is nested more than ${DEPTH_MAX} levels deep`;
    throw new SagittaClientError('invalid_argument', detail);
  }
  // Checked before toJSON, which Buffers implement.
  if (isBytes(value)) throw unfit(value, pointer, KINDS.Array);
  if ('toJSON' in value && typeof value.toJSON === 'function') {
    if (isInvalidDate(value)) throw unfit(value, pointer, 'a valid Date, or null');
    const replaced: unknown = value.toJSON(pointer.slice(pointer.lastIndexOf('/') + 1));
    requireJson(replaced, pointer, isContent, depth + 1);
    return;
  }
  if (Array.isArray(value)) {
    // By index, because holes in the array count as undefined too.
    for (let at = 0; at < value.length; at++) {
      const each: unknown = value[at];
      // Fast path: vectors as plain numbers make up most of the data.
      if (typeof each === 'number' && Number.isFinite(each)) continue;
      requireJson(each, `${pointer}/${at}`, isContent, depth + 1);
    }
    return;
  }
  requirePlainObject(value, pointer);
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined && !isContent) continue;
    requireJson(member, pointerTo(pointer, name), isContent || CONTENTS.has(name), depth + 1);
  }
}

/** Rejects objects that do not keep their contents in enumerable members, such as Map. */
function requirePlainObject(value: object, pointer: string): void {
  const kind = Object.prototype.toString.call(value).slice('[object '.length, -1);
  // Contents in private fields or in inherited members would be sent as {}.
  const isOpaque = Object.keys(value).length === 0 && !isPlain(value);
  if (kind !== 'Object' || isOpaque) throw unfit(value, pointer, KINDS[kind] ?? PLAIN);
  for (const name of Object.getOwnPropertySymbols(value)) {
    if (!Object.prototype.propertyIsEnumerable.call(value, name)) continue;
    const detail = `found a member with the name ${String(name)} at ${pointer || '/'}, which JSON does not have: use a string as name`;
    throw new SagittaClientError('invalid_argument', detail);
  }
}

/** Whether an object has no class; works across realms. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function isBytes(value: object): boolean {
  return ArrayBuffer.isView(value) || value instanceof ArrayBuffer;
}

const PLAIN = 'a plain object, or an object with toJSON';

/** The suggested replacement, by the type of the value. */
const ADVICE: Readonly<Record<string, string>> = {
  undefined: 'null, or leave it out',
  bigint: 'a number',
  function: 'a value that JSON has',
  symbol: 'a string',
};

/** The suggested replacement, by the class of the object. */
const KINDS: Readonly<Record<string, string>> = {
  Map: 'Object.fromEntries(…)',
  Set: 'Array.from(…)',
  Array: 'Array.from(…)',
  RegExp: 'its source as a string',
  Error: 'its message as a string',
  Promise: 'await',
};

function unfit(value: unknown, pointer: string, advice: string | undefined): SagittaClientError {
  return unexpected(value, `a value that JSON has: use ${advice}`, pointer);
}
