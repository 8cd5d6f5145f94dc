import assert from 'node:assert/strict';
import { test } from 'node:test';
import { countBitsBetween, createBitmap, hasBit, setBit } from '../../src/common/bitmap.js';

const LENGTH = 100;

test('counts the bits of every range of rows as a loop over the rows does', () => {
  const bitmap = createBitmap(LENGTH);
  for (let row = 0; row < LENGTH; row++) if (row % 3 === 0 || row % 7 === 5) setBit(bitmap, row);
  for (let from = 0; from <= LENGTH; from++) {
    let count = 0;
    for (let to = from; to <= LENGTH; to++) {
      assert.equal(countBitsBetween(bitmap, from, to), count, `rows ${from} to ${to}`);
      if (to < LENGTH && hasBit(bitmap, to)) count++;
    }
  }
});
