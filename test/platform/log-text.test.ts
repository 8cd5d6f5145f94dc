// Log lines for people.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import pino from 'pino';
import { formatLogLine } from '../../src/platform/log-text.js';

/** Formats what a logger like the server's writes. */
function textsOf(log: (logger: pino.Logger) => void): string {
  let text = '';
  const write = (line: string) => {
    text += formatLogLine(line);
  };
  log(pino({ level: 'debug', base: null, timestamp: () => ',"time":1795419232472' }, { write }));
  return text;
}

describe('log lines as text', () => {
  it('contain the time in UTC, the level, the message and the members', () => {
    const text = textsOf((logger) => {
      logger.info({ url: 'http://127.0.0.1:8484', milliseconds: 12 }, 'listening');
      logger.warn({ reason: 'no driver', list: ['a', 1] }, 'not available');
      logger.debug('no members');
      logger.error({ code: 'internal' });
    });
    assert.equal(
      text,
      '2026-11-23T07:33:52.472Z info  listening  url=http://127.0.0.1:8484 milliseconds=12\n' +
        '2026-11-23T07:33:52.472Z warn  not available  reason="no driver" list=["a",1]\n' +
        '2026-11-23T07:33:52.472Z debug no members\n' +
        '2026-11-23T07:33:52.472Z error code=internal\n',
    );
  });

  it('are followed by the stack of an error', () => {
    const error = new RangeError('too far');
    error.stack = 'RangeError: too far\n    at a (b.js:1:2)';
    const text = textsOf((logger) => logger.error({ err: error, code: 'x' }, 'failed'));
    assert.equal(
      text,
      '2026-11-23T07:33:52.472Z error failed  code=x\n    RangeError: too far\n    at a (b.js:1:2)\n',
    );
  });

  it('keep clients from forging lines or controlling the terminal', () => {
    const sent = 'a\n2026 info b\u001b[2J\u202e\u2028"=';
    const text = textsOf((logger) => logger.info({ principal: sent }, `by ${sent}`));
    assert.equal(text.split('\n').length, 2);
    assert.doesNotMatch(text.trimEnd(), /[\p{C}\u2028]/u);
    assert.match(text, /principal="a\\n2026 info b\\u001b\[2J\\u202e\\u2028\\"="/);
  });
});
