import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { prefetch } from '../../../src/server/replies/prefetch.js';

const NEVER = new AbortController().signal;

async function* numbers(count: number, onEnd: () => void = () => {}) {
  try {
    for (let i = 0; i < count; i++) yield i;
  } finally {
    onEnd();
  }
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('prefetched work', () => {
  it('gives results in the order of the items, whichever ends first', async () => {
    const work = async (item: number) => {
      for (let i = 0; i < (item % 2 === 0 ? 5 : 0); i++) await turn();
      return item * 10;
    };
    const found: number[] = [];
    for await (const result of prefetch(numbers(7), work, NEVER)) found.push(result);
    assert.deepEqual(found, [0, 10, 20, 30, 40, 50, 60]);
    const none: number[] = [];
    for await (const result of prefetch([], work, NEVER)) none.push(result);
    assert.deepEqual(none, []);
  });

  it('is at most two items ahead of the consumer', async () => {
    let startedCount = 0;
    const work = async (item: number) => {
      startedCount++;
      return item;
    };
    let takenCount = 0;
    for await (const _ of prefetch(numbers(10), work, NEVER)) {
      takenCount++;
      await turn();
      assert.ok(startedCount <= takenCount + 2, `${startedCount} after ${takenCount}`);
      assert.ok(startedCount > takenCount || takenCount === 10, 'the next one is in the making');
    }
    assert.equal(takenCount, 10);
  });

  it('ends with the first error in order, and closes the source', async () => {
    let hasEnded = false;
    const signals: AbortSignal[] = [];
    const work = async (item: number, signal: AbortSignal) => {
      signals.push(signal);
      if (item >= 2) throw new Error(`no ${item}`);
      return item;
    };
    const found: number[] = [];
    await assert.rejects(
      async () => {
        const source = numbers(10, () => {
          hasEnded = true;
        });
        for await (const result of prefetch(source, work, NEVER)) found.push(result);
      },
      { message: 'no 2' },
    );
    await turn();
    assert.deepEqual([found, hasEnded], [[0, 1], true]);
    assert.ok(
      signals.every(({ aborted }) => aborted),
      'the work that is under way is told',
    );
    async function* broken() {
      yield 1;
      throw new Error('the source broke');
    }
    await assert.rejects(
      async () => {
        for await (const _ of prefetch(broken(), async (item) => item, NEVER));
      },
      { message: 'the source broke' },
    );
  });

  it('is aborted when the consumer stops', async () => {
    let told: AbortSignal | undefined;
    const work = async (item: number, signal: AbortSignal) => {
      told = signal;
      return item;
    };
    for await (const _ of prefetch(numbers(5), work, NEVER)) break;
    assert.equal(told?.aborted, true);
    const controller = new AbortController();
    const taking = prefetch(numbers(5), work, controller.signal);
    await taking.next();
    controller.abort(new Error('gone'));
    assert.equal((told!.reason as Error).message, 'gone');
    await taking.return();
  });
});
