// Writes that change vectors: they read what is there, and write it again with what is new.

import type { Clock } from '../../common/clock.js';
import {
  field,
  rowField,
  SagittaError,
  type ValidationIssue,
  validationError,
} from '../../common/errors.js';
import type { Limits } from '../../common/limits.js';
import type { VectorBatch } from '../../common/types.js';
import { stringAt, utf8ColumnOf } from '../../common/utf8-column.js';
import {
  columnOfVectors,
  hasVector,
  type Vector,
  type VectorColumn,
  vectorAt,
} from '../../common/vectors.js';
import type { MetadataChange, WriteMode, WriteResult } from '../api/database-api.js';
import type { Collection } from './collection.js';
import { findTypeViolation } from './declared-types.js';
import { NEVER } from './expiries.js';
import { applyMergePatch } from './merge-patch.js';
import type { RowAddress } from './rows.js';
import type { PendingIds, PreparedWrite, Write } from './writer.js';
import {
  type CommitTogether,
  checkSequences,
  checkWriteMode,
  logged,
  type RecordEncoding,
  recordOf,
  requireSequence,
  writeVectors,
} from './writes.js';

interface RowChange {
  readonly metadata?: MetadataChange | undefined;
  /** Vectors to set by name, '' for the unnamed one, or with null to remove. */
  readonly vectors?: ReadonlyMap<string, Vector | null> | undefined;
  /** NEVER for no expiry; undefined for the one that the vector has. */
  readonly expiresAtMs?: number | undefined;
}

export interface VectorChange extends RowChange {
  readonly ifVersion?: string | undefined;
  readonly ifSequence?: number | undefined;
}

interface PatchServices {
  readonly clock: Clock;
  readonly limits: Limits;
}

/** What writes of a collection are given. */
export type WriteServices = PatchServices & RecordEncoding;

/** Throws `vector_not_found`, `precondition_failed` and `invalid_metadata` when it is prepared. */
export function patchVector(
  collection: Collection,
  id: string,
  change: VectorChange,
  services: PatchServices,
): Write<{ sequence: number }> {
  return {
    reads: [id],
    prepare(sequence, pending) {
      const address = collection.require(id);
      const version = collection.version(address);
      if (change.ifVersion !== undefined && change.ifVersion !== version) {
        throw new SagittaError(
          'precondition_failed',
          `The vector "${id}" has version ${version}, the request expects ${change.ifVersion}; read it again.`,
        );
      }
      requireSequence(id, address.segment.insertedSequence(address.row), change.ifSequence);
      const rows = [changedRow(collection, address, change, services.limits)];
      return writtenAnew(collection, rows, { sequence }, { pending, clock: services.clock });
    },
  };
}

/** Writes a batch in any mode. */
export function writeBatch(
  collection: Collection,
  batch: VectorBatch,
  options: {
    readonly mode: WriteMode;
    readonly alsoCommit: CommitTogether<WriteResult> | undefined;
  },
  services: WriteServices,
): Write<WriteResult> {
  const { mode, alsoCommit } = options;
  if (mode === 'patch') return patchVectors(collection, batch, services, alsoCommit);
  return writeVectors(collection, batch, { mode, alsoCommit, ...services });
}

/**
 * Changes the vectors that have the ids of the batch: rows give what is new. Throws `vector_not_found`,
 * `precondition_failed`, `invalid_metadata` and `limit_exceeded` when it is prepared, with an issue for a row.
 */
function patchVectors(
  collection: Collection,
  batch: VectorBatch,
  { clock, limits }: PatchServices,
  alsoCommit: CommitTogether<WriteResult> | undefined,
): Write<WriteResult> {
  const ids = Array.from({ length: batch.count }, (_, row) => stringAt(batch.ids, row));
  return {
    reads: ids,
    prepare(sequence, pending) {
      checkWriteMode(collection, batch, 'patch', pending);
      checkSequences(collection, batch, ids, pending);
      let byteCount = 0;
      const rows = ids.map((id, row) => {
        const address = collection.require(id);
        const patched = inRow(row, () =>
          changedRow(collection, address, changeIn(batch, row), limits),
        );
        byteCount += address.segment.vectorBytes(address.row);
        byteCount += Buffer.byteLength(patched.metadata);
        if (row > 0 && byteCount > limits.bodyBytesMax) throw tooLarge(row, limits);
        return patched;
      });
      const result = { insertedCount: 0, updatedCount: rows.length, sequence };
      return writtenAnew(collection, rows, result, { pending, clock, alsoCommit });
    },
  };
}

/** A row that was read, with what a change has made of it. */
export interface ChangedRow {
  readonly id: string;
  /** JSON text. */
  readonly metadata: string;
  /** By name, '' for the unnamed one. */
  readonly vectors: ReadonlyMap<string, Vector>;
  readonly expiresAtMs: number;
}

/** Throws `invalid_metadata` with an issue about the field `metadata`. */
export function changedRow(
  collection: Collection,
  address: RowAddress,
  { metadata: change, vectors: changed, expiresAtMs }: RowChange,
  limits: Limits,
): ChangedRow {
  const { segment, row } = address;
  let metadata = segment.metadata(row);
  if (change?.kind === 'replace') metadata = change.text;
  if (change?.kind === 'patch') metadata = applyMergePatch(metadata, change.text, limits);
  requireTypes(collection, metadata);
  const vectors = collection.vectorsOf(address);
  for (const [name, vector] of changed ?? []) {
    if (vector === null) vectors.delete(name);
    else vectors.set(name, vector);
  }
  return {
    id: segment.id(row),
    metadata,
    vectors,
    expiresAtMs: expiresAtMs ?? collection.expiries.timeOf(address),
  };
}

/** For metadata that a patch has made. Throws `invalid_metadata`. */
function requireTypes({ definition }: Collection, metadata: string): void {
  const violation = findTypeViolation(definition.schema, metadata);
  if (violation === null) return;
  const { members, detail, expected } = violation;
  const location = field('metadata', ...members);
  throw validationError([{ location, code: 'invalid_metadata', detail, expected }]);
}

/** The write of rows that were changed, all at once. */
export function writtenAnew<Result extends { readonly sequence: number }>(
  collection: Collection,
  rows: readonly ChangedRow[],
  result: Result,
  options: {
    readonly pending: PendingIds;
    readonly clock: Clock;
    readonly alsoCommit?: CommitTogether<Result> | undefined;
  },
): PreparedWrite<Result> {
  const { pending, clock, alsoCommit } = options;
  const { sequence } = result;
  const record = recordOf(collection, batchOfRows(collection, rows), clock.now());
  const ids = rows.map(({ id }) => id);
  for (const id of ids) pending.set(id, sequence);
  const expiresAtMs = Float64Array.from(rows, (row) => row.expiresAtMs);
  const times = { sequence, defaultMs: NEVER };
  const companion = collection.expiries.companionOf(ids, { expiresAtMs }, times);
  return logged(collection, result, record, { alsoCommit, companion });
}

function batchOfRows({ definition }: Collection, rows: readonly ChangedRow[]): VectorBatch {
  const columns = Object.entries(definition.vectors).map(([name, spec]) => ({
    name,
    ...columnOfVectors(
      spec,
      rows.map(({ vectors }) => vectors.get(name)),
    ),
  }));
  return {
    count: rows.length,
    ids: utf8ColumnOf(rows.map(({ id }) => id)),
    metadata: utf8ColumnOf(rows.map(({ metadata }) => metadata)),
    vectors: columns.filter((column) => rows.some((_, row) => hasVector(column, row))),
  };
}

const EMPTY_PATCH = '{}';

/** What a row of a batch changes. */
function changeIn(
  { metadata, expiresAtMs, removed, vectors }: VectorBatch,
  row: number,
): RowChange {
  const text = stringAt(metadata, row);
  const expiry = expiresAtMs?.[row] ?? Number.NaN;
  const changed = new Map<string, Vector | null>();
  for (const [name, rows] of removed ?? []) if (rows[row] === 1) changed.set(name, null);
  for (const { name, ...column } of vectors) {
    const vector = vectorAt<VectorColumn>(column, row);
    if (vector !== undefined) changed.set(name, vector);
  }
  return {
    metadata: text === EMPTY_PATCH ? undefined : { kind: 'patch', text },
    vectors: changed,
    expiresAtMs: Number.isNaN(expiry) ? undefined : expiry,
  };
}

/** The issues of an error are of the row then. */
function inRow<Result>(row: number, run: () => Result): Result {
  return withIssues(run, (issue) => ({ ...issue, location: { ...issue.location, row } }));
}

/** Runs it; the issues of its error become others. */
export function withIssues<Result>(
  run: () => Result,
  toOther: (issue: ValidationIssue) => ValidationIssue,
): Result {
  try {
    return run();
  } catch (error) {
    if (!(error instanceof SagittaError) || error.issues.length === 0) throw error;
    throw validationError(error.issues.map(toOther));
  }
}

function tooLarge(row: number, { bodyBytesMax }: Limits): SagittaError {
  const detail = `With what they keep, the first ${row + 1} vectors have more than ${bodyBytesMax} bytes, as many as one write may have. Send fewer vectors at once.`;
  const location = rowField(row);
  return validationError([{ location, code: 'limit_exceeded', detail, expected: bodyBytesMax }]);
}
