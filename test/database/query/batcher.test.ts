import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SagittaError } from '../../../src/common/errors.js';
import { createBatcher } from '../../../src/database/query/batcher.js';

/** A run that ends when the test says so. */
interface Run {
  readonly items: readonly string[];
  readonly signal: AbortSignal;
  /** Answers each item with `=item`. */
  finish(): void;
  fail(error: unknown): void;
  answer(results: string[]): void;
}

function createFixture(options: { waitingMax?: number; batchItemsMax?: number } = {}) {
  const runs: Run[] = [];
  const batcher = createBatcher<string, string>({
    run: (items, signal) =>
      new Promise((resolve, reject) => {
        runs.push({
          items,
          signal,
          finish: () => resolve(items.map((item) => `=${item}`)),
          fail: reject,
          answer: resolve,
        });
      }),
    waitingMax: 10,
    ...options,
  });
  const submit = (items: readonly string[], signal?: AbortSignal) =>
    batcher.submit(items, signal === undefined ? {} : { signal });
  return { runs, batcher, submit };
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

const itemsOf = (runs: readonly Run[]) => runs.map(({ items }) => items.join(','));

describe('the batcher', () => {
  it('runs at once when idle, and gives results in the order of the items', async () => {
    const { runs, submit } = createFixture();
    const submitted = submit(['1', '2', '3']);
    await turn();
    assert.deepEqual(itemsOf(runs), ['1,2,3']);
    runs[0]!.finish();
    assert.deepEqual(await submitted, ['=1', '=2', '=3']);
  });

  it('puts what is submitted in one turn into the first batch, and gives each its own results', async () => {
    const { runs, submit } = createFixture();
    const submissions = [submit(['1']), submit(['2', '3']), submit(['4'])];
    await turn();
    assert.deepEqual(itemsOf(runs), ['1,2,3,4']);
    runs[0]!.finish();
    assert.deepEqual(await Promise.all(submissions), [['=1'], ['=2', '=3'], ['=4']]);
  });

  it('says when the wait of a submission ends, and never of one that was given up', async () => {
    const { runs, batcher } = createFixture();
    const begun: string[] = [];
    const controller = new AbortController();
    const first = batcher.submit(['1'], { onBegin: () => begun.push('1') });
    await turn();
    const second = batcher.submit(['2'], { onBegin: () => begun.push('2') });
    const onBegin = () => begun.push('3');
    const third = batcher.submit(['3'], { onBegin, signal: controller.signal });
    controller.abort(new Error('gone'));
    await assert.rejects(third, /gone/);
    assert.deepEqual(begun, ['1']);
    runs[0]!.finish();
    await first;
    await turn();
    assert.deepEqual(begun, ['1', '2']);
    runs[1]!.finish();
    await second;
  });

  it('lets what arrives during a batch wait, and runs it together afterwards', async () => {
    const { runs, batcher, submit } = createFixture();
    const first = submit(['1']);
    await turn();
    const second = submit(['2']);
    const third = submit(['3', '4']);
    await turn();
    assert.equal(batcher.waitingCount, 2);
    assert.deepEqual(itemsOf(runs), ['1']);
    runs[0]!.finish();
    assert.deepEqual(await first, ['=1']);
    await turn();
    assert.equal(batcher.waitingCount, 0);
    assert.deepEqual(itemsOf(runs), ['1', '2,3,4']);
    runs[1]!.finish();
    assert.deepEqual(await second, ['=2']);
    assert.deepEqual(await third, ['=3', '=4']);
  });

  it('is idle again after a batch, and runs the next submission at once', async () => {
    const { runs, submit } = createFixture();
    for (const item of ['1', '2', '3']) {
      const submitted = submit([item]);
      await turn();
      runs.at(-1)!.finish();
      assert.deepEqual(await submitted, [`=${item}`]);
      await turn();
    }
    assert.equal(runs.length, 3);
  });

  it('rejects beyond its bound at once, and admits again when there is room', async () => {
    const { runs, batcher, submit } = createFixture({ waitingMax: 2 });
    submit(['1']);
    await turn();
    submit(['2']);
    submit(['3']);
    await assert.rejects(submit(['4']), (error) => {
      assert.ok(error instanceof SagittaError);
      assert.equal(error.code, 'overloaded');
      assert.equal(error.retryAfterSeconds, 1);
      assert.match(error.message, /^2 searches wait/);
      return true;
    });
    assert.equal(batcher.waitingCount, 2);
    runs[0]!.finish();
    await turn();
    const admitted = submit(['5']);
    await turn();
    assert.deepEqual(itemsOf(runs), ['1', '2,3']);
    runs[1]!.finish();
    await turn();
    runs[2]!.finish();
    assert.deepEqual(await admitted, ['=5']);
  });

  it('rejects exactly the submissions of a batch that fails', async () => {
    const { runs, submit } = createFixture();
    const failing = [submit(['1']), submit(['2', '3'])];
    await turn();
    const next = submit(['4']);
    runs[0]!.fail(new Error('failed'));
    for (const submission of failing) await assert.rejects(submission, /^Error: failed$/);
    await turn();
    runs[1]!.finish();
    assert.deepEqual(await next, ['=4'], 'a failure does not stop the batches after it');
  });

  it('rejects the submissions of a run that throws or gives a wrong number of results', async () => {
    const { runs, submit } = createFixture();
    const submissions = [submit(['1']), submit(['2'])];
    await turn();
    runs[0]!.answer(['only one']);
    for (const submission of submissions) await assert.rejects(submission, /one result an item/);

    const throwing = createBatcher<string, string>({
      run: () => {
        throw new Error('thrown');
      },
      waitingMax: 1,
    });
    await assert.rejects(throwing.submit(['1']), /thrown/);
    await assert.rejects(throwing.submit(['1']), /thrown/);
  });

  it('serves in the order of arrival: small submissions do not overtake a large one', async () => {
    const { runs, submit } = createFixture({ batchItemsMax: 3 });
    submit(['0']);
    await turn();
    submit(['1', '2']);
    const large = submit(['3', '4', '5', '6', '7']);
    submit(['8']);
    submit(['9', '10']);
    submit(['11']);
    for (let i = 0; i < runs.length; i++) {
      runs[i]!.finish();
      await turn();
    }
    assert.deepEqual(itemsOf(runs), ['0', '1,2', '3,4,5,6,7', '8,9,10', '11']);
    assert.deepEqual(await large, ['=3', '=4', '=5', '=6', '=7']);
  });

  it('answers no items with no results', async () => {
    const { runs, batcher, submit } = createFixture();
    assert.deepEqual(await submit([]), []);
    assert.equal(runs.length, 0);
    assert.equal(batcher.waitingCount, 0);
  });
});

describe('the batcher, when a submission is given up', () => {
  const gone = new Error('gone');

  it('takes it out of the queue, and rejects it with the reason', async () => {
    const { runs, batcher, submit } = createFixture();
    submit(['1']);
    await turn();
    const controller = new AbortController();
    const aborted = submit(['2'], controller.signal);
    const other = submit(['3']);
    controller.abort(gone);
    await assert.rejects(aborted, gone);
    assert.equal(batcher.waitingCount, 1);
    assert.equal(runs[0]!.signal.aborted, false, 'it is in no batch');
    runs[0]!.finish();
    await turn();
    assert.deepEqual(itemsOf(runs), ['1', '3']);
    runs[1]!.finish();
    assert.deepEqual(await other, ['=3']);
  });

  it('ignores the results of one that is under way, and answers the others of its batch', async () => {
    const { runs, submit } = createFixture();
    const controller = new AbortController();
    const aborted = submit(['1', '2'], controller.signal);
    const other = submit(['3']);
    await turn();
    controller.abort(gone);
    await assert.rejects(aborted, gone);
    assert.equal(runs[0]!.signal.aborted, false, 'somebody still waits');
    runs[0]!.finish();
    assert.deepEqual(await other, ['=3']);
    assert.equal(runs[0]!.signal.aborted, false);
  });

  it('aborts the run once the last of its batch is given up, with the last reason', async () => {
    const { runs, submit } = createFixture();
    const controllers = [new AbortController(), new AbortController(), new AbortController()];
    const aborted = controllers.map(({ signal }, index) => submit([`${index}`], signal));
    await turn();
    const next = submit(['next']);
    for (const index of [1, 0, 2]) {
      assert.equal(runs[0]!.signal.aborted, false);
      controllers[index]!.abort(new Error(`gone ${index}`));
    }
    for (const [index, submission] of aborted.entries()) {
      await assert.rejects(submission, new RegExp(`^Error: gone ${index}$`));
    }
    assert.equal(runs[0]!.signal.aborted, true);
    assert.equal((runs[0]!.signal.reason as Error).message, 'gone 2');

    await turn();
    assert.equal(runs.length, 1, 'the engine is busy until the run has ended');
    runs[0]!.fail(runs[0]!.signal.reason);
    await turn();
    assert.deepEqual(itemsOf(runs), ['0,1,2', 'next']);
    assert.equal(runs[1]!.signal.aborted, false, 'each batch has a signal of its own');
    runs[1]!.finish();
    assert.deepEqual(await next, ['=next']);
  });

  it('never aborts a run that one without a signal waits for', async () => {
    const { runs, submit } = createFixture();
    const controllers = [new AbortController(), new AbortController()];
    const aborted = controllers.map(({ signal }) => submit(['1'], signal));
    const patient = submit(['2']);
    await turn();
    for (const controller of controllers) controller.abort(gone);
    for (const submission of aborted) await assert.rejects(submission, gone);
    assert.equal(runs[0]!.signal.aborted, false);
    runs[0]!.finish();
    assert.deepEqual(await patient, ['=2']);
  });

  it('counts one signal for all the submissions that share it', async () => {
    const { runs, submit } = createFixture();
    const controller = new AbortController();
    const aborted = [submit(['1'], controller.signal), submit(['2'], controller.signal)];
    await turn();
    const waiting = submit(['3'], controller.signal);
    controller.abort(gone);
    for (const submission of [...aborted, waiting]) await assert.rejects(submission, gone);
    assert.equal(runs[0]!.signal.aborted, true);
    runs[0]!.finish();
    await turn();
    assert.deepEqual(itemsOf(runs), ['1,2']);
  });

  it('does nothing to a run that has ended', async () => {
    const { runs, submit } = createFixture();
    const controller = new AbortController();
    const submitted = submit(['1'], controller.signal);
    await turn();
    runs[0]!.finish();
    await submitted;
    controller.abort(gone);
    assert.equal(runs[0]!.signal.aborted, false);
  });

  it('never queues one whose signal is aborted already', async () => {
    const { runs, submit } = createFixture();
    await assert.rejects(submit(['1'], AbortSignal.abort(new Error('before'))), /before/);
    await turn();
    assert.equal(runs.length, 0);
  });

  it('leaves no listener on the signal of a submission that is answered', async () => {
    const { runs, submit } = createFixture();
    const controller = new AbortController();
    let listenerCount = 0;
    const { signal } = controller;
    const { addEventListener, removeEventListener } = signal;
    signal.addEventListener = (...args: unknown[]) => {
      listenerCount++;
      Reflect.apply(addEventListener, signal, args);
    };
    signal.removeEventListener = (...args: unknown[]) => {
      listenerCount--;
      Reflect.apply(removeEventListener, signal, args);
    };
    const submitted = submit(['1'], signal);
    await turn();
    assert.equal(listenerCount, 1);
    runs[0]!.finish();
    await submitted;
    assert.equal(listenerCount, 0);
  });
});
