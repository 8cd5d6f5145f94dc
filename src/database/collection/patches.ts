// Writes that change existing vectors: each reads a vector, changes it and writes it again.

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
  /** Vectors to set by name, '' for the unnamed one; null removes a vector. */
  readonly vectors?: ReadonlyMap<string, Vector | null> | undefined;
  /** NEVER for no expiry; undefined leaves the expiry unchanged. */
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

/** The services of writes. */
export type WriteServices = PatchServices & RecordEncoding;

/** Preparing the write throws `vector_not_found`, `precondition_failed` and `invalid_metadata`. */
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
          `The vector "${id}" has version ${version}; the request expects ${change.ifVersion}. Read the vector again.`,
        );
      }
      requireSequence(id, address.segment.insertedSequence(address.row), change.ifSequence);
      const rows = [changedRow(collection, address, change, services.limits)];
      return rewriteRows(collection, rows, { sequence }, { pending, clock: services.clock });
    },
  };
}

/** The write of a batch in any mode. */
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
 * Changes the vectors with the ids of the batch by its rows. Preparing the write throws `vector_not_found`,
 * `precondition_failed`, `invalid_metadata` and `limit_exceeded`, with an issue for a row.
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
      return rewriteRows(collection, rows, result, { pending, clock, alsoCommit });
    },
  };
}

/** A row after a change. */
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

/** Checks patched metadata. Throws `invalid_metadata`. */
function requireTypes({ definition }: Collection, metadata: string): void {
  const violation = findTypeViolation(definition.schema, metadata);
  if (violation === null) return;
  const { members, detail, expected } = violation;
  const location = field('metadata', ...members);
  throw validationError([{ location, code: 'invalid_metadata', detail, expected }]);
}

/** The write of changed rows, all at one sequence. */
export function rewriteRows<Result extends { readonly sequence: number }>(
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

/** The change that a row of a batch makes. */
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

/** Runs a function and adds the row to the issues of its error. */
function inRow<Result>(row: number, run: () => Result): Result {
  return withIssues(run, (issue) => ({ ...issue, location: { ...issue.location, row } }));
}

/** Runs a function and maps the issues of its error. */
export function withIssues<Result>(
  run: () => Result,
  mapIssue: (issue: ValidationIssue) => ValidationIssue,
): Result {
  try {
    return run();
  } catch (error) {
    if (!(error instanceof SagittaError) || error.issues.length === 0) throw error;
    throw validationError(error.issues.map(mapIssue));
  }
}

function tooLarge(row: number, { bodyBytesMax }: Limits): SagittaError {
  const detail = `Expected at most ${bodyBytesMax} bytes in one write, including the unchanged parts of the vectors; found more in the first ${row + 1} vectors. Send fewer vectors at once.`;
  const location = rowField(row);
  return validationError([{ location, code: 'limit_exceeded', detail, expected: bodyBytesMax }]);
}
