// Captures the log of a service as lines of JSON. They are written by pino, so that they contain its
// rendering of errors.

import { Writable } from 'node:stream';
import pino from 'pino';
import type { Logger } from '../../src/common/logger.js';

export interface CapturedLog {
  readonly logger: Logger;
  /** All lines as written. */
  readonly text: string;
  /** The lines with this message, parsed. */
  lines(message: string): Record<string, unknown>[];
  clear(): void;
}

export function captureLog(level: 'debug' | 'info' = 'debug'): CapturedLog {
  let text = '';
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      text += chunk.toString();
      done();
    },
  });
  return {
    logger: pino({ level, base: null, timestamp: false }, stream),
    get text() {
      return text;
    },
    lines: (message) =>
      text
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as Record<string, unknown>)
        .filter(({ msg }) => msg === message),
    clear() {
      text = '';
    },
  };
}
