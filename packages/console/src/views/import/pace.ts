// How fast an import is and how long it will take, from its second batch on: reading to the row where
// an import goes on takes time too, and would make it look slow.

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

  /** Undefined figures are not known yet. */
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
