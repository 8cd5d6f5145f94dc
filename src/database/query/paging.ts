// What list and query pages share: the rules for limit, offset and cursor, and the opening of a
// cursor for a collection.

import { type ErrorCode, field, SagittaError, validationError } from '../../common/errors.js';
import type { Limits } from '../../common/limits.js';
import type { Collection } from '../collection/collection.js';
import type { Cursor, CursorSealer } from './cursor.js';

/** Throws `invalid_request` or `limit_exceeded` where limit, offset and cursor do not go together. */
export function checkPaging(
  request: { limit?: number | undefined; offset?: number | undefined; cursor?: string | undefined },
  limits: Limits,
): void {
  if (request.offset !== undefined && request.cursor !== undefined) {
    const detail = 'A page starts at an offset or at a cursor, not at both.';
    throw refusal('invalid_request', 'offset', detail);
  }
  if (request.limit !== undefined && request.limit > limits.pageLimitMax) {
    const detail = `limit is at most ${limits.pageLimitMax}; found ${request.limit}.`;
    throw refusal('limit_exceeded', 'limit', detail, {
      expected: limits.pageLimitMax,
      actual: request.limit,
    });
  }
}

/** The cursor, if it is one of this collection and kind and its snapshot can still be read. */
export function openCursor<Kind extends Cursor['kind']>(
  token: string,
  kind: Kind,
  collection: Collection,
  { sealer, limits, now }: { sealer: CursorSealer; limits: Limits; now: number },
): Extract<Cursor, { kind: Kind }> {
  let cursor: Cursor;
  try {
    cursor = sealer.open(token);
  } catch (error) {
    if (!(error instanceof SagittaError)) throw error;
    throw refusal(error.code, 'cursor', error.message);
  }
  if (cursor.incarnation !== collection.incarnation) {
    const detail = 'The cursor belongs to another collection.';
    throw refusal('cursor_invalid', 'cursor', detail);
  }
  if (cursor.kind !== kind) {
    const detail = `The cursor was made by a ${cursor.kind}, this is a ${kind}.`;
    throw refusal('cursor_mismatch', 'cursor', detail);
  }
  const ageMs = now - cursor.openedAtMs;
  if (ageMs > limits.retentionMs || cursor.sequence < collection.horizonSequence) {
    const detail = `The cursor's snapshot was opened ${Math.round(ageMs / 1000)} s ago; snapshots are kept for ${Math.round(limits.retentionMs / 1000)} s. Start again from the first page.`;
    throw refusal('cursor_expired', 'cursor', detail);
  }
  return cursor as Extract<Cursor, { kind: Kind }>;
}

/** A field that was sent again beside the cursor, and differs. */
export function mismatch(name: string): SagittaError {
  const detail = `${name} differs from the request that the cursor continues; send the cursor alone or with the same fields.`;
  return refusal('cursor_mismatch', name, detail);
}

function refusal(
  code: ErrorCode,
  name: string,
  detail: string,
  bound: { expected?: number; actual?: number } = {},
): SagittaError {
  return validationError([{ location: field(name), code, detail, ...bound }]);
}

/** Equal as JSON, the order of members aside. */
export function sameJson(a: unknown, b: unknown): boolean {
  return canonicalJson(a) === canonicalJson(b);
}

function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, member: unknown) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1))
      : member,
  );
}
