// Vectors as text: base64 of little-endian float32, which is a third of the bytes of decimal
// numbers and keeps every bit. Works in browsers too, hence no Buffer.

import type { IncludeValues, VectorValues } from './types.js';

/** Bytes turned to characters at a time: arguments of one call have to fit the stack. */
const CHUNK_BYTES = 0x8000;

export function encodeValues(values: Float32Array): string {
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  let characters = '';
  for (let start = 0; start < bytes.length; start += CHUNK_BYTES) {
    characters += String.fromCharCode(...bytes.subarray(start, start + CHUNK_BYTES));
  }
  return btoa(characters);
}

/** Throws when the text is not base64 of whole float32 numbers. */
export function decodeValues(text: string): Float32Array {
  const characters = atob(text);
  if (characters.length % 4 !== 0) {
    throw new RangeError(
      `expected base64 of float32 numbers, 4 bytes each; found ${characters.length} bytes`,
    );
  }
  const bytes = new Uint8Array(characters.length);
  for (let at = 0; at < bytes.length; at++) bytes[at] = characters.charCodeAt(at);
  return new Float32Array(bytes.buffer);
}

/** As the wire takes them: base64 in place of a Float32Array. */
export function wireValues(values: VectorValues): readonly number[] | string {
  return values instanceof Float32Array ? encodeValues(values) : values;
}

/** The same object where nothing has to change. */
export function wireVector<Vector extends { readonly values: VectorValues }>(
  vector: Vector,
): Omit<Vector, 'values'> & { readonly values: readonly number[] | string } {
  return { ...vector, values: wireValues(vector.values) };
}

/** What the service is asked for in place of Float32Arrays. */
export function wireInclude<Request extends { readonly include_values?: IncludeValues }>(
  request: Request,
  inPlace: 'base64' | true,
): Request {
  return request.include_values === 'float32' ? { ...request, include_values: inPlace } : request;
}

/** The same rows with Float32Arrays, where those were asked for. */
export function withFloat32<Row extends { readonly values?: unknown }, Values>(
  rows: readonly Row[],
  asked: IncludeValues | undefined,
): readonly (Omit<Row, 'values'> & { readonly values?: Values })[] {
  if (asked !== 'float32') return rows as readonly (Row & { readonly values?: Values })[];
  return rows.map((row) =>
    row.values === undefined ? row : { ...row, values: toFloat32(row.values) },
  ) as readonly (Row & { readonly values?: Values })[];
}

function toFloat32(values: unknown): Float32Array {
  return typeof values === 'string'
    ? decodeValues(values)
    : Float32Array.from(values as readonly number[]);
}
