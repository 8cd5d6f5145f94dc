// Tests how queries are packed for the native kernels: data shared by several queries is packed once.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createBitmap } from '../../../src/common/bitmap.js';
import type { BlockView } from '../../../src/engine/core/engine.js';
import { cutForKernels, packColumns } from '../../../src/engine/core/kernel-batch.js';
import { createBlock, createMultiBlockQuery } from '../blocks.js';

const vector = Float32Array.of(1, 0);
const blocks = ['a', 'b', 'c'].map((key) => createBlock(new Float32Array(8), 2, [], key));

function viewsOf(rowCount = 4, rows: BlockView['rows'] = null): BlockView[] {
  return blocks.map((block) => ({ block, rowCount, rows }));
}

describe('packColumns', () => {
  it('packs equal views of neighbouring queries once, and those of one array wherever they are', () => {
    const filter = createBitmap(4);
    const shared = viewsOf();
    const lists = [
      shared,
      viewsOf(),
      viewsOf(3),
      shared,
      viewsOf(4, filter),
      viewsOf(4, filter),
      [],
    ];
    const { columns } = packColumns(
      lists.map((views) => createMultiBlockQuery(views, vector)),
      2,
    );
    const ranges = lists.map((_, index) => [
      ...columns.viewRanges.subarray(2 * index, 2 * index + 2),
    ]);
    const [all, fewer, filtered] = [
      [0, 3],
      [3, 3],
      [6, 3],
    ];
    assert.deepEqual(ranges, [all, all, fewer, all, filtered, filtered, [9, 0]]);
    assert.deepEqual(
      [...columns.views],
      [
        [0, 4, 0, 1, 4, 0, 2, 4, 0],
        [0, 3, 0, 1, 3, 0, 2, 3, 0],
        [0, 4, 1, 1, 4, 1, 2, 4, 1],
      ].flat(),
    );
    assert.deepEqual(columns.bitmaps, [filter.words]);
  });
});

describe('cutForKernels', () => {
  const cut = (lists: readonly BlockView[][], plansSharedViewsOnce: boolean) =>
    cutForKernels(
      lists.map((views) => createMultiBlockQuery(views, vector)),
      { hitsMax: 1000, valuesMax: 1000, viewsMax: 6, plansSharedViewsOnce },
    ).map(({ indexes }) => indexes.length);

  it('counts views that neighbours share once if they are planned once', () => {
    assert.deepEqual(cut([viewsOf(), viewsOf(), viewsOf(), viewsOf()], true), [4]);
    assert.deepEqual(cut([viewsOf(1), viewsOf(2), viewsOf(3), viewsOf(4)], true), [1, 1, 1, 1]);
    const [one, other] = [viewsOf(1), viewsOf(2)];
    assert.deepEqual(cut([one, other, one, other], true), [1, 1, 1, 1]);
  });

  it('counts them for each query if each is planned separately', () => {
    const shared = viewsOf();
    assert.deepEqual(cut([shared, shared, viewsOf(), shared], false), [1, 1, 1, 1]);
  });
});
