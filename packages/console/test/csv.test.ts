import assert from 'node:assert/strict';
import { test } from 'node:test';
import { csvLine } from '../src/ui/csv.js';

test('a line of CSV quotes special characters and leaves absent values empty', () => {
  const cells = ['a,b', 'say "no"', 'two\nlines', 1.5, true, null, undefined, { a: ['x'] }];
  assert.equal(csvLine(cells), '"a,b","say ""no""","two\nlines",1.5,true,,,"{""a"":[""x""]}"\r\n');
});

test('a line of CSV keeps all digits of integers beyond 2^53', () => {
  const cells = [1768907725507217523n, 2 ** 63, [1768907725507217523n], { a: 2 ** 63 }];
  assert.equal(
    csvLine(cells),
    '1768907725507217523,9223372036854775808,[1768907725507217523],"{""a"":9223372036854775808}"\r\n',
  );
});
