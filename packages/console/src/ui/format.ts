// Numbers, sizes and times as people read them.

import { numberText } from '../../../../src/common/exact-json.js';
import type { JsonNumber } from '../../../../src/common/types.js';

export { formatBytes, formatCount, pluralize } from '../../../../src/common/quantities.js';

const COMPACT = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 });
const TIME = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' });

/** 1234567 → 1.2M */
export function formatCompact(count: number): string {
  return COMPACT.format(count);
}

/** 0.0123 s → 12 ms */
export function formatMilliseconds(ms: number): string {
  if (ms < 1) return `${(ms * 1000).toFixed(0)} µs`;
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 1_000) return `${ms.toFixed(0)} ms`;
  return ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : formatDuration(ms / 1000);
}

/** 3700 s → 1 h 1 min */
export function formatDuration(seconds: number): string {
  const [days, hours, minutes] = [86_400, 3_600, 60].map((unit) => Math.floor(seconds / unit));
  if (days! > 0) return `${days} d ${hours! % 24} h`;
  if (hours! > 0) return `${hours} h ${minutes! % 60} min`;
  return minutes! > 0 ? `${minutes} min ${Math.floor(seconds % 60)} s` : `${Math.floor(seconds)} s`;
}

/** Up to seven significant digits, which is what float32 has. */
export function formatScore(score: number): string {
  return Number(score.toPrecision(6)).toString();
}

/** A number of metadata: integers, which may be ids, have all their digits, others as formatScore. */
export function formatNumber(value: JsonNumber): string {
  return typeof value === 'bigint' || Number.isInteger(value)
    ? numberText(value)
    : formatScore(value);
}

/** As formatScore, with decimals that are aligned in a column: scores of up to 10 have six. */
export function formatScoreInColumn(score: number): string {
  return Math.abs(score) < 10 ? score.toFixed(6) : Number(score.toPrecision(7)).toString();
}

/** An RFC 3339 time in the time zone of the browser. */
export function formatTime(time: string): string {
  return TIME.format(new Date(time));
}
