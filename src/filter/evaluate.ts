// Evaluates a filter over the metadata of a segment: over columns for paths that have one, otherwise over the JSON
// of rows. A bitmap is narrowed in place, so that excluded rows are not tested again.

import {
  type Bitmap,
  clearBit,
  copyBitmap,
  createFullBitmap,
  intersectInto,
  nextSetBit,
  subtractFrom,
} from '../common/bitmap.js';
import { KIND, type MetadataColumn, type MetadataView } from '../common/columns.js';
import { parseExactJson } from '../common/exact-json.js';
import { ID_PATH } from '../common/filter-operators.js';
import type { JsonObject } from '../common/types.js';
import { EMPTY_COLUMN, type IsStopped, narrowToKind } from './column-plans.js';
import {
  createIdColumn,
  elementsOfRows,
  narrowByColumns,
  narrowByRanges,
  rowsOfElements,
} from './column-test.js';
import {
  ELEMENT_PATH,
  type ElementFilter,
  type FilterNode,
  type FilterTest,
  filterTests,
  isGeoTest,
  testPaths,
} from './filter-node.js';
import { isRangeOperator, type RangeOperator } from './lookup.js';
import { matchesDocument } from './operators.js';

/**
 * Returns the matching rows, of length `view.rowCount`. The caller owns the bitmap.
 * @param isStopped is checked between conditions, strings and rows of JSON. After a stop the result is wrong.
 */
export function evaluateFilter(
  node: FilterNode,
  view: MetadataView,
  isStopped: IsStopped = () => false,
): Bitmap {
  const rows = createFullBitmap(view.rowCount);
  narrow(rows, node, { ...view, isStopped });
  return rows;
}

interface FilterView extends MetadataView {
  readonly isStopped: IsStopped;
}

/** Whether a condition of the filter must read the JSON of rows. */
export function readsJson(node: FilterNode, view: MetadataView): boolean {
  return filterTests(node).some((test) => testReadsJson(test, view));
}

function testReadsJson(test: FilterTest, { isComplete, columns }: MetadataView): boolean {
  // Neither the fields of elements nor the elements of elements have a column.
  if (test.operator === '$elem_match') {
    const items = columns.get(test.path)?.items ?? null;
    if (items !== null && (readsFields(test.operand) || hasArrays(items.elements))) return true;
  }
  return !isComplete && testPaths(test).some((path) => !columns.has(path));
}

function hasArrays({ kinds }: MetadataColumn): boolean {
  return kinds.includes(KIND.array);
}

function readsFields({ hasFields, node }: ElementFilter): boolean {
  return hasFields || filterTests(node).some(isGeoTest);
}

/** Clears the rows that do not match. */
function narrow(rows: Bitmap, node: FilterNode, view: FilterView): void {
  if (nextSetBit(rows, 0) === -1 || view.isStopped()) return;
  if (readsOnlyJson(node, view)) {
    narrowByJson(rows, node, view);
    return;
  }
  switch (node.kind) {
    case 'test':
      narrowByTest(rows, node, view);
      return;
    case 'and':
      narrowToAll(rows, columnsFirst('and', node.children, view), view);
      return;
    case 'or':
      narrowToAny(rows, columnsFirst('or', node.children, view), view);
      return;
    case 'not': {
      const matching = copyBitmap(rows);
      narrow(matching, node.child, view);
      subtractFrom(rows, matching);
    }
  }
}

function narrowByTest(rows: Bitmap, test: FilterTest, view: FilterView): void {
  const paths = test.path === ID_PATH ? [ID_PATH] : testPaths(test);
  const columns = paths.map((path) => columnAt(path, view));
  narrowByColumns(rows, test, columns, {
    isStopped: view.isStopped,
    narrowByElements: (among, filter, column) => narrowByElements(among, filter, column, view),
  });
}

function columnAt(path: string, { columns, ids, rowCount }: MetadataView): MetadataColumn {
  return path === ID_PATH ? createIdColumn(ids, rowCount) : (columns.get(path) ?? EMPTY_COLUMN);
}

/** Filters elements as if each of them were a row with a single column. */
function narrowByElements(
  rows: Bitmap,
  { node }: ElementFilter,
  { items }: MetadataColumn,
  view: FilterView,
): void {
  if (items === null) {
    rows.words.fill(0);
    return;
  }
  const elements = elementsOfRows(items, rows.length);
  const columns = new Map([[ELEMENT_PATH, { ...items.elements, items: null }]]);
  narrow(elements, node, { ...view, rowCount: elements.length, columns, isComplete: true });
  intersectInto(rows, rowsOfElements(items, elements, rows.length));
}

/**
 * Evaluates equalities first, because they leave the fewest rows, then the ranges of each path together, then the
 * rest in order, with conditions on JSON at the end.
 */
function narrowToAll(rows: Bitmap, children: readonly FilterNode[], view: FilterView): void {
  const ranges = new Map<string, FilterTest<RangeOperator>[]>();
  const rest: FilterNode[] = [];
  for (const child of children) {
    if (isRange(child)) {
      const tests = ranges.get(child.path);
      if (tests === undefined) ranges.set(child.path, [child]);
      else tests.push(child);
    } else if (isEquality(child)) {
      narrow(rows, child, view);
    } else {
      rest.push(child);
    }
  }
  for (const [path, tests] of ranges) {
    if (nextSetBit(rows, 0) === -1) return;
    narrowByRanges(rows, tests, columnAt(path, view));
  }
  for (const child of rest) narrow(rows, child, view);
}

function isRange(node: FilterNode): node is FilterTest<RangeOperator> {
  return node.kind === 'test' && isRangeOperator(node.operator) && node.ignoresCase !== true;
}

function isEquality(node: FilterNode): boolean {
  return node.kind === 'test' && (node.operator === '$eq' || node.operator === '$in');
}

/** Each child tests only the rows that no earlier child has accepted. */
function narrowToAny(rows: Bitmap, children: readonly FilterNode[], view: FilterView): void {
  const open = copyBitmap(rows);
  for (const child of children) {
    const matching = copyBitmap(open);
    narrow(matching, child, view);
    subtractFrom(open, matching);
  }
  subtractFrom(rows, open);
}

/**
 * Moves children that read only JSON to the end and combines them, so that as few rows as possible are parsed,
 * and each only once.
 */
function columnsFirst(
  kind: 'and' | 'or',
  children: readonly FilterNode[],
  view: FilterView,
): FilterNode[] {
  const byJson = children.filter((child) => readsOnlyJson(child, view));
  const byColumns = children.filter((child) => !byJson.includes(child));
  return byJson.length === 0 ? byColumns : [...byColumns, { kind, children: byJson }];
}

function readsOnlyJson(node: FilterNode, view: MetadataView): boolean {
  const tests = filterTests(node);
  return tests.length > 0 && tests.every((test) => testReadsJson(test, view));
}

function narrowByJson(rows: Bitmap, node: FilterNode, view: FilterView): void {
  if (node.kind === 'test' && node.operator === '$elem_match') {
    const column = view.columns.get(node.path);
    if (column !== undefined) narrowToKind(rows, KIND.array, column);
  }
  const { json, isStopped } = view;
  const { buffer, byteOffset, byteLength } = json.bytes;
  const bytes = Buffer.from(buffer, byteOffset, byteLength);
  for (let row = nextSetBit(rows, 0); row !== -1; row = nextSetBit(rows, row + 1)) {
    if (isStopped()) return;
    const text = bytes.toString('utf8', json.offsets[row], json.offsets[row + 1]);
    const document = parseExactJson(text) as JsonObject;
    if (!matchesDocument(node, document)) clearBit(rows, row);
  }
}
