// Thresholds of scores, which clients take from replies of either kind.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { float32Text } from '../../../src/common/float-text.js';
import { toThreshold } from '../../../src/server/ingest/query-request.js';

test('a score is its own threshold, as text in JSON and as float32 in Arrow', () => {
  fc.assert(
    fc.property(fc.float({ noNaN: true, noDefaultInfinity: true }), (score) => {
      const shown = score === 0 ? 0 : score;
      assert.equal(toThreshold(shown), shown);
      assert.equal(toThreshold(Number(float32Text(shown))), shown);
    }),
  );
  assert.equal(toThreshold(undefined), undefined);
});
