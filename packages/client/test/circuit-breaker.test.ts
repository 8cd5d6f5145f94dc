// The circuit breaker: when it opens and closes, and which of the client's calls count.

import assert from 'node:assert/strict';
import { afterEach, it } from 'node:test';
import { type Admission, CircuitBreaker } from '../../../src/common/circuit-breaker.js';
import {
  problem,
  type ScriptedReply,
  type ScriptedServer,
  startScriptedServer,
} from '../../../test/support/scripted-server.js';
import { type ClientOptions, createClient, SagittaClientError } from '../src/client.js';

let server: ScriptedServer | undefined;
let nowMs = 0;

afterEach(async () => {
  await server?.close();
  server = undefined;
  nowMs = 0;
});

const OPTIONS = { failuresMax: 3, coolDownMs: 1_000 };
const createBreaker = () => new CircuitBreaker(OPTIONS, () => nowMs);

function admitted(admission: Admission): Extract<Admission, { kind: 'admitted' }> {
  assert.ok(admission.kind === 'admitted');
  return admission;
}

function rejectedMs(admission: Admission): number {
  assert.ok(admission.kind === 'rejected');
  return admission.retryAfterMs;
}

function fail(breaker: CircuitBreaker, count: number): void {
  for (let at = 0; at < count; at++) admitted(breaker.admit()).settle('failure');
}

it('opens after consecutive failures and reports the remaining cool-down', () => {
  const breaker = createBreaker();
  fail(breaker, 2);
  admitted(breaker.admit()).settle('success');
  fail(breaker, 2);
  admitted(breaker.admit()).settle('unknown');
  fail(breaker, 1);
  nowMs = 400;
  assert.equal(rejectedMs(breaker.admit()), 600);
});

it('admits one trial after the cool-down and closes when it succeeds', () => {
  const breaker = createBreaker();
  fail(breaker, 3);
  nowMs = 1_000;
  const trial = admitted(breaker.admit());
  assert.ok(rejectedMs(breaker.admit()) > 0);
  trial.settle('success');
  admitted(breaker.admit());
  fail(breaker, 2);
  admitted(breaker.admit());
});

it('stays open for another cool-down when the trial fails', () => {
  const breaker = createBreaker();
  fail(breaker, 3);
  nowMs = 1_500;
  fail(breaker, 1);
  nowMs = 2_400;
  assert.equal(rejectedMs(breaker.admit()), 100);
});

it('an aborted trial makes room for another', () => {
  const breaker = createBreaker();
  fail(breaker, 3);
  nowMs = 1_000;
  admitted(breaker.admit()).settle('unknown');
  admitted(breaker.admit()).settle('failure');
  assert.equal(rejectedMs(breaker.admit()), 1_000);
});

it('a call admitted before it opened cannot extend the cool-down but can close it', () => {
  const breaker = createBreaker();
  const early = [breaker.admit(), breaker.admit()].map(admitted);
  fail(breaker, 3);
  nowMs = 900;
  early[0]!.settle('failure');
  assert.equal(rejectedMs(breaker.admit()), 100);
  early[1]!.settle('success');
  early[1]!.settle('failure');
  admitted(breaker.admit());
});

async function start(replies: readonly ScriptedReply[], options: Partial<ClientOptions> = {}) {
  server = await startScriptedServer(replies);
  return createClient({
    baseUrl: server.url,
    retry: { attemptsMax: 1 },
    circuitBreaker: OPTIONS,
    now: () => nowMs,
    ...options,
  });
}

const LOST = { isLost: true };

async function codeOf(work: Promise<unknown>): Promise<string> {
  const error: unknown = await work.then(
    () => assert.fail('expected a failure'),
    (found: unknown) => found,
  );
  assert.ok(error instanceof SagittaClientError, String(error));
  return error.code;
}

it('a client fails fast while the breaker is open and recovers afterwards', async () => {
  const client = await start([LOST, LOST, problem(500, 'internal'), { body: {} }]);
  for (let at = 0; at < 3; at++) await codeOf(client.limits());
  nowMs = 250;
  await assert.rejects(client.limits(), {
    code: 'circuit_open',
    retryAfterMs: 750,
    retryable: true,
    status: undefined,
  });
  assert.equal(server!.requests.length, 3);
  nowMs = 1_000;
  await client.limits();
  await client.limits();
  assert.equal(server!.requests.length, 5);
});

it('error replies of a working server and aborted calls do not count as failures', async () => {
  const client = await start([
    problem(404, 'collection_not_found'),
    problem(429, 'rate_limited'),
    problem(507, 'storage_full'),
    problem(400, 'invalid_request'),
    { isSilent: true },
  ]);
  for (let at = 0; at < 4; at++) {
    assert.notEqual(await codeOf(client.limits()), 'circuit_open');
  }
  for (let requestCount = 5; requestCount <= 8; requestCount++) {
    const controller = new AbortController();
    const calling = client.limits({ signal: controller.signal });
    await server!.received(requestCount);
    controller.abort(new Error('enough'));
    await assert.rejects(calling, { message: 'enough' });
  }
  assert.equal(server!.requests.length, 8);
});

it('a call whose own attempts open the breaker fails with its own error', async () => {
  const client = await start([LOST], { retry: { attemptsMax: 5, delayMsBase: 1 } });
  assert.equal(await codeOf(client.limits()), 'network_error');
  assert.equal(server!.requests.length, 3);
  assert.equal(await codeOf(client.limits()), 'circuit_open');
});

it('by default no single call opens it, and it can be disabled', async () => {
  const retry = { attemptsMax: 8, delayMsBase: 0 };
  await start([LOST]);
  const options = { baseUrl: server!.url, retry, now: () => nowMs };
  const usual = createClient(options);
  assert.equal(await codeOf(usual.limits()), 'network_error');
  assert.equal(await codeOf(usual.limits()), 'network_error');
  assert.equal(await codeOf(usual.limits()), 'circuit_open');
  assert.equal(server!.requests.length, 16);
  const unguarded = createClient({ ...options, circuitBreaker: false });
  for (let at = 0; at < 3; at++) assert.equal(await codeOf(unguarded.limits()), 'network_error');
  assert.equal(server!.requests.length, 40);
});
