// Vectors as base64 of little-endian float32: lossless, and a third of the size of decimal numbers.
// Must run in browsers, so it does not use Buffer.

import { SagittaClientError } from './error.js';
import type { IncludeValues, VectorValues } from './types.js';

/** Bytes converted per call: the arguments of a call must fit on the stack. */
const CHUNK_BYTES = 0x8000;

export function encodeValues(values: Float32Array): string {
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  let characters = '';
  for (let start = 0; start < bytes.length; start += CHUNK_BYTES) {
    characters += String.fromCharCode(...bytes.subarray(start, start + CHUNK_BYTES));
  }
  return btoa(characters);
}

/** Throws when the text is not base64 of a multiple of 4 bytes. */
export function decodeValues(text: string): Float32Array {
  const characters = atob(text);
  if (characters.length % 4 !== 0) {
    throw new RangeError(
      `expected base64-encoded float32 values, found ${characters.length} bytes, which is not a multiple of 4`,
    );
  }
  const bytes = new Uint8Array(characters.length);
  for (let at = 0; at < bytes.length; at++) bytes[at] = characters.charCodeAt(at);
  return new Float32Array(bytes.buffer);
}

/**
 * Values for the request: typed arrays as base64, numbers and base64 unchanged. Throws SagittaClientError
 * (`invalid_argument`) for a value that is not a finite float32; `pointer` is the JSON pointer of the values.
 */
export function wireValues(values: VectorValues, pointer: string): readonly number[] | string {
  if (typeof values === 'string') return values;
  if (Array.isArray(values)) {
    requireFinite(values, values, pointer);
    return values;
  }
  if (!isNumbers(values)) throw unexpected(values, 'numbers, a Float32Array or base64', pointer);
  const floats = values instanceof Float32Array ? values : Float32Array.from(values);
  requireFinite(floats, values, pointer);
  return encodeValues(floats);
}

/** JSON would turn such numbers into null, and the server's error could not say which argument was wrong. */
function requireFinite(
  floats: ArrayLike<number>,
  given: ArrayLike<unknown>,
  pointer: string,
): void {
  for (let at = 0; at < floats.length; at++) {
    if (Number.isFinite(floats[at])) continue;
    throw unexpected(given[at], 'a finite number of float32', `${pointer}/${at}`);
  }
}

function isNumbers(values: unknown): values is Float32Array | Float64Array {
  return (
    ArrayBuffer.isView(values) &&
    !(values instanceof DataView) &&
    !(values instanceof BigInt64Array) &&
    !(values instanceof BigUint64Array)
  );
}

/** The error for an argument of the wrong kind; `pointer` is its JSON pointer in the request. */
export function unexpected(found: unknown, expected: string, pointer = ''): SagittaClientError {
  const where = pointer === '' ? '' : ` at ${pointer}`;
  return new SagittaClientError(
    'invalid_argument',
    `found ${describe(found)}${where}, expected ${expected}`,
  );
}

export function isInvalidDate(value: unknown): boolean {
  return value instanceof Date && Number.isNaN(value.getTime());
}

/** The JSON pointer (RFC 6901) of a member of the value at `pointer`. */
export function pointerTo(pointer: string, name: string): string {
  return `${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

const SHOWN_CHARACTERS_MAX = 60;

function describe(value: unknown): string {
  if (Array.isArray(value)) return `an array of ${value.length} elements`;
  if (typeof value === 'function') return 'a function';
  if (typeof value === 'bigint') return 'a BigInt';
  if (isInvalidDate(value)) return 'an invalid Date';
  if (typeof value !== 'object' || value === null) {
    return String(typeof value === 'string' ? JSON.stringify(value) : value).slice(
      0,
      SHOWN_CHARACTERS_MAX,
    );
  }
  const { name } = value.constructor ?? {};
  if (name !== undefined && name !== 'Object') return `an object of ${name}`;
  return `an object with ${Object.keys(value).slice(0, 5).join(', ') || 'no members'}`;
}

/** Throws SagittaClientError (`invalid_argument`) unless the argument is an array. */
export function requireArray(rows: unknown, expected: string): void {
  if (!Array.isArray(rows)) throw unexpected(rows, expected);
}

type WireValues = readonly number[] | string;
type Named<Values> = Readonly<Record<string, Values>>;

/** Encodes named vectors for the request; null removes a vector. */
function wireNamed(
  vectors: Named<VectorValues | readonly VectorValues[] | null>,
  pointer: string,
): Named<WireValues | readonly WireValues[] | null> {
  return mapValues(
    vectors,
    (values, name) => values && wireOneOrMore(values, pointerTo(pointer, name)),
  );
}

function wireOneOrMore(
  values: VectorValues | readonly VectorValues[],
  pointer: string,
): WireValues | readonly WireValues[] {
  return isMulti(values) ? wireMulti(values, pointer) : wireValues(values, pointer);
}

export function wireMulti(values: readonly VectorValues[], pointer: string): readonly WireValues[] {
  return values.map((each, at) => wireValues(each, `${pointer}/${at}`));
}

/** Whether the values are a multi-vector. */
function isMulti(
  values: VectorValues | readonly VectorValues[],
): values is readonly VectorValues[] {
  return Array.isArray(values) && (typeof values[0] === 'object' || typeof values[0] === 'string');
}

/** Encodes a vector for the request. `pointer` is the JSON pointer of the vector. */
export function wireVector<
  Vector extends {
    readonly values?: VectorValues;
    readonly vectors?: Named<VectorValues | readonly VectorValues[] | null>;
  },
>(vector: Vector, pointer: string) {
  if (typeof vector !== 'object' || vector === null) {
    throw unexpected(vector, "a vector such as { id: 'a', values: [0.5, 1] }", pointer);
  }
  const { values, vectors } = vector;
  return {
    ...vector,
    ...(values !== undefined && { values: wireValues(values, `${pointer}/values`) }),
    ...(vectors && { vectors: wireNamed(vectors, `${pointer}/vectors`) }),
  };
}

function mapValues<From, To>(
  named: Named<From>,
  change: (value: From, name: string) => To,
): Named<To> {
  return Object.fromEntries(
    Object.entries(named).map(([name, value]) => [name, change(value, name)]),
  );
}

/** Replaces `include_values: 'float32'`, which only the client knows, with a value that the server knows. */
export function wireInclude<Request extends { readonly include_values?: IncludeValues }>(
  request: Request,
  replacement: 'base64' | true,
): Request {
  return request.include_values === 'float32'
    ? { ...request, include_values: replacement }
    : request;
}

/** Converts the values of the rows to Float32Arrays if `asked` is `'float32'`. */
export function withFloat32<Row extends WithValues<unknown>>(
  rows: readonly Row[],
  asked: IncludeValues | undefined,
): readonly WithValues<unknown>[] {
  if (asked !== 'float32') return rows;
  return rows.map((row) => ({
    ...row,
    ...(row.values !== undefined && { values: toFloat32(row.values) }),
    ...(row.vectors !== undefined && { vectors: mapValues(row.vectors, toFloat32s) }),
  }));
}

interface WithValues<Values> {
  readonly values?: Values;
  readonly vectors?: Named<Values | readonly Values[]>;
}

function toFloat32s(values: unknown): Float32Array | readonly Float32Array[] {
  const isList = Array.isArray(values) && typeof values[0] !== 'number';
  return isList ? values.map(toFloat32) : toFloat32(values);
}

function toFloat32(values: unknown): Float32Array {
  return typeof values === 'string'
    ? decodeValues(values)
    : Float32Array.from(values as readonly number[]);
}
