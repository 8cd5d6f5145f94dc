// Reads the rows of an Arrow body as queries, in groups that fill the engine. A group is smaller if the next record
// batch has not arrived yet.

import { endsWithin } from '../../common/ends-within.js';
import {
  ISSUES_MAX,
  rowField,
  SagittaError,
  type ValidationIssue,
  type Violation,
  validationError,
} from '../../common/errors.js';
import type { Limits } from '../../common/limits.js';
import { isJsonObject } from '../../common/metadata-path.js';
import { type JsonObject, METRICS, type Metric, type Utf8Column } from '../../common/types.js';
import type { QueryRequest } from '../../database/api/query-api.js';
import { type EncodedBatch, transferables } from '../../formats/arrow/encoded-batch.js';
import {
  type ArrowQueryRows,
  type ColumnRules,
  cellNumber,
  type QueryRowsOptions,
  readQueryRows,
} from '../../formats/arrow/query-rows.js';
import type { ArrowStreamReader } from '../../formats/arrow/stream-reader.js';
import { cellText } from '../../formats/arrow/strings.js';
import { INLINE_BYTES_MAX, type Task, type WorkerPool } from '../../platform/pool.js';
import { parseJson } from '../bodies/json-body.js';
import { checkText, measureId } from '../bodies/row-rules.js';
import { describeKind } from '../bodies/value-kinds.js';

/** The queries of consecutive rows of the stream. */
export interface RequestGroup {
  readonly firstIndex: number;
  readonly requests: readonly QueryRequest[];
  /** The names of the queries; null if there is no column of names. */
  readonly queryIds: readonly string[] | null;
}

export interface ReadQueriesOptions extends ColumnRules {
  readonly reader: ArrowStreamReader;
  readonly pool: WorkerPool;
  readonly limits: Limits;
  /** The most queries of a group. */
  readonly groupQueriesMax: number;
  readonly dimension: number;
  /** Values of fields that a row does not set. */
  readonly defaults: QueryRequest;
}

/** How long a group waits for the next record batch; then a client that sends single queries gets its reply. */
const WAIT_MS = 3;
/** The maximum length of quoted text in errors. */
const SHOWN_CHARACTERS_MAX = 64;
/** The maximum number of parsed filters, cached by their text. */
const FILTERS_KEPT_MAX = 1_024;

export const readQueryRowsTask: Task<
  { readonly batch: EncodedBatch; readonly options: QueryRowsOptions },
  ArrowQueryRows
> = {
  name: 'ingest.readQueryRows',
  run: ({ batch, options }) => readQueryRows(batch, options),
  transfer: ({ vectors }) => (vectors?.buffer instanceof ArrayBuffer ? [vectors.buffer] : []),
};

/** Throws `invalid_arrow`, and issues of invalid rows. */
export async function* readQueries(options: ReadQueriesOptions): AsyncGenerator<RequestGroup> {
  const { groupQueriesMax } = options;
  let firstIndex = 0;
  let waiting: QueryRequest[] = [];
  let queryIds: string[] | null = null;
  const take = (): RequestGroup => {
    const group = { firstIndex, requests: waiting, queryIds };
    firstIndex += waiting.length;
    waiting = [];
    queryIds = null;
    return group;
  };
  const batches = options.reader.batches();
  try {
    for (;;) {
      const reading = batches.next();
      if (waiting.length > 0 && !(await endsWithin(reading, WAIT_MS))) yield take();
      const next = await reading;
      if (next.done === true) break;
      const rows = await readRows(next.value, options);
      const context = { ...options, firstRow: next.value.firstRow, filters: new Map() };
      // Rows are converted group by group, since a batch may have a million of them.
      for (let row = 0; row < rows.count; ) {
        const end = Math.min(rows.count, row + groupQueriesMax - waiting.length);
        waiting.push(...requestsOf(rows, row, end, context));
        if (rows.queryIds !== null)
          queryIds = [...(queryIds ?? []), ...textsOf(rows.queryIds, row, end)];
        row = end;
        if (waiting.length === groupQueriesMax) yield take();
      }
    }
    if (waiting.length > 0) yield take();
  } finally {
    batches.return().catch(() => {});
  }
}

async function readRows(
  batch: EncodedBatch,
  { pool, limits, dimension, vectorColumn, ignoreColumns }: ReadQueriesOptions,
): Promise<ArrowQueryRows> {
  const { firstRow } = batch;
  const options = {
    vectorColumn,
    ignoreColumns,
    dimension,
    batchBytesMax: limits.bodyBytesMax,
    idBytesMax: limits.vectorIdBytesMax,
  };
  const isSmall = batch.body.bytes.byteLength <= INLINE_BYTES_MAX;
  const rows = isSmall
    ? readQueryRows(batch, options)
    : await pool.run(
        readQueryRowsTask,
        { batch, options },
        { mayBeRefused: true, transfer: transferables(batch) },
      );
  if (rows.issues.length === 0) return rows;
  throw validationError(
    rows.issues.map(({ row, member, ...violation }) => ({
      ...violation,
      location: rowField(firstRow + row, member === 'values' ? 'vector' : member),
    })),
  );
}

function textsOf(text: Utf8Column, from: number, to: number): string[] {
  return Array.from(
    { length: to - from },
    (_, i) => cellText({ text, validity: null }, from + i) ?? '',
  );
}

interface RowContext {
  readonly dimension: number;
  readonly limits: Limits;
  readonly defaults: QueryRequest;
  /** The row of the stream that the batch starts with. */
  readonly firstRow: number;
  /** Parsed filters by their text. */
  readonly filters: Map<string, JsonObject>;
}

function requestsOf(
  rows: ArrowQueryRows,
  from: number,
  to: number,
  context: RowContext,
): readonly QueryRequest[] {
  const issues: ValidationIssue[] = [];
  const requests: QueryRequest[] = [];
  for (let row = from; row < to; row++) requests.push(requestOf(rows, row, context, issues));
  if (issues.length > 0) throw validationError(issues.slice(0, ISSUES_MAX));
  return requests;
}

function requestOf(
  rows: ArrowQueryRows,
  row: number,
  { dimension, limits, defaults, firstRow, filters }: RowContext,
  issues: ValidationIssue[],
): QueryRequest {
  const report = (member: string, violation: Violation) =>
    issues.push({ location: rowField(firstRow + row, member), ...violation });
  const topK = cellNumber(rows.topK, row);
  const score = cellNumber(rows.scoreThresholds, row);
  const metric = cellText(rows.metrics, row);
  const filterText = cellText(rows.filters, row);
  const id = rows.ids === null ? null : cellText({ text: rows.ids, validity: null }, row);
  const embed = rows.texts === null ? undefined : (cellText(rows.texts, row) ?? '');
  if (topK !== null && (topK < 1 || topK > limits.topKMax)) {
    const detail = `Expected 1 to ${limits.topKMax}; found ${topK}.`;
    const bound = { expected: topK < 1 ? 1 : limits.topKMax, actual: topK };
    report('top_k', { code: topK < 1 ? 'invalid_request' : 'limit_exceeded', detail, ...bound });
  }
  if (score !== null && !Number.isFinite(score)) {
    const detail = `Expected a finite number; found ${score}.`;
    report('score_threshold', { code: 'invalid_request', detail });
  }
  if (metric !== null && !isMetric(metric)) {
    const found = JSON.stringify(metric.slice(0, SHOWN_CHARACTERS_MAX));
    const detail = `Expected ${METRICS.join(', ')}; found ${found}.`;
    report('metric', { code: 'invalid_request', detail });
  }
  if (id !== null) {
    const measured = measureId(id, limits.vectorIdBytesMax);
    if (typeof measured !== 'number') report('id', measured);
  }
  const violation = embed === undefined ? null : checkText(embed, limits);
  if (violation !== null) report('embed', violation);
  let filter = filterText === null ? undefined : filters.get(filterText);
  if (filterText !== null && filter === undefined) {
    const read = readFilter(filterText);
    if ('violation' in read) report('filter', read.violation);
    else {
      filter = read.filter;
      if (filters.size >= FILTERS_KEPT_MAX) filters.clear();
      filters.set(filterText, filter);
    }
  }
  return {
    ...defaults,
    vector: rows.vectors?.subarray(row * dimension, (row + 1) * dimension),
    embed,
    id: id ?? undefined,
    ...(topK === null ? {} : { topK }),
    ...(score === null ? {} : { scoreThreshold: Math.fround(score) }),
    ...(metric === null ? {} : { metric: metric as Metric }),
    ...(filter === undefined ? {} : { filter }),
  };
}

function readFilter(
  text: string,
): { readonly filter: JsonObject } | { readonly violation: Violation } {
  const invalid = (detail: string) => ({ violation: { code: 'invalid_filter', detail } as const });
  try {
    const filter = parseJson(Buffer.from(text), 'The filter', { exactMembers: null });
    if (isJsonObject(filter)) return { filter: filter as JsonObject };
    return invalid(`A filter is the JSON text of an object; found ${describeKind(filter)}.`);
  } catch (error) {
    if (!(error instanceof SagittaError)) throw error;
    return invalid(error.message);
  }
}

function isMetric(text: string): text is Metric {
  return (METRICS as readonly string[]).includes(text);
}
