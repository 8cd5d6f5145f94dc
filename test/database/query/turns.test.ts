import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { SubmitSearches } from '../../../src/database/query/search.js';
import { inTurns } from '../../../src/database/query/turns.js';

type Queries = Parameters<SubmitSearches>[0];

const group = (count: number) => Array.from({ length: count }) as unknown as Queries;

/** An engine that ends what it was given first when it is told to. */
function createEngine() {
  const atWork: { count: number; end: (error?: Error) => void }[] = [];
  const submitAll: SubmitSearches = (queries) =>
    new Promise((resolve, reject) => {
      atWork.push({
        count: queries.length,
        end: (error) => (error === undefined ? resolve({ hits: [], waitMs: 1 }) : reject(error)),
      });
    });
  const counts = () => atWork.map(({ count }) => count);
  return { submitAll, counts, end: (error?: Error) => atWork.shift()!.end(error) };
}

describe('large groups of searches', () => {
  it('are two at the engine at once, in order, and small ones pass them', async () => {
    const engine = createEngine();
    const submit = inTurns(engine.submitAll);
    const done: number[] = [];
    for (const count of [100, 101, 102, 103]) {
      void submit(group(count), {}).then(() => done.push(count));
    }
    void submit(group(1), {}).then(() => done.push(1));
    await turn();
    assert.deepEqual(
      engine.counts(),
      [1, 100, 101].sort((a, b) => a - b),
    );
    assert.ok(!engine.counts().includes(102));
    while (engine.counts().length > 0) {
      engine.end();
      await turn();
      assert.ok(engine.counts().filter((count) => count >= 100).length <= 2);
    }
    assert.deepEqual(
      done.filter((count) => count >= 100),
      [100, 101, 102, 103],
    );
    assert.ok(done.includes(1));
  });

  it('give their turn on when they fail, and when nobody waits for them any more', async () => {
    const engine = createEngine();
    const submit = inTurns(engine.submitAll);
    const failing = submit(group(50), {});
    void submit(group(51), {});
    const controller = new AbortController();
    const abandoned = submit(group(52), { signal: controller.signal });
    void submit(group(53), {});
    await turn();
    controller.abort(new Error('gone'));
    await assert.rejects(abandoned, /gone/);
    engine.end(new Error('broken'));
    await assert.rejects(failing, /broken/);
    await turn();
    assert.deepEqual(engine.counts(), [51, 53]);
    await assert.rejects(submit(group(54), { signal: controller.signal }), /gone/);
  });

  it('tell of both waits', async () => {
    const engine = createEngine();
    const submit = inTurns(engine.submitAll);
    void submit(group(60), {});
    void submit(group(61), {});
    const third = submit(group(62), {});
    await turn();
    engine.end();
    await turn();
    engine.end();
    engine.end();
    assert.ok((await third).waitMs > 1);
  });
});
