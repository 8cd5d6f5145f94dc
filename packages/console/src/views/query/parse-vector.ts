// Parses a pasted vector: a JSON array, base64 of little-endian float32, or numbers with any separators.

import { decodeValues } from '@sagitta/client';

export type ParsedVector =
  | { readonly values: readonly number[]; readonly problem?: never }
  | { readonly values?: never; readonly problem: string };

const BASE64 = /^[A-Za-z0-9+/]{8,}={0,2}$/;
const NUMBER = /[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?/g;

/** `dimension` is the expected number of values. */
export function parseVector(text: string, dimension: number): ParsedVector {
  const values = readNumbers(text.trim());
  const found = `Found ${values.length.toLocaleString('en-US')} of ${dimension.toLocaleString('en-US')} numbers`;
  if (values.length !== dimension) return { problem: `${found}.` };
  const infinite = values.findIndex((value) => !Number.isFinite(Math.fround(value)));
  if (infinite === -1) return { values };
  return { problem: `${found}; number ${infinite + 1} is too large for float32.` };
}

function readNumbers(text: string): readonly number[] {
  const json = readJson(text);
  if (json !== undefined) return json;
  const binary = isBase64(text) ? readBase64(text) : undefined;
  return binary ?? Array.from(text.match(NUMBER) ?? [], Number);
}

/** Digits alone are a number, not base64. */
export function isBase64(text: string): boolean {
  return BASE64.test(text) && /[A-Za-z+/]/.test(text) && !Number.isFinite(Number(text));
}

/** An array of numbers, or the first such array nested in the JSON. */
function readJson(text: string): readonly number[] | undefined {
  if (!text.startsWith('[') && !text.startsWith('{')) return undefined;
  try {
    return numbersIn(JSON.parse(text));
  } catch {
    return undefined;
  }
}

function numbersIn(value: unknown): readonly number[] | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  if (isNumbers(value)) return value;
  for (const inner of Object.values(value)) {
    const found = numbersIn(inner);
    if (found !== undefined) return found;
  }
  return undefined;
}

function isNumbers(value: object): value is readonly number[] {
  return Array.isArray(value) && value.length > 0 && value.every((one) => typeof one === 'number');
}

function readBase64(text: string): readonly number[] | undefined {
  try {
    return Array.from(decodeValues(text));
  } catch {
    return undefined;
  }
}
