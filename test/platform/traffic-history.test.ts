// The history of traffic: intervals, percentiles, and the bounds of what it keeps.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { TrafficHistory } from '../../src/platform/traffic-history.js';

const MINUTE_MS = 60_000;
const all = () => true;

function createHistory(startMs = 7_000) {
  let nowMs = startMs;
  const history = new TrafficHistory(() => nowMs);
  return {
    history,
    advance: (milliseconds: number) => {
      nowMs += milliseconds;
    },
  };
}

describe('the history of traffic', () => {
  it('has an interval of its own length for the start and for the present', () => {
    const { history, advance } = createHistory();
    history.requestEnded(2, false);
    advance(23_000);
    history.requestEnded(3, true);
    advance(4_000);
    const { intervals } = history.read(60, all);
    assert.deepEqual(
      intervals.map(({ startMs, seconds, requests, errors }) => [
        ...[startMs, seconds, requests, errors],
      ]),
      [
        [7_000, 23, 1, 0],
        [30_000, 4, 1, 1],
      ],
    );
  });

  it('estimates percentiles within a fifth', () => {
    const { history } = createHistory();
    for (let i = 1; i <= 1_000; i++) history.requestEnded(i / 10, false);
    const { p50Ms, p95Ms, p99Ms } = history.read(60, all).intervals[0]!;
    for (const [found, exact] of [
      [p50Ms!, 50],
      [p95Ms!, 95],
      [p99Ms!, 99],
    ] as const) {
      assert.ok(Math.abs(found / exact - 1) <= 0.2, `${found} for ${exact}`);
    }
  });

  it('has no percentiles without requests, and counts extreme durations', () => {
    const { history, advance } = createHistory();
    assert.equal(history.read(60, all).intervals[0]!.p50Ms, null);
    history.requestEnded(0, false);
    assert.ok(history.read(60, all).intervals[0]!.p99Ms! <= 0.1);
    advance(30_000);
    history.requestEnded(3_600_000, false);
    assert.ok(history.read(60, all).intervals[1]!.p50Ms! > 30_000);
  });

  it('forgets what is older than an hour, also after a pause', () => {
    const { history, advance } = createHistory();
    history.queried('c', 1, 5);
    history.written('c', 7);
    advance(50 * MINUTE_MS);
    history.written('c', 2);
    const sums = () => {
      const { intervals, collections } = history.read(60, all);
      const rows = intervals.reduce((sum, { rowsWritten }) => sum + rowsWritten, 0);
      return [rows, ...collections.map(({ queries, rowsWritten }) => [queries, rowsWritten])];
    };
    assert.deepEqual(sums(), [9, [5, 9]]);
    assert.equal(history.read(60, all).intervals.length, 101);
    advance(20 * MINUTE_MS);
    assert.deepEqual(sums(), [2, [0, 2]]);
    assert.equal(history.read(60, all).intervals.length, 120);
    // The ring is read again at the place of the old counts.
    advance(300 * MINUTE_MS);
    assert.deepEqual(sums(), [0]);
    history.written('c', 1);
    assert.deepEqual(sums(), [1, [0, 1]]);
  });

  it('reads the last minutes only', () => {
    const { history, advance } = createHistory();
    history.queried('old', 1, 1);
    advance(10 * MINUTE_MS);
    history.queried('new', 1, 1);
    const { intervals, collections } = history.read(5, all);
    assert.equal(intervals.length, 10);
    assert.deepEqual(
      collections.map(({ id }) => id),
      ['new'],
    );
  });

  it('sums collections that are not visible', () => {
    const { history } = createHistory();
    history.queried('b', 1, 2);
    history.queried('a', 1, 1);
    history.queried('secret', 1, 4);
    history.written('hidden', 3);
    const { collections } = history.read(60, (id) => id.length === 1);
    assert.deepEqual(
      collections.map(({ id, queries, rowsWritten }) => [id, queries, rowsWritten]),
      [
        ['a', 1, 0],
        ['b', 2, 0],
        [null, 4, 3],
      ],
    );
  });

  it('keeps a bounded number of collections, and replaces those that were idle for an hour', () => {
    const { history, advance } = createHistory();
    for (let i = 0; i < 1_000; i++) history.queried(`c${i}`, 1, 1);
    const { collections } = history.read(60, all);
    assert.ok(collections.length < 100);
    assert.equal(
      collections.reduce((sum, { queries }) => sum + queries, 0),
      1_000,
    );
    advance(61 * MINUTE_MS);
    history.queried('later', 1, 1);
    assert.deepEqual(
      history.read(60, all).collections.map(({ id }) => id),
      ['later'],
    );
  });
});
