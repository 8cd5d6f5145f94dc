// The writes of a collection in the form that the writer takes: prepared against memory and pending
// writes, encoded as a log record, applied to the rows.

import type { BufferPool } from '../../common/buffer-pool.js';
import type { Clock } from '../../common/clock.js';
import { ISSUES_MAX, rowField, SagittaError, type ValidationIssue } from '../../common/errors.js';
import type { Limits } from '../../common/limits.js';
import type { Utf8Column, VectorBatch } from '../../common/types.js';
import { utf8ColumnOf } from '../../common/utf8-column.js';
import type { FilterNode } from '../../filter/filter-node.js';
import { parseFilter } from '../../filter/parse.js';
import { encodeLogRecord, type LogRecord } from '../../segment/log-record.js';
import { decodeUtf8 } from '../../segment/shared-arrays.js';
import type { StoreOperation } from '../../storage/store.js';
import type { DeleteResult, VectorSelection, WriteMode, WriteResult } from '../api.js';
import { logName } from '../keys.js';
import type { FilterCache } from '../query/filter-cache.js';
import type { Collection } from './collection.js';
import { applyMergePatch } from './merge-patch.js';
import { rowsOf } from './snapshot.js';
import type { PendingIds, PreparedWrite, Write } from './writer.js';

/** Operations that are committed in one transaction with a write, made from its result. */
export type CommitTogether<Result> = (result: Result) => readonly StoreOperation[];

export function writeVectors(
  collection: Collection,
  batch: VectorBatch,
  options: {
    mode: WriteMode;
    clock: Clock;
    alsoCommit: CommitTogether<WriteResult> | undefined;
    /** Buffers that log records reuse. */
    recordBytes: BufferPool;
  },
): Write<WriteResult> {
  return {
    mayFollow: () => true,
    endsCommit: false,
    prepare(sequence, pending) {
      const { insertedCount, ids } = checkWriteMode(collection, batch, options.mode, pending);
      for (const id of ids) pending.set(id, true);
      const result: WriteResult = {
        insertedCount,
        updatedCount: batch.count - insertedCount,
        sequence,
      };
      const record: LogRecord = { kind: 'write', timeMs: options.clock.now(), batch };
      return logged(collection, result, options.alsoCommit, record, options.recordBytes);
    },
  };
}

/** Counts the new ids. Throws with the first ISSUES_MAX rows that the mode does not allow. */
function checkWriteMode(
  collection: Collection,
  batch: VectorBatch,
  mode: WriteMode,
  pending: PendingIds,
): { insertedCount: number; ids: string[] } {
  let insertedCount = 0;
  let conflictCount = 0;
  const conflicts: ValidationIssue[] = [];
  const ids: string[] = [];
  const { offsets, bytes } = batch.ids;
  for (let i = 0; i < batch.count; i++) {
    const start = offsets[i]!;
    const end = offsets[i + 1]!;
    const id = decodeUtf8(bytes, start, end);
    ids.push(id);
    const isPresent = pending.get(id) ?? collection.rows.has(bytes.subarray(start, end));
    if (!isPresent) insertedCount++;
    if (mode === 'upsert' || isPresent === (mode === 'update')) continue;
    conflictCount++;
    if (conflicts.length === ISSUES_MAX) continue;
    conflicts.push({
      location: rowField(i, 'id'),
      code: isPresent ? 'vector_exists' : 'vector_not_found',
      detail: `The id "${id}" ${isPresent ? 'already exists' : 'does not exist'} in the collection.`,
    });
  }
  if (conflictCount > 0) {
    throw new SagittaError(
      mode === 'insert' ? 'vector_exists' : 'vector_not_found',
      `${conflictCount} of ${batch.count} ids ${mode === 'insert' ? 'already exist' : 'do not exist'}; nothing was written.`,
      { issues: conflicts },
    );
  }
  return { insertedCount, ids };
}

export interface VectorChange {
  /** JSON text of an object. */
  readonly metadataPatch: string | undefined;
  readonly values: Float32Array | undefined;
  readonly ifVersion: string | undefined;
}

export function patchVector(
  collection: Collection,
  id: string,
  change: VectorChange,
  { clock, limits }: { clock: Clock; limits: Limits },
): Write<{ sequence: number }> {
  return {
    // A patch reads the vector that it changes.
    mayFollow: (pending) => !pending.has(id),
    endsCommit: false,
    prepare(sequence, pending) {
      const address = collection.require(id);
      const { segment, row } = address;
      const version = collection.version(address);
      if (change.ifVersion !== undefined && change.ifVersion !== version) {
        throw new SagittaError(
          'precondition_failed',
          `The vector "${id}" has version ${version}, the request expects ${change.ifVersion}; read it again.`,
        );
      }
      const metadata =
        change.metadataPatch === undefined
          ? segment.metadata(row)
          : applyMergePatch(segment.metadata(row), change.metadataPatch, limits);
      const batch = singleRowBatch(id, change.values ?? segment.values(row), metadata);
      pending.set(id, true);
      return logged(collection, { sequence }, undefined, {
        kind: 'write',
        timeMs: clock.now(),
        batch,
      });
    },
  };
}

/** Throws `invalid_filter`. */
export function deleteSelected(
  collection: Collection,
  selection: VectorSelection,
  options: {
    clock: Clock;
    limits: Limits;
    filters: FilterCache;
    alsoCommit: CommitTogether<DeleteResult> | undefined;
  },
): Write<DeleteResult> {
  switch (selection.kind) {
    case 'ids':
      return deleteIds(collection, selection.ids, options);
    case 'filter': {
      const filter = parseFilter(selection.filter, options.limits);
      return deleteMatching(collection, filter, options);
    }
    case 'all':
      return deleteAll(collection, options);
  }
}

export function deleteIds(
  collection: Collection,
  ids: readonly string[],
  options: { clock: Clock; alsoCommit: CommitTogether<DeleteResult> | undefined },
): Write<DeleteResult> {
  return {
    mayFollow: () => true,
    endsCommit: false,
    prepare(sequence, pending) {
      const found = [...new Set(ids)].filter(
        (id) => pending.get(id) ?? collection.rows.has(Buffer.from(id)),
      );
      for (const id of found) pending.set(id, false);
      return loggedDelete(collection, utf8ColumnOf(found), found.length, sequence, options);
    },
  };
}

function deleteMatching(
  collection: Collection,
  filter: FilterNode,
  options: {
    clock: Clock;
    filters: FilterCache;
    alsoCommit: CommitTogether<DeleteResult> | undefined;
  },
): Write<DeleteResult> {
  return {
    // It reads every row, so nothing may be pending, and it does not list the ids it deletes in `pending`.
    mayFollow: () => false,
    endsCommit: true,
    async prepare(sequence) {
      const views = await options.filters.filter(collection.snapshot().views, filter);
      const ids = [...rowsOf(views)].map(({ segment, row }) => segment.id(row));
      return loggedDelete(collection, utf8ColumnOf(ids), ids.length, sequence, options);
    },
  };
}

function deleteAll(
  collection: Collection,
  options: { clock: Clock; alsoCommit: CommitTogether<DeleteResult> | undefined },
): Write<DeleteResult> {
  return {
    mayFollow: () => false,
    endsCommit: true,
    prepare(sequence) {
      const deletedCount = collection.rows.liveCount;
      if (deletedCount === 0) return nothingDeleted(collection, options.alsoCommit);
      return logged(collection, { deletedCount, sequence }, options.alsoCommit, {
        kind: 'deleteAll',
        timeMs: options.clock.now(),
      });
    },
  };
}

function loggedDelete(
  collection: Collection,
  ids: Utf8Column,
  count: number,
  sequence: number,
  options: { clock: Clock; alsoCommit: CommitTogether<DeleteResult> | undefined },
): PreparedWrite<DeleteResult> {
  if (count === 0) return nothingDeleted(collection, options.alsoCommit);
  return logged(collection, { deletedCount: count, sequence }, options.alsoCommit, {
    kind: 'delete',
    timeMs: options.clock.now(),
    ids,
    count,
  });
}

function nothingDeleted(
  { sequence }: Collection,
  alsoCommit: CommitTogether<DeleteResult> | undefined,
): PreparedWrite<DeleteResult> {
  return withoutEffect({ deletedCount: 0, sequence }, alsoCommit);
}

/** The write that changes nothing; its result has the current sequence. */
export function withoutEffect<Result>(
  result: Result,
  alsoCommit: CommitTogether<Result> | undefined,
): PreparedWrite<Result> {
  return {
    takesSequence: false,
    operations: alsoCommit?.(result) ?? [],
    result,
    apply() {},
  };
}

export function logged<Result extends { readonly sequence: number }>(
  collection: Collection,
  result: Result,
  alsoCommit: CommitTogether<Result> | undefined,
  record: LogRecord,
  recordBytes?: BufferPool,
): PreparedWrite<Result> {
  const encoded = encodeLogRecord(record, recordBytes && ((count) => recordBytes.acquire(count)));
  const append: StoreOperation = {
    kind: 'append',
    log: logName(collection.incarnation),
    sequence: result.sequence,
    record: encoded,
  };
  return {
    takesSequence: true,
    operations: [append, ...(alsoCommit?.(result) ?? [])],
    result,
    apply() {
      // The commit has ended, so the store no longer reads the record.
      recordBytes?.release(encoded);
      applyLogRecord(collection.rows, record, result.sequence);
    },
  };
}

/** Applies a record to the rows, of a write that was just committed or of recovery. */
export function applyLogRecord(
  rows: Collection['rows'],
  record: LogRecord,
  sequence: number,
  skippedRowCount = 0,
): void {
  switch (record.kind) {
    case 'write':
      rows.applyWrite(record.batch, sequence, skippedRowCount);
      break;
    case 'delete':
      rows.applyDelete(record.ids, record.count, sequence);
      break;
    case 'deleteAll':
      rows.applyDeleteAll(sequence);
      break;
  }
}

function singleRowBatch(id: string, values: Float32Array, metadata: string): VectorBatch {
  return { count: 1, ids: utf8ColumnOf([id]), values, metadata: utf8ColumnOf([metadata]) };
}
