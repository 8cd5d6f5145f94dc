// Numbers in requests: the server compares 64-bit integers digit by digit.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeRequestJson } from '../src/encode-json.js';

test('integers beyond 2^53 are written with all their digits, as bigints and as numbers', () => {
  const filter = { a: { $in: [1768907725507217522n, -(2n ** 63n), 5n] }, b: 2 ** 60, c: 2 ** 70 };
  assert.equal(
    encodeRequestJson({ filter }),
    '{"filter":{"a":{"$in":[1768907725507217522,-9223372036854775808,5]},"b":1152921504606846976,"c":1.1805916207174113e+21}}',
  );
});

test('text with such digits is written unchanged', () => {
  const metadata = { id: '1768907725507217522', text: '"integer 1768907725507217522"' };
  assert.equal(encodeRequestJson({ metadata }), JSON.stringify({ metadata }));
});
