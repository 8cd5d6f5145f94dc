// A log that one node owns or follows.

import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { it } from 'node:test';
import { startPositionOperation } from '../../src/cluster/logs/applied-position.js';
import { ChainedLog } from '../../src/cluster/logs/chained-log.js';
import { MemoryStream } from '../../src/cluster/logs/memory-stream.js';
import type { MessageStream } from '../../src/cluster/logs/message-stream.js';
import { ReplicatedLog } from '../../src/cluster/replication/replicated-log.js';
import { silentLogger } from '../../src/common/logger.js';
import { whenAborted } from '../../src/common/when-aborted.js';
import { createMemoryStore } from '../../src/storage/memory-store.js';

function openLog(stream: MessageStream): ReplicatedLog {
  const store = createMemoryStore({});
  return new ReplicatedLog({
    log: new ChainedLog(stream),
    name: 'c',
    store,
    owner: 'n1',
    mayRunAhead: true,
    apply: async (operations) => ({ stored: store.commit(operations) }),
    load: () => store.commit([startPositionOperation('c')]),
    prepare: (operations) => operations,
    onOwner() {},
    onRole() {},
    onCommitted() {},
    onStoreFailed() {},
    onBytes() {},
    logger: silentLogger,
  });
}

it('a log can be forgotten while its take-over waits for that', async () => {
  const log = openLog(new MemoryStream({ name: 'c' }));
  let onOwned!: () => void;
  const owned = new Promise<void>((resolve) => {
    onOwned = resolve;
  });
  const leading = log.lead(new AbortController().signal, {
    whenOwned: (signal) =>
      new Promise((_, reject) => {
        onOwned();
        whenAborted(signal, () => reject(signal.reason));
      }),
  });
  const refused = assert.rejects(leading, { code: 'stopping' });
  await owned;
  await log.forget();
  await refused;
  assert.equal(log.isWritable, false);
});

it('a log that does not answer can be forgotten while it is read, since that of a deleted collection never does', async () => {
  const stream = new MemoryStream({ name: 'c' });
  const asked = new EventEmitter();
  const announce = () => {
    asked.emit('announce');
    return Promise.reject(new Error('there is no log c'));
  };
  const log = openLog(Object.assign(stream, { announce }));
  const isAsked = once(asked, 'announce');
  const refused = assert.rejects(log.catchUp(new AbortController().signal));
  await isAsked;
  await log.forget();
  await refused;
});

it('a log can be closed after a check that nobody has waited for', async () => {
  const stream = new MemoryStream({ name: 'c' });
  const announce = () => Promise.reject(new Error('there is no log c'));
  const log = openLog(Object.assign(stream, { announce }));
  await assert.rejects(log.whenCurrent(AbortSignal.abort()), { name: 'AbortError' });
  await log.close();
  // An error that nothing handles would end the process, and fails the test, by now.
  await new Promise((resolve) => setImmediate(resolve));
});
