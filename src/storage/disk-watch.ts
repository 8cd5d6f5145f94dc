// Warns before the disk is full: once for each threshold, and again only after the use has been clearly below it.

import type { Logger } from '../common/logger.js';
import { diskSpace } from './disk.js';

/** Shares of the disk, ascending. */
const THRESHOLDS = [0.9, 0.95, 0.97] as const;
/** Below a threshold by this much, it may be crossed again: compactions take and give a little all the time. */
const HYSTERESIS = 0.02;
/** One system call each. */
const CHECK_MS = 30_000;

interface Space {
  readonly freeBytes: number;
  readonly totalBytes: number;
}

export class DiskWatch {
  readonly #directory: string;
  readonly #logger: Logger;
  readonly #read: () => Space;
  /** How many thresholds have been reported and not been left since. */
  #reportedCount = 0;
  readonly #timer: NodeJS.Timeout;

  /** Checks at once, and from time to time until it is closed. `read`: of the disk with the directory, by default. */
  constructor(
    directory: string,
    options: {
      readonly logger: Logger;
      readonly read?: () => Space;
    },
  ) {
    this.#directory = directory;
    this.#logger = options.logger;
    this.#read = options.read ?? (() => diskSpace(directory));
    this.check();
    this.#timer = setInterval(() => this.check(), CHECK_MS).unref();
  }

  check(): void {
    let space: Space;
    try {
      space = this.#read();
    } catch {
      // The next write finds out what is wrong with the disk.
      return;
    }
    const { freeBytes, totalBytes } = space;
    if (totalBytes === 0) return;
    const used = 1 - freeBytes / totalBytes;
    const details = {
      directory: this.#directory,
      used_percent: Math.floor(used * 1000) / 10,
      free_bytes: freeBytes,
      total_bytes: totalBytes,
    };
    const crossedCount = THRESHOLDS.filter((threshold) => used >= threshold).length;
    if (crossedCount > this.#reportedCount) {
      this.#reportedCount = crossedCount;
      const percent = Math.round(THRESHOLDS[crossedCount - 1]! * 100);
      this.#logger.warn(
        details,
        `the disk is more than ${percent} % full; writes will be refused when it is full: delete collections that are not needed, or make room`,
      );
      return;
    }
    const before = this.#reportedCount;
    while (this.#reportedCount > 0 && used < THRESHOLDS[this.#reportedCount - 1]! - HYSTERESIS) {
      this.#reportedCount--;
    }
    if (before > 0 && this.#reportedCount === 0) {
      this.#logger.info(details, 'the disk has room again');
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }
}
