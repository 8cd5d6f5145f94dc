import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { SagittaClientError } from '@sagitta/client';
import { describeError } from '../src/api/describe-error.js';

describe('describeError', () => {
  const cases: readonly [SagittaClientError, string][] = [
    [new SagittaClientError('network_error', 'd'), 'The server cannot be reached'],
    [new SagittaClientError('timeout', 'd'), 'The server did not answer in time'],
    [new SagittaClientError('credentials_missing', 'd', { status: 401 }), 'Sign in to see this'],
    [
      new SagittaClientError('insufficient_scope', 'd', { status: 403 }),
      'Your credential does not allow this',
    ],
    [
      new SagittaClientError('rate_limited', 'd', { status: 429, retryAfterMs: 1_200 }),
      'Too many requests; try again in 2 s',
    ],
    [
      new SagittaClientError('overloaded', 'd', { status: 503 }),
      'The server is unavailable at the moment',
    ],
    [new SagittaClientError('internal', 'd', { status: 500 }), 'The server failed'],
    [new SagittaClientError('vector_not_found', 'd', { status: 404 }), 'Not found'],
    [
      new SagittaClientError('invalid_filter', 'd', { status: 400 }),
      'The request was not accepted',
    ],
  ];
  for (const [error, title] of cases) {
    test(`says "${title}" for ${error.code}`, () => {
      assert.equal(describeError(error).title, title);
      assert.equal(describeError(error).detail, 'd');
    });
  }

  test('lists the invalid parts with their pointers, without repeating the detail', () => {
    const items = ['first', 'all', 'second'].map((detail, at) => ({
      pointer: at === 1 ? '' : `/filter/${at}`,
      code: 'invalid_filter' as const,
      detail,
    }));
    const error = new SagittaClientError('invalid_filter', 'all', { status: 400, items });
    assert.deepEqual(describeError(error).items, ['/filter/0: first', '/filter/2: second']);
  });

  test('an error of the page itself is reported as such', () => {
    assert.deepEqual(describeError(new TypeError('x is undefined')), {
      title: 'The console failed',
      detail: 'x is undefined',
      items: [],
      requestId: undefined,
    });
  });
});
