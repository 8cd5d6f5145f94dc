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

interface ShownState extends ProgressState {
  readonly elapsedMs: number;
  /** Null if it is not known. */
  readonly secondsLeft: number | null;
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
  const timeLeft = new TimeLeft();

  const show = (): void => {
    if (last === undefined) return;
    const nowMs = now();
    const secondsLeft = timeLeft.secondsAt(nowMs);
    const shownState = { ...last, secondsLeft, elapsedMs: nowMs - start };
    const text = `${what} ${describe(shownState, before, isTerminal)}`;
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
      const nowMs = now();
      if (share !== undefined) timeLeft.update(share, nowMs);
      if (nowMs - shownAt < intervalMs) return;
      shownAt = nowMs;
      show();
    },
    note(text) {
      // On a terminal it replaces the bar, which the next update shows again below it.
      const clear = isTerminal && last !== undefined ? '\r\x1b[K' : '';
      target.write(`${clear}${what} ${text}\n`);
    },
    end(isDone = false) {
      // The last batch may have been counted before all of it was read.
      if (isDone && last?.share !== undefined) {
        last = { ...last, share: 1 };
        timeLeft.update(1, now());
      }
      show();
      if (isTerminal && last !== undefined) target.write('\n');
    },
  };
}

function describe(
  { rowCount, share, byteCount, secondsLeft, elapsedMs }: ShownState,
  before: { readonly rowCount: number },
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
  if (secondsLeft !== null) parts.push(`${formatSeconds(secondsLeft)} left`);
  return parts.join('  ');
}

/** Progress is forgotten with this time constant, or a share of the time that has passed if that is longer. */
const MEMORY_MS_MIN = 10_000;
const MEMORY_SHARE = 1 / 4;

/** Nothing is estimated before the job has advanced this often, within at least this time. */
const ADVANCES_MIN = 4;
const SEEN_MS_MIN = 2_000;

/**
 * Estimates how long a job will take from its recent progress. The whole of the past would be misleading: a join whose
 * first rows wait for the engine soon becomes many times as fast.
 */
export class TimeLeft {
  #startedAtMs = 0;
  #advancedAtMs = 0;
  /** The first update only tells where the job begins, which is not at 0 if it is resumed. */
  #share: number | null = null;
  #advanceCount = 0;
  /** Recent progress and the time that it took, with weights that decay exponentially with age. */
  #recentShare = 0;
  #recentMs = 0;
  /** The time between two advances, with the same weights. */
  #recentCount = 0;

  /** `share` is the fraction of the work that is done; `nowMs` is a monotonic clock. */
  update(share: number, nowMs: number): void {
    if (this.#share === null) {
      this.#share = share;
      this.#startedAtMs = nowMs;
      this.#advancedAtMs = nowMs;
      return;
    }
    if (share <= this.#share) return;
    const passedMs = nowMs - this.#advancedAtMs;
    const memoryMs = Math.max(MEMORY_MS_MIN, MEMORY_SHARE * (nowMs - this.#startedAtMs));
    const kept = Math.exp(-passedMs / memoryMs);
    this.#recentShare = this.#recentShare * kept + (share - this.#share);
    this.#recentMs = this.#recentMs * kept + passedMs;
    this.#recentCount = this.#recentCount * kept + 1;
    this.#share = share;
    this.#advancedAtMs = nowMs;
    this.#advanceCount++;
  }

  /** Seconds; null as long as too little has been seen. Between two advances the estimate counts down. */
  secondsAt(nowMs: number): number | null {
    if (this.#share === null || this.#share >= 1) return null;
    const seenMs = nowMs - this.#startedAtMs;
    if (this.#advanceCount < ADVANCES_MIN || seenMs < SEEN_MS_MIN) return null;
    const passedMs = nowMs - this.#advancedAtMs;
    // An advance that is late counts as slower progress, so that a job that has stopped is not about to end.
    const lateMs = Math.max(0, passedMs - this.#recentMs / this.#recentCount);
    const msPerShare = (this.#recentMs + lateMs) / this.#recentShare;
    return Math.max(0, (1 - this.#share) * msPerShare - (passedMs - lateMs)) / 1000;
  }
}
