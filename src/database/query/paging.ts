// The rules that pages of lists and queries share: limits, offsets and cursors, and which cursors a collection accepts.

import { type IssueLocation, SagittaError, type ValidationIssue } from '../../common/errors.js';
import type { Limits } from '../../common/limits.js';
import { cursorError } from '../api/repeated.js';
import type { Collection } from '../collection/collection.js';
import type { Cursor, CursorSealer } from './cursor.js';

export interface PageRequest {
  readonly limit?: number | undefined;
  readonly offset?: number | undefined;
  readonly cursor?: string | undefined;
}

/** The issues of limit, offset and cursor, each at the location of its field. */
export function findPageIssues(
  request: PageRequest,
  limits: Limits,
  locate: (name: string) => IssueLocation,
): ValidationIssue[] {
  const issues = findLimitIssues(request, limits, locate);
  if (request.offset !== undefined && request.cursor !== undefined) {
    const detail = 'Expected offset or cursor; found both.';
    issues.unshift({ location: locate('offset'), code: 'invalid_request', detail });
  }
  return issues;
}

/** The issues of the limit. */
export function findLimitIssues(
  { limit }: Pick<PageRequest, 'limit'>,
  { pageLimitMax }: Limits,
  locate: (name: string) => IssueLocation,
): ValidationIssue[] {
  const issues: ValidationIssue[] = [];
  if (limit !== undefined && limit > pageLimitMax) {
    issues.push({
      location: locate('limit'),
      code: 'limit_exceeded',
      detail: `Expected at most ${pageLimitMax}; found ${limit}.`,
      expected: pageLimitMax,
      actual: limit,
    });
  }
  return issues;
}

/**
 * The content of a cursor. Throws `cursor_invalid` unless it belongs to this collection, and `cursor_mismatch` if
 * another kind of request issued it.
 */
export function openCursor<Kind extends Cursor['kind']>(
  token: string,
  kind: Kind,
  collection: Collection,
  sealer: CursorSealer,
): Extract<Cursor, { kind: Kind }> {
  const cursor = openToken(token, sealer);
  if (cursor.incarnation !== collection.incarnation) {
    const detail = 'The cursor belongs to another collection.';
    throw cursorError('cursor_invalid', 'cursor', detail);
  }
  if (cursor.kind !== kind) {
    const detail = `The cursor was made by a ${cursor.kind} request; this is a ${kind} request.`;
    throw cursorError('cursor_mismatch', 'cursor', detail);
  }
  return cursor as Extract<Cursor, { kind: Kind }>;
}

/** Throws `cursor_expired` if the snapshot of a cursor can no longer be read. */
export function requireReadable(
  { sequence, openedAtMs }: Pick<Cursor, 'sequence' | 'openedAtMs'>,
  collection: Collection,
  { limits, now }: { readonly limits: Limits; readonly now: number },
): void {
  const ageMs = now - openedAtMs;
  if (ageMs <= limits.retentionMs && sequence >= collection.horizonSequence) return;
  const detail = `The cursor's snapshot was opened ${Math.round(ageMs / 1000)} s ago; snapshots are kept for ${Math.round(limits.retentionMs / 1000)} s. Start again from the first page.`;
  throw cursorError('cursor_expired', 'cursor', detail);
}

/** Throws `cursor_invalid`. */
export function openToken(token: string, sealer: CursorSealer): Cursor {
  try {
    return sealer.open(token);
  } catch (error) {
    if (!(error instanceof SagittaError)) throw error;
    throw cursorError(error.code, 'cursor', error.message);
  }
}
