// Estimates the speed and the remaining time of an import, from its second batch on: the first one includes the time to
// skip the rows of an earlier import, which would make this one look slow.

import type { BatchProgress } from './run-import.js';

interface Moment {
  readonly timeMs: number;
  readonly endRow: number;
  readonly share: number;
}

export interface PaceFigures {
  readonly rowsPerSecond: number | undefined;
  readonly secondsLeft: number | undefined;
}

export class Pace {
  readonly #nowMs: () => number;
  #first: Moment | undefined;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Figures are undefined until they are known. */
  add({ endRow }: BatchProgress, share: number): PaceFigures {
    const now = { timeMs: this.#nowMs(), endRow, share };
    this.#first ??= now;
    const seconds = (now.timeMs - this.#first.timeMs) / 1000;
    const shareDone = share - this.#first.share;
    if (seconds <= 0) return { rowsPerSecond: undefined, secondsLeft: undefined };
    return {
      rowsPerSecond: (endRow - this.#first.endRow) / seconds,
      secondsLeft: shareDone > 0 ? ((1 - share) * seconds) / shareDone : undefined,
    };
  }
}
