// Instants compared with JavaScript dates from year 0 to 9999: at the ends of months and years and on every seventh
// day, which covers each day of each month in some year. The nightly run compares all days.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compareInstants, nextInstant, parseInstant } from '../../src/filter/instant.js';
import { IS_NIGHTLY } from '../support/nightly.js';

const DAY_MS = 86_400_000;

test('a day of the calendar is as many seconds from 1970 as in JavaScript', () => {
  const first = Date.parse('0000-01-01T00:00:00Z');
  const end = Date.parse('9999-12-31T00:00:00Z');
  for (let day = first; day <= end; day += (IS_NIGHTLY ? 1 : 7) * DAY_MS) assertSameDay(day);
  for (let year = 0; year <= 9999; year++) {
    for (const [month, dayOfMonth] of YEAR_EDGES) {
      assertSameDay(new Date(0).setUTCFullYear(year, month - 1, dayOfMonth));
    }
  }
});

/** In most years JavaScript reads February 29 as March 1. */
const YEAR_EDGES = [
  [1, 1],
  [2, 28],
  [2, 29],
  [3, 1],
  [12, 31],
] as const;

function assertSameDay(day: number): void {
  const text = new Date(day).toISOString().slice(0, 10);
  const instant = parseInstant(text);
  // Half a million calls of deepEqual would take seconds.
  if (instant?.length !== 2 || instant[0] !== day / 1000 || instant[1] !== 0) {
    assert.deepEqual(instant, [day / 1000, 0], text);
  }
}

test('days that no month has are rejected', () => {
  for (const year of [1900, 2000, 2023, 2024]) {
    for (let month = 0; month <= 13; month++) {
      for (let day = 0; day <= 32; day++) {
        const text = [year, month, day].map((part) => String(part).padStart(2, '0')).join('-');
        const date = new Date(Date.UTC(year, month - 1, day));
        const isDay = date.toISOString().startsWith(text);
        assert.equal(parseInstant(text) !== null, isDay, text);
      }
    }
  }
});

test('offsets are subtracted and fractions are nanoseconds', () => {
  const seconds = Date.UTC(2026, 0, 31, 12) / 1000;
  for (const [text, instant] of [
    ['2026-01-31T12:00:00Z', [seconds, 0]],
    ['2026-01-31t17:30:00.5+05:30', [seconds, 500_000_000]],
    ['2026-01-30 12:01:00.000000001-23:59', [seconds, 1]],
    ['2026-01-31T11:59:60', [seconds, 0]],
    ['2026-01-31T12:00:00.123456789-00:00', [seconds, 123_456_789]],
  ] as const) {
    assert.deepEqual(parseInstant(text), instant, text);
  }
});

test('the next instant is a nanosecond later', () => {
  assert.deepEqual(nextInstant([5, 0]), [5, 1]);
  assert.deepEqual(nextInstant([-1, 999_999_999]), [0, 0]);
  const ordered = ['1969-12-31T23:59:59.9Z', '1970-01-01', '1970-01-01T00:00:00.000000001Z'];
  const instants = ordered.map((text) => parseInstant(text)!);
  assert.deepEqual(instants.toReversed().toSorted(compareInstants), instants);
});
