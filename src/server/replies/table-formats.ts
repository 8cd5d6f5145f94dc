// The formats that tables are exported in, by the names of the API.

import { ARROW_TABLE } from './arrow-table.js';
import { NDJSON_TABLE } from './ndjson-table.js';
import { PARQUET_TABLE } from './parquet-table.js';
import type { TableFormat } from './table.js';

/** The first one is the default. */
export const TABLE_FORMATS = {
  arrow: ARROW_TABLE,
  ndjson: NDJSON_TABLE,
  parquet: PARQUET_TABLE,
} as const satisfies Readonly<Record<string, TableFormat>>;

export type FormatName = keyof typeof TABLE_FORMATS;
export const FORMAT_NAMES = Object.keys(TABLE_FORMATS) as [FormatName, ...FormatName[]];
