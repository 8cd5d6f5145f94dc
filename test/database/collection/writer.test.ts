import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { SagittaError } from '../../../src/common/errors.js';
import { SILENT_OBSERVER } from '../../../src/database/api/observer.js';
import { type Write, Writer } from '../../../src/database/collection/writer.js';
import type { Store } from '../../../src/storage/store.js';
import { withResolvers } from '../../support/waiting.js';

describe('the writer of a collection', () => {
  it('rejects new writes at once when its queue is full, and no waiting write', async () => {
    const { promise: disk, resolve: finish } = withResolvers();
    const applied: number[] = [];
    const writer = new Writer({
      log: { commit: () => disk, whenStored: () => undefined, isWritable: true },
      store: {} as Store,
      sequence: 0,
      onApplied() {},
      waitingMax: 2,
      observer: SILENT_OBSERVER,
      requireIntact() {},
      whenRoom: () => undefined,
      stage: () => undefined,
    });
    const write: Write<number> = {
      reads: 'all',
      prepare: (sequence) => ({
        last: { sequence, timeMs: 0 },
        operations: [{ kind: 'put', key: [`${sequence}`], value: new Uint8Array(1) }],
        result: sequence,
        apply: () => applied.push(sequence),
      }),
    };
    const running = writer.submit(write);
    // This write is being written to disk and no longer waits.
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

  describe('when a write is refused because of one that is being committed', () => {
    /** The refused write is prepared after an accepted write whose commit the test controls. */
    function submitBoth(disk: Promise<void>) {
      const events: string[] = [];
      const writer = new Writer({
        log: { commit: () => disk, whenStored: () => undefined, isWritable: true },
        store: {} as Store,
        sequence: 0,
        onApplied: () => events.push('applied'),
        waitingMax: 2,
        observer: SILENT_OBSERVER,
        requireIntact() {},
        whenRoom: () => undefined,
        stage: () => undefined,
      });
      const accepted: Write<number> = {
        prepare: (sequence) => ({
          last: { sequence, timeMs: 0 },
          operations: [{ kind: 'put', key: ['a'], value: new Uint8Array(1) }],
          result: sequence,
          apply() {},
        }),
      };
      const refused: Write<number> = {
        ...accepted,
        prepare() {
          throw new Error('it exists');
        },
        failed: () => events.push('failed'),
      };
      const writing = writer.submit(accepted);
      const refusing = writer.submit(refused);
      refusing.catch(() => events.push('refused'));
      return { events, writing, refusing };
    }

    it('rejects it when the other write is on disk and visible', async () => {
      const { promise: disk, resolve: finish } = withResolvers();
      const { events, writing, refusing } = submitBoth(disk);
      await new Promise((resolve) => setImmediate(resolve));
      assert.deepEqual(events, ['failed']);
      finish();
      assert.equal(await writing, 1);
      await assert.rejects(refusing, { message: 'it exists' });
      assert.deepEqual(events, ['failed', 'applied', 'refused']);
    });

    it('rejects it with the error of the other write if that fails', async () => {
      const { writing, refusing } = submitBoth(Promise.reject(new Error('the disk is full')));
      await assert.rejects(writing, { message: 'the disk is full' });
      await assert.rejects(refusing, { message: 'the disk is full' });
    });
  });
});
