// The rules that list and query pages share: how limit, offset and cursor go together, and which
// cursors a collection accepts.

import {
  type ErrorCode,
  field,
  type IssueLocation,
  SagittaError,
  type ValidationIssue,
  validationError,
} from '../../common/errors.js';
import { stringifyExactJson } from '../../common/exact-json.js';
import type { Limits } from '../../common/limits.js';
import type { Collection } from '../collection/collection.js';
import type { Cursor, CursorSealer } from './cursor.js';

export interface PageRequest {
  readonly limit?: number | undefined;
  readonly offset?: number | undefined;
  readonly cursor?: string | undefined;
}

/** Issues of limit, offset and cursor of a query, each at the location of its field. */
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

/** The same for the limit alone. */
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
 * The content of a cursor. Throws `cursor_invalid` unless it belongs to this collection,
 * `cursor_mismatch` when it was made by another kind of request, and `cursor_expired` when its snapshot
 * can no longer be read.
 */
export function openCursor<Kind extends Cursor['kind']>(
  token: string,
  kind: Kind,
  collection: Collection,
  { sealer, limits, now }: { sealer: CursorSealer; limits: Limits; now: number },
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
  const ageMs = now - cursor.openedAtMs;
  if (ageMs > limits.retentionMs || cursor.sequence < collection.horizonSequence) {
    const detail = `The cursor's snapshot was opened ${Math.round(ageMs / 1000)} s ago; snapshots are kept for ${Math.round(limits.retentionMs / 1000)} s. Start again from the first page.`;
    throw cursorError('cursor_expired', 'cursor', detail);
  }
  return cursor as Extract<Cursor, { kind: Kind }>;
}

/**
 * Waits until the write is visible. Rejects with `invalid_request` where the collection is written and has no
 * such write: it comes from another server, or was lost with a backup that was restored.
 */
export async function reachSequence(
  collection: Collection,
  minSequence: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  if (minSequence <= collection.sequence) return;
  if (!collection.isWritable) return collection.waitForSequence(minSequence, signal);
  await collection.whenVisible();
  const { sequence: expected } = collection;
  if (minSequence <= expected) return;
  const detail = `Expected the sequence of a write of this collection, at most ${expected}; found ${minSequence}.`;
  throw validationError([
    {
      location: field('min_sequence'),
      code: 'invalid_request',
      detail,
      expected,
      actual: minSequence,
    },
  ]);
}

/**
 * Waits until this process has the snapshots of cursors that another node of a cluster has issued. Those of cursors
 * that are not valid are not waited for. Rejects with the signal's reason.
 */
export async function reachCursors(
  collection: Collection,
  tokens: readonly string[],
  sealer: CursorSealer,
  signal: AbortSignal | undefined,
): Promise<void> {
  for (const token of tokens) {
    const sequence = sequenceOf(token, collection, sealer);
    if (sequence <= collection.sequence) continue;
    // Whoever writes has every sequence, but others may have applied a commit before it has.
    if (collection.isWritable) await collection.whenVisible();
    else await collection.waitForSequence(sequence, signal);
  }
}

function sequenceOf(token: string, { incarnation }: Collection, sealer: CursorSealer): number {
  try {
    const cursor = sealer.open(token);
    return cursor.incarnation === incarnation ? cursor.sequence : 0;
  } catch {
    return 0;
  }
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

/** The error for a field that was sent beside a cursor and differs from the cursor's request. */
export function mismatch(name: string): SagittaError {
  const detail = `${name} differs from the request that the cursor continues; send the cursor alone or with the same fields.`;
  return cursorError('cursor_mismatch', name, detail);
}

function cursorError(code: ErrorCode, name: string, detail: string): SagittaError {
  return validationError([{ location: field(name), code, detail }]);
}

/** Whether two values are the same JSON; the order of members does not matter. */
export function sameJson(a: unknown, b: unknown): boolean {
  return canonicalJson(a) === canonicalJson(b);
}

function canonicalJson(value: unknown): string {
  return stringifyExactJson(value, (member) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1))
      : member,
  );
}
