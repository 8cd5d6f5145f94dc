// Blobs in memory, in a folder, and in a bucket of a server that can fail as S3 does. `s3-blobs.ci.test.ts` is with a real
// one.

import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { FolderBlobs } from '../../src/cluster/blobs/folder-blobs.js';
import { MemoryBlobs } from '../../src/cluster/blobs/memory-blobs.js';
import { S3Blobs, type S3Settings } from '../../src/cluster/blobs/s3-blobs.js';
import { blobsContract, bytes, listAll, text } from './blobs-contract.js';
import { CREDENTIALS, S3Server } from './s3-server.js';

describe('blobs in memory', () => blobsContract(() => new MemoryBlobs()));

describe('blobs in a folder', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sagitta-blobs-'));
  after(() => rmSync(folder, { recursive: true }));
  let count = 0;
  blobsContract(() => new FolderBlobs(join(folder, `${++count}`)));

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
  blobsContract(() => open());

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
