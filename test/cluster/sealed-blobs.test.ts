// Shared files with the seals of nodes: a node gets what a node has written under that name, or an error.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MemoryBlobs } from '../../src/cluster/blobs/memory-blobs.js';
import { SealedBlobs } from '../../src/cluster/blobs/sealed-blobs.js';
import { blockDigests, digestOfBlocks } from '../../src/platform/blocks.js';
import { NodeKeys } from '../../src/platform/node-keys.js';

const OLD = 'the secret of some nodes before the change';
const NEW = 'the secret of some nodes after the change';
const SEAL_BYTES = 64;
const DAMAGE = { code: 'data_corrupt' };

const stored = new MemoryBlobs();
const openWith = (secrets: readonly string[], cluster = 'test') =>
  new SealedBlobs(stored, new NodeKeys(secrets, cluster));
const text = (bytes: Uint8Array | undefined) => bytes && Buffer.from(bytes).toString();
const bytesOf = (value: string) => new Uint8Array(Buffer.from(value));

describe('a sealed file', () => {
  it('is read as it was written, under its name only', async () => {
    const blobs = openWith([OLD]);
    await blobs.put('a/1', [bytesOf('on'), bytesOf(''), bytesOf('e')]);
    await blobs.put('a/empty', []);
    assert.equal(text(await blobs.get('a/1')), 'one');
    assert.equal(text(await blobs.get('a/empty')), '');
    assert.equal(await blobs.get('a/none'), undefined);
    await stored.put('a/2', [(await stored.get('a/1'))!]);
    await assert.rejects(blobs.get('a/2'), {
      ...DAMAGE,
      message:
        /^Expected the shared file a\/2 as a node .*; found 67 bytes that are not signed with SAGITTA_CLUSTER_SECRET under this name: .* It is not used\. See docs\/cluster\.md\.$/,
    });
    assert.equal(await blobs.sealOf('a/1'), 'current');
    assert.equal(await blobs.sealOf('a/empty'), 'current');
    assert.equal(await blobs.sealOf('a/2'), null);
    assert.equal(await blobs.sealOf('a/none'), null);
  });

  it('is refused in every other state, at every length', async () => {
    const blobs = openWith([OLD]);
    await blobs.put('b/1', [bytesOf('content')]);
    const whole = (await stored.get('b/1'))!;
    assert.equal(whole.length, SEAL_BYTES + 'content'.length);
    for (let at = 0; at < whole.length; at++) {
      const flipped = Uint8Array.from(whole);
      flipped[at]! ^= 1;
      for (const bytes of [flipped, whole.subarray(0, at)]) {
        await stored.put('b/1', [bytes]);
        await assert.rejects(blobs.get('b/1'), DAMAGE, `${at}`);
        const hasSeal = at >= SEAL_BYTES;
        assert.equal(await blobs.sealOf('b/1'), hasSeal ? 'current' : null, `${at}`);
      }
    }
    await stored.put('b/1', [whole, bytesOf('more')]);
    await assert.rejects(blobs.get('b/1'), DAMAGE);
    await stored.put('b/1', [whole]);
    assert.equal(text(await blobs.get('b/1')), 'content');
  });

  it('is refused by nodes with another secret, of another cluster, or without one', async () => {
    await openWith([OLD]).put('c/1', [bytesOf('content')]);
    for (const other of [openWith([NEW]), openWith([]), openWith([OLD], 'other')]) {
      await assert.rejects(other.get('c/1'), DAMAGE);
      assert.equal(await other.sealOf('c/1'), null);
    }
    await openWith([]).put('c/2', [bytesOf('content')]);
    assert.equal(text(await openWith([]).get('c/2')), 'content');
    await assert.rejects(openWith([OLD]).get('c/2'), DAMAGE);
  });

  it('is sealed again while the secret is being changed', async () => {
    const [before, changing, after] = [openWith([OLD]), openWith([NEW, OLD]), openWith([NEW])];
    assert.deepEqual(
      [before, changing, after].map((blobs) => blobs.isChangingSecret),
      [false, true, false],
    );
    await before.put('d/1', [bytesOf('content')]);
    assert.equal(await changing.sealOf('d/1'), 'earlier');
    assert.equal(text(await changing.get('d/1')), 'content');
    await changing.reseal('d/1');
    assert.equal(await changing.sealOf('d/1'), 'current');
    assert.equal(text(await after.get('d/1')), 'content');
    await assert.rejects(before.get('d/1'), DAMAGE);
    await changing.reseal('d/none');
    assert.equal(await stored.get('d/none'), undefined);
    // What no node has written does not become a file of the nodes.
    await stored.put('d/2', [bytesOf('forged')]);
    await assert.rejects(changing.reseal('d/2'), DAMAGE);
    assert.equal(text(await stored.get('d/2')), 'forged');
  });

  it('is not listed under a name that no node would give it', async () => {
    const listing = new MemoryBlobs();
    listing.list = async function* () {
      yield* ['e/1', 'e/..', 'e/.DS_Store', 'e/a b', 'e//2', 'e/3'];
    };
    const blobs = new SealedBlobs(listing, new NodeKeys([OLD], 'test'));
    const names: string[] = [];
    for await (const name of blobs.list('e/')) names.push(name);
    assert.deepEqual(names, ['e/1', 'e/3']);
  });
});

describe('a pinned file', () => {
  it('is read only with the digest that a sealed file names', async () => {
    const blobs = openWith([OLD]);
    const bytes = bytesOf('content');
    const digest = { byteCount: bytes.length, digest: digestOfBlocks(blockDigests([bytes])) };
    await blobs.putPinned('f/1', [bytes]);
    assert.equal(text(await blobs.getPinned('f/1', digest)), 'content');
    assert.equal(text(await openWith([NEW]).getPinned('f/1', digest)), 'content');
    await assert.rejects(blobs.get('f/1'), DAMAGE);
    await stored.put('f/1', [bytesOf('changed')]);
    await assert.rejects(blobs.getPinned('f/1', digest), {
      ...DAMAGE,
      message:
        /^Expected the shared file f\/1 with 7 bytes, followed by digests .*; found 7 other bytes\.$/,
    });
    await assert.rejects(blobs.getPinned('f/none', digest), /found none/);
  });
});
