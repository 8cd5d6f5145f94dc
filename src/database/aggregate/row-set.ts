// How the numbers of rows are read: an array stands for its elements, and null, objects and nested
// arrays are not values.

import { hasBit, type RowSet } from '../../common/bitmap.js';
import { KIND, type MetadataColumn, numberAt } from '../../common/columns.js';
import type { JsonNumber } from '../../common/types.js';

/**
 * Calls `visit` for each number of the rows, in the order of rows and elements. Returns the number of rows that have a
 * number. Zero is never negative, and numbers beyond float64, which JSON can contain, become the greatest float64.
 */
export function visitNumbers(
  column: MetadataColumn,
  { rowCount, rows }: RowSet,
  visit: (value: JsonNumber) => void,
): number {
  const { kinds, items } = column;
  const end = Math.min(rowCount, kinds.length);
  let foundCount = 0;
  for (let row = 0; row < end; row++) {
    const kind = kinds[row]!;
    if (kind === KIND.number) {
      if (rows !== null && !hasBit(rows, row)) continue;
      visit(finite(numberAt(column, row)));
      foundCount++;
    } else if (kind === KIND.array && items !== null) {
      if (rows !== null && !hasBit(rows, row)) continue;
      const { elements, offsets } = items;
      let hasNumber = false;
      const elementsEnd = offsets[row + 1] ?? 0;
      for (let element = offsets[row] ?? elementsEnd; element < elementsEnd; element++) {
        if (elements.kinds[element] !== KIND.number) continue;
        visit(finite(numberAt(elements, element)));
        hasNumber = true;
      }
      if (hasNumber) foundCount++;
    }
  }
  return foundCount;
}

export function finite(value: JsonNumber): JsonNumber {
  if (typeof value === 'bigint') return value;
  return Math.max(-Number.MAX_VALUE, Math.min(Number.MAX_VALUE, value)) + 0;
}
