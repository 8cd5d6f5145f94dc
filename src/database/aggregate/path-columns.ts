// The columns of metadata paths in one segment. Paths beyond the column limit of the segment get new columns, built
// from the JSON of the selected rows.

import { type RowSet, rowsIn } from '../../common/bitmap.js';
import { decodeUtf8 } from '../../common/bytes.js';
import type { MetadataColumn, MetadataView } from '../../common/columns.js';
import { parseExactJson } from '../../common/exact-json.js';
import { resolvePath } from '../../common/metadata-path.js';
import type { JsonObject, Utf8Column } from '../../common/types.js';
import { ColumnBuilder } from '../../segment/column-builder.js';

/** The metadata of a segment that a task reads. */
export interface PathsInput extends RowSet {
  readonly columns: readonly (readonly [path: string, column: MetadataColumn])[];
  /** Paths whose values are only in the JSON. */
  readonly jsonPaths: readonly string[];
  /** Null if `jsonPaths` is empty. */
  readonly json: Utf8Column | null;
}

/** The parts of a metadata view that paths are read from. */
export type PathSource = Pick<MetadataView, 'columns' | 'isComplete' | 'json'>;

/** Selects only what is read, since sending an array to a worker has a cost even if it is shared. */
export function selectPaths(
  { rowCount, rows }: RowSet,
  { columns, isComplete, json }: PathSource,
  paths: readonly string[],
): PathsInput {
  const jsonPaths = isComplete ? [] : paths.filter((path) => !columns.has(path));
  return {
    rowCount,
    rows,
    columns: paths.flatMap((path) => {
      const column = columns.get(path);
      return column === undefined ? [] : [[path, column] as const];
    }),
    jsonPaths,
    json: jsonPaths.length === 0 ? null : json,
  };
}

/** The columns by path; a path that no row has may be absent. */
export function readColumns(input: PathsInput): ReadonlyMap<string, MetadataColumn> {
  const { columns, jsonPaths, json } = input;
  const byPath = new Map(columns);
  if (json === null) return byPath;
  for (const [path, column] of buildColumns(json, jsonPaths, sameRows(input))) {
    byPath.set(path, column);
  }
  return byPath;
}

function* sameRows(rows: RowSet): Generator<readonly [row: number, columnRow: number]> {
  for (const row of rowsIn(rows)) yield [row, row];
}

/** @param rows pairs of a row and its row in the built columns, ascending. */
export function buildColumns(
  { bytes, offsets }: Utf8Column,
  paths: readonly string[],
  rows: Iterable<readonly [row: number, columnRow: number]>,
): ReadonlyMap<string, MetadataColumn> {
  const builders = new Map(paths.map((path) => [path, new ColumnBuilder()]));
  for (const [row, columnRow] of rows) {
    const text = decodeUtf8(bytes, offsets[row]!, offsets[row + 1]!);
    const document = parseExactJson(text) as JsonObject;
    for (const [path, builder] of builders) {
      const value = resolvePath(document, path);
      if (value !== undefined) builder.set(columnRow, value);
    }
  }
  return new Map([...builders].map(([path, builder]) => [path, builder.view()]));
}

/** The work of parsing the JSON of a row, in cells. */
const CELLS_PER_DOCUMENT = 512;

/** The work of reading the values of all paths, in cells. */
export function countPathCells({ rowCount, columns, json }: PathsInput): number {
  const elementCount = columns.reduce(
    (sum, [, { items }]) => sum + (items?.elements.kinds.length ?? 0),
    0,
  );
  return rowCount * (columns.length + (json === null ? 0 : CELLS_PER_DOCUMENT)) + elementCount;
}
