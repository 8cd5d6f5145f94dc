// Which thread evaluates a filter, what it is sent, and how it is stopped.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { countBits } from '../../src/common/bitmap.js';
import { KIND, type MetadataColumn, type MetadataView } from '../../src/common/columns.js';
import { DEFAULT_LIMITS } from '../../src/common/limits.js';
import type { JsonObject } from '../../src/common/types.js';
import { evaluateFilter } from '../../src/filter/evaluate.js';
import {
  evaluateFilterTask,
  type FilterInput,
  selectRows,
} from '../../src/filter/evaluate-task.js';
import type { FilterNode } from '../../src/filter/filter-node.js';
import { parseFilter } from '../../src/filter/parse.js';
import type { Task, WorkerPool } from '../../src/platform/pool.js';
import { utf8Of, viewOf } from './view-of.js';

/** A pool that runs a task as a thread does: later, and with cloned input and output. */
function createCloningPool(threadCount = 2) {
  const inputs: FilterInput[] = [];
  const pool: WorkerPool = {
    threadCount,
    async run<Input, Output>(task: Task<Input, Output>, input: Input): Promise<Output> {
      assert.equal(task.name, 'filter.evaluate');
      inputs.push(input as FilterInput);
      const received = structuredClone(input);
      await new Promise((resolve) => setImmediate(resolve));
      return structuredClone(task.run(received));
    },
    async close() {},
  };
  return { pool, inputs };
}

const node = (filter: JsonObject) => parseFilter(filter, { limits: DEFAULT_LIMITS, hasText: true });

function largeView(rowCount: number): MetadataView {
  const kinds = new Uint8Array(new SharedArrayBuffer(rowCount)).fill(KIND.number);
  const numbers = Float64Array.from({ length: rowCount }, (_, row) => row % 10);
  const column: MetadataColumn = {
    kinds,
    numbers,
    residues: null,
    codes: null,
    dictionary: null,
    dictionaryCount: 0,
    items: null,
  };
  return { ...viewOf([]), rowCount, columns: new Map(['a', 'b'].map((path) => [path, column])) };
}

/** Counts the matching rows of each view. */
async function countIn(pool: WorkerPool, filter: FilterNode, views: readonly MetadataView[]) {
  const found = await Promise.all(selectRows(pool, filter, views).map(({ rows }) => rows));
  return found.map((rows, i) => {
    assert.equal(rows?.length, views[i].rowCount);
    return countBits(rows!);
  });
}

test('a small filter is answered without the pool', async () => {
  const { pool, inputs } = createCloningPool();
  const views = [largeView(1000), largeView(20)];
  assert.deepEqual(await countIn(pool, node({ a: 3 }), views), [100, 2]);
  assert.equal(inputs.length, 0);
});

test('a filter that reads nothing is answered without the pool', async () => {
  const { pool, inputs } = createCloningPool();
  assert.deepEqual(await countIn(pool, node({}), [largeView(100_000)]), [100_000]);
  assert.equal(inputs.length, 0);
});

test('a large filter goes to the pool with the columns it reads and nothing else', async () => {
  const { pool, inputs } = createCloningPool();
  const view = largeView(200_000);
  assert.deepEqual(await countIn(pool, node({ a: 3, gone: null }), [view]), [20_000]);
  assert.deepEqual(
    inputs.map(({ views }) => views.map(({ columns }) => columns.map(([path]) => path))),
    [[['a']]],
  );
  assert.equal(inputs[0].views[0].json, null);
});

test('views are spread over as many tasks as there are threads, by their size', async () => {
  const { pool, inputs } = createCloningPool(3);
  const rowCounts = [90_000, 60_000, 60_000, 10, 30_000, 30_000];
  const counts = await countIn(pool, node({ a: 3 }), rowCounts.map(largeView));
  assert.deepEqual(
    counts,
    rowCounts.map((count) => count / 10),
  );
  assert.deepEqual(
    inputs.map(({ views }) => views.reduce((sum, { rowCount }) => sum + rowCount, 0)),
    [90_000, 90_010, 90_000],
  );
});

test('tasks that would be too small are combined', async () => {
  const { pool, inputs } = createCloningPool(16);
  const views = Array.from({ length: 16 }, () => largeView(10_000));
  assert.deepEqual(
    await countIn(pool, node({ a: 3 }), views),
    views.map(() => 1000),
  );
  assert.equal(inputs.length, 3);
});

test('rows are sent as JSON only when a path of the filter has no column', async () => {
  const { pool, inputs } = createCloningPool();
  const texts = Array.from({ length: 500 }, (_, row) => `{"a":${row},"b":${row % 5}}`);
  const view = viewOf(texts, { withoutColumns: ['b'] });
  assert.deepEqual(await countIn(pool, node({ a: { $lt: 9 } }), [view]), [9]);
  assert.equal(inputs.length, 0);
  assert.deepEqual(await countIn(pool, node({ b: 2, a: { $lt: 9 } }), [view]), [2]);
  assert.deepEqual(
    inputs.map(({ views }) => views.map(({ json }) => json)),
    [[view.json]],
  );
});

test('a task gives the same answer as the calling thread', () => {
  const texts = ['{"a":["x",1]}', '{"a":null}', '{}', '{"a":"x","b":{"c":2}}'];
  const filters = [{ a: 'x' }, { a: null }, { $not: { 'b.c': 2 } }, { a: { $contains_all: [1] } }];
  for (const withoutColumns of [[], ['a'], ['a', 'b.c']]) {
    const view = viewOf(texts, { withoutColumns });
    for (const filter of filters as JsonObject[]) {
      const input = { node: node(filter), views: [inputOf(view)] };
      const cloned = evaluateFilterTask.run(structuredClone(input));
      assert.deepEqual(cloned, [evaluateFilter(input.node, view)]);
    }
  }
});

test('a stopped view gives null, the other views of its task their rows', async () => {
  const { pool, inputs } = createCloningPool(1);
  const selections = selectRows(pool, node({ a: 3 }), [largeView(90_000), largeView(90_000)]);
  assert.equal(inputs.length, 1);
  selections[0].stop();
  assert.equal(await selections[0].rows, null);
  assert.equal(countBits((await selections[1].rows)!), 9_000);
});

test('a task that is stopped parses no further row', () => {
  // The second document stops the task, as another thread would; the third cannot be parsed.
  const input = inputOf(viewOfJson(['{"a":1}', '{"a":2}', 'no JSON']));
  const evaluate = () => evaluateFilterTask.run({ node: node({ a: 1 }), views: [input] });
  assert.throws(evaluate, SyntaxError);
  const { parse } = JSON;
  let parsedCount = 0;
  JSON.parse = (text: string) => {
    parsedCount++;
    if (parsedCount === 2) Atomics.store(input.stop, 0, 1);
    return parse(text);
  };
  try {
    assert.deepEqual(evaluate(), [null]);
    assert.equal(parsedCount, 2);
  } finally {
    JSON.parse = parse;
  }
});

test('what may take long for a few strings goes to the pool', async () => {
  const { pool, inputs } = createCloningPool();
  const text = 'ab'.repeat(2_000);
  const view = viewOf([`{"a":"${text}","b":["${text}"]}`, '{"a":"x"}']);
  for (const [filter, matches, taskCount] of [
    [{ a: { $prefix: 'ab' } }, 1, 0],
    [{ a: { $like: '%x' } }, 1, 0],
    [{ a: { $like: `%${'ab'.repeat(50)}x` } }, 0, 1],
    [{ a: { $regex: 'x' } }, 1, 1],
    [{ b: { $elem_match: { $regex: 'a' } } }, 1, 1],
    [{ $id: { $regex: 'o' } }, 2, 0],
  ] as const) {
    inputs.length = 0;
    const answers = await countIn(pool, node(filter as JsonObject), [view]);
    assert.deepEqual([answers, inputs.length], [[matches], taskCount], JSON.stringify(filter));
  }
});

test('polygons of many points go to the pool', async () => {
  const { pool, inputs } = createCloningPool();
  const view = viewOf(new Array(500).fill('{"at":{"lat":1,"lon":2}}'));
  const corners = Array.from({ length: 300 }, (_, i) => ({ lat: i / 10, lon: i % 2 }));
  for (const [pointCount, taskCount] of [
    [3, 0],
    [300, 1],
  ] as const) {
    inputs.length = 0;
    const shape = { $geo_polygon: { exterior: corners.slice(0, pointCount) } };
    assert.deepEqual(await countIn(pool, node({ at: shape }), [view]), [0]);
    assert.equal(inputs.length, taskCount);
  }
});

test('a failure of a task rejects all of its views', async () => {
  const { pool } = createCloningPool(1);
  const broken = viewOfJson(Array.from({ length: 200 }, () => 'no JSON'));
  const selections = selectRows(pool, node({ a: 1 }), [broken, broken]);
  for (const { rows } of selections) await assert.rejects(rows, SyntaxError);
});

/** Returns a view without columns. The texts need not be valid JSON. */
function viewOfJson(texts: readonly string[]): MetadataView {
  return { ...viewOf([]), rowCount: texts.length, isComplete: false, json: utf8Of(texts) };
}

function inputOf(view: MetadataView): FilterInput['views'][number] {
  const { rowCount, isComplete, json } = view;
  const stop = new Int32Array(new SharedArrayBuffer(4));
  return { rowCount, columns: [...view.columns], isComplete, ids: null, json, stop };
}
