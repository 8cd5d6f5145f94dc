// The part of the store contract (contract.ts) about blobs.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { BLOCK_BYTES } from '../../src/platform/blocks.js';
import type { Store } from '../../src/storage/store.js';
import { makeBlock, sourceName } from './made-blocks.js';

/** Opens a store for `use`, and then closes it or the store that `use` returns instead. */
export type WithStore = (use: (store: Store) => Promise<Store | undefined>) => Promise<void>;

const bytes = (text: string) => new Uint8Array(Buffer.from(text));
const text = (value: Uint8Array | undefined) => value && Buffer.from(value).toString();

export function blobContract(name: string, withStore: WithStore): void {
  describe(`${name}: blobs`, () => {
    it('writes, replaces, lists and removes blobs, and reads them into shared memory', () =>
      withStore(async (store) => {
        assert.equal(await store.readBlob('c/none'), undefined);
        assert.deepEqual(await store.listBlobs('c/'), []);
        await store.writeBlob('c/1.arrow', [bytes('old')]);
        await store.writeBlob('c/1.arrow', [bytes('new'), bytes(''), bytes('er')]);
        await store.writeBlob('d/2.arrow', []);
        await store.writeBlob('cc/3.arrow', [new Uint8Array(new SharedArrayBuffer(4)).fill(65)]);
        const blob = await store.readBlob('c/1.arrow');
        assert.equal(text(blob), 'newer');
        assert.ok(blob!.buffer instanceof SharedArrayBuffer);
        assert.equal(text(await store.readBlob('cc/3.arrow')), 'AAAA');
        assert.equal((await store.readBlob('d/2.arrow'))!.byteLength, 0);
        assert.deepEqual(await store.listBlobs(), ['c/1.arrow', 'cc/3.arrow', 'd/2.arrow']);
        assert.deepEqual(await store.listBlobs('c'), ['c/1.arrow', 'cc/3.arrow']);
        assert.deepEqual(await store.listBlobs('c/'), ['c/1.arrow']);
        assert.deepEqual(await store.listBlobs('d/2'), ['d/2.arrow']);
        await store.removeBlob('c/1.arrow');
        await store.removeBlob('c/1.arrow');
        assert.deepEqual(await store.listBlobs(), ['cc/3.arrow', 'd/2.arrow']);
        return undefined;
      }));

    it('keeps the old blob when a write fails, and a complete one when two writes use the same name', () =>
      withStore(async (store) => {
        await store.writeBlob('c/1', [bytes('old')]);
        const failing = function* () {
          yield bytes('half');
          throw new Error('no more');
        };
        await assert.rejects(store.writeBlob('c/1', failing()), /no more/);
        assert.equal(text(await store.readBlob('c/1')), 'old');
        assert.deepEqual(await store.listBlobs(), ['c/1']);
        const parts = (digit: string) =>
          Array.from({ length: 300 }, () => bytes(digit.repeat(1_000)));
        await Promise.all(['1', '2', '3'].map((digit) => store.writeBlob('c/1', parts(digit))));
        assert.match(text(await store.readBlob('c/1'))!, /^(1{300000}|2{300000}|3{300000})$/);
        return undefined;
      }));

    it('copies a blob, which stays when the other is replaced or removed', () =>
      withStore(async (store) => {
        await store.writeBlob('c/1', [bytes('one')]);
        await store.copyBlob('c/1', 'd/7');
        await store.writeBlob('c/1', [bytes('other')]);
        assert.equal(text(await store.readBlob('d/7')), 'one');
        await store.copyBlob('d/7', 'e/7');
        await store.removeBlob('d/7');
        assert.equal(text(await store.readBlob('e/7')), 'one');
        await assert.rejects(store.copyBlob('c/none', 'f/1'));
        assert.deepEqual(await store.listBlobs(), ['c/1', 'e/7']);
        return undefined;
      }));

    it('keeps a blob in part, which is read, listed, copied and replaced like others', () =>
      withStore(async (store) => {
        if (!store.canPartial) return undefined;
        const byteLength = 2 * BLOCK_BYTES + 5;
        const source = sourceName(7, byteLength);
        const whole = Buffer.concat([0, 1, 2].map((block) => makeBlock(source, block)));
        const read = async (block: number) => makeBlock(source, block);
        await store.writeBlob('c/1', [bytes('old')]);
        const kept = [{ first: 1, count: 1 }];
        await store.writePartialBlob('c/1', { byteLength, source, kept, read });
        assert.deepEqual(await store.listBlobs(), ['c/1']);
        assert.ok(whole.equals((await store.readBlob('c/1'))!));
        await store.copyBlob('c/1', 'd/1');
        const mapping = await store.mapBlob('d/1');
        if (mapping !== null) assert.ok(whole.equals(mapping.bytes));
        await store.writeBlob('c/1', [bytes('new')]);
        assert.equal(text(await store.readBlob('c/1')), 'new');
        assert.equal((await store.mapBlob('d/1'))?.failure ?? null, null);
        await store.removeBlob('c/1');
        await store.removeBlob('d/1');
        assert.deepEqual(await store.listBlobs(), []);
        const failing = async () => Promise.reject(new Error('no more'));
        const content = { byteLength, source, kept: [{ first: 0, count: 3 }], read: failing };
        await assert.rejects(store.writePartialBlob('c/2', content), /no more/);
        assert.deepEqual(await store.listBlobs(), []);
        return undefined;
      }));

    it('rejects names that could lead outside the folder', () =>
      withStore(async (store) => {
        for (const name of [
          '../x',
          'a/../x',
          '/x',
          'a',
          'a/b/c',
          'a/',
          'a/..',
          'a/.x',
          'a/b.unfinished',
        ]) {
          await assert.rejects(
            async () => store.writeBlob(name, []),
            /the name of a blob is/,
            name,
          );
        }
        assert.deepEqual(await store.listBlobs(), []);
        return undefined;
      }));
  });
}
