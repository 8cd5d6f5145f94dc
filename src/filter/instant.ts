// Instants from text: the date-time and full-date of RFC 3339, compared as points in time.
//
// A date alone is midnight UTC on that day, and a time without an offset is in UTC. Fractions of a second have
// up to nine digits, so that every instant is a whole number of nanoseconds. Second 60 is second 0 of the next
// minute.

/** Seconds since 1970-01-01T00:00:00Z, and nanoseconds below 1,000,000,000. */
export type Instant = readonly [seconds: number, nanoseconds: number];

export const INSTANT_EXPECTED =
  'a date or time of RFC 3339, such as "2026-01-31" or "2026-01-31T09:30:00Z"';

export function parseInstant(text: string): Instant | null {
  const bytes = Buffer.from(text);
  return readInstant(bytes, 0, bytes.length);
}

/** Returns the instant that `bytes[start..end)` denotes, or null. */
export function readInstant(bytes: Uint8Array, start: number, end: number): Instant | null {
  const length = end - start;
  if (length < DATE_BYTES || length > INSTANT_BYTES_MAX) return null;
  const day = readDay(bytes, start);
  if (Number.isNaN(day)) return null;
  if (length === DATE_BYTES) return [day * DAY_SECONDS, 0];
  const time = start + DATE_BYTES;
  if (length < DATE_BYTES + TIME_BYTES || !isOneOf(bytes[time], 'Tt ')) return null;
  const secondOfDay = readTime(bytes, time + 1);
  const fraction = time + TIME_BYTES;
  const zone = skipFraction(bytes, fraction, end);
  const offset = readOffset(bytes, zone, end);
  const seconds = day * DAY_SECONDS + secondOfDay - offset;
  return Number.isNaN(seconds) ? null : [seconds, readNanoseconds(bytes, fraction, zone)];
}

/** Returns a negative number, 0 or a positive number if a is before, at or after b. */
export function compareInstants(a: Instant, b: Instant): number {
  return a[0] - b[0] || a[1] - b[1];
}

/** Returns the instant one nanosecond later. */
export function nextInstant([seconds, nanoseconds]: Instant): Instant {
  return nanoseconds === 999_999_999 ? [seconds + 1, 0] : [seconds, nanoseconds + 1];
}

const DATE_BYTES = '2026-01-31'.length;
const TIME_BYTES = 'T09:30:00'.length;
const FRACTION_DIGITS_MAX = 9;
const INSTANT_BYTES_MAX = '2026-01-31T09:30:00.123456789+01:00'.length;
const DAY_SECONDS = 86_400;

/** The most days of each month, by month from 1. */
const MONTH_DAYS = [0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
/** Days of a common year before the month. */
const DAYS_BEFORE = [0, 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];

/** Returns the days since 1970-01-01, or NaN. */
function readDay(bytes: Uint8Array, at: number): number {
  const year = readDigits(bytes, at, 4);
  const month = readDigits(bytes, at + 5, 2);
  const day = readDigits(bytes, at + 8, 2);
  if (bytes[at + 4] !== HYPHEN || bytes[at + 7] !== HYPHEN) return Number.NaN;
  if (!(year >= 0 && month >= 1 && month <= 12 && day >= 1)) return Number.NaN;
  const isLeapYear = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  if (day > MONTH_DAYS[month] || (month === 2 && day === 29 && !isLeapYear)) return Number.NaN;
  // There are 719,528 days from 0000-01-01 to 1970-01-01; year 0 is a leap year.
  const leapDays = year === 0 ? 0 : 1 + countLeapYears(year - 1);
  const isAfterLeapDay = isLeapYear && month > 2;
  return year * 365 + leapDays + DAYS_BEFORE[month] + Number(isAfterLeapDay) + day - 1 - 719_528;
}

/** Returns the number of leap years from 1 to `year`. */
function countLeapYears(year: number): number {
  return Math.floor(year / 4) - Math.floor(year / 100) + Math.floor(year / 400);
}

/** Returns the second of the day that `hh:mm:ss` denotes, or NaN. */
function readTime(bytes: Uint8Array, at: number): number {
  const hour = readDigits(bytes, at, 2);
  const minute = readDigits(bytes, at + 3, 2);
  const second = readDigits(bytes, at + 6, 2);
  if (bytes[at + 2] !== COLON || bytes[at + 5] !== COLON) return Number.NaN;
  return hour <= 23 && minute <= 59 && second <= 60
    ? hour * 3600 + minute * 60 + second
    : Number.NaN;
}

/** Returns the end of the fraction that may begin at `at`; `at` itself if there is no valid fraction. */
function skipFraction(bytes: Uint8Array, at: number, end: number): number {
  if (at >= end || bytes[at] !== POINT) return at;
  let next = at + 1;
  while (next < end && digitOf(bytes[next]) >= 0) next++;
  const digitCount = next - at - 1;
  return digitCount >= 1 && digitCount <= FRACTION_DIGITS_MAX ? next : at;
}

/** Returns the nanoseconds of the fraction `bytes[start..end)`, which includes its point; 0 if it is empty. */
function readNanoseconds(bytes: Uint8Array, start: number, end: number): number {
  const digitCount = end - start - 1;
  if (digitCount < 1) return 0;
  return readDigits(bytes, start + 1, digitCount) * 10 ** (FRACTION_DIGITS_MAX - digitCount);
}

/** Returns how many seconds the time zone `bytes[at..end)` is ahead of UTC, or NaN. */
function readOffset(bytes: Uint8Array, at: number, end: number): number {
  if (at === end) return 0;
  if (at + 1 === end) return isOneOf(bytes[at], 'Zz') ? 0 : Number.NaN;
  if (end - at !== '+01:00'.length || bytes[at + 3] !== COLON) return Number.NaN;
  const hours = readDigits(bytes, at + 1, 2);
  const minutes = readDigits(bytes, at + 4, 2);
  if (!(hours <= 23 && minutes <= 59) || !isOneOf(bytes[at], '+-')) return Number.NaN;
  const seconds = hours * 3600 + minutes * 60;
  return bytes[at] === HYPHEN ? -seconds : seconds;
}

const HYPHEN = '-'.charCodeAt(0);
const COLON = ':'.charCodeAt(0);
const POINT = '.'.charCodeAt(0);
const ZERO = '0'.charCodeAt(0);

/** Returns the number that `count` digits denote, or NaN. */
function readDigits(bytes: Uint8Array, at: number, count: number): number {
  let number = 0;
  for (let i = at; i < at + count; i++) {
    const digit = digitOf(bytes[i]);
    if (digit < 0) return Number.NaN;
    number = number * 10 + digit;
  }
  return number;
}

/** Returns 0 to 9, or -1 if the byte is no digit. */
function digitOf(byte: number): number {
  const digit = byte - ZERO;
  return digit >= 0 && digit <= 9 ? digit : -1;
}

function isOneOf(byte: number, characters: string): boolean {
  return characters.includes(String.fromCharCode(byte));
}
