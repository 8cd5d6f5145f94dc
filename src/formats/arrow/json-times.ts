// Formats dates, times and durations as ISO 8601 text. A timestamp has as many decimals as its unit, so that the
// texts of a column sort like their times.

import type { TimeUnit } from './schema.js';

const UNITS_PER_SECOND: { readonly [unit in TimeUnit]: number } = {
  second: 1,
  millisecond: 1_000,
  microsecond: 1_000_000,
  nanosecond: 1_000_000_000,
};

export const MS_PER_DAY = 86_400_000;
/** The range of Date, in milliseconds since 1970. */
const MS_MAX = 8.64e15;

/** Returns text such as `2026-01-31`; null if out of range. */
export function dateText(days: number): string | null {
  const ms = days * MS_PER_DAY;
  return Math.abs(ms) <= MS_MAX ? new Date(ms).toISOString().replace(/T.*/, '') : null;
}

/** Returns text such as `2026-01-31T12:00:00.000001Z`; null if out of range. */
export function timestampText(
  value: number | bigint,
  unit: TimeUnit,
  hasZone: boolean,
): string | null {
  const { seconds, fraction } = split(value, unit);
  const ms = seconds * 1000;
  if (!(Math.abs(ms) <= MS_MAX)) return null;
  const toSeconds = new Date(ms).toISOString().slice(0, -5);
  return `${toSeconds}${fractionText(fraction, unit)}${hasZone ? 'Z' : ''}`;
}

/** Returns text such as `12:00:00.000001`; null if not within one day. */
export function timeText(value: number | bigint, unit: TimeUnit): string | null {
  const { seconds, fraction } = split(value, unit);
  if (seconds < 0 || seconds >= 86_400) return null;
  const toSeconds = new Date(seconds * 1000).toISOString().slice(11, 19);
  return `${toSeconds}${fractionText(fraction, unit)}`;
}

/** Returns text such as `PT90.5S`: only seconds, because the length of a day or month is not fixed. */
export function durationText(value: number | bigint, unit: TimeUnit): string {
  const isNegative = value < 0;
  const { seconds, fraction } = split(isNegative ? -value : value, unit);
  const decimals = fractionText(fraction, unit).replace(/\.?0*$/, '');
  return `${isNegative ? '-' : ''}PT${seconds}${decimals}S`;
}

/** Splits off whole seconds, rounded down so that the fraction is never negative. */
function split(value: number | bigint, unit: TimeUnit): { seconds: number; fraction: number } {
  const perSecond = UNITS_PER_SECOND[unit];
  if (typeof value === 'number') {
    const seconds = Math.floor(value / perSecond);
    return { seconds, fraction: value - seconds * perSecond };
  }
  const divisor = BigInt(perSecond);
  const fraction = ((value % divisor) + divisor) % divisor;
  return { seconds: Number((value - fraction) / divisor), fraction: Number(fraction) };
}

function fractionText(fraction: number, unit: TimeUnit): string {
  const digits = String(UNITS_PER_SECOND[unit]).length - 1;
  return digits === 0 ? '' : `.${String(fraction).padStart(digits, '0')}`;
}
