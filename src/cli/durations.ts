// Spans and moments as people write them: `90d`, `12h`, `2027-01-01`.

import { usageError } from './failure.js';

const UNIT_MS: Readonly<Record<string, number>> = {
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** In milliseconds; `option` is named where the text is not understood. */
export function parseSpan(option: string, text: string): number {
  const [, count, unit] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  if (count === undefined) {
    throw usageError(`${option}: expected a span such as 30s, 15m, 12h or 90d, found "${text}"`);
  }
  return Number(count) * UNIT_MS[unit!]!;
}

/** A span from now on, or a time; as ISO 8601 in UTC. */
export function parseMoment(option: string, text: string, nowMs: number): string {
  const isTime = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2}))?$/;
  const ms = isTime.test(text) ? Date.parse(text) : nowMs + spanOrTime(option, text);
  if (Number.isNaN(ms) || ms > Date.UTC(9999, 0)) {
    throw usageError(`${option}: expected a time before the year 9999, found "${text}"`);
  }
  return new Date(ms).toISOString();
}

function spanOrTime(option: string, text: string): number {
  if (/^\d+[smhd]$/.test(text)) return parseSpan(option, text);
  throw usageError(
    `${option}: expected a span such as 90d, or a time such as 2027-01-01 or 2027-01-01T12:00:00Z, found "${text}"`,
  );
}
