// Blobs of the disk store that are longer than one system call transfers.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { makeDirectory, openIn } from './directories.js';

describe('an embedded store with large blobs', () => {
  it('writes and reads a blob that is longer than one system call transfers', async () => {
    const store = await openIn(await makeDirectory());
    const part = new Uint8Array(70 * 1024 * 1024);
    for (let i = 0; i < part.length; i += 4_096) part[i] = i / 4_096;
    await store.writeBlob('c/1', [part, new Uint8Array([1, 2, 3])]);
    const whole = (await store.readBlob('c/1'))!;
    assert.equal(whole.byteLength, part.byteLength + 3);
    assert.ok(Buffer.from(whole.buffer, 0, part.byteLength).equals(part));
    assert.deepEqual([...whole.subarray(-3)], [1, 2, 3]);
    await store.close();
  });
});
