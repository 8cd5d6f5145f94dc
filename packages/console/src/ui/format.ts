// Formats numbers, sizes and times for people.

import { numberText } from '../../../../src/common/exact-json.js';
import type { JsonNumber } from '../../../../src/common/types.js';

export { formatBytes, formatCount, pluralize } from '../../../../src/common/quantities.js';

const COMPACT = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 });
const TIME = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' });

/** 1234567 → 1.2M */
export function formatCompact(count: number): string {
  return COMPACT.format(count);
}

/** 12.3 → 12 ms */
export function formatMilliseconds(ms: number): string {
  if (ms < 1) return `${(ms * 1000).toFixed(0)} µs`;
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 1_000) return `${ms.toFixed(0)} ms`;
  return ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : formatDuration(ms / 1000);
}

/** 3700 → 1 h 1 min */
export function formatDuration(seconds: number): string {
  const [days, hours, minutes] = [86_400, 3_600, 60].map((unit) => Math.floor(seconds / unit));
  if (days! > 0) return `${days} d ${hours! % 24} h`;
  if (hours! > 0) return `${hours} h ${minutes! % 60} min`;
  return minutes! > 0 ? `${minutes} min ${Math.floor(seconds % 60)} s` : `${Math.floor(seconds)} s`;
}

/** Up to six significant digits; float32 has about seven. */
export function formatScore(score: number): string {
  return Number(score.toPrecision(6)).toString();
}

/** A number from metadata: integers keep all digits, since they may be ids; others are formatted like scores. */
export function formatNumber(value: JsonNumber): string {
  return typeof value === 'bigint' || Number.isInteger(value)
    ? numberText(value)
    : formatScore(value);
}

/** Like `formatScore`, but aligned in a column: scores below 10 have six decimals. */
export function formatScoreInColumn(score: number): string {
  return Math.abs(score) < 10 ? score.toFixed(6) : Number(score.toPrecision(7)).toString();
}

/** An RFC 3339 time in the browser's time zone. */
export function formatTime(time: string): string {
  return TIME.format(new Date(time));
}
