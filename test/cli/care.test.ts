// `sagitta backup`, `verify` and `restore`, with a running server and without one.

import assert from 'node:assert/strict';
import { cp, mkdir, open, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { openIn } from '../storage/directories.js';
import { createCaller } from '../support/server-process.js';
import { makeFolder, type RunningCommand, run, start } from './command.js';

const LISTENING = /listening on (http:\S+?)\. /;

describe('backup, verify and restore', () => {
  let folder: Awaited<ReturnType<typeof makeFolder>>;
  let dataDir: string;
  let backups: string;
  const env = () => ({
    SAGITTA_PORT: '0',
    SAGITTA_DATA_DIR: dataDir,
    SAGITTA_ENGINE: 'reference',
    SAGITTA_THREADS: '1',
    SAGITTA_LOG_LEVEL: 'warn',
    SAGITTA_SEGMENT_ROWS_MAX: '64',
  });
  const path = (name: string) => join(folder.path, name);

  before(async () => {
    folder = await makeFolder();
    dataDir = path('data');
    backups = path('backups');
  });
  after(() => folder.remove());

  async function serve(
    more: Readonly<Record<string, string>> = {},
  ): Promise<{ server: RunningCommand; url: string }> {
    const server = start(['serve'], { env: { ...env(), ...more } });
    const [, url] = await server.waitFor(LISTENING);
    return { server, url: url! };
  }

  async function stop(server: RunningCommand): Promise<void> {
    server.signal('SIGTERM');
    assert.equal((await server.ended).code, 0);
  }

  async function untilReady(call: ReturnType<typeof createCaller>['call']) {
    while (true) {
      const reply = await call('GET', '/readyz');
      if (reply.status === 200) return reply;
      await sleep(20);
    }
  }

  const refusedServe = async (directory: string) =>
    run(['serve', '--data-dir', directory], { env: env() });

  it('backs up a running server during writes, and verifies and restores the backup', async () => {
    const { server, url } = await serve({ SAGITTA_BACKUP_DIR: backups });
    const { call, close } = createCaller(url);
    await call('POST', '/v1/collections', { id: 'c', dimension: 2, metric: 'dot' });
    let sequence = 0;
    let isDone = false;
    const writing = (async () => {
      while (!isDone) {
        const rows = Array.from({ length: 20 }, (_, i) => ({
          id: `v${(sequence * 7 + i) % 400}`,
          values: [sequence, i],
        }));
        const reply = await call('POST', '/v1/collections/c/vectors', { vectors: rows });
        sequence = reply.json<{ sequence: number }>().sequence;
      }
    })();
    while (sequence === 0) await setImmediate();
    const before = sequence;
    const made = await run(['backup', '--to', path('b1'), '--json'], { env: env() });
    assert.equal(made.stderr, '');
    const record = JSON.parse(made.stdout) as Record<string, unknown>;
    assert.equal(record.directory, path('b1'));
    assert.equal(record.collections, 1);
    const overHttp = await call('POST', '/v1/backups', { name: 'monday' });
    assert.equal(overHttp.status, 200, overHttp.text);
    isDone = true;
    await writing;
    const busy = await run(['verify'], { env: env() });
    assert.equal(busy.code, 2);
    assert.match(
      busy.stderr,
      /^sagitta: cannot verify .* is in use by process \d+.* Create a backup/,
    );
    const second = await refusedServe(dataDir);
    assert.equal(second.code, 1);
    assert.match(
      second.stderr,
      /^sagitta: The data directory .* is in use by process \d+\. Only one process at a time can open it\.$/m,
    );
    const taken = await run(['backup', '--to', path('b1')], { env: env() });
    assert.equal(taken.code, 1);
    assert.match(taken.stderr, /^sagitta: .*b1 already exists and was not changed\.$/m);
    const inside = await run(['backup', '--to', join(dataDir, 'b')], { env: env() });
    assert.equal(inside.code, 1);
    assert.match(inside.stderr, /would be inside the data directory/);
    const nowhere = await run(['backup', '--to', join(path('b1'), 'backup.json', 'x')], {
      env: env(),
    });
    assert.match(nowhere.stderr, /^sagitta: The backup cannot be made in .*: E[A-Z]+:/);
    close();
    await stop(server);

    for (const backup of [path('b1'), join(backups, 'monday')]) {
      const verified = await run(['verify', backup], { env: env() });
      assert.equal(verified.code, 0, verified.stdout);
      assert.match(verified.stdout, /1 collection, \d+ segment files?.*\nNo damage found\.\n$/s);
    }
    const inBackup = await refusedServe(path('b1'));
    assert.equal(inBackup.code, 1);
    assert.match(
      inBackup.stderr,
      /^sagitta: The directory .*b1 is a backup.*sagitta restore .*b1 /m,
    );
    const restored = await run(['restore', path('b1'), '--data-dir', path('r1')]);
    assert.equal(restored.code, 0, restored.stderr);
    assert.match(restored.stdout, /^Restored [\d.]+ kB to .*r1\.$/m);
    const again = await serve({ SAGITTA_DATA_DIR: path('r1') });
    const restarted = createCaller(again.url);
    await untilReady(restarted.call);
    const found = (await restarted.call('GET', '/v1/collections/c')).json<{ sequence: number }>();
    assert.ok(found.sequence >= before && found.sequence <= sequence, `${found.sequence}`);
    restarted.close();
    await stop(again.server);
    assert.ok(!(await readdir(folder.path)).some((name) => name.endsWith('.unfinished')));
  });

  it('backs up and verifies a directory without a server', async () => {
    const made = await run(['backup', '--to', path('b2'), '--data-dir', dataDir]);
    assert.equal(made.code, 0, made.stderr);
    assert.match(made.stdout, /^Backed up 1 collection \([\d.]+ kB\) to .*b2\.$/m);
    const verified = await run(['verify', '--json'], { env: env() });
    assert.equal(verified.code, 0);
    const report = JSON.parse(verified.stdout) as { findings: unknown[]; is_backup: boolean };
    assert.deepEqual([report.findings, report.is_backup], [[], false]);
    const none = await run(['backup', '--to', path('b3'), '--data-dir', path('none')]);
    assert.equal(none.code, 1);
    assert.match(none.stderr, /^sagitta: no data directory at .*none/);
    assert.ok(!(await readdir(folder.path)).includes('none'));
  });

  it('restores neither over existing data nor from a damaged or incomplete backup', async () => {
    await mkdir(path('mine'));
    await writeFile(join(path('mine'), 'x'), 'x');
    const refusals: [args: string[], message: RegExp][] = [
      [[path('b1'), '--data-dir', path('mine')], /mine already exists/],
      [[path('b1'), '--data-dir', dataDir], /data already exists/],
      [[dataDir, '--data-dir', path('r2')], /data is not a finished backup/],
      [[path('none'), '--data-dir', path('r2')], /no backup at .*none: it does not exist/],
      [
        [path('b1'), path('b2'), '--data-dir', path('r2')],
        /b1 is not a backup of a node of a cluster/,
      ],
    ];
    await cp(path('b1'), path('broken'), { recursive: true });
    const [incarnation] = await readdir(join(path('broken'), 'segments'));
    const segment = join(path('broken'), 'segments', incarnation!, '1.arrow');
    const file = await open(segment, 'r+');
    await file.write(Buffer.of(0xff), 0, 1, 900);
    await file.close();
    refusals.push([[path('broken'), '--data-dir', path('r2')], /1\.arrow: found the checksum/]);
    for (const [args, message] of refusals) {
      const { code, stderr } = await run(['restore', ...args]);
      assert.equal(code, 1, stderr);
      assert.match(stderr, message);
    }
    const verified = await run(['verify', path('broken')]);
    assert.equal(verified.code, 1);
    assert.match(
      verified.stdout,
      /^error: collection "c", segments\/.*1\.arrow: found the checksum/,
    );
    const forced = await run(['restore', path('broken'), '--no-verify', '--data-dir', path('r3')]);
    assert.equal(forced.code, 0);
    assert.deepEqual(await readdir(path('mine')), ['x']);
    assert.ok(!(await readdir(folder.path)).includes('r2'));
    assert.equal((await run(['verify', path('mine')])).code, 2);
  });

  it('does not start on a newer format version, and reports it', async () => {
    const newer = async (name: string, key: string[], change: (text: string) => string) => {
      await cp(path('b2'), path(name), { recursive: true });
      await rm(join(path(name), 'backup.json'));
      const store = await openIn(path(name));
      const [entry] = [...store.list(key)];
      const value = Buffer.from(change(Buffer.from(entry!.value).toString()));
      await store.commit([{ kind: 'put', key: entry!.key, value }]);
      await store.close();
    };
    const raise = (text: string) => text.replace('"formatVersion":1', '"formatVersion":2');
    await newer('newer-catalogue', ['collection'], raise);
    const refused = await refusedServe(path('newer-catalogue'));
    assert.equal(refused.code, 1);
    assert.match(
      refused.stderr,
      /catalogue's entry of collection "c" has format version 2; this version reads 1\. It was written by a newer/,
    );

    await newer('newer-manifest', ['manifest'], raise);
    const { server, url } = await serve({ SAGITTA_DATA_DIR: path('newer-manifest') });
    const { call, close } = createCaller(url);
    assert.match((await untilReady(call)).text, /"id":"c","status":"failed"/);
    const listed = await call('GET', '/v1/collections/c/vectors');
    assert.equal(listed.status, 503);
    assert.match(listed.text, /format version 2; this version reads 1/);
    assert.equal((await call('POST', '/v1/collections', { id: 'd', dimension: 2 })).status, 200);
    const backup = await run(['backup', '--to', path('b4'), '--data-dir', path('newer-manifest')]);
    assert.equal(backup.code, 1);
    assert.match(
      backup.stderr,
      /^sagitta: The backup was not made because a collection cannot be read: .*version 2/m,
    );
    close();
    await stop(server);
    await rm(path('newer-manifest'), { recursive: true });
  });
});
