// What a database reports about its work, for metrics: once for each query, batch, write or
// maintenance task, never for each row. Nothing here names a collection, a vector or a principal.

import { SagittaError } from '../common/errors.js';
import type { Page, QueryReply, QueryRequest, QueryTimings, QueryWork } from './query/query-api.js';

export interface DatabaseObserver {
  /** `count` queries were answered together; timings and work are those of all of them. */
  queriesAnswered(count: number, timings: QueryTimings, work: SearchWork): void;
  /** Facets and stats of one request were computed, from the filter to the result. */
  aggregated(milliseconds: number): void;
  /** The engine has searched one batch. */
  batchSearched(queryCount: number, milliseconds: number): void;
  vectorsWritten(insertedCount: number, updatedCount: number): void;
  vectorsDeleted(count: number): void;
  /** Vectors were deleted because they had expired; these are not reported as deleted. */
  vectorsExpired(count: number): void;
  /** Writes of one collection, from the call of the store until they are on disk. */
  writesCommitted(writeCount: number, milliseconds: number): void;
  commitFailed(): void;
  checkpointEnded(milliseconds: number): void;
  /** `goneCount`: rows that were removed. */
  compactionEnded(milliseconds: number, goneCount: number): void;
  maintenanceFailed(): void;
  cursorIssued(): void;
  cursorResumed(): void;
  /** `code` is the error code, such as `cursor_expired`. */
  cursorRejected(code: string): void;
  /** `kept`: the request ran and its reply was stored; `replayed`: it had run before; else the error code. */
  idempotencyDecided(outcome: IdempotencyOutcome): void;
}

/** Work that adds up over queries. */
type SearchWork = Pick<QueryWork, 'rowsScanned' | 'candidatesRescored'>;

type IdempotencyOutcome = 'kept' | 'replayed' | 'idempotency_in_flight' | 'idempotency_key_reused';

export const SILENT_OBSERVER: DatabaseObserver = {
  queriesAnswered() {},
  aggregated() {},
  batchSearched() {},
  vectorsWritten() {},
  vectorsDeleted() {},
  vectorsExpired() {},
  writesCommitted() {},
  commitFailed() {},
  checkpointEnded() {},
  compactionEnded() {},
  maintenanceFailed() {},
  cursorIssued() {},
  cursorResumed() {},
  cursorRejected() {},
  idempotencyDecided() {},
};

/** Reports the cursors of a page: the one that it continued and the one that it issues. */
export function observeCursors(
  observer: DatabaseObserver,
  request: { readonly cursor?: string | undefined },
  page: Page,
): void {
  if (request.cursor !== undefined) observer.cursorResumed();
  if (page.nextCursor !== undefined) observer.cursorIssued();
}

/** Reports a rejected cursor; ignores other errors. */
export function observeCursorError(
  observer: DatabaseObserver,
  cursor: string | undefined,
  error: unknown,
): void {
  if (cursor === undefined || !(error instanceof SagittaError)) return;
  if (error.code.startsWith('cursor_')) observer.cursorRejected(error.code);
}

/** Reports queries that were answered together, one reply per request, and their cursors. */
export function observeReplies(
  observer: DatabaseObserver,
  requests: readonly QueryRequest[],
  replies: readonly QueryReply[],
): void {
  let rowsScanned = 0;
  let candidatesRescored = 0;
  for (const [i, reply] of replies.entries()) {
    rowsScanned += reply.work.rowsScanned;
    candidatesRescored += reply.work.candidatesRescored;
    observeCursors(observer, requests[i]!, reply);
  }
  const [first] = replies;
  if (first !== undefined) {
    const work = { rowsScanned, candidatesRescored };
    observer.queriesAnswered(replies.length, first.timings, work);
  }
}
