// Sorts rows of segments by metadata paths and ids in the worker pool. Numbers come before strings
// before booleans before rows without any of these, in either direction; ties keep the order of arrival.

import { nextSetBit, type RowSet } from '../../common/bitmap.js';
import { KIND, type MetadataColumn } from '../../common/columns.js';
import type { Utf8Column } from '../../common/types.js';
import type { Task } from '../../platform/pool.js';
import {
  type PathSource,
  type PathsInput,
  readColumns,
  selectPaths,
} from '../aggregate/path-columns.js';
import type { SortKey } from '../api/query-api.js';
import { StableOrder } from './stable-order.js';
import { TextRanks } from './text-ranks.js';

/** The sort field that stands for the id of a row, as in filters. */
const ID_FIELD = '$id';

/** The rows of a segment to sort. */
export interface OrderTarget extends RowSet {
  readonly metadata: PathSource & { readonly ids: Utf8Column };
}

interface OrderInput {
  readonly keys: readonly SortKey[];
  readonly segments: readonly (PathsInput & { readonly ids: Utf8Column | null })[];
}

/**
 * Returns the rows in their order, each as its index in the order of arrival. Takes 36 bytes per row, and 24 more per
 * string, while it runs.
 */
export const orderRowsTask: Task<OrderInput, Uint32Array> = {
  name: 'order.orderRows',
  run({ keys, segments }) {
    const rowsOfSegments = segments.map(listRows);
    const rowCount = rowsOfSegments.reduce((sum, rows) => sum + rows.length, 0);
    const columnsOfSegments = segments.map(readColumns);
    const order = new StableOrder(rowCount);
    for (const { field, order: direction } of keys.toReversed()) {
      const values = new KeyValues(rowCount);
      for (const [i, rows] of rowsOfSegments.entries()) {
        if (field === ID_FIELD) values.addTexts(segments[i]!.ids!, rows);
        else values.addColumn(columnsOfSegments[i]!.get(field), rows);
      }
      values.sort(order, direction === 'desc');
    }
    return order.items;
  },
  transfer: ({ buffer }) => [buffer as ArrayBuffer],
};

/** The input of the task, with only what the sort keys read. */
export function orderInput(keys: readonly SortKey[], targets: readonly OrderTarget[]): OrderInput {
  const paths = keys.map(({ field }) => field).filter((field) => field !== ID_FIELD);
  const needsIds = paths.length < keys.length;
  const segments = targets.map((target) => ({
    ...selectPaths(target, target.metadata, [...new Set(paths)]),
    ids: needsIds ? target.metadata.ids : null,
  }));
  return { keys, segments };
}

function listRows({ rows, rowCount }: RowSet): Uint32Array {
  const listed = new Uint32Array(rowCount);
  let count = 0;
  if (rows === null) for (; count < rowCount; count++) listed[count] = count;
  else
    for (let row = nextSetBit(rows, 0); row >= 0; row = nextSetBit(rows, row + 1)) {
      listed[count++] = row;
    }
  return listed.subarray(0, count);
}

const CLASS = { number: 0, string: 1, boolean: 2, none: 3 } as const;

/** The values of all rows at one sort key, as unsigned integers with the same order. */
class KeyValues {
  /** [rowCount] values of CLASS. */
  readonly #classes: Uint32Array;
  /**
   * [rowCount] each, the high and the low half of the values; zeros for rows without a value. The low half of a string
   * is the index of its text, and then its rank.
   */
  readonly #high: Uint32Array;
  readonly #low: Uint32Array;
  /** [rowCount] residues, see MetadataColumn; null if no row has any. */
  #residues: Uint32Array | null = null;
  readonly #texts: TextRanks;
  #count = 0;

  constructor(rowCount: number) {
    this.#classes = new Uint32Array(rowCount).fill(CLASS.none);
    this.#high = new Uint32Array(rowCount);
    this.#low = new Uint32Array(rowCount);
    this.#texts = new TextRanks(rowCount);
  }

  addTexts(texts: Utf8Column, rows: Uint32Array): void {
    for (const row of rows) {
      this.#low[this.#count] = this.#texts.add(texts, row);
      this.#classes[this.#count++] = CLASS.string;
    }
  }

  /** @param column undefined if no row of the segment has the path. */
  addColumn(column: MetadataColumn | undefined, rows: Uint32Array): void {
    const at = this.#count;
    this.#count += rows.length;
    if (column === undefined) return;
    const { kinds, numbers, residues } = column;
    const textOfCode = new Int32Array(column.dictionaryCount).fill(-1);
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i]!;
      const kind = kinds[row];
      if (kind === KIND.number) this.#setNumber(at + i, numbers![row]!, residues?.[row] ?? 0);
      else if (kind === KIND.string) {
        const code = column.codes![row]!;
        if (textOfCode[code] === -1) textOfCode[code] = this.#texts.add(column.dictionary!, code);
        this.#low[at + i] = textOfCode[code]!;
        this.#classes[at + i] = CLASS.string;
      } else if (kind === KIND.true || kind === KIND.false) {
        this.#low[at + i] = kind === KIND.true ? 1 : 0;
        this.#classes[at + i] = CLASS.boolean;
      }
    }
  }

  sort(order: StableOrder, descends: boolean): void {
    this.#rankTexts();
    if (descends) {
      invert(this.#high);
      invert(this.#low);
      if (this.#residues !== null) invert(this.#residues);
    }
    if (this.#residues !== null) order.sortBy(this.#residues);
    order.sortBy(this.#low);
    order.sortBy(this.#high);
    order.sortBy(this.#classes);
  }

  #setNumber(at: number, number: number, residue: number): void {
    // Zero is never negative.
    DOUBLE[0] = number + 0;
    const high = WORDS[HIGH_WORD]!;
    const low = WORDS[1 - HIGH_WORD]!;
    // The bits of negative numbers ascend while the numbers descend.
    const isNegative = high >>> 31 === 1;
    this.#high[at] = isNegative ? ~high : high ^ 0x80000000;
    this.#low[at] = isNegative ? ~low : low;
    this.#classes[at] = CLASS.number;
    if (residue === 0) return;
    this.#residues ??= new Uint32Array(this.#classes.length).fill(RESIDUE_ZERO);
    this.#residues[at] = RESIDUE_ZERO + residue;
  }

  #rankTexts(): void {
    if (this.#texts.count === 0) return;
    const ranks = this.#texts.rank();
    for (let i = 0; i < this.#count; i++) {
      if (this.#classes[i] === CLASS.string) this.#low[i] = ranks[this.#low[i]!]!;
    }
  }
}

const DOUBLE = new Float64Array(1);
const WORDS = new Uint32Array(DOUBLE.buffer);
/** The index of the word of a float64 that contains its sign on this machine. */
const HIGH_WORD = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1 ? 1 : 0;

/** A residue of 0, as an unsigned integer. */
const RESIDUE_ZERO = 2 ** 31;

function invert(words: Uint32Array): void {
  for (let i = 0; i < words.length; i++) words[i] = ~words[i]!;
}
