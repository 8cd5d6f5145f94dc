// A batch of strangers as queries: a row is one, by its vector or by the id of a stored one, and
// further columns say what is special about it. Pure, so that it can run in any thread. What a
// collection asks of ids, filters and numbers is not checked here.

import { SagittaError } from '../../common/errors.js';
import type { Utf8Column } from '../../common/types.js';
import { located } from './arrow-errors.js';
import { chooseId, chooseVectors, noVectors, refuseRepeated } from './column-choice.js';
import { type Column, isValid, openColumns } from './columns.js';
import type { EncodedBatch } from './encoded-batch.js';
import { readIds } from './ids.js';
import { float16Table, narrowIntegers, wideIntegers } from './numbers.js';
import { type RowIssue, RowIssues } from './row-issues.js';
import { type ArrowField, describeType, quoted } from './schema.js';
import { isTextField, readStrings, type Strings } from './strings.js';
import { readVectors } from './vectors.js';

/** Columns that a query may have beside its vector or id, and what their cells are. */
const OPTION_KINDS = {
  top_k: 'integer',
  filter: 'text',
  score_threshold: 'number',
  metric: 'text',
} as const;
type OptionName = keyof typeof OPTION_KINDS;
const OPTION_NAMES = Object.keys(OPTION_KINDS) as OptionName[];

export interface QueryColumns {
  /** Indexes of columns; exactly one of the two is there. */
  readonly vector: number | null;
  readonly id: number | null;
  readonly options: ReadonlyMap<OptionName, number>;
}

export interface QueryRowsOptions {
  readonly vectorColumn?: string | undefined;
  readonly dimension: number;
  /** Of the batch, decompressed. */
  readonly batchBytesMax: number;
  readonly idBytesMax: number;
}

export interface Numbers {
  readonly values: Float64Array;
  /** Bits, 1 for a number; null when there are no nulls. */
  readonly validity: Uint8Array | null;
}

export interface QueryRows {
  readonly count: number;
  /** Row-major [count, dimension] float32, all finite; null where queries have ids. */
  readonly vectors: Float32Array | null;
  readonly ids: Utf8Column | null;
  /** Here and below: null where there is no such column. Integers of any size. */
  readonly topK: Numbers | null;
  /** JSON text, of which nothing is known but that it is UTF-8. */
  readonly filters: Strings | null;
  readonly scoreThresholds: Numbers | null;
  readonly metrics: Strings | null;
  /** Of the first rows, about `values` and `id`; with any, what else is here is undefined. */
  readonly issues: readonly RowIssue[];
}

/** The cell of a row; null where it says nothing. */
export function textAt(cells: Strings | null, row: number): string | null {
  if (cells === null || !isValid(cells.validity, row)) return null;
  const { offsets, bytes } = cells.text;
  return decodeText(bytes, offsets[row]!, offsets[row + 1]!);
}

export function numberAt(cells: Numbers | null, row: number): number | null {
  return cells === null || !isValid(cells.validity, row) ? null : cells.values[row]!;
}

function decodeText(bytes: Uint8Array, start: number, end: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString();
}

/** Throws `invalid_request`, and `unknown_parameter` for a column that says nothing to a query. */
export function chooseQueryColumns(
  fields: readonly ArrowField[],
  vectorColumn?: string,
): QueryColumns {
  refuseRepeated(fields);
  const vector = chooseVectors(fields, vectorColumn);
  const id = chooseId(fields);
  if (vector === null && id === null) throw noVectors(fields);
  if (vector !== null && id !== null) {
    throw invalid(
      `Expected a column of vectors or one of ids; found ${quoted(fields[vector]!.name)} and ${quoted(fields[id]!.name)}.`,
    );
  }
  const options = new Map<OptionName, number>();
  for (const [index, field] of fields.entries()) {
    if (index === vector || index === id) continue;
    const name = OPTION_NAMES.find((known) => known === field.name);
    if (name === undefined) {
      throw new SagittaError(
        'unknown_parameter',
        `A query has no column ${quoted(field.name)}; expected a vector or an id, and ${OPTION_NAMES.join(', ')}; another name of the vector goes into ?vector_column=.`,
      );
    }
    checkKind(name, field);
    options.set(name, index);
  }
  return { vector, id, options };
}

/** Throws `invalid_arrow`, and what `chooseQueryColumns` throws. */
export function readQueryRows(batch: EncodedBatch, options: QueryRowsOptions): QueryRows {
  return located(`record batch ${batch.index}`, () => {
    const { dimension, batchBytesMax, idBytesMax } = options;
    const chosen = chooseQueryColumns(batch.fields, options.vectorColumn);
    const columns = openColumns(batch, batchBytesMax);
    const issues = new RowIssues();
    const bytesMax = batchBytesMax;
    const column = (index: number | null | undefined) =>
      index === null || index === undefined ? null : columns[index]!;
    const vectors = column(chosen.vector);
    const ids = column(chosen.id);
    const cells = (name: OptionName) => column(chosen.options.get(name));
    return {
      count: batch.rowCount,
      vectors: vectors && readVectors(vectors, { dimension, bytesMax, issues }),
      ids: ids && readIds(ids, { idBytesMax, bytesMax, issues }),
      topK: readNumbers(cells('top_k')),
      filters: readTexts(cells('filter'), bytesMax),
      scoreThresholds: readNumbers(cells('score_threshold')),
      metrics: readTexts(cells('metric'), bytesMax),
      issues: issues.items,
    };
  });
}

function checkKind(name: OptionName, field: ArrowField): void {
  const kind = OPTION_KINDS[name];
  const isFitting = kind === 'text' ? isTextField(field) : isNumberField(field, kind);
  // A column of nothing but nulls, as some writers make of one without values.
  if (isFitting || field.type.kind === 'null') return;
  const expected = { text: 'text', integer: 'integers', number: 'numbers' }[kind];
  throw invalid(`Column ${quoted(name)} has ${expected}; found ${describeType(field)}.`);
}

function isNumberField({ type, dictionary }: ArrowField, kind: 'integer' | 'number'): boolean {
  if (dictionary !== null) return false;
  return type.kind === 'int' || (kind === 'number' && type.kind === 'float');
}

function readTexts(column: Column | null, bytesMax: number): Strings | null {
  if (column === null || column.field.type.kind === 'null') return null;
  return readStrings(column, bytesMax);
}

function readNumbers(column: Column | null): Numbers | null {
  if (column === null || column.field.type.kind === 'null') return null;
  const read = numberReader(column);
  const values = new Float64Array(column.length);
  for (let row = 0; row < values.length; row++) values[row] = read(row);
  return { values, validity: column.validity };
}

function numberReader(column: Column): (row: number) => number {
  const { field, length } = column;
  const { type } = field;
  if (type.kind === 'float') {
    if (type.bitWidth === 16) {
      const halves = column.buffer(0, Uint16Array, length);
      const table = float16Table();
      return (row) => table[halves[row]!]!;
    }
    const values =
      type.bitWidth === 32
        ? column.buffer(0, Float32Array, length)
        : column.buffer(0, Float64Array, length);
    return (row) => values[row]!;
  }
  if (type.kind !== 'int') throw invalid(`Found ${describeType(field)}, expected numbers.`);
  if (type.bitWidth < 64) {
    const values = narrowIntegers(column, type);
    return (row) => values[row]!;
  }
  const wide = wideIntegers(column, type.isSigned);
  return (row) => Number(wide(row));
}

function invalid(detail: string): SagittaError {
  return new SagittaError('invalid_request', detail);
}
