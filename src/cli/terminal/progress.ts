// Shows the progress of a long command on stderr: on a terminal a bar with the rate and the remaining time, elsewhere a
// line every few seconds, so that logs stay readable.

import { cutToWidth } from './text-width.js';
import { formatBytes, formatSeconds, pluralize } from './units.js';

export interface Progress {
  /**
   * `rowCount` is undefined where rows are not counted. `share` is the fraction of the work that is done, from 0 to 1;
   * undefined when the total is unknown. `byteCount` is the amount of data transferred.
   */
  update(rowCount: number | undefined, share: number | undefined, byteCount?: number): void;
  /** Prints a separate line. */
  note(text: string): void;
  /** Prints the final state and ends the line. `isDone` says whether the work is complete. */
  end(isDone?: boolean): void;
}

export interface ProgressTarget {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  /** Width of a terminal. */
  readonly columns?: number;
}

const BAR_CHARACTERS = 24;
const BAR_INTERVAL_MS = 100;
const LINE_INTERVAL_MS = 5_000;

export const silentProgress: Progress = { update() {}, note() {}, end() {} };

interface ProgressState {
  readonly rowCount: number | undefined;
  readonly share: number | undefined;
  readonly byteCount?: number | undefined;
}

/** `before` counts the rows of an earlier run, which do not count towards the rate. */
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
  let last: ProgressState | undefined;

  const show = (): void => {
    if (last === undefined) return;
    const text = `${what} ${describe(last, before, now() - start, isTerminal)}`;
    if (!isTerminal) {
      target.write(`${text}\n`);
      return;
    }
    // A wrapped line could not be overwritten.
    const shown = cutToWidth(text, Math.max(1, (target.columns || Number.POSITIVE_INFINITY) - 1));
    // Clears to the end of the line, since a shorter text may follow a longer one.
    target.write(`\r${shown}\x1b[K`);
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
      // The last batch may have been counted before all of it was read.
      if (isDone && last?.share !== undefined) last = { ...last, share: 1 };
      show();
      if (isTerminal && last !== undefined) target.write('\n');
    },
  };
}

function describe(
  { rowCount, share, byteCount }: ProgressState,
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
    parts.push(pluralize(before.rowCount + rowCount, 'row'));
    parts.push(`${pluralize(Math.round(rowCount / seconds), 'row')}/s`);
  }
  if (byteCount !== undefined) {
    if (rowCount === undefined) parts.push(formatBytes(byteCount));
    parts.push(`${(byteCount / seconds / 1e6).toFixed(1)} MB/s`);
  }
  if (share !== undefined && share > 0 && share < 1 && rowCount !== 0) {
    // The fraction of the work that this run has done.
    const count = rowCount ?? 1;
    const shareOfRun = (share * count) / (before.rowCount + count);
    parts.push(`${formatSeconds((seconds / shareOfRun) * (1 - share))} left`);
  }
  return parts.join('  ');
}
