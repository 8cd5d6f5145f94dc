// From the bytes of a body to rows for the log: one pure function, run on the event loop for small
// bodies and in the pool for large ones. Everything about the rows is checked here, and metadata
// is cut out of the body as it was spelled. Either all rows are good or none is taken.

import { monotonicFactory } from 'ulid';
import type { WriteMode } from '../../database/api.js';
import { ERROR_ITEMS_MAX, type ErrorItem } from '../../errors.js';
import type { Limits } from '../../limits.js';
import type { Task } from '../../pool.js';
import type { Utf8Column, VectorBatch } from '../../types.js';
import { describeKind, type Fault, findingAt, pointerTo, refusal } from '../findings.js';
import { checkMetadata } from './metadata-rules.js';
import { findMetadataSpan, findMetadataSpans } from './metadata-span.js';
import { type BodyInput, type JsonBody, type ParsedBody, parseBody } from './parse-json.js';
import { measureId } from './vector-ids.js';
import { readVector, readVectorInto, type VectorShape } from './vector-values.js';

export type VectorLimits = Pick<
  Limits,
  'batchRowsMax' | 'dimensionMax' | 'metadataBytesMax' | 'metadataDepthMax' | 'vectorIdBytesMax'
>;

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
const ROW_MEMBERS = ['id', 'values', 'metadata'];
const BATCH_MEMBERS = ['vectors', 'mode', 'idempotency_key'];
const SINGLE_MEMBERS = [...ROW_MEMBERS, 'mode', 'idempotency_key'];
const PATH_MEMBERS = [...ROW_MEMBERS, 'collection'];
const NO_METADATA = Buffer.from('{}');

/** Throws a refusal with the first findings. */
function readVectors(json: JsonBody, input: VectorsInput): ParsedVectors {
  const findings: ErrorItem[] = [];
  const hasPathId = input.pathId !== null;
  const isArray = !hasPathId && Object.hasOwn(json, 'vectors');
  const singleMembers = hasPathId ? PATH_MEMBERS : SINGLE_MEMBERS;
  checkMembers(json, isArray ? BATCH_MEMBERS : singleMembers, '', findings);
  const mode = readMode(json.mode, findings);
  const collection = readCollection(json.collection, findings);
  const rows = isArray ? readRows(json.vectors, input.limits) : [json];
  const spans = isArray ? findSpansOfRows(input.body, rows) : findMetadataSpan(input.body);
  const reader = new RowReader(rows, spans, input, findings);
  for (let row = 0; row < rows.length && findings.length < ERROR_ITEMS_MAX; row++) {
    reader.read(row, isArray ? `/vectors/${row}` : '');
  }
  if (findings.length > 0) throw refusal(findings);
  return {
    batch: reader.build(),
    mode,
    ids: reader.hasGenerated ? reader.ids : null,
    isArray,
    collection,
  };
}

function checkMembers(
  json: object,
  known: readonly string[],
  prefix: string,
  findings: ErrorItem[],
): void {
  for (const name of Object.keys(json)) {
    if (known.includes(name)) continue;
    if (findings.length >= ERROR_ITEMS_MAX) return;
    findings.push({
      pointer: prefix + pointerTo([name]),
      code: 'unknown_parameter',
      detail: `There is no such member; expected ${known.join(', ')}.`,
    });
  }
}

function readMode(value: unknown, findings: ErrorItem[]): WriteMode {
  const mode = value === undefined ? 'upsert' : MODES.find((name) => name === value);
  if (mode === undefined) {
    findings.push({
      pointer: '/mode',
      code: 'invalid_request',
      detail: `The mode is one of ${MODES.join(', ')}.`,
      expected: MODES.join(', '),
    });
  }
  return mode ?? 'upsert';
}

function readCollection(value: unknown, findings: ErrorItem[]): string | undefined {
  if (value === undefined || (typeof value === 'string' && value !== '')) return value;
  findings.push({
    pointer: '/collection',
    code: 'invalid_request',
    detail: `The id of a collection is text that is not empty; found ${value === '' ? 'empty text' : describeKind(value)}.`,
  });
  return undefined;
}

function readRows(value: unknown, limits: VectorLimits): readonly unknown[] {
  const rowCount = Array.isArray(value) ? value.length : 0;
  if (Array.isArray(value) && rowCount > 0 && rowCount <= limits.batchRowsMax) return value;
  throw refusal([
    {
      pointer: '/vectors',
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

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const generateId = monotonicFactory();

/** Checks row after row and gathers what the columns are built from. */
class RowReader {
  readonly #rows: readonly unknown[];
  readonly #spans: Int32Array;
  readonly #input: VectorsInput;
  readonly #findings: ErrorItem[];
  /** Row-major [rows, dimension]. */
  #values: Float32Array;
  readonly #firstRowOf = new Map<string, number>();
  readonly ids: string[] = [];
  #idByteCount = 0;
  hasGenerated = false;

  constructor(
    rows: readonly unknown[],
    spans: Int32Array,
    input: VectorsInput,
    findings: ErrorItem[],
  ) {
    this.#rows = rows;
    this.#spans = spans;
    this.#input = input;
    this.#findings = findings;
    this.#values = new Float32Array(rows.length * (input.shape?.dimension ?? 0));
  }

  read(row: number, pointer: string): void {
    const json = this.#rows[row];
    if (!isObject(json)) {
      const detail = `A vector is an object; found ${describeKind(json)}.`;
      this.#findings.push({ pointer, code: 'invalid_request', detail });
      return;
    }
    if (pointer !== '') checkMembers(json, ROW_MEMBERS, pointer, this.#findings);
    const { id, values, metadata } = json as JsonBody;
    this.#readId(row, id, pointer);
    this.#note(`${pointer}/values`, this.#readValues(row, values));
    if (metadata !== undefined) {
      const byteCount = this.#spans[2 * row + 1]! - this.#spans[2 * row]!;
      const fault = checkMetadata(metadata, byteCount, this.#input.limits);
      this.#note(`${pointer}/metadata`, fault);
    }
  }

  #readId(row: number, sent: unknown, pointer: string): void {
    const { pathId, limits } = this.#input;
    const isGenerated = sent === undefined && pathId === null;
    const id = isGenerated ? generateId() : sent === undefined ? pathId : sent;
    const measured = measureId(id, limits.vectorIdBytesMax);
    if (typeof measured !== 'number') {
      this.#note(`${pointer}/id`, measured);
      return;
    }
    if (pathId !== null && id !== pathId) {
      const detail = 'The id differs from the one in the path.';
      this.#note(`${pointer}/id`, { code: 'invalid_request', detail });
      return;
    }
    if (isGenerated) this.hasGenerated = true;
    this.#idByteCount += measured;
    const text = id as string;
    this.ids.push(text);
    if (this.#rows.length === 1) return;
    const firstRow = this.#firstRowOf.get(text);
    if (firstRow === undefined) {
      this.#firstRowOf.set(text, row);
    } else {
      const detail = `Row ${firstRow} has the same id; a body writes each vector once.`;
      this.#note(`${pointer}/id`, { code: 'duplicate_id', detail });
    }
  }

  #readValues(row: number, source: unknown): Fault | null {
    const { shape, limits } = this.#input;
    if (source === undefined) {
      return { code: 'invalid_vector', detail: 'The vector has no values.' };
    }
    if (shape !== null) {
      return readVectorInto(this.#values, row * shape.dimension, source, shape);
    }
    const vector = readVector(source, limits.dimensionMax);
    if (!(vector instanceof Float32Array)) return vector;
    this.#values = vector;
    return null;
  }

  #note(pointer: string, fault: Fault | null): void {
    if (fault !== null) this.#findings.push(findingAt(pointer, fault));
  }

  /** Lays the rows out in one buffer; only when there are no findings. */
  build(): VectorBatch {
    const count = this.#rows.length;
    const valuesBytes = this.#values.byteLength;
    const offsetsBytes = 4 * (count + 1);
    let metadataByteCount = 0;
    for (let row = 0; row < count; row++) {
      const length = this.#spans[2 * row + 1]! - this.#spans[2 * row]!;
      metadataByteCount += length === 0 ? NO_METADATA.length : length;
    }
    const idsStart = valuesBytes + 2 * offsetsBytes;
    const metadataStart = idsStart + this.#idByteCount;
    const buffer = new ArrayBuffer(metadataStart + metadataByteCount);
    const values = new Float32Array(buffer, 0, this.#values.length);
    values.set(this.#values);
    const ids = {
      offsets: new Int32Array(buffer, valuesBytes, count + 1),
      bytes: new Uint8Array(buffer, idsStart, this.#idByteCount),
    };
    const metadata = {
      offsets: new Int32Array(buffer, valuesBytes + offsetsBytes, count + 1),
      bytes: new Uint8Array(buffer, metadataStart, metadataByteCount),
    };
    this.#writeIds(ids);
    this.#writeMetadata(metadata);
    return { count, ids, values, metadata };
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
    const { body } = this.#input;
    const source = Buffer.from(body.buffer, body.byteOffset, body.length);
    let end = 0;
    for (let row = 0; row < this.#rows.length; row++) {
      const from = this.#spans[2 * row]!;
      const to = this.#spans[2 * row + 1]!;
      const text = from === to ? NO_METADATA : source.subarray(from, to);
      bytes.set(text, end);
      end += text.length;
      offsets[row + 1] = end;
    }
  }
}
