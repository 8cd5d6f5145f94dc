// JSON for requests. What JSON does not have is an error that names its place, before anything is sent.

import { SagittaClientError } from './error.js';

/** Throws SagittaClientError (`invalid_argument`); `place` is that of the value. */
export function encodeJson(value: object, place = ''): string {
  try {
    return JSON.stringify(value);
  } catch (cause) {
    const at = placeOfBigInt(value, place, new Set());
    const detail =
      at === undefined
        ? `${place || 'the request'} cannot be written as JSON: ${(cause as Error).message}`
        : `found a BigInt at ${at}, which JSON does not have: use a number, a string, or upsertText, ` +
          'which sends JSON text as it is';
    throw new SagittaClientError('invalid_argument', detail, { cause });
  }
}

/** The members and indexes that lead to the first BigInt. `path` has the objects around the value. */
function placeOfBigInt(value: unknown, place: string, path: Set<object>): string | undefined {
  if (typeof value === 'bigint') return place;
  if (typeof value !== 'object' || value === null || path.has(value)) return undefined;
  path.add(value);
  for (const [name, member] of Object.entries(value)) {
    const found = placeOfBigInt(member, placeOf(value, name, place), path);
    if (found !== undefined) return found;
  }
  path.delete(value);
  return undefined;
}

function placeOf(parent: object, name: string, place: string): string {
  if (Array.isArray(parent)) return `${place}[${name}]`;
  return place === '' ? name : `${place}.${name}`;
}
