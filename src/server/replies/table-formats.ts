// The formats of replies with rows by their names in the API.

import { type IssueLocation, validationError } from '../../common/errors.js';
import type { FieldShapes } from '../../common/types.js';
import type { FormatName } from '../wire/media-types.js';
import { ARROW_TABLE } from './arrow-table.js';
import { CSV_TABLE } from './csv-table.js';
import { NDJSON_TABLE } from './ndjson-table.js';
import { PARQUET_TABLE } from './parquet-table.js';
import type { TableFormat } from './table.js';

export const TABLE_FORMATS = {
  arrow: ARROW_TABLE,
  ndjson: NDJSON_TABLE,
  parquet: PARQUET_TABLE,
  csv: CSV_TABLE,
} as const satisfies Readonly<Record<FormatName, TableFormat>>;

const COLUMN_FORMATS = Object.values(TABLE_FORMATS).filter(({ hasColumns }) => hasColumns);

/** The content types of tables with columns. */
export const COLUMN_TYPES = COLUMN_FORMATS.map(({ type }) => type);

/** Null for a content type without columns. */
export function columnFormat(type: string): TableFormat | null {
  return COLUMN_FORMATS.find((format) => format.type === type) ?? null;
}

/** Throws `invalid_request` for multi-vectors and sparse vectors if the format does not support them. */
export function requireVectorSupport(
  vectors: FieldShapes,
  format: TableFormat | null,
  location: IssueLocation,
): void {
  const lists = Object.entries(vectors).find(([, { kind }]) => kind !== 'dense');
  if (format === null || format.hasVectorLists || lists === undefined) return;
  const [name, { kind: found }] = lists;
  const kind = found === 'multi' ? 'multi-vectors' : 'sparse vectors';
  const detail = `Parquet files do not support ${kind} such as "${name}". Use arrow, csv or ndjson, or omit the values.`;
  throw validationError([{ location, code: 'invalid_request', detail }]);
}
