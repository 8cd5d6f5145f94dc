// The program that the build makes from src.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { packageFile } from '../../src/common/package-files.js';

/** A literal that begins with the members of another object, or a pattern that begins with the rest. */
const LEADING_SPREAD = /(?<!(?:let|const|var) )\{\s*\.\.\.(?!null, )/g;

test('no object literal of the program begins with a spread, for which V8 makes classes anew', () => {
  const folder = packageFile('dist/app');
  let spreadCount = 0;
  for (const name of readdirSync(folder)) {
    // The loader is not built but copied.
    if (!name.endsWith('.js') || name === 'code-cache.js') continue;
    const code = readFileSync(join(folder, name), 'utf8');
    spreadCount += code.split('...null, ').length - 1;
    const found = [...code.matchAll(LEADING_SPREAD)].map(({ index }) =>
      code.slice(index, index + 80),
    );
    assert.deepEqual(found, [], name);
  }
  assert.ok(spreadCount > 100, `${spreadCount} literals`);
});
