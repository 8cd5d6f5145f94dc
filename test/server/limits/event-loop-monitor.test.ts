import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { SagittaError } from '../../../src/common/errors.js';
import { DEFAULT_LIMITS } from '../../../src/common/limits.js';
import { EventLoopMonitor } from '../../../src/server/limits/event-loop-monitor.js';
import { createFilledService, expectProblem, type Service } from '../harness.js';
import { eventually, pause } from '../wire.js';

/** Nothing else runs for so long. */
function block(ms: number): void {
  const endMs = performance.now() + ms;
  while (performance.now() < endMs);
}

const createPressure = (delayMsMax: number) =>
  new EventLoopMonitor({ delayMsMax, nowMs: () => performance.now() });

describe('the pressure on the main thread', () => {
  it('is how late the event loop is, while it is late and for a moment after', async () => {
    const pressure = createPressure(100);
    pressure.begin();
    await pause(20);
    assert.ok(pressure.delayMs < 100, `${pressure.delayMs}`);
    pressure.check();
    block(300);
    // In the same turn the timer had no chance to tell.
    assert.ok(pressure.delayMs >= 200, `${pressure.delayMs}`);
    assert.throws(
      () => pressure.check(),
      (error: SagittaError) => error.code === 'overloaded' && error.retryAfterSeconds === 1,
    );
    // What was read from connections meanwhile comes after the timer, and is refused as well.
    await new Promise((resolve) => setImmediate(resolve));
    assert.ok(pressure.delayMs >= 200, `${pressure.delayMs}`);
    await eventually('it has passed', () => pressure.delayMs < 100);
    pressure.check();
    pressure.end();
  });

  it('is not measured while nothing is under way', async (t) => {
    const started = t.mock.method(globalThis, 'setTimeout').mock;
    const pressure = createPressure(100);
    assert.equal(pressure.delayMs, 0);
    for (let i = 0; i < 100; i++) {
      pressure.begin();
      pressure.end();
    }
    assert.equal(started.callCount(), 1, 'one timer for many requests');
    await pause(300);
    assert.equal(started.callCount(), 2, 'and then only that of the pause');
    block(300);
    assert.equal(pressure.delayMs, 0);
    pressure.begin();
    pressure.check();
    pressure.end();
  });

  it('refuses what would be work, and answers probes', async () => {
    const service = await createFilledService({
      limits: { ...DEFAULT_LIMITS, eventLoopDelayMsMax: 50 },
    });
    const replies = await whileLate(service, () => [
      service.call('GET', '/collections/c'),
      service.call('POST', '/collections/c/query', { body: { vector: [1, 2, 3] } }),
      service.call('GET', '/livez'),
      service.call('GET', '/readyz'),
      service.call('GET', '/limits'),
      service.call('GET', '/metrics'),
    ]);
    assert.deepEqual(
      replies.map(({ status }) => status),
      [503, 503, 200, 200, 200, 200],
    );
    assert.equal(replies[0]!.json.code, 'overloaded');
    assert.equal(replies[0]!.headers['retry-after'], '1');
    assert.match(replies[0]!.json.detail, /^The service is \d+ ms behind .* from 50 ms on/);
    assert.match(replies[5]!.text, /^sagitta_event_loop_delay_seconds 0\.[1-9]/m);
    await eventually('it has passed', async () => {
      return (await service.call('GET', '/collections/c')).status === 200;
    });
    await service.close();
  });

  it('refuses nothing when the machine keeps up', async () => {
    const service = await createFilledService();
    await expectProblem(service.call('GET', '/collections/none'), 404, 'collection_not_found');
    await service.close();
  });
});

/** Calls in one turn of the event loop that is already late, while a request is under way. */
async function whileLate<Result>(
  service: Service,
  call: () => Promise<Result>[],
): Promise<Result[]> {
  let release = () => {};
  const arrived = new Promise<void>((arrive) => {
    service.hooks.beforeSearch = () => {
      arrive();
      return new Promise((resolve) => {
        release = resolve;
      });
    };
  });
  const running = service.call('POST', '/collections/c/query', { body: { vector: [1, 2, 3] } });
  await arrived;
  block(300);
  const replies = await Promise.all(call());
  release();
  await running;
  return replies;
}
