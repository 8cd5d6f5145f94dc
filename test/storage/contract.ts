// The contract of stores. The test of each implementation provides how to open and reopen it.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { Store, StoreKey, StoreOperation } from '../../src/storage/store.js';
import { IS_NIGHTLY } from '../support/nightly.js';
import { testSeed } from '../support/random.js';
import { blobContract, type WithStore } from './blob-contract.js';
import { liveRandomly } from './random-history.js';

export interface StoreHarness {
  open(): Promise<Store>;
  /** Closes the store and opens what it left behind. */
  reopen(store: Store): Promise<Store>;
}

const bytes = (text: string) => new Uint8Array(Buffer.from(text));
const text = (value: Uint8Array | undefined) => value && Buffer.from(value).toString();
const put = (key: StoreKey, value = 'v'): StoreOperation => ({
  kind: 'put',
  key,
  value: bytes(value),
});
const append = (log: string, sequence: number, record = `r${sequence}`): StoreOperation => ({
  kind: 'append',
  log,
  sequence,
  record: bytes(record),
});
const trim = (log: string, throughSequence: number): StoreOperation => ({
  kind: 'trim',
  log,
  throughSequence,
});
const sequencesOf = (store: Store, log: string, after = 0) =>
  [...store.readLog(log, after)].map(({ sequence }) => sequence);
const keysUnder = (store: Store, prefix: StoreKey) => [...store.list(prefix)].map(({ key }) => key);

/** 250 random steps cover every pair of operations, restarts and pages. */
const STEP_COUNT = IS_NIGHTLY ? 250 : 100;

export function storeContract(name: string, harness: StoreHarness): void {
  const withStore: WithStore = async (use) => {
    const store = await harness.open();
    const last = (await use(store)) ?? store;
    await last.close();
  };

  describe(`${name}: values`, () => {
    it('returns values that were put, and nothing after a removal', () =>
      withStore(async (store) => {
        await store.commit([put(['a', 'b'], 'one')]);
        assert.equal(text(store.get(['a', 'b'])), 'one');
        assert.equal(store.get(['a']), undefined);
        await store.commit([put(['a', 'b'], 'two'), put(['empty'], '')]);
        assert.equal(text(store.get(['a', 'b'])), 'two');
        assert.equal(store.get(['empty'])?.byteLength, 0);
        await store.commit([{ kind: 'remove', key: ['a', 'b'] }]);
        assert.equal(store.get(['a', 'b']), undefined);
        return undefined;
      }));

    it('lists the entries under a prefix in key order', () =>
      withStore(async (store) => {
        const keys = [
          ['p', 'b'],
          ['p', 'a', 'x'],
          ['p', 'a'],
          ['pq'],
          ['o', 'z'],
          ['p', 'ä', '🐬'],
        ];
        await store.commit(keys.map((key) => put(key, key.join())));
        assert.deepEqual(keysUnder(store, ['p']), [
          ['p', 'a'],
          ['p', 'a', 'x'],
          ['p', 'b'],
          ['p', 'ä', '🐬'],
        ]);
        assert.equal(keysUnder(store, []).length, keys.length);
        await store.commit([{ kind: 'removeUnder', prefix: ['p', 'a'] }]);
        assert.deepEqual(
          keysUnder(store, ['p']).map((key) => key[1]),
          ['b', 'ä'],
        );
        return undefined;
      }));

    it('distinguishes keys of any characters and sorts them by their UTF-8 bytes', () => {
      const part = fc.oneof(
        fc.constantFrom(
          '\u0000',
          '\u0001',
          '\u0002',
          '\u0000\u0001',
          '\u0001\u0000',
          'a',
          'a\u0000',
        ),
        fc.string({ minLength: 1, maxLength: 4, unit: 'binary' }),
      );
      const keys = fc.uniqueArray(fc.array(part, { minLength: 1, maxLength: 3 }), {
        minLength: 1,
        maxLength: 30,
        selector: (key) => JSON.stringify(key),
      });
      return withStore(async (store) => {
        await fc.assert(
          fc.asyncProperty(keys, async (some) => {
            await store.commit([
              { kind: 'removeUnder', prefix: [] },
              ...some.map((key) => put(key, JSON.stringify(key))),
            ]);
            const inOrder = [...some].sort(compareByUtf8);
            const listed = [...store.list([])];
            assert.deepEqual(
              listed.map(({ key }) => key),
              inOrder,
            );
            for (const { key, value } of listed) assert.equal(text(value), JSON.stringify(key));
            const prefix = some[0]!.slice(0, 1);
            assert.deepEqual(
              keysUnder(store, prefix),
              inOrder.filter((key) => key[0] === prefix[0]),
            );
          }),
          { numRuns: IS_NIGHTLY ? 60 : 20, seed: testSeed() },
        );
        return undefined;
      });
    });

    it('lists more entries than one read returns', () =>
      withStore(async (store) => {
        const names = Array.from({ length: 1_000 }, (_, i) => String(i).padStart(4, '0'));
        await store.commit(names.map((part) => put(['n', part], part)));
        assert.deepEqual(
          keysUnder(store, ['n']).map((key) => key[1]),
          names,
        );
        assert.equal(store.count(['n']), names.length);
        assert.equal(store.count([]), names.length);
        assert.equal(store.count(['n', '0007']), 1);
        assert.equal(store.count(['o']), 0);
        return undefined;
      }));

    it('copies values, so that changes by readers and writers do not affect the store', () =>
      withStore(async (store) => {
        const shared = new Uint8Array(new SharedArrayBuffer(3));
        shared.set([1, 2, 3]);
        await store.commit([
          { kind: 'put', key: ['k'], value: shared },
          { kind: 'append', log: 'l', sequence: 1, record: shared },
        ]);
        shared.fill(9);
        store.get(['k'])!.fill(7);
        for (const { value } of store.list(['k'])) value.fill(7);
        for (const { record } of store.readLog('l', 0)) record.fill(7);
        assert.deepEqual([...store.get(['k'])!], [1, 2, 3]);
        assert.deepEqual([...[...store.readLog('l', 0)][0]!.record], [1, 2, 3]);
        return undefined;
      }));
  });

  describe(`${name}: commits`, () => {
    it('applies concurrent commits in the order of their calls', () =>
      withStore(async (store) => {
        await Promise.all(
          Array.from({ length: 200 }, (_, i) =>
            store.commit([append('l', i + 1), put(['last'], String(i))]),
          ),
        );
        assert.equal(text(store.get(['last'])), '199');
        assert.equal(sequencesOf(store, 'l').length, 200);
        return undefined;
      }));

    it('removes entries under a prefix that an earlier commit of the same batch put, but not a later one', () =>
      withStore(async (store) => {
        await store.commit([put(['p', 'old'])]);
        await Promise.all([
          store.commit([put(['p', 'early']), put(['q'])]),
          store.commit([put(['p', 'same']), { kind: 'removeUnder', prefix: ['p'] }]),
          store.commit([put(['p', 'late'])]),
        ]);
        assert.deepEqual(keysUnder(store, []), [['p', 'late'], ['q']]);
        return undefined;
      }));

    it('rejects an invalid commit as a whole and applies the others of its batch', () =>
      withStore(async (store) => {
        await store.commit([append('l', 5)]);
        const wrong: StoreOperation[] = [
          put(['']),
          put([]),
          put(['x'.repeat(3_000)]),
          put(['lone surrogate \ud800']),
          { kind: 'remove', key: ['ok', ''] },
          append('l', 4),
          append('l', 200.5),
          append('l', Number.MAX_SAFE_INTEGER),
          append('', 7),
        ];
        const commits = wrong.flatMap((operation, i) => [
          store.commit([put(['bad', String(i)]), append('l', 100 + i), operation]),
          store.commit([put(['good', String(i)]), append('l', 6 + i)]),
        ]);
        const outcomes = await Promise.allSettled(commits);
        assert.deepEqual(
          outcomes.map(({ status }) => status),
          wrong.flatMap(() => ['rejected', 'fulfilled']),
        );
        // If the refused commit had been partly written, that would show now.
        await store.commit([put(['end'])]);
        assert.deepEqual(keysUnder(store, ['bad']), []);
        assert.equal(keysUnder(store, ['good']).length, wrong.length);
        assert.deepEqual(
          sequencesOf(store, 'l'),
          [5, ...wrong.map((_, i) => 6 + i)],
          'what a refused commit would have appended takes no sequence',
        );
        return undefined;
      }));

    it('accepts a commit without operations', () =>
      withStore(async (store) => {
        await store.commit([]);
        await Promise.all([store.commit([]), store.commit([put(['k'])])]);
        assert.equal(text(store.get(['k'])), 'v');
        return undefined;
      }));

    it('keeps values, logs and blobs when reopened', () =>
      withStore(async (store) => {
        await store.commit([put(['k']), append('l', 1)]);
        await store.writeBlob('c/1.arrow', [bytes('one'), bytes('two')]);
        const again = await harness.reopen(store);
        assert.equal(text(again.get(['k'])), 'v');
        assert.deepEqual(sequencesOf(again, 'l'), [1]);
        assert.equal(text(await again.readBlob('c/1.arrow')), 'onetwo');
        return again;
      }));

    it('waits for running commits when it is closed', () =>
      withStore(async (store) => {
        const commits = [store.commit([append('l', 1)])];
        // The first commit is being written when the others arrive.
        await new Promise((resolve) => setImmediate(resolve));
        for (let i = 2; i <= 50; i++) commits.push(store.commit([append('l', i)]));
        const again = await harness.reopen(store);
        await Promise.all(commits);
        assert.equal(sequencesOf(again, 'l').length, 50);
        return again;
      }));
  });

  describe(`${name}: random operations`, () => {
    it('matches a model after every step', async () => {
      const { store } = await liveRandomly({
        ...harness,
        stepCount: STEP_COUNT,
        recordBytesMax: 100_000,
      });
      await store.close();
    });
  });

  describe(`${name}: logs`, () => {
    it('reads the records of a log after a sequence, in order', () =>
      withStore(async (store) => {
        await store.commit([append('l', 1), append('l', 2), append('m', 7)]);
        await store.commit([append('l', 10), append('l', 100_000_000_000), append('l\u0000', 3)]);
        assert.deepEqual(sequencesOf(store, 'l'), [1, 2, 10, 100_000_000_000]);
        assert.deepEqual(sequencesOf(store, 'l', 2), [10, 100_000_000_000]);
        assert.deepEqual(sequencesOf(store, 'l', 100_000_000_000), []);
        assert.deepEqual(
          [...store.readLog('m', 0)].map(({ record }) => text(record)),
          ['r7'],
        );
        return undefined;
      }));

    it('trims only one log, even after it is reopened', () =>
      withStore(async (store) => {
        await store.commit([1, 2, 3, 4].map((sequence) => append('l', sequence)));
        await store.commit([append('k', 3), append('m', 3)]);
        await store.commit([trim('l', 3)]);
        assert.deepEqual(sequencesOf(store, 'l'), [4]);
        assert.equal(store.logBytes('l'), 2);
        await store.commit([trim('l', 1)]);
        assert.deepEqual(sequencesOf(store, 'l'), [4], 'a trim to before the last one is nothing');
        const again = await harness.reopen(store);
        assert.deepEqual(sequencesOf(again, 'l'), [4]);
        assert.equal(again.logBytes('l'), 2);
        assert.deepEqual(sequencesOf(again, 'k'), [3]);
        assert.deepEqual(sequencesOf(again, 'm'), [3]);
        await again.commit([append('l', 5)]);
        assert.deepEqual(sequencesOf(again, 'l'), [4, 5]);
        return again;
      }));

    it('does not trim later records, and rejects a used sequence after all records were trimmed', () =>
      withStore(async (store) => {
        await store.commit([append('l', 1), append('l', 2)]);
        await store.commit([trim('l', 1_000), trim('none', 9)]);
        assert.deepEqual(sequencesOf(store, 'l'), []);
        assert.equal(store.logBytes('l'), 0);
        const again = await harness.reopen(store);
        await assert.rejects(again.commit([append('l', 2)]), /greater than 2/);
        await again.commit([append('l', 3), append('none', 1)]);
        assert.deepEqual(sequencesOf(again, 'l'), [3]);
        assert.deepEqual(sequencesOf(again, 'none'), [1]);
        return again;
      }));

    it('trims and appends in the order of the operations', () =>
      withStore(async (store) => {
        await store.commit([append('l', 1), append('l', 2)]);
        await Promise.all([
          store.commit([append('l', 3), trim('l', 2), append('l', 4)]),
          store.commit([trim('l', 1)]),
        ]);
        assert.deepEqual(sequencesOf(store, 'l'), [3, 4]);
        const again = await harness.reopen(store);
        assert.deepEqual(sequencesOf(again, 'l'), [3, 4]);
        return again;
      }));

    it('drops a whole log permanently', () =>
      withStore(async (store) => {
        await store.commit([1, 2, 3].map((sequence) => append('gone', sequence)));
        await store.commit([append('gone2', 1), append('stays', 1)]);
        await store.commit([{ kind: 'dropLog', log: 'gone' }]);
        assert.deepEqual(sequencesOf(store, 'gone'), []);
        assert.equal(store.logBytes('gone'), 0);
        await assert.rejects(store.commit([append('gone', 4)]), /dropped/);
        const again = await harness.reopen(store);
        assert.deepEqual(sequencesOf(again, 'gone'), []);
        assert.deepEqual(sequencesOf(again, 'gone2'), [1]);
        assert.deepEqual(sequencesOf(again, 'stays'), [1]);
        return again;
      }));

    it('erases a log, whose name can then be reused from the first sequence on', () =>
      withStore(async (store) => {
        await store.commit([append('other', 1), append('l', 7)]);
        for (let i = 0; i < 1_200; i += 100) {
          await store.commit(Array.from({ length: 100 }, (_, j) => append('l', 8 + i + j)));
        }
        await store.eraseLog('l');
        assert.deepEqual(sequencesOf(store, 'l'), []);
        await store.commit([append('l', 2)]);
        await store.eraseLog('never there');
        await store.commit([append('l', 3), append('never there', 1)]);
        assert.deepEqual(sequencesOf(store, 'l'), [2, 3]);
        // This includes a log that was already dropped.
        await store.commit([{ kind: 'dropLog', log: 'never there' }]);
        await store.eraseLog('never there');
        await store.commit([append('never there', 1)]);
        const again = await harness.reopen(store);
        assert.deepEqual(sequencesOf(again, 'l'), [2, 3]);
        assert.deepEqual(sequencesOf(again, 'never there'), [1]);
        assert.deepEqual(sequencesOf(again, 'other'), [1]);
        return again;
      }));

    it('gives a snapshot of one moment, while it is written to', () =>
      withStore(async (store) => {
        const put = (text: string) =>
          ({ kind: 'put', key: ['k'], value: Buffer.from(text) }) as const;
        await store.writeBlob('f/1', [Buffer.from('one')]);
        await store.commit([put('one'), append('l', 1), append('l', 2)]);
        await store.withSnapshot(async (snapshot) => {
          await store.commit([put('two'), append('l', 3), trim('l', 2)]);
          await store.removeBlob('f/1');
          await store.writeBlob('f/1', [Buffer.from('two')]);
          const textOf = (bytes: Uint8Array | undefined) => Buffer.from(bytes!).toString();
          const sequences = [...snapshot.readLog('l', 0)].map(({ sequence }) => sequence);
          assert.deepEqual(sequences, [1, 2]);
          assert.equal(textOf(snapshot.get(['k'])), 'one');
          assert.equal(snapshot.get(['none']), undefined);
          assert.deepEqual(
            [...snapshot.list(['k'])].map(({ value }) => textOf(value)),
            ['one'],
          );
          assert.deepEqual([...snapshot.readLog('none', 0)], []);
          await store.withSnapshot(async (later) => {
            assert.equal(textOf(later.get(['k'])), 'two');
            assert.equal(textOf(await later.readBlob('f/1')), 'two');
          });
          snapshot.endEntries();
          await store.commit([put('three')]);
          assert.equal(textOf(await snapshot.readBlob('f/1')), 'one');
        });
        assert.equal(Buffer.from((await store.readBlob('f/1'))!).toString(), 'two');
        assert.deepEqual(sequencesOf(store, 'l'), [3]);
        assert.deepEqual(await store.listBlobs(), ['f/1']);
        return store;
      }));

    it('reads a log while records are appended and trimmed', () =>
      withStore(async (store) => {
        for (let i = 0; i < 600; i += 100) {
          await store.commit(Array.from({ length: 100 }, (_, j) => append('l', i + j + 1)));
        }
        const read: number[] = [];
        for (const { sequence } of store.readLog('l', 0)) {
          read.push(sequence);
          if (sequence === 10) await store.commit([append('l', 601), trim('l', 5)]);
        }
        assert.deepEqual(
          read.slice(0, 600),
          Array.from({ length: 600 }, (_, i) => i + 1),
        );
        return undefined;
      }));

    it('keeps records of several megabytes, even from shared memory', () =>
      withStore(async (store) => {
        const record = new Uint8Array(new SharedArrayBuffer((IS_NIGHTLY ? 24 : 6) * 1024 * 1024));
        for (let i = 0; i < record.length; i += 4_096) record[i] = i / 4_096;
        await Promise.all(
          [1, 2].map((sequence) => store.commit([{ kind: 'append', log: 'l', sequence, record }])),
        );
        const again = await harness.reopen(store);
        const entries = [...again.readLog('l', 0)];
        assert.equal(entries.length, 2);
        for (const entry of entries) assert.ok(Buffer.from(record).equals(entry.record));
        assert.equal(again.logBytes('l'), 2 * record.byteLength);
        return again;
      }));
  });

  blobContract(name, withStore);
}

function compareByUtf8(a: readonly string[], b: readonly string[]): number {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const order = Buffer.compare(Buffer.from(a[i]!), Buffer.from(b[i]!));
    if (order !== 0) return order;
  }
  return a.length - b.length;
}
