// From a record batch of an Arrow stream to rows for the log, in a task that runs in the pool.
// `formats/arrow` checks that the bytes are valid Arrow; this file checks ids, values and metadata by
// the same rules as for JSON.

import { createHash } from 'node:crypto';
import { monotonicFactory } from 'ulid';
import {
  ISSUES_MAX,
  rowField,
  type ValidationIssue,
  type Violation,
  validationError,
} from '../../common/errors.js';
import { parseExactJson } from '../../common/exact-json.js';
import type { Limits } from '../../common/limits.js';
import type {
  JsonObject,
  NamedMulti,
  NamedSparse,
  NamedVectors,
  Utf8Column,
} from '../../common/types.js';
import { utf8ColumnOf } from '../../common/utf8-column.js';
import { columnOfVectors, type SparseVector } from '../../common/vectors.js';
import { type CollectionShape, unnamedShape } from '../../database/api.js';
import { decompressed } from '../../formats/arrow/compression.js';
import type { EncodedBatch, EncodedBody } from '../../formats/arrow/encoded-batch.js';
import type { SparseCells } from '../../formats/arrow/sparse-cells.js';
import { readVectorRows, type VectorRows } from '../../formats/arrow/vector-rows.js';
import type { Task } from '../../platform/pool.js';
import { packMetadata } from './parsed-metadata.js';
import { buffersOf, type ParsedRows, writeRowsMax } from './parsed-rows.js';
import { checkDirection, checkMetadata, measureId } from './row-rules.js';
import { readSparse } from './sparse-rules.js';

export interface BatchInput {
  readonly batch: EncodedBatch;
  readonly idColumn: string | undefined;
  readonly vectorColumn: string | undefined;
  readonly isKeyed: boolean;
  readonly isPatch: boolean;
  readonly shape: CollectionShape;
  readonly limits: Pick<
    Limits,
    | 'batchRowsMax'
    | 'bodyBytesMax'
    | 'metadataBytesMax'
    | 'metadataDepthMax'
    | 'multiValuesMax'
    | 'multiVectorsMax'
    | 'sparseElementsMax'
    | 'vectorIdBytesMax'
  >;
}

export const parseRecordBatchTask: Task<BatchInput, ParsedRows> = {
  name: 'ingest.parseRecordBatch',
  run: readBatch,
  transfer: buffersOf,
};

/** Decompresses a dictionary, which later batches need too. */
export const decompressBodyTask: Task<{ part: EncodedBody; bytesMax: number }, EncodedBody> = {
  name: 'ingest.decompressBody',
  run: ({ part, bytesMax }) => decompressed(part, bytesMax),
};

/** Null stands for what a patch leaves as it is, since Arrow knows no absent values. */
const NOTHING_REMOVED: ReadonlyMap<string, Uint8Array> = new Map();

/** Throws the first issues, and what `readVectorRows` throws. */
function readBatch(input: BatchInput): ParsedRows {
  const { shape, limits, idColumn, vectorColumn } = input;
  const digest = input.isKeyed ? digestOf(input.batch) : undefined;
  const rows = readVectorRows(input.batch, {
    dimension: shape.dimension ?? null,
    named: dimensionsOf(shape),
    multi: multiOf(shape, limits),
    sparseNames: Object.keys(shape.sparseVectors ?? {}),
    idColumn,
    vectorColumn,
    isPatch: input.isPatch,
    batchBytesMax: limits.bodyBytesMax,
    idBytesMax: limits.vectorIdBytesMax,
    metadataBytesMax: limits.metadataBytesMax,
  });
  const issues = new BatchIssues(input.batch);
  for (const { row, member, ...violation } of rows.issues) issues.add(row, member, violation);
  issues.throwAny();
  const { count, values, named, multi } = rows;
  const ids = rows.ids ?? generateIds(count);
  const cuts = checkIds(ids, { isGenerated: rows.ids === null, input, issues });
  checkDirections(rows, shape, issues);
  for (const vectors of named) checkNamedDirections(vectors, shape, issues);
  for (const column of multi) checkMultiDirections(column, shape, issues);
  const sparse = rows.sparse
    .map((cells) => sparseVectorsOf(cells, count, limits, issues))
    .filter(({ indices }) => indices.length > 0);
  const text = rows.metadata ?? utf8ColumnOf(new Array<string>(count).fill('{}'));
  const documents = readDocuments(rows.metadata, count, input, issues);
  issues.throwAny();
  const metadata = packMetadata(documents, input.batch.body.bytes.length);
  const { hasValues } = rows;
  const patched = input.isPatch ? { hasValues, removed: NOTHING_REMOVED } : undefined;
  const batch = { count, ids, values, metadata: text, named, multi, sparse, patched };
  return { batch, metadata, cuts, digest };
}

function sparseVectorsOf(
  { name, indicesAt, valuesAt }: SparseCells,
  count: number,
  { sparseElementsMax }: BatchInput['limits'],
  issues: BatchIssues,
): NamedSparse {
  const vectors = new Array<SparseVector | undefined>(count).fill(undefined);
  for (let row = 0; row < count && !issues.isFull; row++) {
    const sent = { indices: indicesAt(row), values: valuesAt(row) };
    if (sent.indices.length === 0 && sent.values.length === 0) continue;
    const vector = readSparse(sent, sparseElementsMax);
    if (!('code' in vector)) {
      vectors[row] = vector;
      continue;
    }
    const { path, ...violation } = vector;
    issues.add(row, ['sparse_vectors', name, ...path].join('.'), violation);
  }
  return { name, ...columnOfVectors({ kind: 'sparse' }, vectors) };
}

/** The issues of a record batch: located by row of the stream, and in words by row of the batch. */
class BatchIssues {
  readonly #batch: EncodedBatch;
  readonly #issues: ValidationIssue[] = [];

  constructor(batch: EncodedBatch) {
    this.#batch = batch;
  }

  get isFull(): boolean {
    return this.#issues.length >= ISSUES_MAX;
  }

  add(row: number, member: string, violation: Violation): void {
    const { index, firstRow } = this.#batch;
    this.#issues.push({
      ...violation,
      // Names of vectors have no dot.
      location: rowField(firstRow + row, ...member.split('.')),
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

/** Checks the ids, and cuts the batch before an id that comes again and where one write is long enough. */
function checkIds(
  { offsets, bytes }: Utf8Column,
  options: { isGenerated: boolean; input: BatchInput; issues: BatchIssues },
): number[] {
  const { isGenerated, issues } = options;
  const { shape, limits } = options.input;
  const rowsMax = writeRowsMax(shape, options.input);
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
      if (typeof measured !== 'number') issues.add(row, 'id', measured);
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

/** Whether all ids are ASCII without control characters, so that none of them has to be looked at. */
function arePlain(bytes: Uint8Array, start: number, end: number): boolean {
  for (let i = start; i < end; i++) {
    const byte = bytes[i]!;
    if (byte < 0x20 || byte >= 0x7f) return false;
  }
  return true;
}

function checkDirections(
  { values, hasValues }: Pick<VectorRows, 'values' | 'hasValues'>,
  shape: CollectionShape,
  issues: BatchIssues,
): void {
  const unnamed = unnamedShape(shape);
  if (unnamed === null) return;
  const { dimension } = unnamed;
  for (let start = 0; start < values.length && !issues.isFull; start += dimension) {
    const row = start / dimension;
    const violation = hasValues[row] === 0 ? null : checkDirection(values, start, unnamed);
    if (violation !== null) issues.add(row, 'values', violation);
  }
}

function checkNamedDirections(
  { name, dimension, values, presence }: NamedVectors,
  { vectors = {} }: CollectionShape,
  issues: BatchIssues,
): void {
  for (let row = 0; row < presence.length && !issues.isFull; row++) {
    if (presence[row] === 0) continue;
    const violation = checkDirection(values, row * dimension, vectors[name]!);
    if (violation !== null) issues.add(row, `vectors.${name}`, violation);
  }
}

function checkMultiDirections(
  { name, dimension, starts, values }: NamedMulti,
  { multiVectors = {} }: CollectionShape,
  issues: BatchIssues,
): void {
  const shape = multiVectors[name]!;
  for (let row = 0; row + 1 < starts.length; row++) {
    for (let i = starts[row]!; i < starts[row + 1]! && !issues.isFull; i++) {
      const violation = checkDirection(values, i * dimension, shape);
      if (violation !== null) issues.add(row, `vectors.${name}`, violation);
    }
  }
}

function multiOf(
  { multiVectors = {} }: CollectionShape,
  { multiVectorsMax, multiValuesMax }: BatchInput['limits'],
) {
  const entries = Object.entries(multiVectors).map(([name, { dimension }]) => {
    const countMax = Math.min(multiVectorsMax, Math.max(1, Math.floor(multiValuesMax / dimension)));
    return [name, { dimension, countMax }] as const;
  });
  return new Map(entries);
}

function dimensionsOf({ vectors = {} }: CollectionShape): ReadonlyMap<string, number> {
  return new Map(Object.entries(vectors).map(([name, { dimension }]) => [name, dimension]));
}

/** `column` is null where the batch has no metadata. */
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
    else issues.add(row, 'metadata', violation);
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
  // Text that is too long is not parsed; `checkMetadata` reports its length.
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
