// A log that one node owns or follows.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { startPositionOperation } from '../../src/cluster/logs/applied-position.js';
import { ChainedLog } from '../../src/cluster/logs/chained-log.js';
import { MemoryStream } from '../../src/cluster/logs/memory-stream.js';
import { ReplicatedLog } from '../../src/cluster/replication/replicated-log.js';
import { silentLogger } from '../../src/common/logger.js';
import { whenAborted } from '../../src/common/when-aborted.js';
import { createMemoryStore } from '../../src/storage/memory-store.js';

it('a log can be forgotten while its take-over waits for that', async () => {
  const store = createMemoryStore({});
  const log = new ReplicatedLog({
    log: new ChainedLog(new MemoryStream({ name: 'c' })),
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
