// Turns a record batch of an Arrow stream into rows for the log, in a task that runs in the pool. `formats/arrow`
// checks that the bytes are valid Arrow; this file checks ids, values and metadata by the same rules as for JSON.

import { createHash } from 'node:crypto';
import { monotonicFactory } from 'ulid';
import {
  type FieldPath,
  ISSUES_MAX,
  rowField,
  type ValidationIssue,
  type Violation,
  validationError,
} from '../../common/errors.js';
import { parseExactJson } from '../../common/exact-json.js';
import type { Limits } from '../../common/limits.js';
import type { FieldShapes, JsonObject, Utf8Column } from '../../common/types.js';
import { utf8ColumnOf } from '../../common/utf8-column.js';
import type { Named } from '../../common/vectors.js';
import { decompressed } from '../../formats/arrow/compression.js';
import type { EncodedBatch, EncodedBody } from '../../formats/arrow/encoded-batch.js';
import { readVectorRows } from '../../formats/arrow/vector-rows.js';
import type { Task } from '../../platform/pool.js';
import { packMetadata } from './parsed-metadata.js';
import { buffersOf, type ParsedRows, type RowText, writeRowsMax } from './parsed-rows.js';
import { checkMetadata, checkText, measureId } from './row-rules.js';
import { pathOf, VECTOR_KINDS } from './vector-kinds.js';

export interface BatchInput {
  readonly batch: EncodedBatch;
  readonly idColumn: string | undefined;
  readonly vectorColumn: string | undefined;
  readonly isKeyed: boolean;
  readonly isPatch: boolean;
  readonly shapes: FieldShapes;
  readonly limits: Limits;
}

export const parseRecordBatchTask: Task<BatchInput, ParsedRows> = {
  name: 'ingest.parseRecordBatch',
  run: readBatch,
  transfer: buffersOf,
};

/** Decompresses a dictionary, which later batches refer to. */
export const decompressBodyTask: Task<{ part: EncodedBody; bytesMax: number }, EncodedBody> = {
  name: 'ingest.decompressBody',
  run: ({ part, bytesMax }) => decompressed(part, bytesMax),
};

/** Throws the first issues, and what `readVectorRows` throws. */
function readBatch(input: BatchInput): ParsedRows {
  const { shapes, limits } = input;
  const digest = input.isKeyed ? digestOf(input.batch) : undefined;
  const rows = readVectorRows(input.batch, { ...input, vectors: shapes });
  const issues = new BatchIssues(input.batch);
  for (const { row, member, ...violation } of rows.issues) {
    // Names of vectors contain no dot.
    issues.add(row, member.split('.'), violation);
  }
  issues.throwAny();
  const { count } = rows;
  const ids = rows.ids ?? generateIds(count);
  const cuts = checkIds(ids, { isGenerated: rows.ids === null, input, issues });
  const isFull = () => issues.isFull;
  const vectors = Array.from(rows.vectors, ([name, found]): Named => {
    const shape = shapes[name]!;
    const path = pathOf(name, shape);
    const column = VECTOR_KINDS[shape.kind].ofArrow(found, {
      name,
      shape,
      rowCount: count,
      limits,
      isFull,
      report: (row, { path: inVector = [], ...violation }) =>
        issues.add(row, [...path, ...inVector], violation),
    });
    return { name, ...column };
  });
  const text = rows.metadata ?? utf8ColumnOf(new Array<string>(count).fill('{}'));
  const texts = readTexts(rows.texts, input, issues);
  const documents = readDocuments(rows.metadata, count, input, issues);
  issues.throwAny();
  const metadata = packMetadata(documents, input.batch.body.bytes.length);
  return { batch: { count, ids, vectors, metadata: text }, metadata, cuts, digest, texts };
}

/** The texts in place of the unnamed vector, which only rows of a patch may lack. */
function readTexts(
  texts: readonly (string | null)[] | null,
  { isPatch, limits }: BatchInput,
  issues: BatchIssues,
): RowText[] | undefined {
  if (texts === null) return;
  const found: RowText[] = [];
  for (const [row, text] of texts.entries()) {
    if (issues.isFull) break;
    if (text === null && isPatch) continue;
    const violation = checkText(text, limits);
    if (violation === null) found.push({ row, text: text! });
    else issues.add(row, ['embed'], violation);
  }
  return found.length === 0 ? undefined : found;
}

/** The issues of a record batch, located by row of the stream and, in the detail, by row of the batch. */
class BatchIssues {
  readonly #batch: EncodedBatch;
  readonly #issues: ValidationIssue[] = [];

  constructor(batch: EncodedBatch) {
    this.#batch = batch;
  }

  get isFull(): boolean {
    return this.#issues.length >= ISSUES_MAX;
  }

  add(row: number, path: FieldPath, violation: Violation): void {
    const { index, firstRow } = this.#batch;
    this.#issues.push({
      ...violation,
      location: rowField(firstRow + row, ...path),
      detail: `${violation.detail} (row ${row} of record batch ${index})`,
    });
  }

  throwAny(): void {
    if (this.#issues.length > 0) throw validationError(this.#issues);
  }
}

const generateId = monotonicFactory();

function generateIds(count: number): Utf8Column {
  return utf8ColumnOf(Array.from({ length: count }, () => generateId()));
}

/** Checks the ids and returns the rows at which a new write must start: at a repeated id, or when a write is full. */
function checkIds(
  { offsets, bytes }: Utf8Column,
  options: { isGenerated: boolean; input: BatchInput; issues: BatchIssues },
): number[] {
  const { isGenerated, issues } = options;
  const { shapes, limits } = options.input;
  const rowsMax = writeRowsMax(shapes, options.input);
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const isPlain = isGenerated || arePlain(text, offsets[0]!, offsets[offsets.length - 1]!);
  const cuts: number[] = [];
  const seen = new Set<string>();
  let writeStart = 0;
  for (let row = 0; row + 1 < offsets.length && !issues.isFull; row++) {
    const start = offsets[row]!;
    const end = offsets[row + 1]!;
    const id = isPlain ? text.toString('latin1', start, end) : text.toString('utf8', start, end);
    const isShort = end > start && end - start <= limits.vectorIdBytesMax;
    if (!isPlain || !isShort) {
      const measured = measureId(id, limits.vectorIdBytesMax);
      if (typeof measured !== 'number') issues.add(row, ['id'], measured);
    }
    if (row - writeStart === rowsMax || seen.has(id)) {
      cuts.push(row);
      writeStart = row;
      seen.clear();
    }
    if (!isGenerated) seen.add(id);
  }
  return cuts;
}

/** Whether all ids are ASCII without control characters, so that they need no individual check. */
function arePlain(bytes: Uint8Array, start: number, end: number): boolean {
  for (let i = start; i < end; i++) {
    const byte = bytes[i]!;
    if (byte < 0x20 || byte >= 0x7f) return false;
  }
  return true;
}

/** `column` is null if the batch has no metadata. */
function readDocuments(
  column: Utf8Column | null,
  count: number,
  { limits }: BatchInput,
  issues: BatchIssues,
): (JsonObject | undefined)[] {
  const documents = new Array<JsonObject | undefined>(count).fill(undefined);
  if (column === null) return documents;
  const { offsets, bytes } = column;
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let row = 0; row < count && !issues.isFull; row++) {
    const start = offsets[row]!;
    const end = offsets[row + 1]!;
    const value = parseMetadata(text, start, end, limits);
    const violation =
      value === undefined
        ? {
            code: 'invalid_metadata' as const,
            detail: 'Metadata is the JSON text of an object; found text that is not JSON.',
          }
        : checkMetadata(value, end - start, limits);
    if (violation === null) documents[row] = value as JsonObject;
    else issues.add(row, ['metadata'], violation);
  }
  return documents;
}

/** Undefined for text that is not JSON. */
function parseMetadata(
  text: Buffer,
  start: number,
  end: number,
  limits: BatchInput['limits'],
): unknown {
  // `checkMetadata` reports text that is too long by its length.
  if (end - start > limits.metadataBytesMax) return {};
  try {
    return parseExactJson(text.toString('utf8', start, end));
  } catch {
    return undefined;
  }
}

/** A digest of everything that the rows depend on. */
function digestOf({ fields, body, dictionaries }: EncodedBatch): string {
  const hash = createHash('sha256').update(JSON.stringify(fields));
  const bodies = [body, ...[...dictionaries.values()].flat()];
  for (const { shape, bytes } of bodies) {
    const { nodes, regions, variadicCounts, ...rest } = shape;
    hash.update(JSON.stringify([rest, [...nodes], [...regions], [...variadicCounts]]));
    hash.update(bytes);
  }
  return hash.digest('hex');
}
