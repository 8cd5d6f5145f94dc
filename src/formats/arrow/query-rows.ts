// Reads a record batch as queries, one per row: by a vector, by a text that becomes one, or by the id of a stored vector,
// with optional columns for options. It is a pure function, which runs on any thread. The caller checks ids, filters and numbers against the
// rules of the collection.

import { SagittaError } from '../../common/errors.js';
import type { Utf8Column } from '../../common/types.js';
import { located } from './arrow-errors.js';
import {
  chooseEmbed,
  chooseId,
  chooseVectors,
  noVectors,
  requireUniqueNames,
} from './column-choice.js';
import { type ArrowColumn, isValid, openColumns } from './columns.js';
import type { EncodedBatch } from './encoded-batch.js';
import { readIds } from './ids.js';
import { numberReader } from './numbers.js';
import { type RowIssue, RowIssues } from './row-issues.js';
import { type ArrowField, describeType, quoted } from './schema.js';
import { isTextField, readStrings, type Strings } from './strings.js';
import { readVectors } from './vectors.js';

/** The optional columns and the kind of their values. */
const OPTION_KINDS = {
  top_k: 'integer',
  filter: 'text',
  score_threshold: 'number',
  metric: 'text',
} as const;
type OptionName = keyof typeof OPTION_KINDS;
const OPTION_NAMES = Object.keys(OPTION_KINDS) as OptionName[];

/** The column that names queries; replies repeat the name. */
const QUERY_ID_NAME = 'query_id';

export interface QueryColumns {
  /** Column indexes. Exactly one of `vector`, `embed` and `id` is not null. */
  readonly vector: number | null;
  readonly embed: number | null;
  readonly id: number | null;
  /** The index of `query_id`, or of `id` beside a vector or a text. */
  readonly queryId: number | null;
  readonly options: ReadonlyMap<OptionName, number>;
}

export interface ColumnRules {
  readonly vectorColumn?: string | undefined;
  /** Whether unknown columns are ignored instead of being an error. */
  readonly ignoreColumns?: boolean | undefined;
}

export interface QueryRowsOptions extends ColumnRules {
  readonly dimension: number;
  /** Limit for the decompressed batch. */
  readonly batchBytesMax: number;
  readonly idBytesMax: number;
}

export interface Numbers {
  readonly values: Float64Array;
  /** Bits, 1 for a number; null if no value is null. */
  readonly validity: Uint8Array | null;
}

/** Columns are null if the batch lacks them. */
export interface ArrowQueryRows {
  readonly count: number;
  /** Row-major [count, dimension] float32, all finite. */
  readonly vectors: Float32Array | null;
  /** Texts that become vectors. */
  readonly texts: Strings | null;
  readonly ids: Utf8Column | null;
  readonly queryIds: Utf8Column | null;
  /** Integers of any size. */
  readonly topK: Numbers | null;
  /** JSON text, known only to be UTF-8. */
  readonly filters: Strings | null;
  readonly scoreThresholds: Numbers | null;
  readonly metrics: Strings | null;
  /** Issues with `values`, `id` and `query_id`, of the first rows with any. If not empty, the rest is undefined. */
  readonly issues: readonly RowIssue[];
}

/** Returns the number of a row; null if the column is absent or the row is null. */
export function cellNumber(cells: Numbers | null, row: number): number | null {
  return cells === null || !isValid(cells.validity, row) ? null : cells.values[row]!;
}

/** Throws `invalid_request`, and `unknown_parameter` for an unknown column. */
export function chooseQueryColumns(
  fields: readonly ArrowField[],
  { vectorColumn, ignoreColumns = false }: ColumnRules = {},
): QueryColumns {
  requireUniqueNames(fields);
  const vector = chooseVectors(fields, vectorColumn);
  const embed = vector === null ? chooseEmbed(fields) : null;
  const { id, queryId } = chooseIds(fields, vector !== null || embed !== null);
  if (vector === null && embed === null && id === null) throw noVectors(fields);
  const options = new Map<OptionName, number>();
  for (const [index, field] of fields.entries()) {
    if ([vector, embed, id, queryId].includes(index)) continue;
    const name = OPTION_NAMES.find((known) => known === field.name);
    if (name !== undefined) {
      checkKind(name, field);
      options.set(name, index);
    } else if (!ignoreColumns) {
      throw new SagittaError(
        'unknown_parameter',
        `Expected columns for a vector, a text or an id, and ${[QUERY_ID_NAME, ...OPTION_NAMES].join(', ')}; found ${quoted(field.name)}. If the column is the vector, name it with ?vector_column=; ?ignore_columns=true ignores other columns.`,
      );
    }
  }
  return { vector, embed, id, queryId, options };
}

/** An id beside a vector or a text names the query, because the search is by the vector. */
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
      'Expected one of the columns "id" and "query_id" beside a vector or a text, to name the query in its reply; found both.',
    );
  }
  return { id: null, queryId: queryId ?? id };
}

/** Throws `invalid_arrow` and the errors of `chooseQueryColumns`. */
export function readQueryRows(batch: EncodedBatch, options: QueryRowsOptions): ArrowQueryRows {
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
      texts: readTexts(column(chosen.embed), bytesMax),
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
  // Some writers give a column without values the type null.
  if (isFitting || field.type.kind === 'null') return;
  const expected = { text: 'text', integer: 'integers', number: 'numbers' }[kind];
  throw invalid(`Column ${quoted(name)} must hold ${expected}; found ${describeType(field)}.`);
}

function isNumberField({ type, dictionary }: ArrowField, kind: 'integer' | 'number'): boolean {
  if (dictionary !== null) return false;
  return type.kind === 'int' || (kind === 'number' && type.kind === 'float');
}

function readTexts(column: ArrowColumn | null, bytesMax: number): Strings | null {
  if (column === null || column.field.type.kind === 'null') return null;
  return readStrings(column, bytesMax);
}

function readNumbers(column: ArrowColumn | null): Numbers | null {
  if (column === null || column.field.type.kind === 'null') return null;
  const { type } = column.field;
  if (type.kind !== 'int' && type.kind !== 'float') {
    throw invalid(`Expected numbers; found ${describeType(column.field)}.`);
  }
  const read = numberReader(column, type);
  const values = new Float64Array(column.length);
  for (let row = 0; row < values.length; row++) values[row] = read(row);
  return { values, validity: column.validity };
}

function invalid(detail: string): SagittaError {
  return new SagittaError('invalid_request', detail);
}
