// Turns JSON into rows for the log: whole bodies in the task `parseVectors`, lines of a stream in the task
// `parseLines`. Both read rows by the same rules and copy metadata verbatim from the bytes. The tasks are pure
// functions that run in a worker, or on the event loop for a few rows.

import { createHash } from 'node:crypto';
import { monotonicFactory } from 'ulid';
import {
  type FieldPath,
  field,
  ISSUES_MAX,
  type IssueLocation,
  rowField,
  SagittaError,
  type ValidationIssue,
  type Violation,
  validationError,
} from '../../common/errors.js';
import type { Limits } from '../../common/limits.js';
import { isJsonObject } from '../../common/metadata-path.js';
import type { FieldShapes, JsonObject, Utf8Column } from '../../common/types.js';
import { cutName, describeUnknownName } from '../../common/unknown-name.js';
import { UNNAMED } from '../../common/vectors.js';
import type { WriteMode } from '../../database/api/database-api.js';
import {
  CUT,
  type CutVectors,
  cutVectors,
  floatsOf,
  type VectorMembers,
} from '../../formats/json/cut-vectors.js';
import { JsonScanner } from '../../formats/json/json-scanner.js';
import { isBlank, type LineBatch, linesIn } from '../../formats/text/line-cutter.js';
import type { Task } from '../../platform/pool.js';
import {
  type BodyInput,
  checkExtent,
  type JsonBody,
  type JsonText,
  type ParsedBody,
  parseBody,
  parseJson,
} from './json-body.js';
import { packMetadata } from './parsed-metadata.js';
import { buffersOf, type ParsedRows, type RowText, writeRowsMax } from './parsed-rows.js';
import { checkMetadata, checkText, measureId, readExpiry } from './row-rules.js';
import { describeKind } from './value-kinds.js';
import { type SentVectors, VectorsReader } from './vectors-reader.js';

export interface VectorsInput extends BodyInput {
  /** The id in the path, if the body is the vector with that id; null for `{vectors: […]}` or one vector. */
  readonly pathId: string | null;
  /** Null if the collection is not known yet: then the caller reads the vectors of the single row. */
  readonly shapes: FieldShapes | null;
  readonly limits: Limits;
  /** Memory for the values of the rows, valid as long as the body; null for none. */
  readonly room: Uint8Array | null;
}

export interface ParsedVectors extends ParsedRows {
  readonly mode: WriteMode;
  /** All ids in the order of the rows, if at least one was generated. */
  readonly ids: readonly string[] | null;
  /** Whether the body was `{vectors: […]}` rather than one vector. */
  readonly isArray: boolean;
  /** The vectors of the single row before validation, if no collection is known; otherwise undefined. */
  readonly sent: SentVectors | undefined;
  /** The member `collection`, which only a vector with its id in the path may have. */
  readonly collection: string | undefined;
}

/** A batch of small vectors contains many brackets, and metadata is read no deeper than it may nest. */
const BODY_BRACKETS_UNCHECKED = 100_000;

/** The rows of a body, or the body itself if it is a single row. */
const BODY_PLACES: VectorMembers = { member: 'values', list: 'vectors', listMember: 'values' };
const LINE_PLACES: VectorMembers = { member: 'values', list: '', listMember: '' };

/** Parses one atomic batch of vectors. Either all rows are valid, or the outcome is an error with the first issues. */
export const parseVectorsTask: Task<VectorsInput, ParsedBody<ParsedVectors>> = {
  name: 'ingest.parseVectors',
  run: (input) => parseVectorsInput(input, cutVectors),
  transfer: ({ outcome }) => (outcome.ok ? buffersOf(outcome.value) : []),
};

/** `cut`: see `BodyOptions`. */
export function parseVectorsInput(input: VectorsInput, cut: CutVectors): ParsedBody<ParsedVectors> {
  return parseBody(input, (json, text) => readVectors(json, text, input), {
    // Without a collection, the caller reads the vectors itself.
    places: input.shapes === null ? null : BODY_PLACES,
    dimensionMax: input.limits.dimensionMax,
    bracketsUnchecked: BODY_BRACKETS_UNCHECKED,
    room: input.room,
    cut,
  });
}

const MODES = ['upsert', 'insert', 'update', 'patch'] as const satisfies readonly WriteMode[];
const ROW_MEMBERS = [
  'id',
  'values',
  'embed',
  'vectors',
  'sparse_vectors',
  'metadata',
  'if_sequence',
  'expires_at',
];
const BATCH_MEMBERS = ['vectors', 'mode', 'idempotency_key'];
const SINGLE_MEMBERS = [...ROW_MEMBERS, 'mode', 'idempotency_key'];
const PATH_MEMBERS = [...ROW_MEMBERS, 'collection'];

function readVectors(json: JsonBody, text: JsonText, input: VectorsInput): ParsedVectors {
  const issues: ValidationIssue[] = [];
  const hasPathId = input.pathId !== null;
  if (hasPathId) checkExtent(json, input.body.length);
  const isPatch = json.mode === 'patch';
  const isArray = !hasPathId && Object.hasOwn(json, 'vectors') && !isOneRow(json, input.shapes);
  const singleMembers = hasPathId ? PATH_MEMBERS : SINGLE_MEMBERS;
  checkMembers(json, isArray ? BATCH_MEMBERS : singleMembers, field, issues);
  const mode = readMode(json.mode, issues);
  const collection = readCollection(json.collection, issues);
  const rows = isArray ? readRows(json.vectors, input.limits) : [json];
  const reader = new RowReader({
    ...input,
    text,
    byteCount: input.body.length,
    rowCount: rows.length,
    firstRow: isArray ? 0 : null,
    isPatch,
    issues,
  });
  const scanner = new JsonScanner(text.bytes);
  // The scanner walks from object to object. If a row is not an object, which is an issue, the metadata of the others is
  // not needed.
  const areObjects = rows.every(isJsonObject);
  if (isArray && areObjects) {
    scanner.findMember('vectors');
    scanner.moveTo(scanner.start);
  }
  for (let row = 0; row < rows.length && issues.length < ISSUES_MAX; row++) {
    if (areObjects) {
      if (isArray) scanner.enterElement();
      scanner.findMember('metadata');
    }
    reader.read(row, rows[row], scanner);
  }
  if (issues.length > 0) throw validationError(issues);
  return {
    ...reader.build(),
    cuts: [],
    digest: undefined,
    mode,
    ids: reader.hasGenerated ? reader.ids : null,
    isArray,
    sent: hasPathId && input.shapes === null ? reader.sent : undefined,
    collection,
  };
}

/** Whether the body is a single row with named vectors, in which `vectors` is an object. */
function isOneRow(json: JsonBody, shapes: FieldShapes | null): boolean {
  if (!isJsonObject(json.vectors)) return false;
  if (['values', 'embed'].some((name) => Object.hasOwn(json, name))) return true;
  if (json.mode === 'patch') return true;
  return shapes !== null && !Object.hasOwn(shapes, UNNAMED);
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
    detail: `The id of a collection is a non-empty string; found ${value === '' ? 'an empty string' : describeKind(value)}.`,
  });
  return undefined;
}

function readRows(value: unknown, limits: Pick<Limits, 'batchRowsMax'>): readonly unknown[] {
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

export interface LinesInput extends LineBatch {
  /** Memory for the values of the rows; null for none. */
  readonly room: Uint8Array | null;
  readonly isKeyed: boolean;
  readonly isPatch: boolean;
  readonly shapes: FieldShapes;
  readonly limits: Limits;
}

/** Parses lines of a stream, each of which is a vector like an element of `vectors` in a body. */
export const parseLinesTask: Task<LinesInput, ParsedRows> = {
  name: 'ingest.parseLines',
  run: (input) => parseLinesInput(input, cutVectors),
  transfer: buffersOf,
};

/** Throws the first issues. `cut`: see `BodyOptions`. */
export function parseLinesInput(input: LinesInput, cut: CutVectors): ParsedRows {
  const { bytes, limits } = input;
  const vectors = cut(bytes, {
    ...LINE_PLACES,
    dimensionMax: limits.dimensionMax,
    isLines: true,
    room: input.room,
  });
  if (vectors !== null) {
    try {
      return readLines(input, { bytes: vectors.rest, vectors });
    } catch (error) {
      // Errors refer to the whole text.
      if (!(error instanceof SagittaError)) throw error;
    }
  }
  return readLines(input, { bytes, vectors: null });
}

/** Throws the first issues. */
function readLines(input: LinesInput, text: JsonText): ParsedRows {
  const { firstRow } = input;
  const { bytes } = text;
  const issues: ValidationIssue[] = [];
  const cuts: number[] = [];
  const byteCount = input.bytes.length;
  const reader = new RowReader({
    ...input,
    text,
    byteCount,
    pathId: null,
    issues,
    cuts,
    // Other lines are about as long as what they write, and are bounded by the batch.
    ...(input.isPatch && { writeRowsMax: writeRowsMax(input.shapes, input) }),
  });
  const scanner = new JsonScanner(bytes);
  const bracketsCut = text.vectors === null ? 0 : 1;
  let row = 0;
  for (const { bytes: text, start, line } of linesIn({ bytes, firstLine: input.firstLine })) {
    if (issues.length >= ISSUES_MAX) break;
    if (isBlank(text[0], text.length)) continue;
    const parsed = parseLine({ bytes: text, line, row: firstRow + row, bracketsCut }, issues);
    if (parsed !== INVALID) {
      if (isJsonObject(parsed)) {
        scanner.moveTo(start);
        scanner.findMember('metadata');
      }
      reader.read(row, parsed, scanner);
    }
    row++;
  }
  if (issues.length > 0) throw validationError(issues);
  const digest = input.isKeyed ? createHash('sha256').update(input.bytes).digest('hex') : undefined;
  return { ...reader.build(), cuts, digest };
}

const INVALID = Symbol('invalid JSON');

interface LineSource {
  readonly bytes: Uint8Array;
  readonly line: number;
  /** The row of the stream. */
  readonly row: number;
  readonly bracketsCut: number;
}

function parseLine(
  { bytes, line, row, bracketsCut }: LineSource,
  issues: ValidationIssue[],
): unknown {
  try {
    return parseJson(bytes, `Line ${line}`, { bracketsCut });
  } catch (error) {
    if (!(error instanceof SagittaError)) throw error;
    for (const issue of error.issues) issues.push({ ...issue, location: rowField(row) });
    return INVALID;
  }
}

interface RowsInput {
  readonly text: JsonText;
  /** Memory for the values. */
  readonly room: Uint8Array | null;
  /** The size of the parsed bytes of the request. */
  readonly byteCount: number;
  readonly rowCount: number;
  /** The number of the first row in the request; null if the body itself is the only row. */
  readonly firstRow: number | null;
  /** The id in the path, if the body is the row with that id; null otherwise. */
  readonly pathId: string | null;
  /** Null if the collection is not known yet. */
  readonly shapes: FieldShapes | null;
  readonly limits: Limits;
  /** Whether the rows are patches of existing vectors. */
  readonly isPatch: boolean;
  /** Collects the issues. */
  readonly issues: ValidationIssue[];
  /**
   * Collects the rows at which a new write must start, because an id is repeated or the write is long enough. Absent if
   * a repeated id is an issue.
   */
  readonly cuts?: number[];
  readonly writeRowsMax?: number;
}

const NO_METADATA = Buffer.from('{}');

const generateId = monotonicFactory();

function checkMembers(
  json: object,
  known: readonly string[],
  locate: (name: string) => IssueLocation,
  issues: ValidationIssue[],
): void {
  for (const name of Object.keys(json)) {
    if (known.includes(name)) continue;
    if (issues.length >= ISSUES_MAX) return;
    issues.push({
      location: locate(cutName(name)),
      code: 'unknown_parameter',
      detail: describeUnknownName(name, known),
    });
  }
}

/** `count` elements, in the memory given if they fit. */
function floatsIn(memory: Uint8Array | null, count: number): Float32Array {
  const floats = memory === null ? null : floatsOf(memory);
  return floats !== null && floats.length >= count
    ? floats.subarray(0, count)
    : new Float32Array(count);
}

/** Validates rows one after another and collects the columns of the batch. */
class RowReader {
  readonly #input: RowsInput;
  readonly #issues: ValidationIssue[];
  /** The metadata of row i is text.bytes[spans[2 * i]..spans[2 * i + 1]), or absent if both are 0. */
  readonly #spans: Int32Array;
  readonly #documents: (JsonObject | undefined)[] = [];
  readonly #texts: RowText[] = [];
  readonly #firstRowOf = new Map<string, number>();
  readonly ids: string[] = [];
  #idByteCount = 0;
  #ifSequences: Float64Array | undefined;
  #expiresAtMs: Float64Array | undefined;
  #writeStart = 0;
  /** Null if no collection is known. */
  readonly #vectors: VectorsReader | null;
  /** The vectors of the last row, if no collection is known. */
  sent: SentVectors | undefined;
  hasGenerated = false;

  constructor(input: RowsInput) {
    this.#input = input;
    this.#issues = input.issues;
    this.#spans = new Int32Array(2 * input.rowCount);
    const { shapes } = input;
    const allocate = (valueCount: number) => this.#allocateValues(valueCount);
    this.#vectors = shapes === null ? null : new VectorsReader({ ...input, shapes, allocate });
  }

  #allocateValues(valueCount: number): Float32Array {
    const { room, text, isPatch } = this.#input;
    // If all vectors were cut out, they are in their places, or have wrong lengths, which is an issue.
    if (text.vectors?.values.length === valueCount) return text.vectors.values;
    // The memory may contain values of an earlier request.
    return floatsIn(text.vectors === null && !isPatch ? room : null, valueCount);
  }

  /** Called for every row in order; `span` is the position of its metadata in the text. */
  read(row: number, json: unknown, span: { readonly start: number; readonly end: number }): void {
    if (!isJsonObject(json)) {
      const detail = `A vector is an object; found ${describeKind(json)}.`;
      this.#report(row, [], { code: 'invalid_request', detail });
      return;
    }
    if (this.#input.firstRow !== null) {
      checkMembers(json, ROW_MEMBERS, (name) => this.#locate(row, [name]), this.#issues);
    }
    const { id, embed, metadata, if_sequence: ifSequence, expires_at: expiresAt } = json;
    this.#readId(row, id);
    if (expiresAt !== undefined) this.#readExpiry(row, expiresAt);
    if (ifSequence !== undefined) this.#readCondition(row, ifSequence);
    if (embed !== undefined) this.#report(row, ['embed'], this.#readText(row, embed, json.values));
    this.#readVectors(row, json);
    if (metadata === undefined) {
      this.#documents.push(undefined);
      return;
    }
    this.#spans[2 * row] = span.start;
    this.#spans[2 * row + 1] = span.end;
    const violation = checkMetadata(metadata, span.end - span.start, this.#input.limits);
    if (violation === null) this.#documents.push(metadata as JsonObject);
    else this.#report(row, ['metadata'], violation);
  }

  #readId(row: number, sent: unknown): void {
    const { pathId, limits, isPatch } = this.#input;
    if (sent === undefined && isPatch) {
      const detail = 'A patch names the vector that it changes; expected an id, found none.';
      this.#report(row, ['id'], { code: 'invalid_request', detail });
      return;
    }
    const isGenerated = sent === undefined && pathId === null;
    const id = isGenerated ? generateId() : sent === undefined ? pathId : sent;
    const measured = measureId(id, limits.vectorIdBytesMax);
    if (typeof measured !== 'number') {
      this.#report(row, ['id'], measured);
      return;
    }
    if (pathId !== null && id !== pathId) {
      const detail = 'The id differs from the one in the path.';
      this.#report(row, ['id'], { code: 'invalid_request', detail });
      return;
    }
    if (isGenerated) this.hasGenerated = true;
    this.#idByteCount += measured;
    const text = id as string;
    this.ids.push(text);
    const { rowCount, cuts, writeRowsMax: rowsMax } = this.#input;
    if (rowCount === 1) return;
    const firstRow = this.#firstRowOf.get(text);
    const isRepeated = firstRow !== undefined;
    if (cuts !== undefined && (isRepeated || row - this.#writeStart === rowsMax)) {
      cuts.push(row);
      this.#writeStart = row;
      this.#firstRowOf.clear();
      this.#firstRowOf.set(text, row);
    } else if (!isRepeated) {
      this.#firstRowOf.set(text, row);
    } else {
      const detail = `Row ${firstRow} has the same id; a body writes each vector once.`;
      this.#report(row, ['id'], { code: 'duplicate_id', detail });
    }
  }

  #readCondition(row: number, sequence: unknown): void {
    if (typeof sequence === 'number' && Number.isSafeInteger(sequence) && sequence >= 0) {
      this.#ifSequences ??= new Float64Array(this.#input.rowCount).fill(Number.NaN);
      this.#ifSequences[row] = sequence;
      return;
    }
    const detail = `A sequence is an integer from 0; found ${describeKind(sequence)}.`;
    this.#report(row, ['if_sequence'], { code: 'invalid_request', detail });
  }

  #readExpiry(row: number, time: unknown): void {
    const timeMs = readExpiry(time);
    if (typeof timeMs === 'number') {
      this.#expiresAtMs ??= new Float64Array(this.#input.rowCount).fill(Number.NaN);
      this.#expiresAtMs[row] = timeMs;
    } else this.#report(row, ['expires_at'], timeMs);
  }

  #readVectors(row: number, json: JsonBody): void {
    const { vectors: cut } = this.#input.text;
    const isCut = json.values === CUT && cut !== null;
    const sent: SentVectors = isCut ? { ...json, values: cut.next() } : json;
    if (this.#vectors === null) this.sent = sent;
    else this.#vectors.read(row, sent, (path, violation) => this.#report(row, path, violation));
  }

  #readText(row: number, text: unknown, values: unknown): Violation | null {
    if (values !== undefined) {
      return { code: 'invalid_request', detail: 'Expected values or embed; found both.' };
    }
    const violation = checkText(text, this.#input.limits);
    if (violation === null) this.#texts.push({ row, text: text as string });
    return violation;
  }

  #report(row: number, path: FieldPath, violation: Violation | null): void {
    if (violation !== null) this.#issues.push({ ...violation, location: this.#locate(row, path) });
  }

  #locate(row: number, path: FieldPath): IssueLocation {
    const { firstRow } = this.#input;
    return firstRow === null ? field(...path) : rowField(firstRow + row, ...path);
  }

  /** Packs ids and metadata into one buffer. Called only if there are no issues. */
  build(): Pick<ParsedRows, 'batch' | 'metadata' | 'texts'> {
    const count = this.#input.rowCount;
    const offsetsBytes = 4 * (count + 1);
    let metadataByteCount = 0;
    for (let row = 0; row < count; row++) {
      const length = this.#spans[2 * row + 1]! - this.#spans[2 * row]!;
      metadataByteCount += length === 0 ? NO_METADATA.length : length;
    }
    const idsStart = 2 * offsetsBytes;
    const metadataStart = idsStart + this.#idByteCount;
    const buffer = new ArrayBuffer(metadataStart + metadataByteCount);
    const ids = {
      offsets: new Int32Array(buffer, 0, count + 1),
      bytes: new Uint8Array(buffer, idsStart, this.#idByteCount),
    };
    const metadata = {
      offsets: new Int32Array(buffer, offsetsBytes, count + 1),
      bytes: new Uint8Array(buffer, metadataStart, metadataByteCount),
    };
    this.#writeIds(ids);
    this.#writeMetadata(metadata);
    return {
      batch: {
        count,
        ids,
        metadata,
        ifSequences: this.#ifSequences,
        expiresAtMs: this.#expiresAtMs,
        vectors: [],
        ...this.#vectors?.build(),
      },
      metadata: packMetadata(this.#documents, this.#input.byteCount),
      texts: this.#texts.length === 0 ? undefined : this.#texts,
    };
  }

  #writeIds({ offsets, bytes }: Utf8Column): void {
    const target = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    let end = 0;
    for (let row = 0; row < this.ids.length; row++) {
      end += target.write(this.ids[row]!, end);
      offsets[row + 1] = end;
    }
  }

  #writeMetadata({ offsets, bytes }: Utf8Column): void {
    const { bytes: text } = this.#input.text;
    const source = Buffer.from(text.buffer, text.byteOffset, text.length);
    let end = 0;
    for (let row = 0; row < this.#input.rowCount; row++) {
      const from = this.#spans[2 * row]!;
      const to = this.#spans[2 * row + 1]!;
      const document = from === to ? NO_METADATA : source.subarray(from, to);
      bytes.set(document, end);
      end += document.length;
      offsets[row + 1] = end;
    }
  }
}
