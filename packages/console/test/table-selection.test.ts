import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  cellAfterKey,
  SELECTED_MAX,
  toggled,
  withAll,
} from '../src/views/vectors/table-selection.js';

describe('a selection', () => {
  test('gains and loses ids', () => {
    const one = toggled(new Set<string>(), 'a');
    assert.deepEqual([...withAll(one, ['a', 'b'])], ['a', 'b']);
    assert.deepEqual([...toggled(one, 'a')], []);
  });

  test('has no more ids than one request accepts', () => {
    const ids = Array.from({ length: SELECTED_MAX + 5 }, (_, i) => `v${i}`);
    const all = withAll(new Set(), ids);
    assert.equal(all.size, SELECTED_MAX);
    assert.equal(toggled(all, 'another').size, SELECTED_MAX);
    assert.equal(toggled(all, 'v0').size, SELECTED_MAX - 1);
  });
});

describe('keys', () => {
  const extent = { rowCount: 100, columnCount: 4, pageRows: 10 };
  const after = (row: number, column: number, key: string, ctrlKey = false) =>
    cellAfterKey({ row, column }, { key, ctrlKey }, extent);

  test('move from the header to the last cell', () => {
    assert.deepEqual(after(0, 2, 'ArrowUp'), { row: -1, column: 2 });
    assert.deepEqual(after(-1, 0, 'ArrowUp'), { row: -1, column: 0 });
    assert.deepEqual(after(99, 3, 'ArrowDown'), { row: 99, column: 3 });
    assert.deepEqual(after(5, 3, 'ArrowRight'), { row: 5, column: 3 });
    assert.deepEqual(after(5, 1, 'PageDown'), { row: 15, column: 1 });
    assert.deepEqual(after(5, 1, 'PageUp'), { row: 0, column: 1 });
    assert.deepEqual(after(5, 1, 'Home'), { row: 5, column: 0 });
    assert.deepEqual(after(5, 1, 'End', true), { row: 99, column: 1 });
  });

  test('that do not move are ignored', () => {
    assert.equal(after(0, 0, 'Enter'), undefined);
    assert.equal(after(0, 0, 'x'), undefined);
  });
});
