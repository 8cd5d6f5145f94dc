// Estimates of the time that a filter takes over a view, in cells: which thread evaluates it, and in how
// many tasks, depends on them. Too high an estimate costs a message, too low a one blocks requests.

import type { MetadataColumn, MetadataView } from '../common/columns.js';
import type { Utf8Column } from '../common/types.js';
import { readsJson } from './evaluate.js';
import {
  type FilterNode,
  type FilterTest,
  filterTests,
  ID_PATH,
  isGeoTest,
} from './filter-node.js';
import type { GeoOperator } from './geo.js';
import { isRangeOperator } from './lookup.js';

/** Costs in cells: of an array element or a dictionary string, of the JSON of a row, of a point. */
const CELLS_PER_STRING = 4;
const CELLS_PER_DOCUMENT = 512;
const CELLS_PER_POINT = 32;
const CELLS_PER_DATE = 32;
const CELLS_PER_FOLDED_BYTE = 2;
/** 64 ns: a pattern without a table of states takes so long, though most take a tenth of it. */
const CELLS_PER_PATTERN_BYTE = 64;

/** One cell is a row of a scalar column, 1 to 2 ns. */
export function countCells(node: FilterNode, view: MetadataView): number {
  let cells = readsJson(node, view) ? view.rowCount * CELLS_PER_DOCUMENT : 0;
  const rangedPaths = new Set<string>();
  for (const test of filterTests(node)) {
    // Ranges over one path are usually evaluated together.
    if (isRangeOperator(test.operator) && rangedPaths.has(test.path)) continue;
    if (isRangeOperator(test.operator)) rangedPaths.add(test.path);
    cells += countTestCells(test, view);
  }
  return cells;
}

function countTestCells(test: FilterTest, view: MetadataView): number {
  const { rowCount, columns, ids, json } = view;
  if (isGeoTest(test)) return rowCount * countPointCells(test);
  if (test.path === ID_PATH) {
    return rowCount + countStringCells(test, rowCount, countBytes(ids, rowCount));
  }
  if (readsJson(test, view)) return countStringCells(test, rowCount, countBytes(json, rowCount));
  const column = columns.get(test.path);
  if (column === undefined) return 0;
  const elements = column.items?.elements;
  const listed = Array.isArray(test.operand) ? test.operand.length : 0;
  return (
    rowCount +
    ((elements?.kinds.length ?? 0) + listed) * CELLS_PER_STRING +
    countDictionaryCells(test, column) +
    (elements === undefined ? 0 : countDictionaryCells(test, elements))
  );
}

/** A polygon compares a point with every edge. */
function countPointCells({ operator, operand }: FilterTest<GeoOperator>): number {
  if (operator !== '$geo_polygon') return CELLS_PER_POINT;
  const rings = [operand.exterior, ...operand.interiors];
  return CELLS_PER_POINT + rings.reduce((sum, ring) => sum + ring.length, 0);
}

function countDictionaryCells(test: FilterTest, { dictionary, dictionaryCount }: MetadataColumn) {
  if (dictionary === null) return 0;
  return countStringCells(test, dictionaryCount, countBytes(dictionary, dictionaryCount));
}

function countStringCells(test: FilterTest, count: number, byteCount: number): number {
  const folding = test.ignoresCase === true ? byteCount * CELLS_PER_FOLDED_BYTE : 0;
  const strings = count * CELLS_PER_STRING + folding;
  switch (test.operator) {
    case '$date':
      return strings + count * CELLS_PER_DATE;
    case '$like':
      // Every byte may be compared with the whole pattern.
      return strings + byteCount * test.operand.length;
    case '$regex':
      return strings + byteCount * CELLS_PER_PATTERN_BYTE;
    case '$elem_match':
      return filterTests(test.operand.node).reduce(
        (sum, inner) => sum + countStringCells(inner, count, byteCount),
        strings,
      );
    default:
      return strings;
  }
}

function countBytes({ offsets }: Utf8Column, count: number): number {
  return offsets[count] - offsets[0];
}
