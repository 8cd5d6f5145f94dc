// What a node remembers of collections that other nodes hold.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SeenPositions } from '../../../src/server/cluster/seen-positions.js';

describe('the positions that clients have seen', () => {
  it('never go back', () => {
    const seen = new SeenPositions(() => false);
    seen.note('a', 7);
    seen.note('a', 3);
    seen.note('b', 0);
    assert.deepEqual(seen.of(['a', 'b', 'c']), { a: 7, b: 0 });
  });

  it('are forgotten of collections that are gone, and kept of all others', () => {
    const existing = Array.from({ length: 1_500 }, (_, i) => `existing-${i}`);
    const names = new Set(existing);
    const seen = new SeenPositions((incarnation) => !names.has(incarnation));
    for (const incarnation of existing) seen.note(incarnation, 1);
    for (let i = 0; i < 20_000; i++) {
      seen.note(`gone-${i}`, 1);
      assert.ok(seen.count <= 2 * existing.length + 1, `${seen.count} are remembered`);
    }
    assert.equal(Object.keys(seen.of(existing)).length, existing.length);
    // When fewer are left, fewer are kept.
    names.clear();
    for (let i = 0; i < 20_000; i++) seen.note(`later-${i}`, 1);
    assert.ok(seen.count <= 1_000, `${seen.count} are remembered`);
  });
});
