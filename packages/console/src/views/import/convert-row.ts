// A row of a file as a row of a collection: its id, its vector and its metadata, or what is wrong with it.

import type { JsonObject } from '@sagitta/client';
import { numberText, parseExactJson } from '../../../../../src/common/exact-json.js';
import type { JsonNumber } from '../../../../../src/common/types.js';
import { describe, jsonOf, numberOf, scalarOf, vectorOf } from './cell-values.js';
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
  const isInteger =
    typeof cell === 'bigint' || (Number.isInteger(cell) && Math.abs(cell as number) < 2 ** 64);
  return isInteger ? numberText(cell as JsonNumber) : undefined;
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
    const value: unknown = parseExactJson(cell);
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject ? value : undefined;
  } catch {
    return undefined;
  }
}
