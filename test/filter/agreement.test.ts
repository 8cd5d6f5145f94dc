// A few random filters over random documents; agreement.ci.test.ts runs many more.

import { test } from 'node:test';
import { compareOperators, compareRandomFilters } from './agreement.js';

test('columns, incomplete columns and single documents give the answers of the oracle', (t) => {
  compareRandomFilters(t, 60);
});

test('operators give the answers of the oracle over values that suit them', (t) => {
  compareOperators(t, 30);
});
