// The writes of a collection in the form that the writer takes: prepared against memory and pending
// writes, encoded as a log record, applied to the rows.

import type { BufferPool } from '../../common/buffer-pool.js';
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
import { multiColumnOf } from '../../common/multi-column.js';
import { sparseColumnOf } from '../../common/sparse-column.js';
import type {
  MultiVector,
  NamedMulti,
  NamedSparse,
  NamedVectors,
  SparseVector,
  Utf8Column,
  VectorBatch,
} from '../../common/types.js';
import { utf8ColumnOf } from '../../common/utf8-column.js';
import type { FilterNode } from '../../filter/filter-node.js';
import { parseFilter } from '../../filter/parse.js';
import type { WorkerPool } from '../../platform/pool.js';
import {
  encodeLogRecord,
  encodeWriteTask,
  type LogRecord,
  recordBytesMax,
} from '../../segment/log-record.js';
import { decodeUtf8 } from '../../segment/shared-arrays.js';
import type { StoreOperation } from '../../storage/store.js';
import type {
  DeleteResult,
  VectorSelection,
  VectorsToSet,
  WriteMode,
  WriteResult,
} from '../api.js';
import { logName } from '../keys.js';
import type { FilterCache } from '../query/filter-cache.js';
import type { Collection } from './collection.js';
import { findTypeViolation } from './declared-types.js';
import { type Companion, NEVER } from './expiries.js';
import type { CollectionDefinition } from './manifest.js';
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
  } & RecordEncoding,
): Write<WriteResult> {
  return {
    mayFollow: () => true,
    endsCommit: false,
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
      const record = { kind: 'write', timeMs, batch } as const;
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

/** Where the records of writes are encoded. */
export interface RecordEncoding {
  readonly pool: WorkerPool;
  /** Buffers that log records reuse. */
  readonly recordBytes: BufferPool;
}

/** Records with fewer bytes of values are encoded on the calling thread, in less than half a millisecond. */
const POOLED_BYTES_MIN = 1024 * 1024;

function encodeWrite(
  record: Extract<LogRecord, { kind: 'write' }>,
  { pool, recordBytes }: RecordEncoding,
): Uint8Array | Promise<Uint8Array> {
  const { count, ids, values, metadata, named = [], multi = [], sparse = [] } = record.batch;
  const arrays = [values, ...[...named, ...multi, ...sparse].map((vectors) => vectors.values)];
  const isLarge = arrays.reduce((sum, array) => sum + array.byteLength, 0) >= POOLED_BYTES_MIN;
  // Values that are not shared would be copied to the pool, which takes as long.
  if (!isLarge || !arrays.every(({ buffer }) => buffer instanceof SharedArrayBuffer)) {
    return encodeLogRecord(record, (byteCount) => recordBytes.acquire(byteCount));
  }
  const room = recordBytes.acquire(recordBytesMax(record.batch));
  const batch = { count, ids, values, metadata, named, multi, sparse };
  return pool.run(
    encodeWriteTask,
    { timeMs: record.timeMs, batch, room },
    { transfer: [room.buffer as ArrayBuffer] },
  );
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
    const isPresent = has(collection, bytes.subarray(start, end), pending.get(id));
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

/** Throws `invalid_metadata` with the first ISSUES_MAX rows that do not fit the declared types. */
function checkTypes({ definition }: Collection, { metadata, count }: VectorBatch): void {
  const { schema } = definition;
  if (schema == null) return;
  const issues: ValidationIssue[] = [];
  for (let i = 0; i < count && issues.length < ISSUES_MAX; i++) {
    const text = decodeUtf8(metadata.bytes, metadata.offsets[i]!, metadata.offsets[i + 1]!);
    const violation = findTypeViolation(schema, text);
    if (violation === null) continue;
    const { members, detail, expected } = violation;
    const location = rowField(i, 'metadata', ...members);
    issues.push({ location, code: 'invalid_metadata', detail, expected });
  }
  if (issues.length > 0) throw validationError(issues);
}

/** Throws `precondition_failed` with the first ISSUES_MAX rows whose vector has another sequence. */
function checkSequences(
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

/** The sequence at which the vector was last written, pending writes included; 0 when there is none. */
function sequenceOf(collection: Collection, id: string, pending: PendingIds): number {
  const address = pending.has(id) ? undefined : collection.find(id);
  if (address === undefined) return pending.get(id) ?? 0;
  return address.segment.insertedSequence(address.row);
}

function has({ rows }: Collection, id: Uint8Array, pendingSequence: number | undefined): boolean {
  return pendingSequence === undefined ? rows.has(id) : pendingSequence > 0;
}

/** For metadata that a patch has made. Throws `invalid_metadata`. */
function requireTypes({ definition }: Collection, metadata: string): void {
  const violation =
    definition.schema == null ? null : findTypeViolation(definition.schema, metadata);
  if (violation === null) return;
  const { members, detail, expected } = violation;
  const location = field('metadata', ...members);
  throw validationError([{ location, code: 'invalid_metadata', detail, expected }]);
}

function requireSequence(id: string, actual: number, expected: number | undefined): void {
  if (expected === undefined || actual === expected) return;
  const detail = describeSequence(id, actual, expected);
  const location = field('if_sequence');
  throw validationError([{ location, code: 'precondition_failed', detail, expected, actual }]);
}

/** Of rows of a collection without the unnamed vector. */
const NO_VALUES = new Float32Array(0);

export interface VectorChange {
  /** JSON text of an object. */
  readonly metadataPatch: string | undefined;
  readonly values?: Float32Array | undefined;
  /** Named vectors to set, or with null to remove. */
  readonly vectors?: VectorsToSet | undefined;
  /** The same for sparse vectors. */
  readonly sparseVectors?: Readonly<Record<string, SparseVector | null>> | undefined;
  readonly ifVersion?: string | undefined;
  readonly ifSequence?: number | undefined;
  /** NEVER for no expiry; undefined for the one that the vector has. */
  readonly expiresAtMs?: number | undefined;
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
      requireSequence(id, segment.insertedSequence(row), change.ifSequence);
      const metadata =
        change.metadataPatch === undefined
          ? segment.metadata(row)
          : applyMergePatch(segment.metadata(row), change.metadataPatch, limits);
      requireTypes(collection, metadata);
      const kept = collection.valuesOf(address);
      const batch: VectorBatch = {
        count: 1,
        ids: utf8ColumnOf([id]),
        values: change.values ?? kept.values ?? NO_VALUES,
        metadata: utf8ColumnOf([metadata]),
        ...vectorsOfRows(collection, [{ ...kept.vectors, ...change.vectors }]),
        sparse: sparseVectorsOf(collection, [{ ...kept.sparseVectors, ...change.sparseVectors }]),
      };
      pending.set(id, sequence);
      const expiresAtMs = change.expiresAtMs ?? collection.expiries.timeOf(address);
      const companion = collection.expiries.companionOf(
        [id],
        { ...batch, expiresAtMs: Float64Array.of(expiresAtMs) },
        { sequence, defaultMs: NEVER },
      );
      const record: LogRecord = { kind: 'write', timeMs: clock.now(), batch };
      return logged(collection, { sequence }, record, { companion });
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

/** Ids without a vector are ignored; `ifSequence` is for a single id, whose vector must have it. */
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
    mayFollow: () => true,
    endsCommit: false,
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

/** Deletes vectors that have expired, `countMax` of them at most. */
export function deleteExpired(
  collection: Collection,
  { clock, countMax }: { clock: Clock; countMax: number },
): Write<DeleteResult> {
  return {
    // It reads rows, so nothing may be pending, and it does not list the ids it deletes in `pending`.
    mayFollow: () => false,
    endsCommit: true,
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
    mayFollow: () => false,
    endsCommit: true,
    prepare(sequence) {
      const deletedCount = collection.rows.liveCount;
      if (deletedCount === 0) return nothingDeleted(sequence, options.alsoCommit);
      const record: LogRecord = { kind: 'deleteAll', timeMs: options.clock.now() };
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
  const record: LogRecord = { kind: 'delete', timeMs: options.clock.now(), ids, count };
  return logged(collection, { deletedCount: count, sequence }, record, options);
}

/** `offered`: the sequence that it does not take. Pending writes before it have the ones up to there. */
function nothingDeleted(
  offered: number,
  alsoCommit: CommitTogether<DeleteResult> | undefined,
): PreparedWrite<DeleteResult> {
  return withoutEffect({ deletedCount: 0, sequence: offered - 1 }, alsoCommit);
}

/** The write that changes nothing; its result has the sequence of the last write before it. */
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
  record: LogRecord,
  options: {
    readonly alsoCommit?: CommitTogether<Result> | undefined;
    /** The encoded record, in bytes of the pool; encoded here when absent. */
    readonly pooled?: { readonly encoded: Uint8Array; readonly recordBytes: BufferPool };
    /** Its operations and its effect belong to the write. */
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

/** The named vectors and the multi-vectors of rows, of which each has or lacks any. */
export function vectorsOfRows(
  { definition }: Collection,
  rows: readonly VectorsToSet[],
): Pick<VectorBatch, 'named' | 'multi'> {
  return { named: namedVectorsOf(definition, rows), multi: multiVectorsOf(definition, rows) };
}

/** Undefined where no row has one. */
function namedVectorsOf(
  definition: CollectionDefinition,
  rows: readonly VectorsToSet[],
): readonly NamedVectors[] | undefined {
  const named = Object.entries(definition.vectors ?? {}).flatMap(([name, { dimension }]) => {
    const presence = new Uint8Array(rows.length);
    const values = new Float32Array(rows.length * dimension);
    for (const [i, row] of rows.entries()) {
      const vector = vectorIn(row, name);
      if (!(vector instanceof Float32Array)) continue;
      values.set(vector, i * dimension);
      presence[i] = 1;
    }
    if (!presence.includes(1)) return [];
    return [{ name, dimension, values, presence }];
  });
  return named.length === 0 ? undefined : named;
}

/** The same for sparse vectors. */
export function sparseVectorsOf(
  { definition }: Collection,
  rows: readonly Readonly<Record<string, SparseVector | null>>[],
): readonly NamedSparse[] | undefined {
  const sparse = Object.keys(definition.sparseVectors ?? {}).flatMap((name) => {
    const vectorAt = (i: number) =>
      (Object.hasOwn(rows[i]!, name) ? rows[i]![name] : null) ?? undefined;
    const column = sparseColumnOf(rows.length, vectorAt);
    return column.indices.length === 0 ? [] : [{ name, ...column }];
  });
  return sparse.length === 0 ? undefined : sparse;
}

/** Undefined where no row has one. */
function multiVectorsOf(
  definition: CollectionDefinition,
  rows: readonly VectorsToSet[],
): readonly NamedMulti[] | undefined {
  const multi = Object.entries(definition.multiVectors ?? {}).flatMap(([name, { dimension }]) => {
    const column = multiColumnOf(rows.length, dimension, (row) => {
      const vector = vectorIn(rows[row]!, name);
      return vector === null || vector instanceof Float32Array ? undefined : vector;
    });
    return column.values.length === 0 ? [] : [{ name, ...column }];
  });
  return multi.length === 0 ? undefined : multi;
}

/** Also of a vector named like a member of every object. */
function vectorIn(row: VectorsToSet, name: string): Float32Array | MultiVector | null {
  return Object.hasOwn(row, name) ? row[name]! : null;
}
