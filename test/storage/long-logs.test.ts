// Logs of the embedded store with so many records that a trim is swept in parts.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { describe, it } from 'node:test';
import { open } from 'lmdb';
import type { Store } from '../../src/storage/store.js';
import { IS_NIGHTLY } from '../support/nightly.js';
import { makeDirectory, openIn } from './directories.js';

describe('an embedded store with a long log', () => {
  const RECORD_COUNT = IS_NIGHTLY ? 100_000 : 20_000;

  for (const kind of ['trim', 'dropLog'] as const) {
    it(`answers other calls while a ${kind} of ${RECORD_COUNT} records is swept`, async () => {
      const directory = await makeDirectory();
      const store = await openIn(directory);
      const record = new Uint8Array(100);
      for (let from = 1; from <= RECORD_COUNT; from += 5_000) {
        await store.commit(
          Array.from({ length: 5_000 }, (_, i) => ({
            kind: 'append' as const,
            log: 'long',
            sequence: from + i,
            record,
          })),
        );
      }
      const delay = monitorEventLoopDelay({ resolution: 5 });
      delay.enable();
      const startedAt = performance.now();
      await store.commit([
        kind === 'trim'
          ? { kind, log: 'long', throughSequence: RECORD_COUNT - 1 }
          : { kind, log: 'long' },
      ]);
      assert.equal([...store.readLog('long', 0)].length, kind === 'trim' ? 1 : 0);
      let slowestMs = 0;
      for (let i = 0; i < 20; i++) {
        const commitAt = performance.now();
        await store.commit([{ kind: 'put', key: ['k'], value: record }]);
        slowestMs = Math.max(slowestMs, performance.now() - commitAt);
      }
      // Closing in the midst of it loses nothing: the next start goes on.
      await store.close();
      delay.disable();
      assert.ok(delay.max < 2e9, `the event loop stood still for ${delay.max / 1e6} ms`);
      assert.ok(slowestMs < 30_000, `a commit took ${slowestMs} ms`);
      assert.ok(performance.now() - startedAt < 60_000);
      const again = await openIn(directory);
      assert.equal([...again.readLog('long', 0)].length, kind === 'trim' ? 1 : 0);
      await sweptThrough(again);
      await again.close();
      assert.ok((await recordCount(directory)) <= 1);
    });
  }

  /** A sweep goes on as long as it makes progress; each batch of it is a commit's wait. */
  async function sweptThrough(store: Store): Promise<void> {
    for (let i = 0; i < RECORD_COUNT / 500 + 5; i++) {
      await store.commit([{ kind: 'put', key: ['k'], value: new Uint8Array(1) }]);
    }
  }

  async function recordCount(directory: string): Promise<number> {
    const root = open({ path: join(directory, 'store.lmdb'), overlappingSync: false });
    const records = root.openDB<Buffer, Buffer>({
      name: 'records',
      encoding: 'binary',
      keyEncoding: 'binary',
    });
    const count = records.getKeysCount({ start: Buffer.of(0) });
    await root.close();
    return count;
  }
});
