// A filter over the metadata of a segment: columns where a path has one, the JSON of the row where
// it may have none. Rows are narrowed in place, so that what has failed is not looked at again.

import { type Bitmap, clearBit, createFullBitmap, nextSetBit } from '../bitmap.js';
import type { MetadataView } from '../columns.js';
import type { JsonObject } from '../types.js';
import { EMPTY_COLUMN, narrowByColumn } from './column-test.js';
import { matchesDocument } from './document.js';
import { type FilterNode, filterPaths } from './filter-node.js';

/** The rows that match, of length `view.rowCount`. The caller owns the bitmap. */
export function evaluateFilter(node: FilterNode, view: MetadataView): Bitmap {
  const rows = createFullBitmap(view.rowCount);
  narrow(rows, node, view);
  return rows;
}

/** Whether some path of the filter must be looked up in the JSON of the rows. */
export function readsJson(node: FilterNode, { isComplete, columns }: MetadataView): boolean {
  return !isComplete && filterPaths(node).some((path) => !columns.has(path));
}

/** Unsets the rows that do not match. */
function narrow(rows: Bitmap, node: FilterNode, view: MetadataView): void {
  if (nextSetBit(rows, 0) === -1) return;
  if (readsOnlyJson(node, view)) {
    narrowByJson(rows, node, view);
    return;
  }
  switch (node.kind) {
    case 'test':
      narrowByColumn(rows, node, view.columns.get(node.path) ?? EMPTY_COLUMN);
      return;
    case 'and':
      for (const child of columnsFirst('and', node.children, view)) narrow(rows, child, view);
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

/** Each child sees only the rows that no child before it has accepted. */
function narrowToAny(rows: Bitmap, children: readonly FilterNode[], view: MetadataView): void {
  const open = copyBitmap(rows);
  for (const child of children) {
    const matching = copyBitmap(open);
    narrow(matching, child, view);
    subtractFrom(open, matching);
  }
  subtractFrom(rows, open);
}

/**
 * The children with those that read only JSON put together at the end: so few rows as can be are
 * parsed, and each once.
 */
function columnsFirst(
  kind: 'and' | 'or',
  children: readonly FilterNode[],
  view: MetadataView,
): FilterNode[] {
  const byJson = children.filter((child) => readsOnlyJson(child, view));
  const byColumns = children.filter((child) => !byJson.includes(child));
  return byJson.length === 0 ? byColumns : [...byColumns, { kind, children: byJson }];
}

function readsOnlyJson(node: FilterNode, { isComplete, columns }: MetadataView): boolean {
  if (isComplete) return false;
  const paths = filterPaths(node);
  return paths.length > 0 && !paths.some((path) => columns.has(path));
}

function narrowByJson(rows: Bitmap, node: FilterNode, { json }: MetadataView): void {
  const { buffer, byteOffset, byteLength } = json.bytes;
  const bytes = Buffer.from(buffer, byteOffset, byteLength);
  for (let row = nextSetBit(rows, 0); row !== -1; row = nextSetBit(rows, row + 1)) {
    const text = bytes.toString('utf8', json.offsets[row], json.offsets[row + 1]);
    const document: JsonObject = JSON.parse(text);
    if (!matchesDocument(node, document)) clearBit(rows, row);
  }
}

function copyBitmap({ length, words }: Bitmap): Bitmap {
  return { length, words: words.slice() };
}

/** target &= ~other; both have the same length. */
function subtractFrom(target: Bitmap, other: Bitmap): void {
  for (let i = 0; i < target.words.length; i++) target.words[i] &= ~other.words[i];
}
