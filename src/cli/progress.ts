// Progress of a long command on stderr: a bar with rate and time left on a terminal, a plain line
// every few seconds elsewhere, so that logs stay readable.

import { formatBytes } from './data-directory.js';

export interface Progress {
  /** Rows where they are counted; `share` of the work done, 0 to 1; undefined when the end is not known. Bytes are of the data. */
  update(rowCount: number | undefined, share: number | undefined, byteCount?: number): void;
  /** A line of its own. */
  note(text: string): void;
  /** Leaves the terminal as a new line. `isDone`: whether the work came to its end. */
  end(isDone?: boolean): void;
}

export interface ProgressTarget {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  /** Of a terminal. */
  readonly columns?: number;
}

const BAR_CHARACTERS = 24;
const BAR_INTERVAL_MS = 100;
const LINE_INTERVAL_MS = 5_000;

export const silentProgress: Progress = { update() {}, note() {}, end() {} };

interface Done {
  readonly rowCount: number | undefined;
  readonly share: number | undefined;
  readonly byteCount?: number | undefined;
}

/** `before` was done by an earlier run, and says nothing of the rate. */
export function createProgress(
  what: string,
  before: { readonly rowCount: number } = { rowCount: 0 },
  target: ProgressTarget = process.stderr,
  now: () => number = performance.now.bind(performance),
): Progress {
  const isTerminal = target.isTTY === true;
  const start = now();
  const intervalMs = isTerminal ? BAR_INTERVAL_MS : LINE_INTERVAL_MS;
  let shownAt = start;
  let last: Done | undefined;

  const show = (): void => {
    if (last === undefined) return;
    const text = `${what} ${describe(last, before, now() - start, isTerminal)}`;
    if (!isTerminal) {
      target.write(`${text}\n`);
      return;
    }
    // A line that wraps could not be written over.
    const shown = [...text].slice(0, Math.max(1, (target.columns || Number.POSITIVE_INFINITY) - 1));
    // Clears to the end of the line, since a shorter text may follow a longer one.
    target.write(`\r${shown.join('')}\x1b[K`);
  };
  return {
    update(rowCount, share, byteCount) {
      last = { rowCount, share, byteCount };
      if (now() - shownAt < intervalMs) return;
      shownAt = now();
      show();
    },
    note(text) {
      target.write(`${what} ${text}\n`);
    },
    end(isDone = false) {
      // The last batches may have been counted before they were read to their end.
      if (isDone && last?.share !== undefined) last = { ...last, share: 1 };
      show();
      if (isTerminal && last !== undefined) target.write('\n');
    },
  };
}

function describe(
  { rowCount, share, byteCount }: Done,
  before: { readonly rowCount: number },
  elapsedMs: number,
  hasBar: boolean,
): string {
  const seconds = Math.max(elapsedMs, 1) / 1000;
  const parts: string[] = [];
  if (share !== undefined) {
    const filled = Math.round(share * BAR_CHARACTERS);
    if (hasBar) parts.push('█'.repeat(filled) + '░'.repeat(BAR_CHARACTERS - filled));
    parts.push(`${Math.floor(share * 100)} %`);
  }
  if (rowCount !== undefined) {
    parts.push(counted(before.rowCount + rowCount, 'row'));
    parts.push(`${formatCount(Math.round(rowCount / seconds))} rows/s`);
  }
  if (byteCount !== undefined) {
    if (rowCount === undefined) parts.push(formatBytes(byteCount));
    parts.push(`${(byteCount / seconds / 1e6).toFixed(1)} MB/s`);
  }
  if (share !== undefined && share > 0 && share < 1 && rowCount !== 0) {
    // Of the share, that of the rows of this run.
    const count = rowCount ?? 1;
    const shareOfRun = (share * count) / (before.rowCount + count);
    parts.push(`${formatSeconds((seconds / shareOfRun) * (1 - share))} left`);
  }
  return parts.join('  ');
}

export function formatCount(count: number): string {
  return count.toLocaleString('en').replaceAll(',', ' ');
}

/** `1 collection`, `2 collections`. */
export function counted(count: number, what: string, many = `${what}s`): string {
  return `${formatCount(count)} ${count === 1 ? what : many}`;
}

export function formatSeconds(seconds: number): string {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 90) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 90 ? `${minutes} min` : `${(minutes / 60).toFixed(1)} h`;
}
