// The contract of blobs.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { Blobs } from '../../src/cluster/blobs/blobs.js';

export const bytes = (text: string) => new Uint8Array(Buffer.from(text));
export const text = (value: Uint8Array | undefined) => value && Buffer.from(value).toString();

export async function listAll(blobs: Blobs, prefix = ''): Promise<string[]> {
  const names: string[] = [];
  for await (const name of blobs.list(prefix)) names.push(name);
  return names;
}

export function blobsContract(open: () => Blobs): void {
  it('writes, reads, lists and removes', async () => {
    const blobs = open();
    assert.equal(await blobs.get('c/none'), undefined);
    assert.equal(await blobs.get('c/none', { from: 0, to: 1 }), undefined);
    assert.deepEqual(await listAll(blobs), []);
    await blobs.put('c/1.arrow', [bytes('on'), bytes(''), bytes('e')]);
    await blobs.put('c/1.arrow', [bytes('one')]);
    await blobs.put('c/d/2_x-y.z', []);
    await blobs.put('cc/3', [bytes('three')]);
    assert.equal(text(await blobs.get('c/1.arrow')), 'one');
    assert.equal((await blobs.get('c/d/2_x-y.z'))?.length, 0);
    assert.deepEqual(await listAll(blobs), ['c/1.arrow', 'c/d/2_x-y.z', 'cc/3']);
    assert.deepEqual(await listAll(blobs, 'c/'), ['c/1.arrow', 'c/d/2_x-y.z']);
    assert.deepEqual(await listAll(blobs, 'c/1'), ['c/1.arrow']);
    await blobs.remove('c/1.arrow');
    await blobs.remove('c/1.arrow');
    assert.deepEqual(await listAll(blobs), ['c/d/2_x-y.z', 'cc/3']);
  });

  it('reads ranges, and refuses those beyond the end of a blob', async () => {
    const blobs = open();
    await blobs.put('r/1', [bytes('0123456789')]);
    assert.equal(text(await blobs.get('r/1', { from: 2, to: 5 })), '234');
    assert.equal(text(await blobs.get('r/1', { from: 0, to: 10 })), '0123456789');
    assert.equal(text(await blobs.get('r/1', { from: 4, to: 4 })), '');
    await assert.rejects(
      blobs.get('r/1', { from: 8, to: 12 }),
      /2 bytes from 8 on, expected 4|r\/1/,
    );
    await assert.rejects(blobs.get('r/1', { from: 20, to: 30 }), /r\/1/);
  });

  it('stores more than a megabyte, written by several processes at once', async () => {
    const blobs = open();
    const part = Uint8Array.from({ length: 250_000 }, (_, i) => (i * i) % 251);
    const parts = Array.from({ length: 6 }, () => part);
    await Promise.all(['a', 'a', 'b'].map((name) => blobs.put(`m/${name}`, parts)));
    for (const name of ['m/a', 'm/b']) {
      assert.ok(Buffer.concat(parts).equals((await blobs.get(name))!), name);
    }
  });

  it('refuses names that could mean something else', async () => {
    for (const name of ['', '/a', 'a/', 'a//b', '../a', 'a/../b', 'a b', 'ä', 'a~', '.a']) {
      await assert.rejects(open().put(name, []), /the name of a blob/, name);
      await assert.rejects(open().get(name), /the name of a blob/, name);
    }
  });
}
