// The index of a segment grows with its rows, is built once for all readers, and survives an abort.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { MetadataView } from '../../src/common/columns.js';
import { TextIndexes } from '../../src/inverted/text-index.js';
import { buildTextRun, mergeTextRuns } from '../../src/inverted/text-run.js';
import { createInlinePool, type WorkerPool } from '../../src/platform/pool.js';
import { columnOf } from '../database/harness.js';

const SETTINGS = { fields: ['a'], language: null, stopWords: [], k1: 1.2, b: 0.75 };

function viewOf(rowCount: number): MetadataView {
  const rows = Array.from({ length: rowCount }, (_, row) => `{"a":"word${row % 7} and ${row}"}`);
  const ids = columnOf(rows.map((_text, row) => String(row)));
  return { rowCount, columns: new Map(), isComplete: true, ids, json: columnOf(rows) };
}

/** A pool whose tasks wait until `release` is called. */
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

test('rows that are added one by one form few runs, which merge into the run of a single build', async () => {
  const indexes = new TextIndexes(createInlinePool());
  const segment = {};
  const { json } = viewOf(300);
  for (let rowCount = 1; rowCount <= 300; rowCount++) {
    const metadata = { ...viewOf(rowCount), json };
    const runs = await indexes.runsOf({ segment, metadata, rowCount }, SETTINGS);
    assert.ok(runs.length <= 2 + Math.log2(rowCount), `${runs.length} runs of ${rowCount} rows`);
    const bounds = runs.flatMap(({ from, to }) => [from, to]);
    assert.deepEqual([bounds[0], bounds.at(-1)], [0, rowCount]);
    if (rowCount % 100 > 0) continue;
    const whole = buildTextRun(json, { from: 0, to: rowCount }, SETTINGS);
    assert.deepEqual(mergeTextRuns(runs), whole);
  }
  assert.ok(indexes.bytesUsed(segment) > 300 * 4);
  assert.equal(indexes.bytesUsed({}), 0);
});

test('readers that arrive while an index is built share it, and an abort ends only the wait', async () => {
  const { pool, names, release } = createHeldPool();
  const indexes = new TextIndexes(pool);
  const view = { segment: {}, metadata: viewOf(5_000), rowCount: 5_000 };
  const controller = new AbortController();
  const aborted = indexes.runsOf(view, SETTINGS, controller.signal);
  const waiting = [1, 2].map(() => indexes.runsOf(view, SETTINGS));
  controller.abort(new Error('gone'));
  await assert.rejects(aborted, /gone/);
  release();
  const [first, second] = await Promise.all(waiting);
  assert.equal(first, second);
  assert.deepEqual(names, ['text.buildRun', 'text.buildRun', 'text.mergeRuns']);
  assert.equal(await indexes.runsOf({ ...view, rowCount: 10 }, SETTINGS), first);
  assert.equal(names.length, 3);
});

test('a failure reaches every waiting reader, and the next reader tries again', async () => {
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
  const waiting = [1, 2].map(() => indexes.runsOf(view, SETTINGS));
  for (const one of waiting) await assert.rejects(one, /no thread/);
  const [run] = await indexes.runsOf(view, SETTINGS);
  assert.deepEqual([run!.from, run!.to], [0, 1_000]);
});
