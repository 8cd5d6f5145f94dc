import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { SagittaError } from '../../../src/common/errors.js';
import { SILENT_OBSERVER } from '../../../src/database/api/observer.js';
import { SearchScheduler } from '../../../src/database/search/search-scheduler.js';
import {
  type Batching,
  DEFAULT_BATCHING,
  type SearchHits,
  type SearchQuery,
} from '../../../src/engine/core/engine.js';
import { SEED } from '../../engine/blocks.js';
import { createRandom } from '../harness.js';
import { createRecorder } from '../recorder.js';

/** A call of the engine that the test ends. */
interface EngineCall {
  /** The vector of each query contains its number. */
  readonly queries: readonly number[];
  readonly signal: AbortSignal;
  readonly mayBlock: boolean;
  /** Answers each query with its number as the number of scanned rows. */
  finish(): void;
  fail(error: unknown): void;
  answer(results: SearchHits[]): void;
}

function createFixture(options: { waitingMax?: number; batching?: Partial<Batching> } = {}) {
  const calls: EngineCall[] = [];
  const observer = createRecorder();
  const scheduler = new SearchScheduler({
    engine: {
      batching: { ...DEFAULT_BATCHING, ...options.batching },
      search: (queries, { signal, mayBlock } = {}) =>
        new Promise((resolve, reject) => {
          const numbers = queries.map(({ vector }) => vector[0]!);
          calls.push({
            queries: numbers,
            signal: signal!,
            mayBlock: mayBlock!,
            finish: () => resolve(numbers.map(hitsOf)),
            fail: reject,
            answer: resolve,
          });
        }),
    },
    waitingMax: options.waitingMax ?? 10,
    observer,
  });
  /** Resolves with the numbers that the queries were answered with. */
  const search = async (numbers: readonly number[], signal?: AbortSignal, k?: number) => {
    const queries = numbers.map((number) => queryOf(number, k));
    const { hits } = await scheduler.search(queries, signal);
    return hits.map(({ scannedCount }) => scannedCount);
  };
  const batchSizes = () => observer.of('sagitta_engine_batch_queries');
  return { calls, batchSizes, scheduler, search };
}

function queryOf(number: number, k = 1): SearchQuery {
  const vector = Float32Array.of(number);
  return { vector, metric: 'dot', k, views: [], after: null, scoreMin: null };
}

function hitsOf(number: number): SearchHits {
  return {
    viewIndexes: new Uint32Array(0),
    rows: new Uint32Array(0),
    scores: new Float64Array(0),
    scannedCount: number,
    rescoredCount: 0,
  };
}

const queriesOf = (calls: readonly EngineCall[]) => calls.map(({ queries }) => queries.join(','));

describe('the search scheduler', () => {
  it('starts at once when idle, and gives results in the order of the queries', async () => {
    const { calls, search } = createFixture();
    const searching = search([1, 2, 3]);
    await turn();
    assert.deepEqual(queriesOf(calls), ['1,2,3']);
    calls[0]!.finish();
    assert.deepEqual(await searching, [1, 2, 3]);
  });

  it('puts searches of one turn of the event loop into the first batch, and gives each its own results', async () => {
    const { calls, search } = createFixture();
    const searches = [search([1]), search([2, 3]), search([4])];
    await turn();
    assert.deepEqual(queriesOf(calls), ['1,2,3,4']);
    calls[0]!.finish();
    assert.deepEqual(await Promise.all(searches), [[1], [2, 3], [4]]);
  });

  it('takes what arrives in the same iteration of the event loop into the first batch', async () => {
    const { calls, search } = createFixture();
    const first = search([1]);
    for (let i = 0; i < 20; i++) await Promise.resolve();
    await new Promise<void>((resolve) => process.nextTick(resolve));
    const second = search([2]);
    await turn();
    assert.deepEqual(queriesOf(calls), ['1,2']);
    calls[0]!.finish();
    assert.deepEqual(await Promise.all([first, second]), [[1], [2]]);
  });

  it('lets the engine block the calling thread only for searches that come one at a time', async () => {
    const { calls, search } = createFixture();
    const searches = [search([1])];
    await turn();
    searches.push(search([2]));
    calls[0]!.finish();
    await searches[0];
    await turn();
    calls[1]!.finish();
    await searches[1];
    for (const numbers of [[3], [4, 5], [6], [7]]) {
      const together = numbers.map((number) => search([number]));
      await turn();
      calls.at(-1)!.finish();
      await Promise.all(together);
    }
    assert.deepEqual(
      calls.map(({ queries, mayBlock }) => [queries.join(), mayBlock]),
      [
        ['1', true],
        // The second search waited for the first.
        ['2', false],
        ['3', true],
        ['4,5', true],
        ['6', false],
        ['7', true],
      ],
    );
  });

  it('measures the wait of a search until its batch starts', async () => {
    const { calls, batchSizes, scheduler } = createFixture();
    const startedAtMs = performance.now();
    const first = scheduler.search([queryOf(1)], undefined);
    await turn();
    const firstMsMax = performance.now() - startedAtMs;
    const second = scheduler.search([queryOf(2)], undefined);
    // Longer than the first search waited, on a machine of any speed.
    const until = performance.now() + firstMsMax + 5;
    while (performance.now() < until) await turn();
    calls[0]!.finish();
    await turn();
    calls[1]!.finish();
    assert.ok((await first).waitMs < (await second).waitMs);
    assert.ok((await second).waitMs >= 4);
    assert.deepEqual(batchSizes(), [1, 1]);
  });

  it('collects searches during a batch and runs them together afterwards', async () => {
    const { calls, scheduler, search } = createFixture();
    const first = search([1]);
    await turn();
    const second = search([2]);
    const third = search([3, 4]);
    await turn();
    assert.equal(scheduler.waitingCount, 2);
    assert.deepEqual(queriesOf(calls), ['1']);
    calls[0]!.finish();
    assert.deepEqual(await first, [1]);
    await turn();
    assert.equal(scheduler.waitingCount, 0);
    assert.deepEqual(queriesOf(calls), ['1', '2,3,4']);
    calls[1]!.finish();
    assert.deepEqual(await second, [2]);
    assert.deepEqual(await third, [3, 4]);
  });

  it('is idle again after a batch, and starts the next search at once', async () => {
    const { calls, search } = createFixture();
    for (const number of [1, 2, 3]) {
      const searching = search([number]);
      await turn();
      calls.at(-1)!.finish();
      assert.deepEqual(await searching, [number]);
      await turn();
    }
    assert.equal(calls.length, 3);
  });

  it('rejects at once beyond its bound, and admits again when there is room', async () => {
    const { calls, scheduler, search } = createFixture({ waitingMax: 2 });
    void search([1]);
    await turn();
    void search([2]);
    void search([3]);
    await assert.rejects(search([4]), (error) => {
      assert.ok(error instanceof SagittaError);
      assert.equal(error.code, 'overloaded');
      assert.equal(error.retryAfterSeconds, 1);
      assert.equal(error.message, 'Too many queries are waiting (limit 2). Retry after 1 s.');
      return true;
    });
    assert.equal(scheduler.waitingCount, 2);
    calls[0]!.finish();
    await turn();
    const admitted = search([5]);
    await turn();
    assert.deepEqual(queriesOf(calls), ['1', '2,3']);
    calls[1]!.finish();
    await turn();
    calls[2]!.finish();
    assert.deepEqual(await admitted, [5]);
  });

  it('rejects exactly the searches of a batch that fails', async () => {
    const { calls, search } = createFixture();
    const failing = [search([1]), search([2, 3])];
    await turn();
    const next = search([4]);
    calls[0]!.fail(new Error('failed'));
    for (const searching of failing) await assert.rejects(searching, /^Error: failed$/);
    await turn();
    calls[1]!.finish();
    assert.deepEqual(await next, [4], 'a failure does not stop the batches after it');
  });

  it('rejects the searches of a batch with a wrong number of results', async () => {
    const { calls, batchSizes, search } = createFixture();
    const searches = [search([1]), search([2])];
    await turn();
    calls[0]!.answer([hitsOf(1)]);
    for (const searching of searches) await assert.rejects(searching, /one result a query/);
    assert.deepEqual(batchSizes(), [], 'a failed batch is not reported');
  });

  it('rejects the searches of a batch whose engine throws, and goes on', async () => {
    const scheduler = new SearchScheduler({
      engine: {
        search: () => {
          throw new Error('thrown');
        },
      },
      waitingMax: 1,
      observer: SILENT_OBSERVER,
    });
    await assert.rejects(scheduler.search([queryOf(1)], undefined), /thrown/);
    await assert.rejects(scheduler.search([queryOf(1)], undefined), /thrown/);
  });

  it('serves in the order of arrival: small searches do not overtake a larger one', async () => {
    const { calls, search } = createFixture({ batching: { queriesMax: 3 } });
    void search([0]);
    await turn();
    void search([1, 2]);
    const large = search([3, 4, 5, 6, 7]);
    void search([8]);
    void search([9, 10]);
    void search([11]);
    for (let i = 0; i < calls.length; i++) {
      calls[i]!.finish();
      await turn();
    }
    assert.deepEqual(queriesOf(calls), ['0', '1,2', '3,4,5,6,7', '8,9,10', '11']);
    assert.deepEqual(await large, [3, 4, 5, 6, 7]);
  });

  it('bounds the hits of a batch, and delays no other search by more than two with many', async () => {
    const { calls, search } = createFixture();
    const first = search([0]);
    await turn();
    const searches = [1, 2, 3, 4].map((number) => search([number], undefined, 10_000));
    searches.push(...[5, 6, 7, 8].map((number) => search([number], undefined, 10_000)));
    calls[0]!.finish();
    await first;
    await turn();
    assert.equal(queriesOf(calls).at(-1), '1,2,3,4,5,6');
    // Each has too many hits to share a batch, and two may be in the queue.
    const large = [10, 20, 30].map((number) => search([number, number + 1], undefined, 10_000));
    const small = search([40]);
    for (let at = 1; at < 6; at++) {
      calls[at]!.finish();
      await turn();
      await turn();
      if (calls.length === at + 1) break;
    }
    assert.deepEqual(queriesOf(calls).slice(2), ['7,8,10,11,20,21,40', '30,31']);
    await Promise.all([...searches, ...large, small]);
  });

  it('answers no queries with no results', async () => {
    const { calls, scheduler, search } = createFixture();
    assert.deepEqual(await search([]), []);
    assert.equal(calls.length, 0);
    assert.equal(scheduler.waitingCount, 0);
  });
});

describe('the search scheduler, when a search is aborted', () => {
  const gone = new Error('gone');

  it('removes it from the queue, and rejects it with the reason', async () => {
    const { calls, scheduler, search } = createFixture();
    void search([1]);
    await turn();
    const controller = new AbortController();
    const aborted = search([2], controller.signal);
    const other = search([3]);
    controller.abort(gone);
    await assert.rejects(aborted, gone);
    assert.equal(scheduler.waitingCount, 1);
    assert.equal(calls[0]!.signal.aborted, false, 'it is in no batch');
    calls[0]!.finish();
    await turn();
    assert.deepEqual(queriesOf(calls), ['1', '3']);
    calls[1]!.finish();
    assert.deepEqual(await other, [3]);
  });

  it('ignores its results when it is under way, and answers the others of its batch', async () => {
    const { calls, search } = createFixture();
    const controller = new AbortController();
    const aborted = search([1, 2], controller.signal);
    const other = search([3]);
    await turn();
    controller.abort(gone);
    await assert.rejects(aborted, gone);
    assert.equal(calls[0]!.signal.aborted, false, 'somebody still waits');
    calls[0]!.finish();
    assert.deepEqual(await other, [3]);
    assert.equal(calls[0]!.signal.aborted, false);
  });

  it('aborts the engine once the last search of a batch is aborted, with the last reason', async () => {
    const { calls, search } = createFixture();
    const controllers = [new AbortController(), new AbortController(), new AbortController()];
    const aborted = controllers.map(({ signal }, index) => search([index], signal));
    await turn();
    const next = search([9]);
    for (const index of [1, 0, 2]) {
      assert.equal(calls[0]!.signal.aborted, false);
      controllers[index]!.abort(new Error(`gone ${index}`));
    }
    for (const [index, searching] of aborted.entries()) {
      await assert.rejects(searching, new RegExp(`^Error: gone ${index}$`));
    }
    assert.equal(calls[0]!.signal.aborted, true);
    assert.equal((calls[0]!.signal.reason as Error).message, 'gone 2');

    await turn();
    assert.equal(calls.length, 1, 'the engine is busy until its call has ended');
    calls[0]!.fail(calls[0]!.signal.reason);
    await turn();
    assert.deepEqual(queriesOf(calls), ['0,1,2', '9']);
    assert.equal(calls[1]!.signal.aborted, false, 'each batch has a signal of its own');
    calls[1]!.finish();
    assert.deepEqual(await next, [9]);
  });

  it('never aborts the engine while a search without a signal waits', async () => {
    const { calls, search } = createFixture();
    const controllers = [new AbortController(), new AbortController()];
    const aborted = controllers.map(({ signal }) => search([1], signal));
    const patient = search([2]);
    await turn();
    for (const controller of controllers) controller.abort(gone);
    for (const searching of aborted) await assert.rejects(searching, gone);
    assert.equal(calls[0]!.signal.aborted, false);
    calls[0]!.finish();
    assert.deepEqual(await patient, [2]);
  });

  it('aborts all searches that share a signal', async () => {
    const { calls, search } = createFixture();
    const controller = new AbortController();
    const aborted = [search([1], controller.signal), search([2], controller.signal)];
    await turn();
    const waiting = search([3], controller.signal);
    controller.abort(gone);
    for (const searching of [...aborted, waiting]) await assert.rejects(searching, gone);
    assert.equal(calls[0]!.signal.aborted, true);
    calls[0]!.finish();
    await turn();
    assert.deepEqual(queriesOf(calls), ['1,2']);
  });

  it('does nothing to a batch that has ended', async () => {
    const { calls, search } = createFixture();
    const controller = new AbortController();
    const searching = search([1], controller.signal);
    await turn();
    calls[0]!.finish();
    await searching;
    controller.abort(gone);
    assert.equal(calls[0]!.signal.aborted, false);
  });

  it('never queues a search whose signal is aborted already', async () => {
    const { calls, search } = createFixture();
    await assert.rejects(search([1], AbortSignal.abort(new Error('before'))), /before/);
    await turn();
    assert.equal(calls.length, 0);
  });

  it('leaves no listener on the signal of a search that is answered', async () => {
    const { calls, search } = createFixture();
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
    const searching = search([1], signal);
    await turn();
    assert.equal(listenerCount, 1);
    calls[0]!.finish();
    await searching;
    assert.equal(listenerCount, 0);
  });
});

describe('the search scheduler, given large groups', () => {
  /** `count` queries with the number `first`. */
  const group = (count: number, first: number) => Array.from({ length: count }, () => first);

  it('admits two at a time, in order, and small searches pass those that are held back', async () => {
    const { calls, scheduler, search } = createFixture({ batching: { queriesMax: 100 } });
    const done: number[] = [];
    for (const number of [1, 2, 3, 4]) {
      void search(group(90 + number, number)).then(() => done.push(number));
    }
    void search([5]).then(() => done.push(5));
    await turn();
    assert.equal(scheduler.waitingCount, 2, 'one group is in the engine; two are held back');
    for (let i = 0; i < calls.length; i++) {
      assert.ok(scheduler.waitingCount <= 2);
      calls[i]!.finish();
      await turn();
    }
    assert.deepEqual(
      calls.map(({ queries }) => [...new Set(queries)]),
      [[1], [2, 5], [3], [4]],
    );
    assert.deepEqual(done, [1, 2, 5, 3, 4]);
  });

  it('admits the next one when one fails', async () => {
    const { calls, search } = createFixture({ batching: { queriesMax: 100 } });
    const failing = search(group(91, 1));
    const others = [2, 3].map((number) => search(group(91, number)));
    await turn();
    calls[0]!.fail(new Error('broken'));
    await assert.rejects(failing, /broken/);
    for (let i = 1; i < 3; i++) {
      await turn();
      calls[i]!.finish();
    }
    assert.equal((await Promise.all(others)).length, 2);
  });

  it('forgets one that is aborted while it is held back, and admits the next when one is aborted', async () => {
    const { calls, scheduler, search } = createFixture({ batching: { queriesMax: 100 } });
    const first = search(group(91, 1));
    const controllers = [new AbortController(), new AbortController()];
    const inQueue = search(group(91, 2), controllers[0]!.signal);
    const heldBack = search(group(91, 3), controllers[1]!.signal);
    const last = search(group(91, 4));
    await turn();
    controllers[1]!.abort(new Error('gone'));
    await assert.rejects(heldBack, /gone/);
    assert.equal(scheduler.waitingCount, 1);
    controllers[0]!.abort(new Error('gone too'));
    await assert.rejects(inQueue, /gone too/);
    assert.equal(scheduler.waitingCount, 1, 'the last group is in the queue');
    calls[0]!.finish();
    await first;
    await turn();
    calls[1]!.finish();
    assert.equal((await last)[0], 4);
    assert.equal(calls.length, 2);
    await assert.rejects(search(group(50, 5), controllers[0]!.signal), /gone too/);
  });

  it('does not count one that is held back against the bound of the queue', async () => {
    const { calls, search } = createFixture({ waitingMax: 2, batching: { queriesMax: 100 } });
    const admitted = [1, 2].map((number) => search(group(91, number)));
    const heldBack = search(group(91, 3));
    await turn();
    const small = [search([4]), search([5])];
    // The second group and a small search wait, so that the queue is full for another search.
    await assert.rejects(small[1]!, /Too many queries are waiting \(limit 2\)/);
    void heldBack.catch(() => {});
    for (let i = 0; i < calls.length; i++) {
      calls[i]!.finish();
      await turn();
    }
    assert.equal((await Promise.all(admitted)).length, 2);
    assert.deepEqual(await small[0]!, [4]);
    assert.equal((await heldBack)[0], 3);
  });

  it('counts the time that it is held back as waiting', async () => {
    const { calls, scheduler } = createFixture({ batching: { queriesMax: 100 } });
    const waits = [1, 2, 3].map(async (number) => {
      const { waitMs } = await scheduler.search(group(91, number).map(queryOf), undefined);
      return waitMs;
    });
    await turn();
    const until = performance.now() + 5;
    while (performance.now() < until) await turn();
    for (let i = 0; i < 3; i++) {
      calls[i]!.finish();
      await turn();
    }
    assert.ok((await waits[2]!) >= 4);
  });
});

describe('the search scheduler of an engine that takes two batches at once', () => {
  const batching = { queriesMax: 4, inFlightMax: 2, aheadQueriesMin: 3 };
  const group = (count: number, first: number) =>
    Array.from({ length: count }, (_, i) => first + i);

  it('begins the next batch while one is in the engine, if enough queries wait', async () => {
    const { calls, search } = createFixture({ batching });
    const searches = [search([0])];
    await turn();
    searches.push(search([1]), search([2]));
    await turn();
    assert.deepEqual(queriesOf(calls), ['0'], 'two queries wait for more');
    searches.push(search([3]));
    await turn();
    searches.push(search([4]), search([5]), search([6]));
    await turn();
    assert.deepEqual(queriesOf(calls), ['0', '1,2,3'], 'no third batch');
    calls[1]!.finish();
    await turn();
    assert.deepEqual(queriesOf(calls), ['0', '1,2,3', '4,5,6'], 'whichever batch ends first');
    searches.push(search([7]));
    calls[0]!.finish();
    await turn();
    assert.equal(calls.length, 3, 'a single query waits for the batch in the engine');
    calls[2]!.finish();
    await turn();
    calls[3]!.finish();
    assert.deepEqual(await Promise.all(searches), [[0], [1], [2], [3], [4], [5], [6], [7]]);
  });

  it('cancels one batch and not the other', async () => {
    const { calls, search } = createFixture({ batching });
    const controllers = [new AbortController(), new AbortController()];
    const first = search(group(4, 0), controllers[0]!.signal);
    const second = search(group(4, 4), controllers[1]!.signal);
    await turn();
    assert.deepEqual(queriesOf(calls), ['0,1,2,3', '4,5,6,7']);
    controllers[0]!.abort(new Error('gone'));
    await assert.rejects(first, /gone/);
    assert.deepEqual(
      calls.map(({ signal }) => signal.aborted),
      [true, false],
    );
    calls[0]!.fail(new Error('the engine rejects with the reason'));
    const third = search(group(3, 8));
    await turn();
    assert.equal(calls[2]!.signal.aborted, false, 'the next batch has a signal of its own');
    calls[1]!.finish();
    calls[2]!.finish();
    assert.deepEqual(await second, group(4, 4));
    assert.deepEqual(await third, group(3, 8));
  });

  it('admits one large group more than the engine takes', async () => {
    const large = { ...batching, queriesMax: 100 };
    const { calls, scheduler, search } = createFixture({ batching: large });
    const searches = [0, 1, 2, 3].map((number) => search(group(91, number)));
    await turn();
    assert.deepEqual([calls.length, scheduler.waitingCount], [2, 1]);
    for (let i = 0; i < 4; i++) {
      calls[i]!.finish();
      await turn();
    }
    assert.equal((await Promise.all(searches)).length, 4);
  });

  it(`answers every search once, in any order of ends, seed ${SEED}`, async () => {
    const random = createRandom(SEED);
    const { calls, scheduler, search } = createFixture({ batching, waitingMax: 1_000 });
    const searches: Promise<void>[] = [];
    const running = new Set<EngineCall>();
    let seen = 0;
    const isBusy = () => running.size > 0 || seen < calls.length || scheduler.waitingCount > 0;
    for (let number = 0; number < 300 || isBusy(); number++) {
      if (number < 300) {
        const controller = new AbortController();
        const wanted = group(1 + Math.floor(random() * 6), number);
        const isAborted = random() < 0.2;
        const searching = search(wanted, controller.signal);
        const check = async () => {
          if (isAborted) await searching.catch((error) => assert.match(String(error), /gone/));
          else assert.deepEqual(await searching, wanted);
        };
        searches.push(check());
        if (isAborted) setImmediate(() => controller.abort(new Error('gone')));
      }
      if (random() < 0.5) await turn();
      for (; seen < calls.length; seen++) running.add(calls[seen]!);
      assert.ok(running.size <= 2, 'at most two batches are in the engine');
      const [one, other] = running;
      const ended = random() < 0.5 ? one : (other ?? one);
      if (ended === undefined) continue;
      ended.finish();
      running.delete(ended);
      await turn();
    }
    await Promise.all(searches);
    assert.equal(scheduler.waitingCount, 0);
  });
});
