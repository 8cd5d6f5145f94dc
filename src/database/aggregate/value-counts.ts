// Counts the rows of a segment by their value at a path. A row counts once for each of its distinct values, of which an
// array may have several; strings are counted by dictionary code.

import { hasBit, type RowSet } from '../../common/bitmap.js';
import { KIND, type MetadataColumn, numberAt } from '../../common/columns.js';
import type { JsonNumber, Utf8Column } from '../../common/types.js';
import { NumberCounts, type NumberEntries } from './number-counts.js';
import { finite } from './row-set.js';

/** The number of rows with each string of a dictionary. */
export interface StringCounts {
  readonly dictionary: Utf8Column;
  /** [dictionary count] */
  readonly counts: Uint32Array;
}

export interface ValueCounts extends NumberEntries {
  /** The counts of scalar strings and of strings in arrays; both may contain the same string. */
  readonly strings: readonly StringCounts[];
  readonly falseCount: number;
  readonly trueCount: number;
  /** The number of rows with a value. */
  readonly rowCount: number;
}

export function countValues(column: MetadataColumn, { rowCount, rows }: RowSet): ValueCounts {
  const { kinds, codes, items } = column;
  const end = Math.min(rowCount, kinds.length);
  const byCode = new Uint32Array(column.dictionaryCount);
  const byNumber = new NumberCounts();
  const elements = items === null ? null : new ElementCounts(items, byNumber);
  /** [8] by KIND */
  const byKind = new Uint32Array(8);
  let arrayCount = 0;
  for (let row = 0; row < end; row++) {
    if (rows !== null && !hasBit(rows, row)) continue;
    const kind = kinds[row]!;
    byKind[kind]!++;
    if (kind === KIND.string) byCode[codes![row]!]!++;
    else if (kind === KIND.number) byNumber.add(finite(numberAt(column, row)), 1);
    else if (kind === KIND.array && elements?.addRow(row)) arrayCount++;
  }
  const scalarCount =
    byKind[KIND.string]! + byKind[KIND.number]! + byKind[KIND.false]! + byKind[KIND.true]!;
  const { dictionary } = column;
  return {
    strings: [
      ...(dictionary === null ? [] : [{ dictionary, counts: byCode }]),
      ...(elements?.strings ?? []),
    ],
    ...byNumber.entries(),
    falseCount: byKind[KIND.false]! + (elements?.falseCount ?? 0),
    trueCount: byKind[KIND.true]! + (elements?.trueCount ?? 0),
    rowCount: scalarCount + arrayCount,
  };
}

/** Counts rows by the values in their arrays. */
class ElementCounts {
  readonly #items: NonNullable<MetadataColumn['items']>;
  readonly #byNumber: NumberCounts;
  readonly #byCode: Uint32Array;
  /** By code: 1 + the last counted row. */
  readonly #rowsCounted: Uint32Array;
  falseCount = 0;
  trueCount = 0;

  constructor(items: NonNullable<MetadataColumn['items']>, byNumber: NumberCounts) {
    this.#items = items;
    this.#byNumber = byNumber;
    this.#byCode = new Uint32Array(items.elements.dictionaryCount);
    this.#rowsCounted = new Uint32Array(items.elements.dictionaryCount);
  }

  get strings(): readonly StringCounts[] {
    const { dictionary } = this.#items.elements;
    return dictionary === null ? [] : [{ dictionary, counts: this.#byCode }];
  }

  /** Adds a row. Returns whether its array contains a value. */
  addRow(row: number): boolean {
    const { offsets, elements } = this.#items;
    const end = offsets[row + 1] ?? 0;
    let numbers: Set<JsonNumber> | null = null;
    let hasFalse = false;
    let hasTrue = false;
    let hasString = false;
    for (let element = offsets[row] ?? end; element < end; element++) {
      const kind = elements.kinds[element]!;
      if (kind === KIND.string) {
        hasString = true;
        this.#addString(elements.codes![element]!, row);
      } else if (kind === KIND.number) {
        numbers ??= new Set();
        numbers.add(finite(numberAt(elements, element)));
      } else if (kind === KIND.false) hasFalse = true;
      else if (kind === KIND.true) hasTrue = true;
    }
    for (const value of numbers ?? []) this.#byNumber.add(value, 1);
    if (hasFalse) this.falseCount++;
    if (hasTrue) this.trueCount++;
    return hasString || hasFalse || hasTrue || numbers !== null;
  }

  #addString(code: number, row: number): void {
    if (this.#rowsCounted[code] === row + 1) return;
    this.#rowsCounted[code] = row + 1;
    this.#byCode[code]!++;
  }
}
