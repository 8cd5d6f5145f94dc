// Reads a record batch as queries, one per row: by a vector, or by the id of a stored vector, with
// further columns for its options. A pure function, which runs in any thread. The collection's rules
// for ids, filters and numbers are checked by the caller.

import { SagittaError } from '../../common/errors.js';
import type { Utf8Column } from '../../common/types.js';
import { stringAt } from '../../common/utf8-column.js';
import { located } from './arrow-errors.js';
import { chooseId, chooseVectors, noVectors, requireUniqueNames } from './column-choice.js';
import { type Column, isValid, openColumns } from './columns.js';
import type { EncodedBatch } from './encoded-batch.js';
import { readIds } from './ids.js';
import { numberReader } from './numbers.js';
import { type RowIssue, RowIssues } from './row-issues.js';
import { type ArrowField, describeType, quoted } from './schema.js';
import { isTextField, readStrings, type Strings } from './strings.js';
import { readVectors } from './vectors.js';

/** The optional columns and what they hold. */
const OPTION_KINDS = {
  top_k: 'integer',
  filter: 'text',
  score_threshold: 'number',
  metric: 'text',
} as const;
type OptionName = keyof typeof OPTION_KINDS;
const OPTION_NAMES = Object.keys(OPTION_KINDS) as OptionName[];

/** A column of names for the queries, which their replies repeat. */
const QUERY_ID_NAME = 'query_id';

export interface QueryColumns {
  /** Column indexes; exactly one of these two is not null. */
  readonly vector: number | null;
  readonly id: number | null;
  /** `query_id`, or `id` beside a vector. */
  readonly queryId: number | null;
  readonly options: ReadonlyMap<OptionName, number>;
}

export interface ColumnRules {
  readonly vectorColumn?: string | undefined;
  /** Whether columns that a query does not have are left out, instead of an error. */
  readonly ignoreColumns?: boolean | undefined;
}

export interface QueryRowsOptions extends ColumnRules {
  readonly dimension: number;
  /** Bound on the decompressed batch. */
  readonly batchBytesMax: number;
  readonly idBytesMax: number;
}

export interface Numbers {
  readonly values: Float64Array;
  /** Bits, 1 for a number; null when no value is null. */
  readonly validity: Uint8Array | null;
}

export interface QueryRows {
  readonly count: number;
  /** Row-major [count, dimension] float32, all finite; null if the queries have ids. */
  readonly vectors: Float32Array | null;
  readonly ids: Utf8Column | null;
  /** Null without a column for them. */
  readonly queryIds: Utf8Column | null;
  /** Integers of any size. Here and below: null if there is no such column. */
  readonly topK: Numbers | null;
  /** JSON text, known only to be UTF-8. */
  readonly filters: Strings | null;
  readonly scoreThresholds: Numbers | null;
  readonly metrics: Strings | null;
  /** About `values`, `id` and `query_id`, of the first rows that have any; if not empty, the rest is undefined. */
  readonly issues: readonly RowIssue[];
}

/** The text of a row; null where the column is absent or null. */
export function textAt(cells: Strings | null, row: number): string | null {
  return cells === null || !isValid(cells.validity, row) ? null : stringAt(cells.text, row);
}

/** The number of a row; null where the column is absent or null. */
export function numberOrNull(cells: Numbers | null, row: number): number | null {
  return cells === null || !isValid(cells.validity, row) ? null : cells.values[row]!;
}

/** Throws `invalid_request`, and `unknown_parameter` for a column that no query has. */
export function chooseQueryColumns(
  fields: readonly ArrowField[],
  { vectorColumn, ignoreColumns = false }: ColumnRules = {},
): QueryColumns {
  requireUniqueNames(fields);
  const vector = chooseVectors(fields, vectorColumn);
  const { id, queryId } = chooseIds(fields, vector !== null);
  if (vector === null && id === null) throw noVectors(fields);
  const options = new Map<OptionName, number>();
  for (const [index, field] of fields.entries()) {
    if (index === vector || index === id || index === queryId) continue;
    const name = OPTION_NAMES.find((known) => known === field.name);
    if (name !== undefined) {
      checkKind(name, field);
      options.set(name, index);
    } else if (!ignoreColumns) {
      throw new SagittaError(
        'unknown_parameter',
        `A query has no column ${quoted(field.name)}; expected a vector or an id, and ${[QUERY_ID_NAME, ...OPTION_NAMES].join(', ')}. If the column is the vector, name it with ?vector_column=; ?ignore_columns=true leaves further columns out.`,
      );
    }
  }
  return { vector, id, queryId, options };
}

/** An id beside a vector names the query: the vector is what is searched for. */
function chooseIds(
  fields: readonly ArrowField[],
  hasVector: boolean,
): Pick<QueryColumns, 'id' | 'queryId'> {
  const id = chooseId(fields);
  const hasQueryId = fields.some(({ name }) => name === QUERY_ID_NAME);
  const queryId = hasQueryId ? chooseId(fields, QUERY_ID_NAME) : null;
  if (!hasVector) return { id, queryId };
  if (id !== null && queryId !== null) {
    throw invalid(
      'Found the columns "id" and "query_id" beside a vector; expected one of them, which names the query in its reply.',
    );
  }
  return { id: null, queryId: queryId ?? id };
}

/** Throws `invalid_arrow`, and what `chooseQueryColumns` throws. */
export function readQueryRows(batch: EncodedBatch, options: QueryRowsOptions): QueryRows {
  return located(`record batch ${batch.index}`, () => {
    const { dimension, batchBytesMax, idBytesMax } = options;
    const chosen = chooseQueryColumns(batch.fields, options);
    const columns = openColumns(batch, batchBytesMax);
    const issues = new RowIssues();
    const bytesMax = batchBytesMax;
    const column = (index: number | null | undefined) =>
      index === null || index === undefined ? null : columns[index]!;
    const vectors = column(chosen.vector);
    const ids = column(chosen.id);
    const queryIds = column(chosen.queryId);
    const cells = (name: OptionName) => column(chosen.options.get(name));
    return {
      count: batch.rowCount,
      vectors: vectors && readVectors(vectors, { dimension, bytesMax, issues }),
      ids: ids && readIds(ids, { idBytesMax, bytesMax, issues }),
      queryIds: queryIds && readIds(queryIds, { idBytesMax, bytesMax, issues, member: 'query_id' }),
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
  // Some writers make a column without values one of type null.
  if (isFitting || field.type.kind === 'null') return;
  const expected = { text: 'text', integer: 'integers', number: 'numbers' }[kind];
  throw invalid(`Column ${quoted(name)} must hold ${expected}; found ${describeType(field)}.`);
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
  const { type } = column.field;
  if (type.kind !== 'int' && type.kind !== 'float') {
    throw invalid(`Found ${describeType(column.field)}, expected numbers.`);
  }
  const read = numberReader(column, type);
  const values = new Float64Array(column.length);
  for (let row = 0; row < values.length; row++) values[row] = read(row);
  return { values, validity: column.validity };
}

function invalid(detail: string): SagittaError {
  return new SagittaError('invalid_request', detail);
}
