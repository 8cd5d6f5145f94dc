// Compares the loops over 32 rows with tests row by row, for columns that end anywhere, kinds at any address, and
// garbage where it is allowed.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Bitmap, clearBit, createFullBitmap, hasBit } from '../../src/common/bitmap.js';
import { KIND } from '../../src/common/columns.js';
import { EMPTY_COLUMN } from '../../src/filter/column-plans.js';
import { elementsOfRows, rowsOfElements } from '../../src/filter/column-test.js';
import {
  keepKinds,
  keepNumbers,
  keepString,
  keepStrings,
  kindMask,
  kindWordsOf,
} from '../../src/filter/row-loops.js';
import { createRandom, testSeed } from '../database/harness.js';

const SEED = testSeed();
const KINDS = Object.values(KIND);
const ENDS = [0, 1, 31, 32, 33, 63, 64, 65, 128, 150];
const ROWS = 150;

interface Cells {
  readonly kinds: Uint8Array;
  readonly numbers: Float64Array;
  readonly codes: Int32Array;
}

/** Returns arrays of `end` rows, with kinds at offset `shift` of their buffer. */
function drawCells(random: () => number, end: number, shift: number): Cells {
  const below = (n: number) => Math.floor(random() * n);
  const kinds = new Uint8Array(new SharedArrayBuffer(end + shift), shift);
  // Most rows have the same kind, so that some words contain one kind and some several.
  const usual = KINDS[below(KINDS.length)];
  for (let row = 0; row < end; row++) kinds[row] = below(20) > 0 ? usual : KINDS[below(8)];
  const numberAt = (row: number) => (kinds[row] === KIND.number ? below(10) : Number.NaN);
  const codeAt = (row: number) =>
    kinds[row] === KIND.string ? below(7) : below(2 ** 31) - 2 ** 30;
  return {
    kinds,
    numbers: Float64Array.from({ length: end }, (_, row) => numberAt(row)),
    codes: Int32Array.from({ length: end }, (_, row) => codeAt(row)),
  };
}

/** Narrows rows, some of which are already cleared, and compares the result with `isKept`. */
function check(
  random: () => number,
  end: number,
  narrow: (rows: Bitmap) => void,
  isKept: (row: number) => boolean,
): void {
  const rows = createFullBitmap(ROWS);
  for (let row = 0; row < ROWS; row++) {
    // Every third word is cleared.
    if (random() < 0.2 || (row >>> 5) % 3 === 1) clearBit(rows, row);
  }
  const before = Array.from({ length: ROWS }, (_, row) => hasBit(rows, row));
  narrow(rows);
  for (let row = 0; row < ROWS; row++) {
    const expected = before[row] && (row >= end || isKept(row));
    assert.equal(hasBit(rows, row), expected, `row ${row}, arrays end at ${end}`);
  }
}

test(`every loop keeps the same rows as a test row by row (seed ${SEED})`, () => {
  const random = createRandom(SEED);
  const below = (n: number) => Math.floor(random() * n);
  for (let round = 0; round < 40; round++) {
    for (const end of ENDS) {
      const { kinds, numbers, codes } = drawCells(random, end, round % 5);
      const byKind = Int32Array.from({ length: 8 }, () => below(2));
      check(
        random,
        end,
        (rows) => keepKinds(rows, end, kinds, byKind),
        (row) => byKind[kinds[row]] === 1,
      );
      const low = round % 3 === 0 ? Number.NEGATIVE_INFINITY : below(10);
      const high = round % 4 === 0 ? Number.POSITIVE_INFINITY : low + below(5);
      check(
        random,
        end,
        (rows) => keepNumbers(rows, end, { kinds, numbers }, { low, high }),
        (row) => kinds[row] === KIND.number && numbers[row] >= low && numbers[row] <= high,
      );
      const code = below(7);
      check(
        random,
        end,
        (rows) => keepString(rows, end, { kinds, codes }, code),
        (row) => kinds[row] === KIND.string && codes[row] === code,
      );
      const byCode = Int32Array.from({ length: 7 }, () => below(3));
      check(
        random,
        end,
        (rows) => keepStrings(rows, end, { kinds, codes }, byCode),
        (row) => kinds[row] === KIND.string && byCode[codes[row]] !== 0,
      );
    }
  }
});

test('every kind is found at every position of a word among every other kind', () => {
  for (const kind of KINDS) {
    for (const other of KINDS) {
      if (kind === other) continue;
      for (let row = 0; row < 32; row++) {
        const kinds = new Uint8Array(64).fill(other);
        kinds[32 + row] = kind;
        assert.equal(kindMask(kindWordsOf(kinds), 1, kind), 1 << row);
        assert.equal(kindMask(kindWordsOf(kinds), 1, other), ~(1 << row));
      }
    }
  }
});

test(`rows are found by their elements, even in a slice of later rows (seed ${SEED})`, () => {
  const random = createRandom(SEED);
  const counts = Array.from({ length: ROWS }, () => Math.floor(random() * 4));
  const offsets = new Int32Array(ROWS + 1);
  for (const [row, count] of counts.entries()) offsets[row + 1] = offsets[row] + count;
  const passes = Array.from({ length: offsets[ROWS] }, () => random() < 0.3);
  const elements = { ...EMPTY_COLUMN, kinds: new Uint8Array(0) };
  for (const from of [0, 32, 96]) {
    for (const covered of [ROWS - from, 20, 0]) {
      const items = {
        offsets: offsets.subarray(from, from + covered + 1),
        elements,
      };
      const rowCount = ROWS - from;
      const passing = elementsOfRows(items, rowCount);
      for (let i = 0; i < passing.length; i++) if (!passes[i]) clearBit(passing, i);
      const rows = rowsOfElements(items, passing, rowCount);
      assert.equal(rows.length, rowCount);
      for (let row = 0; row < rowCount; row++) {
        const own = passes.slice(offsets[from + row], offsets[from + row + 1]);
        const expected = row < covered && own.includes(true);
        assert.equal(hasBit(rows, row), expected, `row ${row} from ${from}, ${covered} covered`);
      }
    }
  }
});
