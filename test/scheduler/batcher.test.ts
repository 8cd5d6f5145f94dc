import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SagittaError } from '../../src/errors.js';
import { createBatcher } from '../../src/scheduler/batcher.js';

interface Target {
  readonly key: string;
  readonly size: number;
}

/** A run that ends when the test says so. */
interface Run {
  readonly target: Target;
  readonly items: readonly string[];
  /** Answers each item with `target.key:item`. */
  finish(): void;
  fail(error: unknown): void;
  answer(results: string[]): void;
}

function createFixture(options: { waitingMax?: number; batchItemsMax?: number } = {}) {
  const runs: Run[] = [];
  const batcher = createBatcher<Target, string, string>({
    run: (target, items) =>
      new Promise((resolve, reject) => {
        runs.push({
          target,
          items,
          finish: () => resolve(items.map((item) => `${target.key}:${item}`)),
          fail: reject,
          answer: resolve,
        });
      }),
    merge: (left, right) => (left.size >= right.size ? left : right),
    waitingMax: 10,
    ...options,
  });
  const submit = (pairs: readonly string[], signal?: AbortSignal) =>
    batcher.submit(pairs.map(parseWork), signal === undefined ? {} : { signal });
  return { runs, batcher, submit };
}

/** `a:1` is item 1 for target a; `a9:1` the same with a target of size 9. */
function parseWork(pair: string) {
  const [target, item] = pair.split(':') as [string, string];
  return { target: { key: target[0]!, size: Number(target.slice(1)) }, item };
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

const describeRuns = (runs: readonly Run[]) =>
  runs.map(({ target, items }) => `${target.key}:${items.join(',')}`);

describe('the batcher', () => {
  it('runs at once when idle, and gives results in the order of the work', async () => {
    const { runs, submit } = createFixture();
    const submitted = submit(['a:1', 'b:2', 'a:3']);
    await turn();
    assert.deepEqual(describeRuns(runs), ['a:1,3', 'b:2']);
    runs[1]!.finish();
    runs[0]!.finish();
    assert.deepEqual(await submitted, ['a:1', 'b:2', 'a:3']);
  });

  it('puts what is submitted in one turn into the first batch', async () => {
    const { runs, submit } = createFixture();
    submit(['a:1']);
    submit(['a:2']);
    await turn();
    assert.deepEqual(describeRuns(runs), ['a:1,2']);
  });

  it('lets what arrives during a batch wait, and runs it together afterwards', async () => {
    const { runs, batcher, submit } = createFixture();
    submit(['a:1', 'b:1']);
    await turn();
    const second = submit(['a:2']);
    const third = submit(['b:3', 'a:3']);
    await turn();
    assert.equal(batcher.waitingCount, 2);
    runs[0]!.finish();
    await turn();
    assert.equal(runs.length, 2, 'one run of the first batch is still in progress');
    runs[1]!.finish();
    await turn();
    assert.equal(batcher.waitingCount, 0);
    assert.deepEqual(describeRuns(runs.slice(2)), ['a:2,3', 'b:3']);
    runs[2]!.finish();
    assert.deepEqual(await second, ['a:2']);
    runs[3]!.finish();
    assert.deepEqual(await third, ['b:3', 'a:3']);
  });

  it('is idle again after a batch, and runs the next submission at once', async () => {
    const { runs, submit } = createFixture();
    for (const item of ['1', '2', '3']) {
      const submitted = submit([`a:${item}`]);
      await turn();
      runs.at(-1)!.finish();
      assert.deepEqual(await submitted, [`a:${item}`]);
      await turn();
    }
    assert.equal(runs.length, 3);
  });

  it('runs the items of one key on the merged target', async () => {
    const { runs, submit } = createFixture();
    submit(['a3:1']);
    submit(['a9:2']);
    submit(['a5:3']);
    await turn();
    assert.equal(runs.length, 1);
    assert.equal(runs[0]!.target.size, 9);
  });

  it('rejects beyond its bound at once, and admits again when there is room', async () => {
    const { runs, batcher, submit } = createFixture({ waitingMax: 2 });
    submit(['a:1']);
    await turn();
    submit(['a:2']);
    submit(['a:3']);
    await assert.rejects(submit(['a:4']), (error) => {
      assert.ok(error instanceof SagittaError);
      assert.equal(error.code, 'overloaded');
      assert.equal(error.retryAfterSeconds, 1);
      assert.match(error.message, /^2 searches wait/);
      return true;
    });
    assert.equal(batcher.waitingCount, 2);
    runs[0]!.finish();
    await turn();
    const admitted = submit(['a:5']);
    await turn();
    assert.deepEqual(describeRuns(runs), ['a:1', 'a:2,3']);
    runs[1]!.finish();
    await turn();
    runs[2]!.finish();
    assert.deepEqual(await admitted, ['a:5']);
  });

  it('takes an aborted submission out of the queue, and rejects it with the reason', async () => {
    const { runs, batcher, submit } = createFixture();
    submit(['a:1']);
    await turn();
    const controller = new AbortController();
    const aborted = submit(['a:2'], controller.signal);
    const other = submit(['a:3']);
    controller.abort(new Error('gone'));
    await assert.rejects(aborted, /^Error: gone$/);
    assert.equal(batcher.waitingCount, 1);
    runs[0]!.finish();
    await turn();
    assert.deepEqual(describeRuns(runs), ['a:1', 'a:3']);
    runs[1]!.finish();
    assert.deepEqual(await other, ['a:3']);
  });

  it('rejects a submission that is aborted while it runs, and ignores its results', async () => {
    const { runs, submit } = createFixture();
    const controller = new AbortController();
    const aborted = submit(['a:1'], controller.signal);
    const other = submit(['a:2']);
    await turn();
    controller.abort(new Error('gone'));
    await assert.rejects(aborted, /^Error: gone$/);
    runs[0]!.finish();
    assert.deepEqual(await other, ['a:2']);
  });

  it('never queues a submission whose signal is aborted already', async () => {
    const { runs, submit } = createFixture();
    await assert.rejects(submit(['a:1'], AbortSignal.abort(new Error('before'))), /before/);
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
    const submitted = submit(['a:1'], signal);
    await turn();
    assert.equal(listenerCount, 1);
    runs[0]!.finish();
    await submitted;
    assert.equal(listenerCount, 0);
  });

  it('rejects exactly the submissions of a run that fails', async () => {
    const { runs, submit } = createFixture();
    const both = submit(['a:1', 'b:1']);
    const onlyA = submit(['a:2']);
    const onlyB = submit(['b:3']);
    await turn();
    runs[1]!.fail(new Error('b failed'));
    await assert.rejects(both, /b failed/);
    await assert.rejects(onlyB, /b failed/);
    const next = submit(['b:4']);
    runs[0]!.finish();
    assert.deepEqual(await onlyA, ['a:2']);
    await turn();
    runs[2]!.finish();
    assert.deepEqual(await next, ['b:4'], 'a failure does not stop the batches after it');
  });

  it('rejects the submissions of a run that throws or gives a wrong number of results', async () => {
    const { runs, submit } = createFixture();
    const submitted = submit(['a:1', 'a:2']);
    await turn();
    runs[0]!.answer(['only one']);
    await assert.rejects(submitted, /one result an item/);

    const throwing = createBatcher<Target, string, string>({
      run: () => {
        throw new Error('thrown');
      },
      merge: (left) => left,
      waitingMax: 1,
    });
    await assert.rejects(throwing.submit([parseWork('a:1')]), /thrown/);
    await assert.rejects(throwing.submit([parseWork('a:1')]), /thrown/);
  });

  it('serves in the order of arrival: small submissions do not overtake a large one', async () => {
    const { runs, submit } = createFixture({ batchItemsMax: 3 });
    submit(['a:0']);
    await turn();
    submit(['a:1', 'b:1']);
    const large = submit(['a:2', 'b:2', 'c:2', 'd:2', 'e:2']);
    submit(['a:3']);
    submit(['b:4', 'c:4']);
    submit(['a:5']);
    const batches: string[][] = [];
    let startedCount = 0;
    while (startedCount < runs.length) {
      const batch = runs.slice(startedCount);
      batches.push(describeRuns(batch));
      startedCount = runs.length;
      for (const run of batch) run.finish();
      await turn();
    }
    assert.deepEqual(batches, [
      ['a:0'],
      ['a:1', 'b:1'],
      ['a:2', 'b:2', 'c:2', 'd:2', 'e:2'],
      ['a:3', 'b:4', 'c:4'],
      ['a:5'],
    ]);
    assert.deepEqual(await large, ['a:2', 'b:2', 'c:2', 'd:2', 'e:2']);
  });

  it('answers no work with no results', async () => {
    const { runs, batcher, submit } = createFixture();
    assert.deepEqual(await submit([]), []);
    assert.equal(runs.length, 0);
    assert.equal(batcher.waitingCount, 0);
  });
});
