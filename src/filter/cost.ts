// Estimates how long a filter takes over a view, in cells. The estimate decides which thread evaluates it and in
// how many tasks. Overestimating costs a message to a worker; underestimating blocks requests.

import type { MetadataColumn, MetadataView } from '../common/columns.js';
import { ID_PATH } from '../common/filter-operators.js';
import type { Utf8Column } from '../common/types.js';
import { readsJson } from './evaluate.js';
import {
  type FilterNode,
  type FilterTest,
  filterTests,
  isGeoTest,
  type TestOperator,
} from './filter-node.js';
import { isRangeOperator } from './lookup.js';
import { OPERATORS } from './operators.js';

/** The cost of an array element or a dictionary string. */
const CELLS_PER_STRING = 4;
/** The cost of the JSON of a row. */
const CELLS_PER_DOCUMENT = 512;
const CELLS_PER_FOLDED_BYTE = 2;

/** Returns the cost in cells. One cell is a row of a scalar column, 1 to 2 ns. */
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
  if (isGeoTest(test)) return countOperatorCells(test, rowCount, 0);
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

function countDictionaryCells(test: FilterTest, { dictionary, dictionaryCount }: MetadataColumn) {
  if (dictionary === null) return 0;
  return countStringCells(test, dictionaryCount, countBytes(dictionary, dictionaryCount));
}

function countStringCells(test: FilterTest, count: number, byteCount: number): number {
  const folding = test.ignoresCase === true ? byteCount * CELLS_PER_FOLDED_BYTE : 0;
  const strings = count * CELLS_PER_STRING + folding;
  if (test.operator !== '$elem_match') return strings + countOperatorCells(test, count, byteCount);
  return filterTests(test.operand.node).reduce(
    (sum, inner) => sum + countStringCells(inner, count, byteCount),
    strings,
  );
}

function countOperatorCells<Name extends TestOperator>(
  { operator, operand }: FilterTest<Name>,
  count: number,
  byteCount: number,
): number {
  return OPERATORS[operator].cells?.(operand, count, byteCount) ?? 0;
}

function countBytes({ offsets }: Utf8Column, count: number): number {
  return offsets[count] - offsets[0];
}
