// A request with a cursor may repeat members of the request that the cursor continues; they must be equal.

import { type ErrorCode, field, type SagittaError, validationError } from '../../common/errors.js';
import { stringifyExactJson } from '../../common/exact-json.js';
import { isJsonObject } from '../../common/metadata-path.js';
import { wireName } from '../../common/wire-names.js';

/** Throws `cursor_mismatch` when a repeated member does not pass its test. */
export function requireRepeated(request: object, repeats: object, sealed?: unknown): void {
  for (const [member, isSame] of Object.entries(repeats)) {
    const sent = (request as Record<string, unknown>)[member];
    if (sent !== undefined && !isSame(sent, sealed)) throw mismatch(requestName(member));
  }
}

/** The name of a member as requests spell it. */
export function requestName(member: string): string {
  return member === 'diversity' ? 'mmr' : wireName(member);
}

/** The error for a member that differs from the cursor's request. */
export function mismatch(name: string): SagittaError {
  const detail = `${name} differs from the request that the cursor continues; send the cursor alone or with the same fields.`;
  return cursorError('cursor_mismatch', name, detail);
}

export function cursorError(code: ErrorCode, name: string, detail: string): SagittaError {
  return validationError([{ location: field(name), code, detail }]);
}

/** Whether two values are the same JSON; the order of members does not matter. */
export function sameJson(a: unknown, b: unknown): boolean {
  return canonicalJson(a) === canonicalJson(b);
}

function canonicalJson(value: unknown): string {
  return stringifyExactJson(value, (member) =>
    isJsonObject(member) ? Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)) : member,
  );
}
