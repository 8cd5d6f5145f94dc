// The log of a node, for its operator. Lines about logs name the collection, and lines that many logs have in common are
// written once, with the number of the others: a fault of the shared services, or the start of a node, concerns all logs.

import { SagittaError } from '../../common/errors.js';
import type { Logger } from '../../common/logger.js';
import { CATALOGUE } from '../logs/store-entries.js';

type Level = keyof Logger;

/** Lines that are written for one message before the others are counted. */
const LINES_MAX = 2;
const INTERVAL_MS = 5_000;

interface Burst {
  lineCount: number;
  /** Lines left out. */
  leftOut: number;
}

export class NodeLogger implements Logger {
  readonly #logger: Logger;
  /** The id of a collection by its incarnation; undefined if it is not known (any more). */
  readonly #idOf: (incarnation: string) => string | undefined;
  /** By level and message. */
  readonly #bursts = new Map<string, Burst>();

  constructor(logger: Logger, idOf: (incarnation: string) => string | undefined) {
    this.#logger = logger;
    this.#idOf = idOf;
  }

  debug(details: object, message: string): void {
    this.#write('debug', details, message);
  }

  info(details: object, message: string): void {
    this.#write('info', details, message);
  }

  warn(details: object, message: string): void {
    this.#write('warn', details, message);
  }

  error(details: object, message: string): void {
    this.#write('error', details, message);
  }

  #write(
    level: Level,
    details: { readonly log?: string; readonly err?: unknown },
    message: string,
  ) {
    const { log, err, ...rest } = details;
    if (log !== undefined && log !== CATALOGUE && !this.#mayWrite(level, message)) return;
    const id = log === undefined || log === CATALOGUE ? undefined : this.#idOf(log);
    this.#logger[level](
      {
        ...(id !== undefined && { collection: id }),
        ...(log !== undefined && { log }),
        ...(err !== undefined && { err: forOperators(err) }),
        ...rest,
      },
      message,
    );
  }

  #mayWrite(level: Level, message: string): boolean {
    const key = `${level} ${message}`;
    const burst = this.#bursts.get(key) ?? this.#startBurst(key, level, message);
    burst.lineCount++;
    const isWritten = burst.lineCount <= LINES_MAX;
    if (!isWritten) burst.leftOut++;
    return isWritten;
  }

  #startBurst(key: string, level: Level, message: string): Burst {
    const burst = { lineCount: 0, leftOut: 0 };
    this.#bursts.set(key, burst);
    setTimeout(() => {
      this.#bursts.delete(key);
      if (burst.leftOut > 0) this.#logger[level]({ other_logs: burst.leftOut }, message);
    }, INTERVAL_MS).unref();
    return burst;
  }
}

/** The error behind one whose text tells clients what to do. */
function forOperators(error: unknown): unknown {
  const isForClients = error instanceof SagittaError && error.code === 'no_leader';
  return isForClients && error.cause !== undefined ? error.cause : error;
}
