// Which thread evaluates a filter, and what is sent to it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { countBits } from '../../src/bitmap.js';
import { KIND, type MetadataColumn, type MetadataView } from '../../src/columns.js';
import { evaluateFilter } from '../../src/filter/evaluate.js';
import {
  evaluateFilterTask,
  type FilterInput,
  selectRows,
} from '../../src/filter/evaluate-task.js';
import { parseFilter } from '../../src/filter/parse.js';
import { DEFAULT_LIMITS } from '../../src/limits.js';
import type { Task, WorkerPool } from '../../src/pool.js';
import type { JsonObject } from '../../src/types.js';
import { viewOf } from './view-of.js';

/** Does to a task what a thread does: its input and output are cloned. */
function createCloningPool() {
  const inputs: FilterInput[] = [];
  const signals: (AbortSignal | undefined)[] = [];
  const pool: WorkerPool = {
    threadCount: 1,
    async run<Input, Output>(
      task: Task<Input, Output>,
      input: Input,
      options: { signal?: AbortSignal } = {},
    ): Promise<Output> {
      assert.equal(task.name, 'filter.evaluate');
      inputs.push(input as FilterInput);
      signals.push(options.signal);
      return structuredClone(task.run(structuredClone(input)));
    },
    async close() {},
  };
  return { pool, inputs, signals };
}

const node = (filter: JsonObject) => parseFilter(filter, DEFAULT_LIMITS);

function largeView(rowCount: number): MetadataView {
  const kinds = new Uint8Array(new SharedArrayBuffer(rowCount)).fill(KIND.number);
  const numbers = Float64Array.from({ length: rowCount }, (_, row) => row % 10);
  const column: MetadataColumn = {
    kinds,
    numbers,
    codes: null,
    dictionary: null,
    dictionaryCount: 0,
    items: null,
  };
  return { ...viewOf([]), rowCount, columns: new Map(['a', 'b'].map((path) => [path, column])) };
}

test('a small filter is answered without the pool', async () => {
  const { pool, inputs } = createCloningPool();
  const rows = await selectRows(pool, node({ a: 3 }), largeView(1000));
  assert.equal(countBits(rows), 100);
  assert.equal(inputs.length, 0);
});

test('a filter that reads nothing is answered without the pool', async () => {
  const { pool, inputs } = createCloningPool();
  assert.equal(countBits(await selectRows(pool, node({}), largeView(100_000))), 100_000);
  assert.equal(inputs.length, 0);
});

test('a large filter goes to the pool with the columns it reads and nothing else', async () => {
  const { pool, inputs, signals } = createCloningPool();
  const view = largeView(100_000);
  const { signal } = new AbortController();
  const rows = await selectRows(pool, node({ a: 3, gone: null }), view, { signal });
  assert.equal(countBits(rows), 10_000);
  assert.deepEqual(
    inputs.map((input) => input.columns.map(([path]) => path)),
    [['a']],
  );
  assert.equal(inputs[0].json, null);
  assert.equal(signals[0], signal);
});

test('rows are sent as JSON only when a path of the filter has no column', async () => {
  const { pool, inputs } = createCloningPool();
  const texts = Array.from({ length: 500 }, (_, row) => `{"a":${row},"b":${row % 5}}`);
  const view = viewOf(texts, { withoutColumns: ['b'] });
  assert.equal(countBits(await selectRows(pool, node({ a: { $lt: 9 } }), view)), 9);
  assert.equal(inputs.length, 0);
  assert.equal(countBits(await selectRows(pool, node({ b: 2, a: { $lt: 9 } }), view)), 2);
  assert.deepEqual(
    inputs.map(({ json }) => json),
    [view.json],
  );
});

test('a task answers as the calling thread does', () => {
  const texts = ['{"a":["x",1]}', '{"a":null}', '{}', '{"a":"x","b":{"c":2}}'];
  const filters = [{ a: 'x' }, { a: null }, { $not: { 'b.c': 2 } }, { a: { $contains_all: [1] } }];
  for (const withoutColumns of [[], ['a'], ['a', 'b.c']]) {
    const view = viewOf(texts, { withoutColumns });
    for (const filter of filters as JsonObject[]) {
      const { rowCount, isComplete, json } = view;
      const columns = [...view.columns];
      const input = { node: node(filter), rowCount, columns, isComplete, json };
      const cloned = evaluateFilterTask.run(structuredClone(input));
      assert.deepEqual(cloned, evaluateFilter(input.node, view));
    }
  }
});
