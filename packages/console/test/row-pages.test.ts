import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { RowPages } from '../src/views/browse/row-pages.js';

interface Read {
  readonly offset: number;
  readonly signal: AbortSignal;
  readonly resolve: (rows: readonly number[]) => void;
  readonly fail: (error: Error) => void;
}

/** Pages of 10 rows, at most three of them kept, and the requests in order. */
function openPages() {
  const reads: Read[] = [];
  const errors: unknown[] = [];
  let changeCount = 0;
  const pages = new RowPages<number>(
    (offset, _limit, signal) =>
      new Promise((resolve, fail) => reads.push({ offset, signal, resolve, fail })),
    {
      pageRows: 10,
      pagesMax: 3,
      onChange: () => changeCount++,
      onError: (error) => errors.push(error),
    },
  );
  const rowsAt = (offset: number) => Array.from({ length: 10 }, (_, i) => offset + i);
  return {
    pages,
    reads,
    errors,
    changes: () => changeCount,
    async answer(read: Read | undefined) {
      read!.resolve(rowsAt(read!.offset));
      await new Promise(setImmediate);
    },
  };
}

describe('pages of rows', () => {
  test('are read once, when they are shown', async () => {
    const { pages, reads, answer, changes } = openPages();
    pages.show(5, 15);
    pages.show(5, 16);
    assert.deepEqual(
      reads.map(({ offset }) => offset),
      [0, 10],
    );
    assert.equal(pages.rowAt(12), undefined);
    await answer(reads[1]);
    assert.equal(pages.rowAt(12), 12);
    assert.equal(changes(), 1);
    pages.show(12, 14);
    assert.equal(reads.length, 2);
  });

  test('are aborted when they are scrolled past', async () => {
    const { pages, reads, answer, changes } = openPages();
    pages.show(0, 10);
    pages.show(100, 110);
    assert.deepEqual(
      reads.map(({ signal }) => signal.aborted),
      [true, false],
    );
    await answer(reads[0]);
    assert.equal(pages.rowAt(0), undefined);
    assert.equal(changes(), 0);
    pages.close();
    assert.ok(reads[1]!.signal.aborted);
  });

  test('are dropped if other pages have been shown since', async () => {
    const { pages, reads, answer } = openPages();
    pages.addFirst([0]);
    for (const offset of [10, 20]) {
      pages.show(offset, offset + 10);
      await answer(reads.at(-1));
    }
    pages.show(0, 10);
    pages.show(30, 40);
    await answer(reads.at(-1));
    assert.equal(pages.rowAt(0), 0);
    assert.equal(pages.rowAt(10), undefined);
    assert.equal(pages.rowAt(20), 20);
  });

  test('that failed are read again when they are shown again', async () => {
    const { pages, reads, errors, answer } = openPages();
    pages.show(0, 10);
    reads[0]!.fail(new Error('lost'));
    await new Promise(setImmediate);
    assert.match(String(errors[0]), /lost/);
    pages.show(0, 10);
    await answer(reads[1]);
    assert.equal(pages.rowAt(3), 3);
  });
});
