// `sagitta backup`, `verify` and `restore` without a server. Beside one: care.ci.test.ts.

import assert from 'node:assert/strict';
import { cp, mkdir, open, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import { makeData, newerCopy } from './care-data.js';
import { makeFolder, run } from './command.js';
import { serverVariables } from './serve-settings.js';

let folder: Awaited<ReturnType<typeof makeFolder>>;
const path = (name: string) => join(folder.path, name);

before(async () => {
  folder = await makeFolder();
  await makeData(path('data'));
  const made = await run(['backup', '--to', path('backup'), '--data-dir', path('data')]);
  assert.equal(made.code, 0, made.stderr);
  assert.match(made.stdout, /^Backed up 1 collection \([\d.]+ kB\) to .*backup\.$/m);
  await cp(path('backup'), path('twin'), { recursive: true });
  await cp(path('backup'), path('broken'), { recursive: true });
  const [incarnation] = await readdir(path('broken/segments'));
  const segment = await open(path(`broken/segments/${incarnation}/1.arrow`), 'r+');
  await segment.write(Buffer.of(0xff), 0, 1, 900);
  await segment.close();
  await mkdir(path('mine'));
  await writeFile(path('mine/x'), 'x');
});
after(() => folder.remove());

it('verify finds nothing in a sound data directory and in its backup', async () => {
  for (const name of ['data', 'backup']) {
    const { code, stdout } = await run(['verify', path(name), '--json']);
    assert.equal(code, 0, stdout);
    const report = JSON.parse(stdout) as { findings: unknown[]; is_backup: boolean };
    assert.deepEqual([report.findings, report.is_backup], [[], name === 'backup']);
  }
});

it('backup without a data directory fails and creates none', async () => {
  const { code, stderr } = await run(['backup', '--to', path('b'), '--data-dir', path('none')]);
  assert.equal(code, 1);
  assert.match(stderr, /^sagitta: no data directory at .*none/);
  assert.ok(!(await readdir(folder.path)).includes('none'));
});

it('restore creates a data directory in which verify finds nothing', async () => {
  const { code, stdout, stderr } = await run([
    'restore',
    path('backup'),
    '--data-dir',
    path('restored'),
  ]);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^Restored [\d.]+ kB to .*restored\.$/m);
  assert.equal((await run(['verify', path('restored')])).code, 0);
});

for (const [title, words, target, message] of [
  ['over any other directory', ['backup'], 'mine', /mine already exists/],
  ['over a data directory', ['backup'], 'data', /data already exists/],
  ['a directory that is not a backup', ['data'], 'refused', /data is not a finished backup/],
  ['a missing directory', ['none'], 'refused', /no backup at .*none: it does not exist/],
  [
    'several backups that are not of a cluster',
    ['backup', 'twin'],
    'refused',
    /found .*backup, which is not one/,
  ],
  ['a damaged backup', ['broken'], 'refused', /1\.arrow: expected crc32:\w+; found the checksum/],
] as const) {
  it(`restore refuses to restore ${title} and changes nothing`, async () => {
    const before = (await readdir(folder.path)).toSorted();
    const { code, stderr } = await run(['restore', ...words.map(path), '--data-dir', path(target)]);
    assert.equal(code, 1, stderr);
    assert.match(stderr, message);
    assert.deepEqual((await readdir(folder.path)).toSorted(), before);
    assert.deepEqual(await readdir(path('mine')), ['x']);
  });
}

it('restore --no-verify restores a damaged backup', async () => {
  const args = ['restore', path('broken'), '--no-verify', '--data-dir', path('forced')];
  const { code, stderr } = await run(args);
  assert.equal(code, 0, stderr);
});

it('verify names the damaged file of a backup, with exit code 1', async () => {
  const { code, stdout } = await run(['verify', path('broken')]);
  assert.equal(code, 1);
  assert.match(
    stdout,
    /^error: collection "c", segments\/.*1\.arrow: expected crc32:\w+; found the checksum/,
  );
});

it('verify of a directory without data ends with exit code 2', async () => {
  assert.equal((await run(['verify', path('mine')])).code, 2);
});

it('a server refuses to start on a catalogue of a newer format version', async () => {
  await newerCopy('collection', path('newer'));
  const { code, stderr } = await run(['serve'], { env: serverVariables(path('newer')) });
  assert.equal(code, 1);
  assert.match(
    stderr,
    /catalogue's entry of collection "c" has format version 2; this version reads 1\. It was written by another/,
  );
});
