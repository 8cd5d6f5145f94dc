// The export formats that the server does not offer: CSV, and JSON lines with selected paths.

import type { StoredVector } from '@sagitta/client';
import { stringifyExactJson } from '../../../../../src/common/exact-json.js';
import { resolvePath } from '../../../../../src/common/metadata-path.js';
import type { JsonObject } from '../../../../../src/common/types.js';
import { csvLine } from '../../ui/csv.js';

export const EXPORT_FORMATS = {
  csv: { label: 'CSV', mediaType: 'text/csv', extension: 'csv' },
  ndjson: { label: 'JSON Lines', mediaType: 'application/x-ndjson', extension: 'ndjson' },
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

type ExportedRows = AsyncIterable<StoredVector> | Iterable<StoredVector>;

/** Text is written in chunks of about this size, because one write per row would be slow. */
const CHUNK_CHARACTERS = 65_536;

export interface TextExport {
  readonly format: 'csv' | 'ndjson';
  /** The metadata paths to write, which are the columns of CSV; without them, JSON contains all metadata. */
  readonly paths?: readonly string[];
  readonly includeValues: boolean;
}

export async function* exportText(
  rows: ExportedRows,
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
      const kept = paths === undefined ? metadata : selectPaths(metadata, paths);
      text += `${stringifyExactJson({ id, ...(includeValues && { values }), metadata: kept })}\n`;
    }
    if (text.length < CHUNK_CHARACTERS) continue;
    yield text;
    text = '';
  }
  if (text !== '') yield text;
}

/** The values at the paths, by path. */
function selectPaths(metadata: JsonObject, paths: readonly string[]): JsonObject {
  const found: JsonObject = {};
  for (const path of paths) {
    const value = resolvePath(metadata, path);
    if (value !== undefined) found[path] = value;
  }
  return found;
}

/** Exports send the filter in the URL, and proxies reject longer URLs. */
const FILTER_CHARACTERS_MAX = 6_000;

/** The filter that selects these vectors, if it is short enough for a URL. */
export function filterOfIds(ids: readonly string[]): JsonObject | undefined {
  const filter = { $id: { $in: [...ids] } };
  return encodeURIComponent(JSON.stringify(filter)).length <= FILTER_CHARACTERS_MAX
    ? filter
    : undefined;
}
