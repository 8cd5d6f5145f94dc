// The index of a segment: it follows the rows, is built once for all readers, and outlives an abort.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { MetadataView } from '../../src/common/columns.js';
import { TextIndexes } from '../../src/inverted/text-index.js';
import { buildPart, mergeParts } from '../../src/inverted/text-part.js';
import { createInlinePool, type WorkerPool } from '../../src/platform/pool.js';
import { columnOf } from '../database/harness.js';

const SETTINGS = { fields: ['a'], language: null, stopWords: [], k1: 1.2, b: 0.75 };

function viewOf(rowCount: number): MetadataView {
  const rows = Array.from({ length: rowCount }, (_, row) => `{"a":"word${row % 7} and ${row}"}`);
  const ids = columnOf(rows.map((_text, row) => String(row)));
  return { rowCount, columns: new Map(), isComplete: true, ids, json: columnOf(rows) };
}

/** Tasks wait until `release`. */
function createHeldPool() {
  const inline = createInlinePool();
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const names: string[] = [];
  const pool: WorkerPool = {
    ...inline,
    async run(task, input) {
      names.push(task.name);
      await released;
      return inline.run(task, input);
    },
  };
  return { pool, names, release };
}

test('rows that come one by one are in few parts, which together are one build', async () => {
  const indexes = new TextIndexes(createInlinePool());
  const segment = {};
  const { json } = viewOf(300);
  for (let rowCount = 1; rowCount <= 300; rowCount++) {
    const metadata = { ...viewOf(rowCount), json };
    const parts = await indexes.partsOf({ segment, metadata, rowCount }, SETTINGS);
    assert.ok(parts.length <= 2 + Math.log2(rowCount), `${parts.length} parts of ${rowCount} rows`);
    const bounds = parts.flatMap(({ from, to }) => [from, to]);
    assert.deepEqual([bounds[0], bounds.at(-1)], [0, rowCount]);
    if (rowCount % 100 > 0) continue;
    const whole = buildPart(json, { from: 0, to: rowCount }, SETTINGS);
    assert.deepEqual(mergeParts(parts), whole);
  }
  assert.ok(indexes.bytesUsed(segment) > 300 * 4);
  assert.equal(indexes.bytesUsed({}), 0);
});

test('readers that arrive while an index is built share it, and an abort ends the wait only', async () => {
  const { pool, names, release } = createHeldPool();
  const indexes = new TextIndexes(pool);
  const view = { segment: {}, metadata: viewOf(5_000), rowCount: 5_000 };
  const controller = new AbortController();
  const aborted = indexes.partsOf(view, SETTINGS, controller.signal);
  const waiting = [1, 2].map(() => indexes.partsOf(view, SETTINGS));
  controller.abort(new Error('gone'));
  await assert.rejects(aborted, /gone/);
  release();
  const [first, second] = await Promise.all(waiting);
  assert.equal(first, second);
  assert.deepEqual(names, ['text.buildPart', 'text.buildPart', 'text.mergeParts']);
  assert.equal(await indexes.partsOf({ ...view, rowCount: 10 }, SETTINGS), first);
  assert.equal(names.length, 3);
});

test('a failure reaches everyone who waits, and the next reader tries again', async () => {
  const inline = createInlinePool();
  let failures = 1;
  const pool: WorkerPool = {
    ...inline,
    async run(task, input) {
      if (failures-- > 0) throw new Error('no thread');
      return inline.run(task, input);
    },
  };
  const indexes = new TextIndexes(pool);
  const view = { segment: {}, metadata: viewOf(1_000), rowCount: 1_000 };
  const waiting = [1, 2].map(() => indexes.partsOf(view, SETTINGS));
  for (const one of waiting) await assert.rejects(one, /no thread/);
  const [part] = await indexes.partsOf(view, SETTINGS);
  assert.deepEqual([part!.from, part!.to], [0, 1_000]);
});
