import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readTraceContext } from '../../../src/server/telemetry/trace-context.js';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';
const VALID = `00-${TRACE}-${SPAN}-01`;

describe('the trace context of a request', () => {
  it('is read from traceparent and tracestate', () => {
    assert.deepEqual(readTraceContext({ traceparent: VALID, tracestate: 'a=1,b=2' }), {
      traceId: TRACE,
      spanId: SPAN,
      isSampled: true,
      state: 'a=1,b=2',
    });
    const notSampled = readTraceContext({ traceparent: `00-${TRACE}-${SPAN}-fe` });
    assert.deepEqual([notSampled?.isSampled, notSampled?.state], [false, undefined]);
  });

  it('may have more fields in a later version', () => {
    for (const traceparent of [`01-${TRACE}-${SPAN}-01`, `cc-${TRACE}-${SPAN}-01-more`]) {
      assert.equal(readTraceContext({ traceparent })?.traceId, TRACE, traceparent);
    }
  });

  it('is absent if the header is not valid', () => {
    for (const traceparent of [
      undefined,
      '',
      'x',
      `ff-${TRACE}-${SPAN}-01`,
      `00-${TRACE}-${SPAN}-01-more`,
      `00-${TRACE}-${SPAN}-1`,
      `00-${TRACE}-${SPAN}`,
      `00-${TRACE.toUpperCase()}-${SPAN}-01`,
      `00-${'0'.repeat(32)}-${SPAN}-01`,
      `00-${TRACE}-${'0'.repeat(16)}-01`,
      `00-${TRACE.slice(1)}-${SPAN}-01`,
      `00-${TRACE}-${SPAN}-0g`,
      ` ${VALID}`,
      `${VALID}\n`,
      // Two headers, joined by Node.
      `${VALID}, ${VALID}`,
      `01-${TRACE}-${SPAN}-01, ${VALID}`,
    ]) {
      const headers = traceparent === undefined ? {} : { traceparent };
      assert.equal(readTraceContext(headers), null, JSON.stringify(traceparent));
    }
  });

  it('ignores a tracestate that is too long or not printable', () => {
    for (const tracestate of ['', `a=${'x'.repeat(511)}`, 'a=é', 'a=1\u0000']) {
      const found = readTraceContext({ traceparent: VALID, tracestate });
      assert.deepEqual([found?.traceId, found?.state], [TRACE, undefined]);
    }
    const twice = readTraceContext({ traceparent: VALID, tracestate: ['a=1', 'b=2'] as never });
    assert.equal(twice?.state, 'a=1,b=2');
  });
});
