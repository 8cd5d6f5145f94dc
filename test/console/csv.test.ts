import assert from 'node:assert/strict';
import { test } from 'node:test';
import { csvLine } from '../../src/console/ui/csv.js';

test('a line of CSV quotes what would end a cell, and has nothing for absent values', () => {
  const cells = ['a,b', 'say "no"', 'two\nlines', 1.5, true, null, undefined, { a: ['x'] }];
  assert.equal(csvLine(cells), '"a,b","say ""no""","two\nlines",1.5,true,,,"{""a"":[""x""]}"\r\n');
});
