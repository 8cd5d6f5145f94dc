// Counts and sizes as text for people.

const COUNT = new Intl.NumberFormat('en-US');
const BYTE_UNITS = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];

/** For example `1,234,567`. */
export function formatCount(count: number): string {
  return COUNT.format(count);
}

/** For example `1 vector` or `2 vectors`. */
export function pluralize(count: number, noun: string, plural = `${noun}s`): string {
  return `${formatCount(count)} ${count === 1 ? noun : plural}`;
}

/** In powers of a thousand, for example `1.5 kB` or `15 MB`. */
export function formatBytes(byteCount: number): string {
  const power = byteCount < 1 ? 0 : Math.min(5, Math.floor(Math.log10(byteCount) / 3));
  const scaled = byteCount / 1000 ** power;
  return `${scaled < 10 && power > 0 ? scaled.toFixed(1) : Math.round(scaled)} ${BYTE_UNITS[power]}`;
}
