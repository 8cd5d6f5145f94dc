// Slices of views give the same results as the whole view.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasBit } from '../../src/common/bitmap.js';
import { DEFAULT_LIMITS } from '../../src/common/limits.js';
import type { Json, JsonObject } from '../../src/common/types.js';
import { evaluateFilter } from '../../src/filter/evaluate.js';
import { filterPaths } from '../../src/filter/filter-node.js';
import { parseFilter } from '../../src/filter/parse.js';
import { sliceView } from '../../src/filter/slice-view.js';
import { textOf, viewOf } from './view-of.js';

const CELLS: readonly (Json | undefined)[] = [
  1,
  'x',
  null,
  true,
  undefined,
  ['x', 2],
  {},
  5,
  'y',
  [],
  ['y'],
  undefined,
  undefined,
];

const FILTERS: readonly JsonObject[] = [
  { a: 1 },
  { a: 'x' },
  { a: null },
  { a: { $gte: 1, $lt: 5 } },
  { a: { $gt: 'x' } },
  { a: { $in: ['x', 'y', 1, true] } },
  { a: { $contains: 'y' } },
  { a: { $contains_all: ['x', 2] } },
  { a: { $exists: false } },
  { a: { $prefix: 'x' } },
  { a: { $size: 2 } },
  { a: { $elem_match: { $gte: 2 } } },
  { $id: { $like: 'doc/%' } },
  { $or: [{ a: { $ne: 'y' }, b: 3 }, { b: { $lt: 2 } }] },
];

for (const hasGarbage of [false, true]) {
  for (const withoutColumns of [[], ['a'], ['a', 'b']]) {
    const how = `${hasGarbage ? 'arrays that run on' : 'arrays that end early'}, without columns for [${withoutColumns}]`;
    test(`rows of a slice match as in the whole view: ${how}`, () => {
      const documents = Array.from({ length: 150 }, (_, row): JsonObject => {
        const a = row < 130 ? CELLS[row % CELLS.length] : undefined;
        return { ...(a === undefined ? {} : { a }), b: row % 7 };
      });
      const view = viewOf(documents.map(textOf), { hasGarbage, withoutColumns });
      for (const filter of FILTERS) {
        const node = parseFilter(filter, { limits: DEFAULT_LIMITS, hasText: true });
        const whole = evaluateFilter(node, view);
        for (const from of [0, 32, 64, 96, 128]) {
          const later = evaluateFilter(node, sliceView(view, from, filterPaths(node)));
          assert.equal(later.length, 150 - from);
          for (let row = from; row < 150; row++) {
            const where = `row ${row} from ${from} of ${JSON.stringify(filter)}`;
            assert.equal(hasBit(later, row - from), hasBit(whole, row), where);
          }
        }
      }
    });
  }
}
