// What every store must do. An implementation's test gives a way to open one and to open it again.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Store, StoreOperation } from '../../src/store/store.js';

export interface StoreHarness {
  open(): Promise<Store>;
  /** Closes the store and opens what it left. */
  reopen(store: Store): Promise<Store>;
}

const bytes = (text: string) => new Uint8Array(Buffer.from(text));
const text = (value: Uint8Array | undefined) => value && Buffer.from(value).toString();
const append = (log: string, sequence: number, record = `r${sequence}`): StoreOperation => ({
  kind: 'append',
  log,
  sequence,
  record: bytes(record),
});
const sequencesOf = (store: Store, log: string, after = 0) =>
  [...store.readLog(log, after)].map(({ sequence }) => sequence);

export function storeContract(name: string, harness: StoreHarness): void {
  const withStore = async (use: (store: Store) => Promise<Store | undefined>) => {
    const store = await harness.open();
    const last = (await use(store)) ?? store;
    await last.close();
  };

  describe(`${name}: store contract`, () => {
    it('gives back what was put, and nothing after a removal', () =>
      withStore(async (store) => {
        await store.commit([{ kind: 'put', key: ['a', 'b'], value: bytes('one') }]);
        assert.equal(text(store.get(['a', 'b'])), 'one');
        await store.commit([{ kind: 'remove', key: ['a', 'b'] }]);
        assert.equal(store.get(['a', 'b']), undefined);
        return undefined;
      }));

    it('lists what lies under a prefix, part by part and in order', () =>
      withStore(async (store) => {
        const keys = [
          ['p', 'b'],
          ['p', 'a', 'x'],
          ['p', 'a'],
          ['pq'],
          ['o', 'z'],
          ['p', 'ä', '🐬'],
        ];
        await store.commit(
          keys.map((key): StoreOperation => ({ kind: 'put', key, value: bytes(key.join()) })),
        );
        assert.deepEqual(
          [...store.list(['p'])].map(({ key }) => key),
          [
            ['p', 'a'],
            ['p', 'a', 'x'],
            ['p', 'b'],
            ['p', 'ä', '🐬'],
          ],
        );
        await store.commit([{ kind: 'removeUnder', prefix: ['p', 'a'] }]);
        assert.deepEqual(
          [...store.list(['p'])].map(({ key }) => key[1]),
          ['b', 'ä'],
        );
        return undefined;
      }));

    it('reads a log in order from after a sequence', () =>
      withStore(async (store) => {
        await store.commit([append('l', 1), append('l', 2), append('m', 7)]);
        await store.commit([append('l', 10), append('l', 100_000_000_000)]);
        assert.deepEqual(sequencesOf(store, 'l'), [1, 2, 10, 100_000_000_000]);
        assert.deepEqual(sequencesOf(store, 'l', 2), [10, 100_000_000_000]);
        assert.deepEqual(
          [...store.readLog('m', 0)].map(({ record }) => text(record)),
          ['r7'],
        );
        return undefined;
      }));

    it('trims a log without touching its neighbours, and stays trimmed when opened again', () =>
      withStore(async (store) => {
        await store.commit([1, 2, 3, 4].map((sequence) => append('l', sequence)));
        await store.commit([append('k', 3), append('m', 3)]);
        await store.commit([{ kind: 'trim', log: 'l', throughSequence: 3 }]);
        assert.deepEqual(sequencesOf(store, 'l'), [4]);
        assert.equal(store.logBytes('l'), 2);
        const again = await harness.reopen(store);
        assert.deepEqual(sequencesOf(again, 'l'), [4]);
        assert.equal(again.logBytes('l'), 2);
        assert.deepEqual(sequencesOf(again, 'k'), [3]);
        assert.deepEqual(sequencesOf(again, 'm'), [3]);
        await again.commit([append('l', 5)]);
        assert.deepEqual(sequencesOf(again, 'l'), [4, 5]);
        return again;
      }));

    it('drops a whole log', () =>
      withStore(async (store) => {
        await store.commit([1, 2, 3].map((sequence) => append('gone', sequence)));
        await store.commit([{ kind: 'dropLog', log: 'gone' }]);
        assert.deepEqual(sequencesOf(store, 'gone'), []);
        const again = await harness.reopen(store);
        assert.deepEqual(sequencesOf(again, 'gone'), []);
        return again;
      }));

    it('applies concurrent commits in the order of their calls', () =>
      withStore(async (store) => {
        await Promise.all(
          Array.from({ length: 200 }, (_, i) =>
            store.commit([
              append('l', i + 1),
              { kind: 'put', key: ['last'], value: bytes(String(i)) },
            ]),
          ),
        );
        assert.equal(text(store.get(['last'])), '199');
        assert.equal(sequencesOf(store, 'l').length, 200);
        return undefined;
      }));

    it('gives copies: neither the reader nor the writer changes what is stored', () =>
      withStore(async (store) => {
        const shared = new Uint8Array(new SharedArrayBuffer(3));
        shared.set([1, 2, 3]);
        await store.commit([{ kind: 'put', key: ['k'], value: shared }]);
        shared.fill(9);
        const first = store.get(['k'])!;
        first.fill(7);
        assert.deepEqual([...store.get(['k'])!], [1, 2, 3]);
        return undefined;
      }));

    it('keeps values, logs and blobs when opened again', () =>
      withStore(async (store) => {
        await store.commit([{ kind: 'put', key: ['k'], value: bytes('v') }, append('l', 1)]);
        await store.writeBlob('c/1.arrow', [bytes('one'), bytes('two')]);
        const again = await harness.reopen(store);
        assert.equal(text(again.get(['k'])), 'v');
        assert.deepEqual(sequencesOf(again, 'l'), [1]);
        assert.equal(text(await again.readBlob('c/1.arrow')), 'onetwo');
        return again;
      }));

    it('writes, replaces, lists and removes blobs, and reads them into shared memory', () =>
      withStore(async (store) => {
        assert.equal(await store.readBlob('c/none'), undefined);
        await store.writeBlob('c/1.arrow', [bytes('old')]);
        await store.writeBlob('c/1.arrow', [bytes('new'), bytes('er')]);
        await store.writeBlob('d/2.arrow', []);
        const blob = await store.readBlob('c/1.arrow');
        assert.equal(text(blob), 'newer');
        assert.ok(blob!.buffer instanceof SharedArrayBuffer);
        assert.deepEqual(await store.listBlobs(), ['c/1.arrow', 'd/2.arrow']);
        assert.deepEqual(await store.listBlobs('d/'), ['d/2.arrow']);
        await store.removeBlob('c/1.arrow');
        await store.removeBlob('c/1.arrow');
        assert.deepEqual(await store.listBlobs(), ['d/2.arrow']);
        return undefined;
      }));

    it('keeps a record of several megabytes', () =>
      withStore(async (store) => {
        const record = new Uint8Array(8 * 1024 * 1024).map((_, i) => i * 31);
        await store.commit([{ kind: 'append', log: 'l', sequence: 1, record }]);
        const again = await harness.reopen(store);
        const [entry] = [...again.readLog('l', 0)];
        assert.ok(Buffer.from(record).equals(entry!.record));
        assert.equal(again.logBytes('l'), record.byteLength);
        return again;
      }));
  });
}
