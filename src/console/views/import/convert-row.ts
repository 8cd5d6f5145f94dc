// A row of a file as a row of a collection: its id, its vector and its metadata, or what is wrong with it.

import type { JsonObject } from '../../../client/client.js';
import type { ImportPlan, VectorPlan } from './import-plan.js';
import type { ReadRow } from './read/row-source.js';

export interface ConvertedRow {
  /** Undefined when the server generates ids. */
  readonly id: string | undefined;
  readonly values: ArrayLike<number>;
  readonly metadata: JsonObject;
}

/** What is wrong with a row, and where. */
export interface RowProblem {
  readonly column: string;
  readonly problem: string;
}

/** `isText`: cells are text whose types are recognized. */
export function convertRow(
  row: ReadRow,
  plan: ImportPlan,
  options: { readonly dimension: number; readonly isText: boolean },
): ConvertedRow | RowProblem {
  const id = plan.idColumn === undefined ? undefined : idOf(row.cells[plan.idColumn]);
  if (plan.idColumn !== undefined && id === undefined) {
    const problem = `found ${describe(row.cells[plan.idColumn])}, expected an id`;
    return { column: plan.idColumn, problem };
  }
  const values = readVector(row, plan.vector, options.dimension);
  if ('problem' in values) return values;
  const metadata: Record<string, unknown> = {};
  for (const column of plan.metadataColumns) {
    const problem = addMetadata(metadata, row, column, options.isText);
    if (problem !== undefined) return { column, problem };
  }
  return { id, values, metadata: metadata as JsonObject };
}

function idOf(cell: unknown): string | undefined {
  if (typeof cell === 'string') return cell === '' ? undefined : cell;
  return typeof cell === 'bigint' || Number.isSafeInteger(cell) ? String(cell) : undefined;
}

function readVector(
  { cells }: ReadRow,
  plan: VectorPlan,
  dimension: number,
): ArrayLike<number> | RowProblem {
  if (plan.kind === 'columns') {
    const values = plan.columns.map((column) => numberOf(cells[column]));
    const at = values.findIndex((value) => !isFloat32(value));
    if (at === -1) return values;
    const column = plan.columns[at]!;
    return { column, problem: `found ${describe(cells[column])}, expected a number` };
  }
  const { column } = plan;
  const values = vectorOf(cells[column]);
  if (values === undefined) {
    return { column, problem: `found ${describe(cells[column])}, expected a vector` };
  }
  if (values.length !== dimension) {
    return { column, problem: `found ${values.length} values, expected ${dimension}` };
  }
  for (let at = 0; at < values.length; at++) {
    if (isFloat32(values[at]!)) continue;
    return { column, problem: `value ${at + 1} is ${values[at]}, expected a float32 number` };
  }
  return values;
}

/** Finite also after it is rounded to float32. */
function isFloat32(value: number): boolean {
  return Number.isFinite(Math.fround(value));
}

function numberOf(cell: unknown): number {
  if (typeof cell === 'string') return cell.trim() === '' ? Number.NaN : Number(cell);
  return typeof cell === 'number' || typeof cell === 'bigint' ? Number(cell) : Number.NaN;
}

/**
 * The vector in a cell: an array of numbers, or text such as `[0.1, 0.2]`, `0.1 0.2` and `0.1;0.2`, or
 * base64 of little-endian float32. Undefined for anything else.
 */
export function vectorOf(cell: unknown): ArrayLike<number> | undefined {
  if (typeof cell === 'string') return vectorOfText(cell);
  if (ArrayBuffer.isView(cell) && !(cell instanceof DataView)) {
    return cell instanceof BigInt64Array || cell instanceof BigUint64Array
      ? Array.from(cell, Number)
      : (cell as Float32Array);
  }
  if (!Array.isArray(cell) || cell.length === 0) return undefined;
  const isNumbers = cell.every((item) => typeof item === 'number' || typeof item === 'bigint');
  return isNumbers ? cell.map(Number) : undefined;
}

const NUMBERS = /^\s*[[({]?\s*[-+.\d][-+.\deE,;\s]*[\])}]?\s*$/;
const BASE64 = /^[A-Za-z0-9+/]{8,}={0,2}$/;

function vectorOfText(text: string): ArrayLike<number> | undefined {
  if (NUMBERS.test(text)) {
    const inner = text.replace(/^\s*[[({]?\s*/, '').replace(/\s*[\])}]?\s*$/, '');
    const numbers = inner.split(/\s*[,;]\s*|\s+/).map(Number);
    return numbers.length > 1 ? numbers : undefined;
  }
  if (!BASE64.test(text) || text.length % 4 !== 0) return undefined;
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  if (bytes.length % 4 !== 0) return undefined;
  const view = new DataView(bytes.buffer);
  return Float32Array.from({ length: bytes.length / 4 }, (_, at) => view.getFloat32(4 * at, true));
}

/** Returns what is wrong with the cell, if anything. */
function addMetadata(
  metadata: Record<string, unknown>,
  { cells, quoted }: ReadRow,
  column: string,
  isText: boolean,
): string | undefined {
  const cell = cells[column];
  if (column === 'metadata') {
    const object = objectOf(cell);
    if (object === undefined) return `found ${describe(cell)}, expected an object or JSON of one`;
    Object.assign(metadata, object);
    return undefined;
  }
  if (cell === undefined) return undefined;
  metadata[column] =
    isText && !quoted?.has(column) && typeof cell === 'string' ? scalarOf(cell) : jsonOf(cell);
  return undefined;
}

/** The members of an object or of its JSON text; none for null and for empty text. */
function objectOf(cell: unknown): object | undefined {
  if (cell === undefined || cell === null || cell === '') return {};
  if (typeof cell !== 'string') {
    return typeof cell === 'object' && !Array.isArray(cell) ? (jsonOf(cell) as object) : undefined;
  }
  try {
    const value: unknown = JSON.parse(cell);
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject ? value : undefined;
  } catch {
    return undefined;
  }
}

const JSON_NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

/** A cell of CSV without quotes. Integers that a number cannot hold stay text. */
function scalarOf(text: string): unknown {
  if (text === '') return null;
  if (text === 'true' || text === 'false') return text === 'true';
  if (!JSON_NUMBER.test(text)) return text;
  const number = Number(text);
  return Number.isInteger(number) && !Number.isSafeInteger(number) ? text : number;
}

/** What JSON can hold: 64-bit integers beyond 2^53 become text, times ISO 8601, numbers like NaN null. */
function jsonOf(value: unknown): unknown {
  if (typeof value === 'bigint') {
    return Number.isSafeInteger(Number(value)) ? Number(value) : value.toString();
  }
  if (typeof value === 'number') return Number.isFinite(value) ? value : null;
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Date) return value.toISOString();
  if (ArrayBuffer.isView(value)) {
    return Array.from(value as unknown as Iterable<unknown>, jsonOf);
  }
  if (Array.isArray(value)) return value.map(jsonOf);
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, jsonOf(item)]));
}

const DESCRIBED_MAX = 80;

/** A value as it is shown in errors and previews. */
export function describe(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  const text = typeof value === 'string' ? `"${value}"` : JSON.stringify(jsonOf(value));
  return text.length > DESCRIBED_MAX ? `${text.slice(0, DESCRIBED_MAX)}…` : text;
}
