// Enough random filters over random documents that every operator has matches and misses.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FILTER_OPERATORS } from '../../src/common/filter-operators.js';
import { IS_NIGHTLY } from '../support/nightly.js';
import { compareOperators, compareRandomFilters } from './agreement.js';

test('columns, incomplete columns and single documents give the answers of the oracle', (t) => {
  const counts = compareRandomFilters(t, IS_NIGHTLY ? 1_000 : 400);
  const share = counts.matches / counts.rows;
  assert.ok(share > 0.1 && share < 0.9, 'a filter that always says the same proves nothing');
  assert.ok(counts.byJson > 100, 'too few filters read JSON');
});

test('every operator gives the answers of the oracle over values that suit it', (t) => {
  const seenBy = compareOperators(t, IS_NIGHTLY ? 800 : 200);
  // Words are answered by an index of text: test/database/rankings/text-query.test.ts compares them.
  const operators = Object.keys(FILTER_OPERATORS).filter((name) => name !== '$match');
  for (const operator of [...operators, '$case']) {
    const { matches, misses } = seenBy.get(operator) ?? { matches: 0, misses: 0 };
    assert.ok(matches > 0 && misses > 0, `${operator}: ${matches} matches, ${misses} misses`);
  }
});
