import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { SagittaError } from '../../../src/common/errors.js';
import { RequestTurns } from '../../../src/server/limits/request-turns.js';
import { eventually } from '../../support/waiting.js';
import { createFilledService, expectProblem, holdQueries } from '../harness.js';
import { metricOf } from '../wire.js';

/** Turns whose iterations the test runs, and the requests that have begun, in order. */
function createTurns({ waitingMax = 1_000, startsMax = 4 } = {}) {
  const callbacks: (() => void)[] = [];
  const begun: string[] = [];
  const turns = new RequestTurns({
    waitingMax,
    startsMax,
    nextIteration: (callback) => callbacks.push(callback),
  });
  return {
    turns,
    begun,
    get isIdle() {
      return callbacks.length === 0;
    },
    /** A request arrives while `inProgressCount` others are in progress. */
    async arrive(client: string, inProgressCount = startsMax) {
      if (!turns.mayBegin(inProgressCount + 1)) await turns.wait(client);
      begun.push(client);
    },
    async iterate() {
      await Promise.resolve();
      for (const callback of callbacks.splice(0)) callback();
      // The requests that have begun record it in microtasks.
      await new Promise(setImmediate);
    },
  };
}

const isOverloaded = (detail: RegExp) => (error: SagittaError) => {
  assert.equal(error.code, 'overloaded');
  assert.match(error.message, detail);
  return true;
};

describe('the turns of requests', () => {
  it('let every request begin at once while few are in progress', async () => {
    const { turns, begun, isIdle, arrive } = createTurns();
    for (let i = 0; i < 100; i++) await arrive('a', i % 4);
    assert.equal(begun.length, 100);
    assert.equal(turns.waitingCount, 0);
    assert.ok(isIdle);
  });

  it('let a bounded number begin in one iteration, and the others later in their order', async () => {
    const { turns, begun, arrive, iterate } = createTurns();
    for (let i = 0; i < 10; i++) arrive(`client ${i}`);
    await new Promise(setImmediate);
    assert.equal(begun.length, 4);
    assert.equal(turns.waitingCount, 6);
    await iterate();
    assert.equal(begun.length, 8);
    await iterate();
    assert.deepEqual(
      begun,
      Array.from({ length: 10 }, (_, i) => `client ${i}`),
    );
    assert.equal(turns.waitingCount, 0);
  });

  it('alternate between clients, so that one with many requests does not delay the others', async () => {
    const { begun, arrive, iterate } = createTurns();
    for (let i = 0; i < 200; i++) arrive('many');
    arrive('one');
    arrive('two');
    arrive('two');
    await iterate();
    assert.deepEqual(begun.slice(4), ['many', 'one', 'two', 'many']);
    await iterate();
    assert.deepEqual(begun.slice(8, 10), ['two', 'many']);
    // A request that arrives later waits for one turn of the other client.
    arrive('late');
    await iterate();
    assert.deepEqual(begun.slice(12, 14), ['many', 'late']);
  });

  it('let nobody overtake the requests that wait', async () => {
    const { begun, arrive, iterate } = createTurns({ startsMax: 1 });
    arrive('a');
    arrive('b');
    await iterate();
    arrive('c', 0);
    arrive('d', 0);
    await iterate();
    await iterate();
    await iterate();
    assert.deepEqual(begun, ['a', 'b', 'c', 'd']);
  });

  it('run no iteration when nothing waits', async () => {
    const service = createTurns();
    for (let i = 0; i < 6; i++) service.arrive('a');
    for (let i = 0; i < 3; i++) await service.iterate();
    assert.equal(service.begun.length, 6);
    assert.ok(service.isIdle);
  });

  it('refuse what does not fit into the queue, or into the half of one client', async () => {
    const { turns, arrive, iterate } = createTurns({ waitingMax: 6, startsMax: 1 });
    const all = ['a', 'a', 'a', 'a'].map((client) => arrive(client));
    await assert.rejects(arrive('a'), isOverloaded(/of this client are waiting \(limit 3, half/));
    assert.throws(() => turns.check(() => 'a'), isOverloaded(/limit 3/));
    turns.check(() => 'b');
    all.push(arrive('b'), arrive('c'), arrive('d'));
    await assert.rejects(arrive('e'), isOverloaded(/^Too many requests are waiting \(limit 6\)/));
    for (let i = 0; i < 6; i++) await iterate();
    await Promise.all(all);
    turns.check(() => 'a');
  });

  it('begin every request once, and delay a client by at most one turn of each other', async () => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    let state = seed;
    const random = (below: number) => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff;
      return Math.floor((state / 2 ** 31) * below);
    };
    const { turns, begun, arrive, iterate } = createTurns({ waitingMax: 100_000, startsMax: 3 });
    const sent = new Map<string, number>();
    const waits: Promise<void>[] = [];
    for (let round = 0; round < 200; round++) {
      for (let i = random(8); i > 0; i--) {
        const client = `${random(5)}`;
        sent.set(client, (sent.get(client) ?? 0) + 1);
        waits.push(arrive(client));
      }
      await iterate();
    }
    while (turns.waitingCount > 0) await iterate();
    await Promise.all(waits);
    for (const [client, count] of sent) {
      assert.equal(begun.filter((other) => other === client).length, count, `seed ${seed}`);
    }
  });
});

describe('requests of many clients', () => {
  it('are all answered, however late the event loop is', async () => {
    const eventLoop = { begin() {}, end() {}, delayMs: 1_700 };
    const service = await createFilledService({ eventLoop });
    const replies = await Promise.all(
      Array.from({ length: 200 }, () =>
        service.call('POST', '/collections/c/query', { body: { vector: [1, 2, 3], top_k: 1 } }),
      ),
    );
    assert.deepEqual(new Set(replies.map(({ status }) => status)), new Set([200]));
    assert.equal(await metricOf(service, 'sagitta_http_requests_waiting'), 0);
    assert.equal(await metricOf(service, 'sagitta_event_loop_delay_seconds'), 1.7);
    await service.close();
  });

  it('are refused when the queue is full, except for health checks', async () => {
    const callbacks: (() => void)[] = [];
    const turns = new RequestTurns({
      waitingMax: 2,
      startsMax: 1,
      nextIteration: (callback) => callbacks.push(callback),
    });
    const service = await createFilledService({ turns });
    const read = () => service.call('GET', '/collections/c');
    const query = () =>
      service.call('POST', '/collections/c/query', { body: { vector: [1, 2, 3] } });
    const { arrived, release } = holdQueries(service);
    const held = query();
    await arrived;
    assert.equal((await read()).status, 200);
    const waits = query();
    const waiting = () => metricOf(service, 'sagitta_http_requests_waiting');
    await eventually('a request waits', async () => (await waiting()) === 1);
    for (const refused of [read(), query()]) {
      const { json, headers } = await expectProblem(refused, 503, 'overloaded');
      assert.equal(headers['retry-after'], '1');
      assert.equal(
        json.detail,
        'Too many requests of this client are waiting (limit 1, half of the total). Retry after 1 s.',
      );
    }
    for (const path of ['/livez', '/readyz', '/limits', '/metrics']) {
      assert.equal((await service.call('GET', path)).status, 200, path);
    }
    release();
    for (const callback of callbacks.splice(0)) callback();
    assert.deepEqual([(await held).status, (await waits).status], [200, 200]);
    for (const callback of callbacks.splice(0)) callback();
    assert.equal((await read()).status, 200);
    await service.close();
  });
});
