// From the bytes of a body to rows for the log: one pure function, run on the event loop for small
// bodies and in the pool for large ones. Everything about the rows is checked here, and metadata
// is cut out of the body as it was spelled. Either all rows are good or none is taken.

import { field, ISSUES_MAX, type ValidationIssue, validationError } from '../../common/errors.js';
import type { Limits } from '../../common/limits.js';
import type { VectorBatch } from '../../common/types.js';
import type { WriteMode } from '../../database/api.js';
import type { Task } from '../../platform/pool.js';
import { describeKind } from './describe-kind.js';
import { findMetadataSpan, findMetadataSpans } from './metadata-span.js';
import { type BodyInput, type JsonBody, type ParsedBody, parseBody } from './parse-json.js';
import { checkMembers, isObject, ROW_MEMBERS, type RowLimits, RowReader } from './row-reader.js';
import type { VectorShape } from './vector-values.js';

export type VectorLimits = RowLimits & Pick<Limits, 'batchRowsMax'>;

export interface VectorsInput extends BodyInput {
  /** The id in the path, when the body is the vector of that id; null for `{vectors: […]}` or one vector. */
  readonly pathId: string | null;
  /** What the collection asks for. Null when no collection is known yet: then values may have any length, and the caller checks the one row. */
  readonly shape: VectorShape | null;
  readonly limits: VectorLimits;
}

export interface ParsedVectors {
  /** Over one buffer of its own, which moves from thread to thread. */
  readonly batch: VectorBatch;
  readonly mode: WriteMode;
  /** All ids in the order of the rows, when at least one of them was generated. */
  readonly ids: readonly string[] | null;
  /** Whether the body was `{vectors: […]}`, not one vector. */
  readonly isArray: boolean;
  /** The member `collection`, which only a vector with its id in the path has. */
  readonly collection: string | undefined;
}

/** A batch of small vectors has many brackets; metadata is only looked into as deep as it may be. */
const BRACKETS_UNCHECKED = 100_000;

export const parseVectorsTask: Task<VectorsInput, ParsedBody<ParsedVectors>> = {
  name: 'http.parseVectors',
  run: (input) => parseBody(input, (json) => readVectors(json, input), BRACKETS_UNCHECKED),
  transfer: ({ outcome }) => (outcome.ok ? [outcome.value.batch.values.buffer as ArrayBuffer] : []),
};

const MODES = ['upsert', 'insert', 'update'] as const satisfies readonly WriteMode[];
const BATCH_MEMBERS = ['vectors', 'mode', 'idempotency_key'];
const SINGLE_MEMBERS = [...ROW_MEMBERS, 'mode', 'idempotency_key'];
const PATH_MEMBERS = [...ROW_MEMBERS, 'collection'];

/** Throws a refusal with the first issues. */
function readVectors(json: JsonBody, input: VectorsInput): ParsedVectors {
  const issues: ValidationIssue[] = [];
  const hasPathId = input.pathId !== null;
  const isArray = !hasPathId && Object.hasOwn(json, 'vectors');
  const singleMembers = hasPathId ? PATH_MEMBERS : SINGLE_MEMBERS;
  checkMembers(json, isArray ? BATCH_MEMBERS : singleMembers, field, issues);
  const mode = readMode(json.mode, issues);
  const collection = readCollection(json.collection, issues);
  const rows = isArray ? readRows(json.vectors, input.limits) : [json];
  const spans = isArray ? findSpansOfRows(input.body, rows) : findMetadataSpan(input.body);
  const reader = new RowReader({
    ...input,
    rowCount: rows.length,
    firstRow: isArray ? 0 : null,
    spans,
    issues,
  });
  for (let row = 0; row < rows.length && issues.length < ISSUES_MAX; row++) {
    reader.read(row, rows[row]);
  }
  if (issues.length > 0) throw validationError(issues);
  return {
    batch: reader.build(),
    mode,
    ids: reader.hasGenerated ? reader.ids : null,
    isArray,
    collection,
  };
}

function readMode(value: unknown, issues: ValidationIssue[]): WriteMode {
  const mode = value === undefined ? 'upsert' : MODES.find((name) => name === value);
  if (mode === undefined) {
    issues.push({
      location: field('mode'),
      code: 'invalid_request',
      detail: `The mode is one of ${MODES.join(', ')}.`,
      expected: MODES.join(', '),
    });
  }
  return mode ?? 'upsert';
}

function readCollection(value: unknown, issues: ValidationIssue[]): string | undefined {
  if (value === undefined || (typeof value === 'string' && value !== '')) return value;
  issues.push({
    location: field('collection'),
    code: 'invalid_request',
    detail: `The id of a collection is text that is not empty; found ${value === '' ? 'empty text' : describeKind(value)}.`,
  });
  return undefined;
}

function readRows(value: unknown, limits: VectorLimits): readonly unknown[] {
  const rowCount = Array.isArray(value) ? value.length : 0;
  if (Array.isArray(value) && rowCount > 0 && rowCount <= limits.batchRowsMax) return value;
  throw validationError([
    {
      location: field('vectors'),
      code: rowCount > limits.batchRowsMax ? 'limit_exceeded' : 'invalid_request',
      detail: `Expected an array of 1 to ${limits.batchRowsMax} vectors; found ${describeKind(value)}.`,
      expected: limits.batchRowsMax,
      actual: rowCount,
    },
  ]);
}

/** Rows that are no objects have no members to walk; they are refused with whatever else is wrong. */
function findSpansOfRows(body: Uint8Array, rows: readonly unknown[]): Int32Array {
  return rows.every(isObject)
    ? findMetadataSpans(body, rows.length)
    : new Int32Array(2 * rows.length);
}
