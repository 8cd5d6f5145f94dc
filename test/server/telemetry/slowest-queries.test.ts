// The list of the slowest queries: what it keeps, and for how long.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SlowestQueries } from '../../../src/server/telemetry/slowest-queries.js';

const MINUTE_MS = 60_000;
const all = () => true;

function createList() {
  let nowMs = 0;
  let describedCount = 0;
  const list = new SlowestQueries(() => nowMs);
  return {
    list,
    add(milliseconds: number, collection = 'c') {
      list.add({ milliseconds, requestId: 'r', collection }, () => {
        describedCount++;
        return { kind: 'vector' };
      });
    },
    advance(minutes: number) {
      nowMs += minutes * MINUTE_MS;
    },
    get describedCount() {
      return describedCount;
    },
    durations: (minutes = 60) => list.list(minutes, all).map(({ milliseconds }) => milliseconds),
  };
}

describe('the slowest queries', () => {
  it('are the slowest of the hour, in order', () => {
    const slowest = createList();
    const expected: number[] = [];
    for (let minute = 0; minute < 60; minute++) {
      for (let i = 0; i < 30; i++) {
        const milliseconds = ((minute * 30 + i) * 7919) % 1801;
        expected.push(milliseconds);
        slowest.add(milliseconds);
      }
      slowest.advance(1);
    }
    assert.deepEqual(slowest.durations(), expected.sort((a, b) => b - a).slice(0, 20));
  });

  it('are forgotten after an hour', () => {
    const slowest = createList();
    slowest.add(900);
    slowest.advance(50);
    slowest.add(5);
    slowest.advance(10);
    assert.deepEqual(slowest.durations(), [900, 5]);
    assert.deepEqual(slowest.durations(15), [5]);
    slowest.advance(1);
    assert.deepEqual(slowest.durations(), [5]);
  });

  it('are described only if they are among the slowest', () => {
    const slowest = createList();
    for (let i = 100; i > 0; i--) slowest.add(i);
    assert.equal(slowest.describedCount, 20);
  });

  it('leave out collections that are not visible', () => {
    const slowest = createList();
    slowest.add(9, 'secret');
    slowest.add(1);
    assert.deepEqual(
      slowest.list.list(60, (id) => id === 'c').map(({ collection }) => collection),
      ['c'],
    );
  });
});
