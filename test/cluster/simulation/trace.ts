// What happened in a simulation, line by line with virtual times, for people who look into a failure. Lines are part of
// the digest, so that two runs of a seed that differ in anything differ in their digests.

import type { Logger } from '../../../src/common/logger.js';
import type { Scheduler } from './scheduler.js';

/** Lines that are kept. */
const LINES_MAX = 20_000;

export class Trace {
  readonly lines: string[] = [];
  readonly #scheduler: Scheduler;

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  add(who: string, text: string): void {
    const line = `${(this.#scheduler.nowMs / 1_000).toFixed(4).padStart(9)} ${who.padEnd(8)} ${text}`;
    this.#scheduler.note(line);
    this.lines.push(line);
    if (this.lines.length > 2 * LINES_MAX) this.lines.splice(0, LINES_MAX);
  }

  /** The log of a process. */
  loggerOf(who: string): Logger {
    const write = (details: object, message: string) => {
      this.add(who, `${message} ${JSON.stringify(details, readable)}`);
    };
    return { debug() {}, info: write, warn: write, error: write };
  }
}

function readable(_name: string, value: unknown): unknown {
  return value instanceof Error ? `${value.name}: ${value.message}` : value;
}
