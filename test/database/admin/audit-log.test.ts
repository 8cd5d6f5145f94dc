import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import { SagittaError } from '../../../src/common/errors.js';
import { silentLogger } from '../../../src/common/logger.js';
import { AuditLog } from '../../../src/database/admin/audit-log.js';
import { createMemoryStore } from '../../../src/storage/memory-store.js';
import { createTestClock } from '../harness.js';

const EVENT = {
  operation: 'collection.create',
  principal: 'anonymous',
  client: '127.0.0.1',
  via: null,
  target: 'c',
  status: 200,
  requestId: 'r',
  traceId: null,
  unloggedCount: 0,
};

/** A log whose commits are counted, and fail on request. */
function openLog(t: TestContext, countMax = 10) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const commits = { count: 0, isFull: false };
  const store = createMemoryStore({
    async beforeCommit() {
      commits.count++;
      if (commits.isFull) throw new SagittaError('storage_full', 'The disk is full.');
    },
  });
  const log = new AuditLog({ store, clock: createTestClock(), logger: silentLogger, countMax });
  const stored = () => [...store.list(['audit'])].map(({ key }) => Number(key[1]));
  /** Advances the clock and lets everything that starts finish. */
  const pass = async (milliseconds: number) => {
    t.mock.timers.tick(milliseconds);
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { log, commits, stored, pass };
}

it('events are written together, after a second', async (t) => {
  const { log, commits, stored, pass } = openLog(t);
  for (let i = 0; i < 5; i++) log.add(EVENT);
  await pass(999);
  assert.deepEqual([commits.count, stored()], [0, []]);
  await pass(1);
  assert.deepEqual([commits.count, stored()], [1, [1, 2, 3, 4, 5]]);
  await pass(60_000);
  assert.equal(commits.count, 1);
  log.add(EVENT);
  await log.close();
  assert.deepEqual([commits.count, stored().length], [2, 6]);
});

it('events that were pushed out are removed, also those that were never written', async (t) => {
  const { log, stored, pass } = openLog(t, 3);
  for (let i = 0; i < 2; i++) log.add(EVENT);
  await pass(1_000);
  for (let i = 0; i < 5; i++) log.add(EVENT);
  await pass(1_000);
  assert.deepEqual(stored(), [5, 6, 7]);
  await log.close();
});

it('a write to a full disk is retried, and no kept event is lost', async (t) => {
  const { log, commits, stored, pass } = openLog(t);
  commits.isFull = true;
  log.add(EVENT);
  await pass(1_000);
  log.add(EVENT);
  await pass(9_999);
  assert.deepEqual([commits.count, stored()], [1, []]);
  commits.isFull = false;
  await pass(1);
  assert.deepEqual([commits.count, stored()], [2, [1, 2]]);
  await log.close();
});
