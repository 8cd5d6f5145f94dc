// Reads rows that came as JSON, one after the other, into columns: ids, values and the text of the
// metadata as it was spelled. Everything about a row is checked here, for bodies that are parsed as a
// whole and for lines of a stream alike.

import { monotonicFactory } from 'ulid';
import {
  type FieldPath,
  field,
  ISSUES_MAX,
  type IssueLocation,
  rowField,
  type ValidationIssue,
  type Violation,
} from '../../common/errors.js';
import type { Limits } from '../../common/limits.js';
import type { Utf8Column, VectorBatch } from '../../common/types.js';
import { describeKind } from './describe-kind.js';
import { checkMetadata } from './metadata-rules.js';
import type { JsonBody } from './parse-json.js';
import { measureId } from './vector-ids.js';
import { readVector, readVectorInto, type VectorShape } from './vector-values.js';

export type RowLimits = Pick<
  Limits,
  'dimensionMax' | 'metadataBytesMax' | 'metadataDepthMax' | 'vectorIdBytesMax'
>;

export interface RowsInput {
  readonly body: Uint8Array;
  readonly rowCount: number;
  /** The number of the first row in the request; null where the body itself is the only row. */
  readonly firstRow: number | null;
  /** Where in the body each row's metadata stands; see metadata-span.ts. Read with the row. */
  readonly spans: Int32Array;
  /** The id in the path, when there is one row, of that id; null else. */
  readonly pathId: string | null;
  /** Null when no collection is known yet: then the one row may have any length. */
  readonly shape: VectorShape | null;
  readonly limits: RowLimits;
  /** Where what is wrong is put. */
  readonly issues: ValidationIssue[];
  /**
   * Where an id may come again, since its rows are written one after the other: gets the rows that
   * must not be written together with those before. Absent where it is wrong.
   */
  readonly cuts?: number[];
}

export const ROW_MEMBERS = ['id', 'values', 'metadata'];
const NO_METADATA = Buffer.from('{}');

const generateId = monotonicFactory();

export function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function checkMembers(
  json: object,
  known: readonly string[],
  locate: (name: string) => IssueLocation,
  issues: ValidationIssue[],
): void {
  for (const name of Object.keys(json)) {
    if (known.includes(name)) continue;
    if (issues.length >= ISSUES_MAX) return;
    issues.push({
      location: locate(name),
      code: 'unknown_parameter',
      detail: `There is no such member; expected ${known.join(', ')}.`,
    });
  }
}

/** Checks row after row and gathers what the columns are built from. */
export class RowReader {
  readonly #input: RowsInput;
  readonly #issues: ValidationIssue[];
  /** Row-major [rows, dimension]. */
  #values: Float32Array;
  readonly #firstRowOf = new Map<string, number>();
  readonly ids: string[] = [];
  #idByteCount = 0;
  hasGenerated = false;

  constructor(input: RowsInput) {
    this.#input = input;
    this.#issues = input.issues;
    this.#values = new Float32Array(input.rowCount * (input.shape?.dimension ?? 0));
  }

  /** Called for every row, in order. */
  read(row: number, json: unknown): void {
    if (!isObject(json)) {
      const detail = `A vector is an object; found ${describeKind(json)}.`;
      this.#report(row, [], { code: 'invalid_request', detail });
      return;
    }
    if (this.#input.firstRow !== null) {
      checkMembers(json, ROW_MEMBERS, (name) => this.#locate(row, [name]), this.#issues);
    }
    const { id, values, metadata } = json as JsonBody;
    this.#readId(row, id);
    this.#report(row, ['values'], this.#readValues(row, values));
    if (metadata !== undefined) {
      const byteCount = this.#input.spans[2 * row + 1]! - this.#input.spans[2 * row]!;
      const violation = checkMetadata(metadata, byteCount, this.#input.limits);
      this.#report(row, ['metadata'], violation);
    }
  }

  #readId(row: number, sent: unknown): void {
    const { pathId, limits } = this.#input;
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
    if (this.#input.rowCount === 1) return;
    const firstRow = this.#firstRowOf.get(text);
    if (firstRow === undefined) {
      this.#firstRowOf.set(text, row);
    } else if (this.#input.cuts !== undefined) {
      this.#input.cuts.push(row);
      this.#firstRowOf.clear();
      this.#firstRowOf.set(text, row);
    } else {
      const detail = `Row ${firstRow} has the same id; a body writes each vector once.`;
      this.#report(row, ['id'], { code: 'duplicate_id', detail });
    }
  }

  #readValues(row: number, source: unknown): Violation | null {
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

  #report(row: number, path: FieldPath, violation: Violation | null): void {
    if (violation !== null) this.#issues.push({ ...violation, location: this.#locate(row, path) });
  }

  #locate(row: number, path: FieldPath): IssueLocation {
    const { firstRow } = this.#input;
    return firstRow === null ? field(...path) : rowField(firstRow + row, ...path);
  }

  /** Lays the rows out in one buffer; only when there are no issues. */
  build(): VectorBatch {
    const count = this.#input.rowCount;
    const valuesBytes = this.#values.byteLength;
    const offsetsBytes = 4 * (count + 1);
    let metadataByteCount = 0;
    for (let row = 0; row < count; row++) {
      const length = this.#input.spans[2 * row + 1]! - this.#input.spans[2 * row]!;
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
    for (let row = 0; row < this.#input.rowCount; row++) {
      const from = this.#input.spans[2 * row]!;
      const to = this.#input.spans[2 * row + 1]!;
      const text = from === to ? NO_METADATA : source.subarray(from, to);
      bytes.set(text, end);
      end += text.length;
      offsets[row + 1] = end;
    }
  }
}
