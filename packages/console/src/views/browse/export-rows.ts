// What an export writes that the server does not write itself: CSV, and lines of JSON with chosen paths.

import type { StoredVector } from '@sagitta/client';
import { stringifyExactJson } from '../../../../../src/common/exact-json.js';
import { resolvePath } from '../../../../../src/common/metadata-path.js';
import type { JsonObject } from '../../../../../src/common/types.js';
import { csvLine } from '../../ui/csv.js';

export const EXPORT_FORMATS = {
  csv: { label: 'CSV', mediaType: 'text/csv', extension: 'csv' },
  ndjson: { label: 'JSON lines', mediaType: 'application/x-ndjson', extension: 'ndjson' },
  arrow: {
    label: 'Arrow stream',
    mediaType: 'application/vnd.apache.arrow.stream',
    extension: 'arrow',
  },
  parquet: {
    label: 'Parquet',
    mediaType: 'application/vnd.apache.parquet',
    extension: 'parquet',
  },
} as const;

export type ExportFormat = keyof typeof EXPORT_FORMATS;

type Rows = AsyncIterable<StoredVector> | Iterable<StoredVector>;

/** Text is written in chunks of about this many characters: one write per row would be slow. */
const CHUNK_CHARACTERS = 65_536;

export interface TextExport {
  readonly format: 'csv' | 'ndjson';
  /** Metadata paths, which are the columns of CSV; without them JSON has the whole metadata. */
  readonly paths?: readonly string[];
  readonly includeValues: boolean;
}

export async function* exportText(
  rows: Rows,
  { format, paths, includeValues }: TextExport,
): AsyncGenerator<string, void, undefined> {
  const columns = paths ?? [];
  let text = '';
  if (format === 'csv') text = csvLine(['id', ...columns, ...(includeValues ? ['values'] : [])]);
  for await (const { id, metadata = {}, values } of rows) {
    if (format === 'csv') {
      const cells = columns.map((path) => resolvePath(metadata, path));
      text += csvLine([id, ...cells, ...(includeValues ? [values] : [])]);
    } else {
      const kept = paths === undefined ? metadata : chosen(metadata, paths);
      text += `${stringifyExactJson({ id, ...(includeValues && { values }), metadata: kept })}\n`;
    }
    if (text.length < CHUNK_CHARACTERS) continue;
    yield text;
    text = '';
  }
  if (text !== '') yield text;
}

/** The values at the paths, each by its path. */
function chosen(metadata: JsonObject, paths: readonly string[]): JsonObject {
  const found: JsonObject = {};
  for (const path of paths) {
    const value = resolvePath(metadata, path);
    if (value !== undefined) found[path] = value;
  }
  return found;
}

/** URLs beyond it are refused by proxies, and filters of exports are in the URL. */
const FILTER_CHARACTERS_MAX = 6_000;

/** The filter that selects these vectors, if it is short enough for a URL. */
export function filterOfIds(ids: readonly string[]): JsonObject | undefined {
  const filter = { $id: { $in: [...ids] } };
  return encodeURIComponent(JSON.stringify(filter)).length <= FILTER_CHARACTERS_MAX
    ? filter
    : undefined;
}
