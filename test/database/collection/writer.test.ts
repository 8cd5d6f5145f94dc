import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { SagittaError } from '../../../src/common/errors.js';
import { type Write, Writer } from '../../../src/database/collection/writer.js';
import { SILENT_OBSERVER } from '../../../src/database/observer.js';
import type { Store } from '../../../src/storage/store.js';
import { withResolvers } from '../../support/waiting.js';

describe('the writer of a collection', () => {
  it('rejects further writes at once when its queue is full, and none that waits', async () => {
    const { promise: disk, resolve: finish } = withResolvers();
    const applied: number[] = [];
    const writer = new Writer({
      store: { commit: () => disk } as unknown as Store,
      sequence: 0,
      onApplied() {},
      waitingMax: 2,
      observer: SILENT_OBSERVER,
      requireIntact() {},
      whenRoom: () => undefined,
      stage: () => undefined,
    });
    const write: Write<number> = {
      mayFollow: () => true,
      endsCommit: true,
      prepare: (sequence) => ({
        takesSequence: true,
        operations: [{ kind: 'put', key: [`${sequence}`], value: new Uint8Array(1) }],
        result: sequence,
        apply: () => applied.push(sequence),
      }),
    };
    const running = writer.submit(write);
    // It is being written to disk by then and no longer waits.
    await new Promise((resolve) => setImmediate(resolve));
    const waiting = [writer.submit(write), writer.submit(write)];
    await assert.rejects(
      writer.submit(write),
      (error: SagittaError) => error.code === 'overloaded' && error.retryAfterSeconds === 1,
    );
    finish();
    assert.deepEqual(await Promise.all([running, ...waiting]), [1, 2, 3]);
    assert.equal(await writer.submit(write), 4);
    assert.deepEqual(applied, [1, 2, 3, 4]);
    await writer.close(new Error('closed'));
  });
});
