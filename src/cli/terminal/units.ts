// Formats counts, sizes and durations for people.

export { formatBytes, formatCount, pluralize } from '../../common/quantities.js';

/** `2.5 s`, `42 s`, `12 min`, `1.6 h`. */
export function formatSeconds(seconds: number): string {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 90) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 90 ? `${minutes} min` : `${(minutes / 60).toFixed(1)} h`;
}
