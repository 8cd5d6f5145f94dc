// `sagitta backup`, `verify` and `restore` beside a running server. Without one: care.test.ts.

import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createCaller } from '../support/server-process.js';
import { eventually } from '../support/waiting.js';
import { newerCopy } from './care-data.js';
import { makeFolder, type RunningCommand, run, start } from './command.js';
import { LISTENING, serverVariables } from './serve-settings.js';

let folder: Awaited<ReturnType<typeof makeFolder>>;
let dataDir: string;
const path = (name: string) => join(folder.path, name);
const env = () =>
  serverVariables(dataDir, { SAGITTA_LOG_LEVEL: 'warn', SAGITTA_SEGMENT_ROWS_MAX: '64' });

before(async () => {
  folder = await makeFolder();
  dataDir = path('data');
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
  const { code, signal, stdout, stderr } = await server.ended;
  assert.deepEqual([code, signal], [0, null], stdout + stderr);
}

/** The reply of /readyz when every collection is loaded or has failed to load. */
async function readyReply(call: ReturnType<typeof createCaller>['call']): Promise<string> {
  let text = '';
  await eventually('the server is ready', async () => {
    const reply = await call('GET', '/readyz');
    text = reply.text;
    return reply.status === 200;
  });
  return text;
}

describe('a server that accepts writes', () => {
  let server: RunningCommand;
  let url: string;
  /** Sequence of the last write that was acknowledged before the first backup began. */
  let sequenceBefore = 0;
  let sequence = 0;
  before(async () => {
    ({ server, url } = await serve({ SAGITTA_BACKUP_DIR: path('backups') }));
  });

  it('is backed up during writes, by the command and over HTTP', async () => {
    const { call, close } = createCaller(url);
    await call('POST', '/v1/collections', { id: 'c', dimension: 2, metric: 'dot' });
    let isDone = false;
    const writing = (async () => {
      while (!isDone) {
        const rows = Array.from({ length: 20 }, (_, i) => ({
          id: `v${(sequence * 7 + i) % 400}`,
          values: [sequence, i],
        }));
        const reply = await call('POST', '/v1/collections/c/vectors', { vectors: rows });
        assert.equal(reply.status, 200, reply.text);
        sequence = reply.json<{ sequence: number }>().sequence;
      }
    })();
    await Promise.race([writing, eventually('a write is acknowledged', () => sequence > 0)]);
    sequenceBefore = sequence;
    const made = await run(['backup', '--to', path('b1'), '--json'], { env: env() });
    assert.equal(made.stderr, '');
    const record = JSON.parse(made.stdout) as Record<string, unknown>;
    assert.equal(record.directory, path('b1'));
    assert.equal(record.collections, 1);
    const overHttp = await call('POST', '/v1/backups', { name: 'monday' });
    assert.equal(overHttp.status, 200, overHttp.text);
    isDone = true;
    await writing;
    close();
  });

  it('locks its directory against verify and other servers, which report it', async () => {
    const busy = await run(['verify'], { env: env() });
    assert.equal(busy.code, 2);
    assert.match(
      busy.stderr,
      /^sagitta: cannot verify .* is in use by process \d+.* Create a backup/,
    );
    const second = await run(['serve'], { env: env() });
    assert.equal(second.code, 1);
    assert.match(
      second.stderr,
      /^sagitta: The data directory .* is in use by process \d+\. Only one process at a time can open it\.$/m,
    );
  });

  it('is not backed up over other data, into its own directory or where nothing can be written', async () => {
    for (const [target, message] of [
      [path('b1'), /^sagitta: .*b1 already exists and was not changed\.$/m],
      [join(dataDir, 'b'), /would be inside the data directory/],
      [join(path('b1'), 'backup.json', 'x'), /^sagitta: The backup cannot be made in .*: E[A-Z]+:/],
    ] as const) {
      const { code, stderr } = await run(['backup', '--to', target], { env: env() });
      assert.equal(code, 1);
      assert.match(stderr, message);
    }
  });

  it('ends with exit code 0 after SIGTERM when it has made backups', async () => {
    await stop(server);
  });

  it('has backups in which verify finds no damage', async () => {
    for (const backup of [path('b1'), path('backups/monday')]) {
      const { code, stdout } = await run(['verify', backup], { env: env() });
      assert.equal(code, 0, stdout);
      assert.match(stdout, /1 collection, \d+ segment files?.*\nNo damage found\.\n$/s);
    }
  });

  it('does not start on a backup', async () => {
    const { code, stderr } = await run(['serve', '--data-dir', path('b1')], { env: env() });
    assert.equal(code, 1);
    assert.match(stderr, /^sagitta: The directory .*b1 is a backup.*sagitta restore .*b1 /m);
  });

  it('is restored with all writes that were acknowledged before the backup', async () => {
    const restored = await run(['restore', path('b1'), '--data-dir', path('r1')]);
    assert.equal(restored.code, 0, restored.stderr);
    assert.match(restored.stdout, /^Restored [\d.]+ kB to .*r1\.$/m);
    const again = await serve({ SAGITTA_DATA_DIR: path('r1') });
    const { call, close } = createCaller(again.url);
    await readyReply(call);
    const found = (await call('GET', '/v1/collections/c')).json<{ sequence: number }>().sequence;
    assert.ok(found >= sequenceBefore && found <= sequence, `${found}`);
    close();
    await stop(again.server);
    assert.ok(!(await readdir(folder.path)).some((name) => name.endsWith('.unfinished')));
  });
});

it('a server with a collection of a newer format version serves the others, but makes no backup', async () => {
  await newerCopy('manifest', path('newer'));
  const { server, url } = await serve({ SAGITTA_DATA_DIR: path('newer') });
  const { call, close } = createCaller(url);
  assert.match(await readyReply(call), /"id":"c","status":"failed"/);
  const listed = await call('GET', '/v1/collections/c/vectors');
  assert.equal(listed.status, 503);
  assert.match(listed.text, /format version 2; this version reads 1/);
  assert.equal((await call('POST', '/v1/collections', { id: 'd', dimension: 2 })).status, 200);
  const backup = await run(['backup', '--to', path('b2'), '--data-dir', path('newer')]);
  assert.equal(backup.code, 1);
  assert.match(
    backup.stderr,
    /^sagitta: The backup was not made because a collection cannot be read: .*version 2/m,
  );
  close();
  await stop(server);
});
