// Counts, sizes and durations as people read them.

/** `12 345`. */
export function formatCount(count: number): string {
  return count.toLocaleString('en').replaceAll(',', ' ');
}

/** `1 collection`, `2 collections`. */
export function pluralize(count: number, noun: string, plural = `${noun}s`): string {
  return `${formatCount(count)} ${count === 1 ? noun : plural}`;
}

const BYTE_UNITS = ['bytes', 'kB', 'MB', 'GB', 'TB'];

/** `1.2 GB`, in powers of a thousand. */
export function formatBytes(byteCount: number): string {
  let count = byteCount;
  let unit = 0;
  while (count >= 1000 && unit < BYTE_UNITS.length - 1) {
    count /= 1000;
    unit++;
  }
  if (unit === 0) return pluralize(count, 'byte');
  return `${count.toFixed(1)} ${BYTE_UNITS[unit]}`;
}

/** `2.5 s`, `42 s`, `12 min`, `1.6 h`. */
export function formatSeconds(seconds: number): string {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 90) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 90 ? `${minutes} min` : `${(minutes / 60).toFixed(1)} h`;
}
