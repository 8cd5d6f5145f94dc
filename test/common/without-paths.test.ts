// What clients see of messages that name files.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { withoutPaths } from '../../src/common/without-paths.js';

it('a message for clients contains the names of files but not their folders', () => {
  for (const [text, expected] of [
    ['the kernels are not built', 'the kernels are not built'],
    ['The file /srv/data/store.mark is damaged', 'The file store.mark is damaged'],
    ['run `node /opt/sagitta/scripts/build.mjs cuda`, then', 'run `node build.mjs cuda`, then'],
    ['C:\\data\\store.mark: no', 'store.mark: no'],
    ['/srv/data/segments/: empty', 'segments: empty'],
    ['8 of 9 GB and/or https://example.org/a', '8 of 9 GB and/or https://example.org/a'],
  ] as const) {
    assert.equal(withoutPaths(text), expected);
  }
});
