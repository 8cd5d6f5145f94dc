// What list and query pages share: the rules for limit, offset and cursor, and the opening of a
// cursor for a collection.

import { SagittaError } from '../errors.js';
import type { Limits } from '../limits.js';
import type { Collection } from './collection.js';
import type { Cursor, CursorSealer } from './cursor.js';

/** Throws `invalid_request` where limit, offset and cursor do not go together. */
export function checkPaging(
  request: { limit?: number | undefined; offset?: number | undefined; cursor?: string | undefined },
  limits: Limits,
): void {
  if (request.offset !== undefined && request.cursor !== undefined) {
    const detail = 'A page starts at an offset or at a cursor, not at both.';
    throw new SagittaError('invalid_request', detail, {
      items: [{ pointer: '/offset', code: 'invalid_request', detail }],
    });
  }
  if (request.limit !== undefined && request.limit > limits.pageLimitMax) {
    const detail = `limit is at most ${limits.pageLimitMax}; found ${request.limit}.`;
    throw new SagittaError('limit_exceeded', detail, {
      items: [
        {
          pointer: '/limit',
          code: 'limit_exceeded',
          detail,
          expected: limits.pageLimitMax,
          actual: request.limit,
        },
      ],
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
  const cursor = sealer.open(token);
  if (cursor.incarnation !== collection.incarnation) {
    const detail = 'The cursor belongs to another collection.';
    throw new SagittaError('cursor_invalid', detail, {
      items: [{ pointer: '/cursor', code: 'cursor_invalid', detail }],
    });
  }
  if (cursor.kind !== kind) throw mismatch('/cursor');
  const ageMs = now - cursor.openedAtMs;
  if (ageMs > limits.retentionMs || cursor.sequence < collection.horizonSequence) {
    const detail = `The cursor's snapshot was opened ${Math.round(ageMs / 1000)} s ago; snapshots are kept for ${Math.round(limits.retentionMs / 1000)} s. Start again from the first page.`;
    throw new SagittaError('cursor_expired', detail, {
      items: [{ pointer: '/cursor', code: 'cursor_expired', detail }],
    });
  }
  return cursor as Extract<Cursor, { kind: Kind }>;
}

export function mismatch(pointer: string): SagittaError {
  const detail =
    pointer === '/cursor'
      ? 'The cursor was made by another kind of request.'
      : `${pointer.slice(1)} differs from the request that the cursor continues; send the cursor alone or with the same fields.`;
  return new SagittaError('cursor_mismatch', detail, {
    items: [{ pointer, code: 'cursor_mismatch', detail }],
  });
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
