// The writes of a collection in the form that the writer accepts: prepared against memory and pending writes,
// encoded as a log record, and applied to the rows.

import type { BufferPool } from '../../common/buffer-pool.js';
import { decodeUtf8 } from '../../common/bytes.js';
import type { Clock } from '../../common/clock.js';
import {
  field,
  ISSUES_MAX,
  rowField,
  SagittaError,
  type ValidationIssue,
  validationError,
} from '../../common/errors.js';
import type { Limits } from '../../common/limits.js';
import type { Utf8Column, VectorBatch } from '../../common/types.js';
import { stringAt, utf8ColumnOf } from '../../common/utf8-column.js';
import { isSameSpec } from '../../common/vectors.js';
import type { FilterNode } from '../../filter/filter-node.js';
import type { WorkerPool } from '../../platform/pool.js';
import {
  encodeLogRecord,
  encodeWriteTask,
  type LogRecord,
  recordBytesMax,
} from '../../segment/log-record.js';
import type { StoreOperation } from '../../storage/store.js';
import type { DeleteResult, VectorSelection, WriteMode, WriteResult } from '../api/database-api.js';
import type { FilterCache } from '../filters/filter-cache.js';
import { logName } from '../layout/keys.js';
import type { CollectionDefinition } from '../layout/manifest.js';
import type { Collection } from './collection.js';
import { findTypeViolation } from './declared-types.js';
import type { Companion } from './expiries.js';
import { rowsOf } from './snapshot.js';
import type { PendingIds, PreparedWrite, Write } from './writer.js';

/** Creates operations from the result of a write that are committed in the same transaction. */
export type CommitTogether<Result> = (result: Result) => readonly StoreOperation[];

export function writeVectors(
  collection: Collection,
  batch: VectorBatch,
  options: {
    mode: WriteMode;
    clock: Clock;
    alsoCommit: CommitTogether<WriteResult> | undefined;
  } & RecordEncoding,
): Write<WriteResult> {
  return {
    prepare(sequence, pending) {
      const { insertedCount, ids } = checkWriteMode(collection, batch, options.mode, pending);
      checkTypes(collection, batch);
      checkSequences(collection, batch, ids, pending);
      const result: WriteResult = {
        insertedCount,
        updatedCount: batch.count - insertedCount,
        sequence,
      };
      const timeMs = options.clock.now();
      const { alsoCommit, recordBytes } = options;
      const record = recordOf(collection, batch, timeMs);
      const finish = (encoded: Uint8Array) => {
        for (const id of ids) pending.set(id, sequence);
        const companion = collection.expiries.companionOf(ids, batch, {
          sequence,
          defaultMs: collection.expiresAtMsOf(timeMs),
        });
        const pooled = { encoded, recordBytes };
        return logged(collection, result, record, { alsoCommit, pooled, companion });
      };
      const encoded = encodeWrite(record, options);
      return encoded instanceof Promise ? encoded.then(finish) : finish(encoded);
    },
  };
}

export type WriteRecord = Extract<LogRecord, { kind: 'write' }>;

/**
 * The record of a batch, in which vectors are named by their columns. Throws `invalid_request` if a vector was dropped,
 * or replaced by one of another shape, since the batch was checked.
 */
export function recordOf(collection: Collection, batch: VectorBatch, timeMs: number): WriteRecord {
  const { definition, rows } = collection;
  const fields = new Map(Object.entries(definition.vectors));
  const vectors = batch.vectors.map((column) => {
    const name = rows.columnOf(column.name);
    const field = fields.get(column.name);
    if (name === undefined || field === undefined || !isSameSpec(field, column)) {
      throw dropped(definition, column);
    }
    return name === column.name ? column : { ...column, name };
  });
  return { kind: 'write', timeMs, batch: { ...batch, vectors } };
}

function dropped({ id }: CollectionDefinition, { name }: { readonly name: string }): SagittaError {
  return new SagittaError(
    'invalid_request',
    `The vector "${name}" of collection "${id}" was dropped while the request was read; nothing was written.`,
  );
}

/** The services that encode log records. */
export interface RecordEncoding {
  readonly pool: WorkerPool;
  /** Reusable buffers for encoded records. */
  readonly recordBytes: BufferPool;
}

/** Records with fewer bytes of values are encoded on the calling thread in less than half a millisecond. */
const POOLED_BYTES_MIN = 1024 * 1024;

function encodeWrite(
  record: WriteRecord,
  { pool, recordBytes }: RecordEncoding,
): Uint8Array | Promise<Uint8Array> {
  const { count, ids, metadata, vectors } = record.batch;
  const arrays = vectors.map(({ values }) => values);
  const isLarge = arrays.reduce((sum, array) => sum + array.byteLength, 0) >= POOLED_BYTES_MIN;
  // Values outside shared memory would be copied to the pool, which takes as long.
  if (!isLarge || !arrays.every(({ buffer }) => buffer instanceof SharedArrayBuffer)) {
    return encodeLogRecord(record, (byteCount) => recordBytes.acquire(byteCount));
  }
  const room = recordBytes.acquire(recordBytesMax(record.batch));
  const batch = { count, ids, metadata, vectors };
  return pool.run(
    encodeWriteTask,
    { timeMs: record.timeMs, batch, room },
    { transfer: [room.buffer as ArrayBuffer] },
  );
}

/** Counts the new ids. Throws with issues for the first ISSUES_MAX rows that the mode does not allow. */
export function checkWriteMode(
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
    const isPresent = has(collection, bytes.subarray(start, end), pending.get(id));
    if (!isPresent) insertedCount++;
    if (mode === 'upsert' || isPresent === (mode !== 'insert')) continue;
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

/** Throws `invalid_metadata` with issues for the first ISSUES_MAX rows that do not fit the declared types. */
export function checkTypes({ definition }: Collection, { metadata, count }: VectorBatch): void {
  const { schema } = definition;
  if (schema == null) return;
  const issues: ValidationIssue[] = [];
  for (let i = 0; i < count && issues.length < ISSUES_MAX; i++) {
    const text = stringAt(metadata, i);
    const violation = findTypeViolation(schema, text);
    if (violation === null) continue;
    const { members, detail, expected } = violation;
    const location = rowField(i, 'metadata', ...members);
    issues.push({ location, code: 'invalid_metadata', detail, expected });
  }
  if (issues.length > 0) throw validationError(issues);
}

/** Throws `precondition_failed` with issues for the first ISSUES_MAX rows whose vector has another sequence. */
export function checkSequences(
  collection: Collection,
  { ifSequences, count }: VectorBatch,
  ids: readonly string[],
  pending: PendingIds,
): void {
  if (ifSequences === undefined) return;
  let failedCount = 0;
  const issues: ValidationIssue[] = [];
  for (let i = 0; i < count; i++) {
    const expected = ifSequences[i]!;
    if (Number.isNaN(expected)) continue;
    const actual = sequenceOf(collection, ids[i]!, pending);
    if (actual === expected) continue;
    failedCount++;
    if (issues.length === ISSUES_MAX) continue;
    const detail = describeSequence(ids[i]!, actual, expected);
    const location = rowField(i, 'if_sequence');
    issues.push({ location, code: 'precondition_failed', detail, expected, actual });
  }
  if (failedCount === 0) return;
  throw new SagittaError(
    'precondition_failed',
    `${failedCount} of ${count} vectors have another sequence than the request expects; nothing was written.`,
    { issues },
  );
}

function describeSequence(id: string, actual: number, expected: number): string {
  const found = actual === 0 ? 'does not exist' : `was written at sequence ${actual}`;
  const wanted = expected === 0 ? 'that it does not exist' : `sequence ${expected}`;
  return `The vector "${id}" ${found}; the request expects ${wanted}.`;
}

/** The sequence at which the vector was last written, including pending writes; 0 if it does not exist. */
function sequenceOf(collection: Collection, id: string, pending: PendingIds): number {
  const address = pending.has(id) ? undefined : collection.find(id);
  if (address === undefined) return pending.get(id) ?? 0;
  return address.segment.insertedSequence(address.row);
}

function has({ rows }: Collection, id: Uint8Array, pendingSequence: number | undefined): boolean {
  return pendingSequence === undefined ? rows.has(id) : pendingSequence > 0;
}

export function requireSequence(id: string, actual: number, expected: number | undefined): void {
  if (expected === undefined || actual === expected) return;
  const detail = describeSequence(id, actual, expected);
  const location = field('if_sequence');
  throw validationError([{ location, code: 'precondition_failed', detail, expected, actual }]);
}

/** A selection with a parsed filter. */
export type ParsedSelection =
  | Exclude<VectorSelection, { readonly kind: 'filter' }>
  | { readonly kind: 'filter'; readonly filter: FilterNode };

/** Throws `invalid_filter`. */
export function parseSelection(
  collection: Collection,
  selection: VectorSelection,
  limits: Limits,
): ParsedSelection {
  if (selection.kind !== 'filter') return selection;
  return { kind: 'filter', filter: collection.parseFilter(selection.filter, limits) };
}

export function deleteSelected(
  collection: Collection,
  selection: ParsedSelection,
  options: {
    clock: Clock;
    filters: FilterCache;
    alsoCommit: CommitTogether<DeleteResult> | undefined;
  },
): Write<DeleteResult> {
  switch (selection.kind) {
    case 'ids':
      return deleteIds(collection, selection.ids, options);
    case 'filter':
      return deleteMatching(collection, selection.filter, options);
    case 'all':
      return deleteAll(collection, options);
  }
}

/** Ids without a vector are ignored. `ifSequence` is the sequence that the vector of a single id must have. */
export function deleteIds(
  collection: Collection,
  ids: readonly string[],
  options: {
    clock: Clock;
    alsoCommit: CommitTogether<DeleteResult> | undefined;
    ifSequence?: number | undefined;
  },
): Write<DeleteResult> {
  return {
    prepare(sequence, pending) {
      const found = [...new Set(ids)].filter((id) =>
        has(collection, Buffer.from(id), pending.get(id)),
      );
      for (const id of found) {
        requireSequence(id, sequenceOf(collection, id, pending), options.ifSequence);
      }
      for (const id of found) pending.set(id, 0);
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
    reads: 'all',
    async prepare(sequence) {
      const views = await options.filters.filter(collection.snapshot().views, filter);
      const ids = [...rowsOf(views)].map(({ segment, row }) => segment.id(row));
      return loggedDelete(collection, utf8ColumnOf(ids), ids.length, sequence, options);
    },
  };
}

/** Deletes at most `countMax` expired vectors. */
export function deleteExpired(
  collection: Collection,
  { clock, countMax }: { clock: Clock; countMax: number },
): Write<DeleteResult> {
  return {
    reads: 'all',
    prepare(sequence) {
      const { ids, companion } = collection.expiries.planSweep(clock.now(), countMax);
      const options = { clock, alsoCommit: undefined, companion };
      const prepared = loggedDelete(collection, utf8ColumnOf(ids), ids.length, sequence, options);
      return ids.length > 0 ? prepared : { ...prepared, ...companion };
    },
  };
}

function deleteAll(
  collection: Collection,
  options: { clock: Clock; alsoCommit: CommitTogether<DeleteResult> | undefined },
): Write<DeleteResult> {
  return {
    reads: 'all',
    prepare(sequence) {
      const deletedCount = collection.rows.liveCount;
      if (deletedCount === 0) return nothingDeleted(sequence, options.alsoCommit);
      const record = { kind: 'deleteAll', timeMs: options.clock.now() } as const;
      return logged(collection, { deletedCount, sequence }, record, options);
    },
  };
}

function loggedDelete(
  collection: Collection,
  ids: Utf8Column,
  count: number,
  sequence: number,
  options: {
    clock: Clock;
    alsoCommit: CommitTogether<DeleteResult> | undefined;
    companion?: Companion | undefined;
  },
): PreparedWrite<DeleteResult> {
  if (count === 0) return nothingDeleted(sequence, options.alsoCommit);
  const record = { kind: 'delete', timeMs: options.clock.now(), ids, count } as const;
  return logged(collection, { deletedCount: count, sequence }, record, options);
}

/** The write does not use the sequence `offered`; the last pending write before it has the sequence before that. */
function nothingDeleted(
  offered: number,
  alsoCommit: CommitTogether<DeleteResult> | undefined,
): PreparedWrite<DeleteResult> {
  return withoutEffect({ deletedCount: 0, sequence: offered - 1 }, alsoCommit);
}

/** A write that changes nothing. */
export function withoutEffect<Result>(
  result: Result,
  alsoCommit: CommitTogether<Result> | undefined,
): PreparedWrite<Result> {
  return {
    operations: alsoCommit?.(result) ?? [],
    result,
    apply() {},
  };
}

export function logged<Result extends { readonly sequence: number }>(
  collection: Collection,
  result: Result,
  record: Exclude<LogRecord, { readonly kind: 'file' }>,
  options: {
    readonly alsoCommit?: CommitTogether<Result> | undefined;
    /** The encoded record in a pooled buffer; encoded on the calling thread when absent. */
    readonly pooled?: { readonly encoded: Uint8Array; readonly recordBytes: BufferPool };
    /** Additional operations and effects of the write. */
    readonly companion?: Companion | undefined;
  },
): PreparedWrite<Result> {
  const { alsoCommit, pooled, companion } = options;
  const encoded = pooled?.encoded ?? encodeLogRecord(record);
  const append: StoreOperation = {
    kind: 'append',
    log: logName(collection.incarnation),
    sequence: result.sequence,
    record: encoded,
  };
  return {
    last: { sequence: result.sequence, timeMs: record.timeMs },
    operations: [append, ...(companion?.operations ?? []), ...(alsoCommit?.(result) ?? [])],
    ...(record.kind === 'write' && { batches: [record.batch] }),
    result,
    apply() {
      applyLogRecord(collection.rows, record, result.sequence);
      companion?.apply();
    },
    release() {
      pooled?.recordBytes.release(encoded);
    },
  };
}

/** Applies a record that contains its effect to the rows, after its commit or during recovery. */
export function applyLogRecord(
  rows: Collection['rows'],
  record: Exclude<LogRecord, { readonly kind: 'file' }>,
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
