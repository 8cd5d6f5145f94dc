// When the client leaves a service alone, and when it comes back to it.

import assert from 'node:assert/strict';
import { afterEach, it } from 'node:test';
import { type Admission, CircuitBreaker } from '../../src/client/circuit-breaker.js';
import { type ClientOptions, createClient, SagittaClientError } from '../../src/client/client.js';
import {
  problem,
  type ScriptedReply,
  type ScriptedServer,
  startScriptedServer,
} from './scripted-server.js';

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

function refusedMs(admission: Admission): number {
  assert.ok(admission.kind === 'rejected');
  return admission.retryAfterMs;
}

function fail(breaker: CircuitBreaker, count: number): void {
  for (let at = 0; at < count; at++) admitted(breaker.admit()).settle('failure');
}

it('opens after so many failures in a row, and says for how long', () => {
  const breaker = createBreaker();
  fail(breaker, 2);
  admitted(breaker.admit()).settle('success');
  fail(breaker, 2);
  admitted(breaker.admit()).settle('unknown');
  fail(breaker, 1);
  nowMs = 400;
  assert.equal(refusedMs(breaker.admit()), 600);
});

it('lets one request try after a while, and closes when that one is answered', () => {
  const breaker = createBreaker();
  fail(breaker, 3);
  nowMs = 1_000;
  const trial = admitted(breaker.admit());
  assert.ok(refusedMs(breaker.admit()) > 0);
  trial.settle('success');
  admitted(breaker.admit());
  fail(breaker, 2);
  admitted(breaker.admit());
});

it('stays open as long again when the trial fails', () => {
  const breaker = createBreaker();
  fail(breaker, 3);
  nowMs = 1_500;
  fail(breaker, 1);
  nowMs = 2_400;
  assert.equal(refusedMs(breaker.admit()), 100);
});

it('a trial that its caller ends leaves room for another', () => {
  const breaker = createBreaker();
  fail(breaker, 3);
  nowMs = 1_000;
  admitted(breaker.admit()).settle('unknown');
  admitted(breaker.admit()).settle('failure');
  assert.equal(refusedMs(breaker.admit()), 1_000);
});

it('what was sent before it opened cannot keep it open, but can close it', () => {
  const breaker = createBreaker();
  const early = [breaker.admit(), breaker.admit()].map(admitted);
  fail(breaker, 3);
  nowMs = 900;
  early[0]!.settle('failure');
  assert.equal(refusedMs(breaker.admit()), 100);
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

it('a client fails at once while the service is left alone, and recovers by itself', async () => {
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

it('refusals, full disks and calls that were given up do not count', async () => {
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
  for (let at = 0; at < 4; at++) {
    await assert.rejects(client.limits({ signal: AbortSignal.timeout(5) }), {
      name: 'TimeoutError',
    });
  }
  assert.equal(server!.requests.length, 8);
});

it('a call whose own tries open it fails with what happened to it', async () => {
  const client = await start([LOST], { retry: { attemptsMax: 5, delayMsBase: 1 } });
  assert.equal(await codeOf(client.limits()), 'network_error');
  assert.equal(server!.requests.length, 3);
  assert.equal(await codeOf(client.limits()), 'circuit_open');
});

it('no single call opens it unless told so, and it can be turned off', async () => {
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
