// The contract of blobs: in memory, in a folder, and in a bucket of an S3 server on loopback.

import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Blobs } from '../../src/cluster/blobs/blobs.js';
import { FolderBlobs } from '../../src/cluster/blobs/folder-blobs.js';
import { MemoryBlobs } from '../../src/cluster/blobs/memory-blobs.js';
import { S3Blobs, type S3Settings } from '../../src/cluster/blobs/s3-blobs.js';
import { CREDENTIALS, S3Server } from './s3-server.js';

const bytes = (text: string) => new Uint8Array(Buffer.from(text));
const text = (value: Uint8Array | undefined) => value && Buffer.from(value).toString();

async function listAll(blobs: Blobs, prefix = ''): Promise<string[]> {
  const names: string[] = [];
  for await (const name of blobs.list(prefix)) names.push(name);
  return names;
}

function contract(open: () => Blobs): void {
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

describe('blobs in memory', () => contract(() => new MemoryBlobs()));

describe('blobs in a folder', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sagitta-blobs-'));
  after(() => rmSync(folder, { recursive: true }));
  let count = 0;
  contract(() => new FolderBlobs(join(folder, `${++count}`)));

  it('do not list blobs that are being written, and leave nothing of failed writes', async () => {
    const place = join(folder, 'unfinished');
    const blobs = new FolderBlobs(place);
    await blobs.put('a/1', [bytes('one')]);
    writeFileSync(join(place, 'a', '2.some-id~'), 'half');
    assert.deepEqual(await listAll(blobs), ['a/1']);
    const aborted = AbortSignal.abort(new Error('enough'));
    await assert.rejects(blobs.put('a/3', [bytes('three')], aborted), /enough/);
    assert.deepEqual(readdirSync(join(place, 'a')).sort(), ['1', '2.some-id~']);
  });
});

describe('blobs in S3', () => {
  let server: S3Server;
  before(async () => {
    server = await S3Server.start('vectors');
  });
  after(() => server.close());
  let count = 0;
  const open = (changes: Partial<S3Settings> = {}) =>
    new S3Blobs({
      endpoint: server.url,
      bucket: 'vectors',
      prefix: `${++count}/`,
      ...CREDENTIALS,
      ...changes,
    });
  contract(() => open());

  it('lists more names than fit in one reply', async () => {
    const blobs = open();
    const names = Array.from({ length: 101 }, (_, i) => `n/${String(i).padStart(4, '0')}`);
    await Promise.all(names.map((name) => blobs.put(name, [])));
    assert.deepEqual(await listAll(blobs, 'n/'), names);
  });

  it('tell a missing bucket and a wrong key from a missing blob', async () => {
    await assert.rejects(open({ bucket: 'none' }).get('a'), /404 to reading a: .*NoSuchBucket/s);
    await assert.rejects(open({ secretAccessKey: 'wrong' }).get('a'), /403 to reading a/);
  });

  it('try again when the service is busy', async () => {
    const blobs = open();
    server.failures.push(503, 500, 429);
    await blobs.put('a', [bytes('one')]);
    server.failures.push(503);
    assert.equal(text(await blobs.get('a')), 'one');
    assert.deepEqual(server.failures, []);
  });

  it('end when their signal is aborted', async () => {
    await assert.rejects(
      open().get('a', undefined, AbortSignal.abort(new Error('enough'))),
      /enough/,
    );
  });
});
