// The columns of metadata paths in one segment: those that the segment has, and for paths beyond its
// limit of columns new ones, read from the JSON of the selected rows.

import { type RowSet, rowsIn } from '../../common/bitmap.js';
import type { MetadataColumn, MetadataView } from '../../common/columns.js';
import { parseExactJson } from '../../common/exact-json.js';
import { resolvePath } from '../../common/metadata-path.js';
import type { JsonObject, Utf8Column } from '../../common/types.js';
import { decodeUtf8 } from '../../common/utf8-column.js';
import { ColumnBuilder } from '../../segment/column-builder.js';

/** The metadata of a segment that a task reads. */
export interface PathsInput extends RowSet {
  readonly columns: readonly (readonly [path: string, column: MetadataColumn])[];
  /** Paths whose values are in the JSON only. */
  readonly jsonPaths: readonly string[];
  /** Null when there are none. */
  readonly json: Utf8Column | null;
}

/** The parts of a metadata view that paths are read from. */
export type PathSource = Pick<MetadataView, 'columns' | 'isComplete' | 'json'>;

/** Only what is read, since sending any array to a worker has a cost, shared or not. */
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

/** By path; a path that no row has may be absent. */
export function readColumns(input: PathsInput): ReadonlyMap<string, MetadataColumn> {
  const { columns, jsonPaths, json } = input;
  const byPath = new Map(columns);
  if (json === null) return byPath;
  for (const [path, column] of buildColumns(json, jsonPaths, placesOf(input))) {
    byPath.set(path, column);
  }
  return byPath;
}

function* placesOf(rows: RowSet): Generator<readonly [row: number, place: number]> {
  for (const row of rowsIn(rows)) yield [row, row];
}

/** Columns of all paths from the JSON of rows, each with its place in the columns, which ascends. */
export function buildColumns(
  { bytes, offsets }: Utf8Column,
  paths: readonly string[],
  places: Iterable<readonly [row: number, place: number]>,
): ReadonlyMap<string, MetadataColumn> {
  const builders = new Map(paths.map((path) => [path, new ColumnBuilder()]));
  for (const [row, place] of places) {
    const text = decodeUtf8(bytes, offsets[row]!, offsets[row + 1]!);
    const document = parseExactJson(text) as JsonObject;
    for (const [path, builder] of builders) {
      const value = resolvePath(document, path);
      if (value !== undefined) builder.set(place, value);
    }
  }
  return new Map([...builders].map(([path, builder]) => [path, builder.view()]));
}

/** The work for a row whose JSON is parsed. */
const CELLS_PER_DOCUMENT = 512;

/** The work of reading the values of all paths, in cells. */
export function countPathCells({ rowCount, columns, json }: PathsInput): number {
  const elementCount = columns.reduce(
    (sum, [, { items }]) => sum + (items?.elements.kinds.length ?? 0),
    0,
  );
  return rowCount * (columns.length + (json === null ? 0 : CELLS_PER_DOCUMENT)) + elementCount;
}
