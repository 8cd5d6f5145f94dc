import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  contentHeight,
  positionShowing,
  rowsInView,
  stateAfterScroll,
  stateAt,
} from '../src/views/vectors/scroll-window.js';

const SHORT = { rowCount: 1_000, rowHeight: 34, viewportHeight: 340 };
const LONG = { rowCount: 5_000_000, rowHeight: 34, viewportHeight: 340 };

describe('rows in view', () => {
  test('are those at the scroll offset of a short table', () => {
    assert.equal(contentHeight(SHORT), 34_000);
    const state = stateAfterScroll(SHORT, { scrollTop: 0, position: 0 }, 3_400);
    assert.deepEqual(rowsInView(SHORT, state.position, 0), { first: 100, last: 110 });
    assert.deepEqual(rowsInView(SHORT, 0, 8), { first: 0, last: 18 });
  });

  test('can all be reached in a table that is higher than browsers allow', () => {
    assert.ok(contentHeight(LONG) < 17_000_000);
    const scrollMax = contentHeight(LONG) - LONG.viewportHeight;
    const end = stateAfterScroll(LONG, { scrollTop: 0, position: 0 }, scrollMax);
    assert.equal(rowsInView(LONG, end.position, 0).last, 5_000_000);
    const middle = stateAfterScroll(LONG, end, scrollMax / 2);
    assert.ok(Math.abs(rowsInView(LONG, middle.position, 0).first - 2_500_000) < 10);
  });

  test('follow a wheel row by row, even if the height is scaled', () => {
    let state = stateAt(LONG, 34 * 1_000_000);
    const before = rowsInView(LONG, state.position, 0).first;
    for (let turn = 0; turn < 100; turn++) {
      state = stateAfterScroll(LONG, state, state.scrollTop + 34);
    }
    assert.equal(rowsInView(LONG, state.position, 0).first, before + 100);
  });

  test('get a proportional scroll offset after they have settled', () => {
    const moved = { scrollTop: 5_000, position: 34 * 4_000_000 };
    const settled = stateAt(LONG, moved.position);
    assert.equal(settled.position, moved.position);
    const share = settled.scrollTop / (contentHeight(LONG) - LONG.viewportHeight);
    assert.ok(Math.abs(share - 0.8) < 0.001);
  });

  test('are brought into view with the least movement', () => {
    assert.equal(positionShowing(SHORT, 340, 12), 340);
    assert.equal(positionShowing(SHORT, 340, 5), 170);
    assert.equal(positionShowing(SHORT, 340, 25), 26 * 34 - 340);
  });
});
