// The check of replies in the fuzzer reports each kind of fault planted in a good reply.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ReplyCheck } from './fuzz/check.js';
import { loadDocument } from './fuzz/document.js';
import { Faults } from './fuzz/faults.js';
import { findGaps } from './fuzz/fuzz.js';
import type { WireReply, WireRequest } from './fuzz/wire.js';

const check = new ReplyCheck(loadDocument());

const COUNT: WireRequest = {
  method: 'POST',
  target: '/v1/collections/c/count',
  headers: [['content-type', 'application/json']],
  body: Buffer.from('{}'),
  delivery: { kind: 'whole' },
};
const EXPORT: WireRequest = {
  ...COUNT,
  method: 'GET',
  target: '/collections/c/export',
  body: null,
};

const reply = (status: number, type: string, body: object | string): WireReply => ({
  status,
  headers: {
    'content-type': `${type}; charset=utf-8`,
    'x-request-id': 'r',
    'cache-control': 'no-store',
  },
  body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
});

const problem = (status: number, code: string, others: object = {}) =>
  reply(status, 'application/problem+json', {
    type: `urn:sagitta:error:${code}`,
    title: 'x',
    status,
    detail: 'x',
    instance: '/v1/collections/c/count',
    code,
    request_id: 'r',
    retryable: false,
    ...others,
  });

const complaints = (request: WireRequest, given: WireReply) =>
  check.check(request, given).complaints;

describe('the check of replies', () => {
  it('accepts documented replies', () => {
    assert.deepEqual(complaints(COUNT, reply(200, 'application/json', { count: 1 })), []);
    assert.deepEqual(complaints(COUNT, problem(404, 'collection_not_found')), []);
    assert.deepEqual(complaints(EXPORT, reply(200, 'application/x-ndjson', '{"id":"a"}\n')), []);
  });

  it('reports failures of the service, even documented ones', () => {
    assert.match(
      complaints(COUNT, problem(500, 'internal', { retryable: true }))[0]!,
      /status is 500/,
    );
  });

  it('reports undocumented statuses, types, codes and members', () => {
    for (const [given, expected] of [
      [problem(418, 'invalid_request'), /does not describe the status 418/],
      [reply(200, 'text/plain', 'x'), /does not describe text\/plain/],
      [problem(404, 'key_not_found'), /does not describe the code key_not_found/],
      [reply(200, 'application/json', { count: 1, more: 2 }), /additional properties/],
      [reply(200, 'application/json', { count: '1' }), /must be integer/],
      [reply(200, 'application/json', {}), /required property 'count'/],
      [reply(200, 'application/json', ''), /no body/],
      [problem(404, 'collection_not_found', { status: 400 }), /\/status is not 404/],
      [problem(404, 'collection_not_found', { more: 1 }), /additional properties/],
      [reply(200, 'application/json', '{"count":'), /the body is not application\/json/],
    ] as const) {
      assert.match(complaints(COUNT, given).join('\n'), expected);
    }
  });

  it('reports a cut stream of lines', () => {
    const cut = reply(200, 'application/x-ndjson', '{"id":"a"}\n{"id"');
    assert.match(complaints(EXPORT, cut)[0]!, /the body is not application\/x-ndjson/);
  });

  it('reports a missing request id', () => {
    const { headers, ...rest } = reply(200, 'application/json', { count: 1 });
    const { 'x-request-id': _, ...others } = headers;
    assert.match(complaints(COUNT, { ...rest, headers: others })[0]!, /no X-Request-Id/);
  });
});

it('operations without a success or a refusal are gaps', () => {
  const coverage = new Map([
    [
      'whole',
      new Map([
        [200, 1],
        [400, 2],
      ]),
    ],
    [
      'cached',
      new Map([
        [304, 1],
        [404, 2],
      ]),
    ],
    ['refused', new Map([[400, 1]])],
    ['accepted', new Map([[200, 1]])],
    ['never', new Map()],
  ]);
  assert.deepEqual(findGaps(coverage), [
    'refused: no success',
    'accepted: no refusal',
    'never: no success',
    'never: no refusal',
  ]);
});

it('faults of a kind are counted, whatever the numbers in them', () => {
  const faults = new Faults();
  assert.ok(faults.add('query', 'the reply has 3 matches', () => 'first'));
  assert.ok(!faults.add('query', 'the reply has 17 matches', () => 'second'));
  assert.ok(faults.add('count', 'the reply has 3 matches', () => 'third'));
  assert.deepEqual(
    faults.all.map(({ example, count }) => [example, count]),
    [
      ['first', 2],
      ['third', 1],
    ],
  );
});
