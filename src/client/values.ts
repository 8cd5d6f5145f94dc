// Vectors as base64 of little-endian float32: a third of the size of decimal numbers, without loss.
// Works in browsers, so it does not use Buffer.

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

/** Values for the request: a Float32Array as base64. */
export function wireValues(values: VectorValues): readonly number[] | string {
  return values instanceof Float32Array ? encodeValues(values) : values;
}

type WireValues = readonly number[] | string;
type Named<Values> = Readonly<Record<string, Values>>;

/** Named vectors for the request, by name; null removes one. */
export function wireNamed(
  vectors: Named<VectorValues | readonly VectorValues[] | null>,
): Named<WireValues | readonly WireValues[] | null> {
  return mapValues(vectors, (values) => values && wireOneOrMore(values));
}

function wireOneOrMore(
  values: VectorValues | readonly VectorValues[],
): WireValues | readonly WireValues[] {
  return isMulti(values) ? values.map(wireValues) : wireValues(values);
}

/** Whether these are the vectors of a multi-vector. */
function isMulti(
  values: VectorValues | readonly VectorValues[],
): values is readonly VectorValues[] {
  return Array.isArray(values) && typeof values[0] !== 'number';
}

/** A vector for the request: its values, if any, as in `wireValues`. */
export function wireVector<
  Vector extends {
    readonly values?: VectorValues;
    readonly vectors?: Named<VectorValues | readonly VectorValues[]>;
  },
>(vector: Vector) {
  const { values, vectors } = vector;
  return {
    ...vector,
    ...(values !== undefined && { values: wireValues(values) }),
    ...(vectors && { vectors: wireNamed(vectors) }),
  };
}

function mapValues<From, To>(named: Named<From>, change: (value: From) => To): Named<To> {
  return Object.fromEntries(Object.entries(named).map(([name, value]) => [name, change(value)]));
}

/** Replaces `include_values: 'float32'`, which only the client knows, by the server's value. */
export function wireInclude<Request extends { readonly include_values?: IncludeValues }>(
  request: Request,
  replacement: 'base64' | true,
): Request {
  return request.include_values === 'float32'
    ? { ...request, include_values: replacement }
    : request;
}

/** The rows, with values as Float32Array if `asked` is `'float32'`. */
export function withFloat32<Row extends WithValues<unknown>, Values>(
  rows: readonly Row[],
  asked: IncludeValues | undefined,
): readonly (Omit<Row, keyof WithValues<unknown>> & WithValues<Values>)[] {
  if (asked !== 'float32') return rows as readonly (Row & WithValues<Values>)[];
  return rows.map((row) => ({
    ...row,
    ...(row.values !== undefined && { values: toFloat32(row.values) }),
    ...(row.vectors !== undefined && { vectors: mapValues(row.vectors, toFloat32s) }),
  })) as unknown as readonly (Row & WithValues<Values>)[];
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
