// The positions that a node remembers of collections held by other nodes.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { HighWaterMarks } from '../../../src/server/cluster/high-water-marks.js';

describe('high-water marks', () => {
  it('never go back', () => {
    const marks = new HighWaterMarks(() => false);
    marks.raise('a', 7);
    marks.raise('a', 3);
    marks.raise('b', 0);
    assert.deepEqual(marks.of(['a', 'b', 'c']), { a: 7, b: 0 });
  });

  it('are dropped for collections that are gone and kept for all others', () => {
    const existing = Array.from({ length: 1_500 }, (_, i) => `existing-${i}`);
    const names = new Set(existing);
    const marks = new HighWaterMarks((incarnation) => !names.has(incarnation));
    for (const incarnation of existing) marks.raise(incarnation, 1);
    for (let i = 0; i < 20_000; i++) {
      marks.raise(`gone-${i}`, 1);
      assert.ok(marks.count <= 2 * existing.length + 1, `${marks.count} are kept`);
    }
    assert.equal(Object.keys(marks.of(existing)).length, existing.length);
    // The bound shrinks with the number of collections.
    names.clear();
    for (let i = 0; i < 20_000; i++) marks.raise(`later-${i}`, 1);
    assert.ok(marks.count <= 1_000, `${marks.count} are kept`);
  });
});
