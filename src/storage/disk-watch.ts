// Warns before the disk is full: once for each threshold, and again only after usage has been clearly below it.

import type { Logger } from '../common/logger.js';
import { diskSpace } from './disk.js';

/** Used shares of the disk, ascending. */
const THRESHOLDS = [0.9, 0.95, 0.97] as const;
/** A threshold is armed again once usage is this far below it, because compactions constantly use and free a little. */
const HYSTERESIS = 0.02;
/** Interval between checks; each is one system call. */
const CHECK_MS = 30_000;

interface Space {
  readonly freeBytes: number;
  readonly totalBytes: number;
}

export class DiskWatch {
  readonly #directory: string;
  readonly #logger: Logger;
  readonly #read: () => Space;
  /** Number of thresholds that were reported and are still exceeded. */
  #reportedCount = 0;
  readonly #timer: NodeJS.Timeout;

  /**
   * Checks at once and then regularly until it is closed. `read` returns the space on the disk; by default, on the one
   * that holds the directory.
   */
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
      // The next write reports what is wrong with the disk.
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
        `the disk is more than ${percent} % full; once it is full, writes are refused: delete unneeded collections or free space`,
      );
      return;
    }
    const before = this.#reportedCount;
    while (this.#reportedCount > 0 && used < THRESHOLDS[this.#reportedCount - 1]! - HYSTERESIS) {
      this.#reportedCount--;
    }
    if (before > 0 && this.#reportedCount === 0) {
      this.#logger.info(details, 'the disk has enough free space again');
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }
}
