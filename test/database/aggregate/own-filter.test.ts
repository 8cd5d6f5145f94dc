// The filter of a facet that ignores the conditions on its own path.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { withoutPath } from '../../../src/database/aggregate/own-filter.js';

function rest(filter: string): string {
  return JSON.stringify(withoutPath(JSON.parse(filter), 'a'));
}

describe('a filter without the conditions on a path', () => {
  it('keeps all others, whatever their paths are named', () => {
    assert.equal(rest('{"a":1,"b":2,"a.b":3}'), '{"b":2,"a.b":3}');
    assert.equal(rest('{"__proto__":1,"a":2}'), '{"__proto__":1}');
    assert.equal(rest('{"$and":[{"a":1},{"b":{"$gt":2}}]}'), '{"$and":[{"b":{"$gt":2}}]}');
    assert.equal(rest('{"$or":[{"a":1},{"b":2}]}'), '{"$or":[{"a":1},{"b":2}]}');
    assert.equal(rest('{"$or":[{"a":1},{"$not":{"a":2}}]}'), 'null');
  });

  it('keeps a condition that compares nothing but excludes every row', () => {
    assert.equal(rest('{"a":1,"$not":{}}'), '{"$not":{}}');
    assert.equal(
      rest('{"$and":[{"$not":{"$and":[{}]}},{"a":1}]}'),
      '{"$and":[{"$not":{"$and":[{}]}}]}',
    );
  });
});
