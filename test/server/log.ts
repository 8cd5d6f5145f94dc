// What the service logs, as lines of JSON: written by pino itself, so that what it makes of errors
// is in them.

import { Writable } from 'node:stream';
import pino from 'pino';
import type { Logger } from '../../src/common/logger.js';

export interface CapturedLog {
  readonly logger: Logger;
  /** As they were written. */
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
