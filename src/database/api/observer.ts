// What a database reports about its work, by the names of metrics: once per query, batch, write or
// maintenance task, never per row. Nothing here names a vector or a principal, and only `written` names a collection.

import { SagittaError } from '../../common/errors.js';
import type { DatabaseCounter, DatabaseHistogram } from '../../platform/metric-table.js';
import type { Labels } from '../../platform/metrics.js';
import type { WriteResult } from './database-api.js';
import type { Page, QueryReply, QueryRequest, QueryTimings, QueryWork } from './query-api.js';

export interface DatabaseObserver {
  /** Adds to a counter. */
  count(name: DatabaseCounter, amount: number, labels?: Labels): void;
  /** Adds a value to a histogram; durations are in seconds. */
  observe(name: DatabaseHistogram, value: number, labels?: Labels): void;
  /** Vectors of the collection have been inserted or updated. */
  written(collectionId: string, rowCount: number): void;
}

export const SILENT_OBSERVER: DatabaseObserver = { count() {}, observe() {}, written() {} };

/** Work that adds up over queries. */
type SearchWork = Pick<QueryWork, 'rowsScanned' | 'candidatesRescored'>;

const FILTER_PHASE: Labels = { phase: 'filter' };
const WAIT_PHASE: Labels = { phase: 'wait' };
const SEARCH_PHASE: Labels = { phase: 'search' };
const ASSEMBLE_PHASE: Labels = { phase: 'assemble' };

/** Reports queries that were answered together, with their common timings and their total work. */
export function observeQueries(
  observer: DatabaseObserver,
  count: number,
  { filterMs, waitMs, searchMs, assembleMs }: QueryTimings,
  { rowsScanned, candidatesRescored }: SearchWork,
): void {
  observer.count('sagitta_queries_total', count);
  observer.count('sagitta_rows_scanned_total', rowsScanned);
  observer.count('sagitta_rows_rescored_total', candidatesRescored);
  const observePhase = (phase: Labels, milliseconds: number) =>
    observer.observe('sagitta_query_phase_seconds', milliseconds / 1000, phase);
  observePhase(FILTER_PHASE, filterMs);
  observePhase(WAIT_PHASE, waitMs);
  observePhase(SEARCH_PHASE, searchMs);
  observePhase(ASSEMBLE_PHASE, assembleMs);
}

export function observeWritten(
  observer: DatabaseObserver,
  collectionId: string,
  { insertedCount, updatedCount }: Omit<WriteResult, 'sequence'>,
): void {
  observer.written(collectionId, insertedCount + updatedCount);
  observer.count('sagitta_vectors_written_total', insertedCount, { kind: 'inserted' });
  observer.count('sagitta_vectors_written_total', updatedCount, { kind: 'updated' });
}

/** Reports the cursor that a page continued and the cursor that it issues. */
export function observeCursors(
  observer: DatabaseObserver,
  request: { readonly cursor?: string | undefined },
  page: Page,
): void {
  if (request.cursor !== undefined) observer.count('sagitta_cursors_resumed_total', 1);
  if (page.nextCursor !== undefined) observer.count('sagitta_cursors_issued_total', 1);
}

/** Reports a rejected cursor; ignores other errors. */
export function observeCursorError(
  observer: DatabaseObserver,
  cursor: string | undefined,
  error: unknown,
): void {
  if (cursor === undefined || !(error instanceof SagittaError)) return;
  const { code } = error;
  if (code.startsWith('cursor_')) observer.count('sagitta_cursors_refused_total', 1, { code });
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
    observeQueries(observer, replies.length, first.timings, work);
  }
}
