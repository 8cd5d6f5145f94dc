// `sagitta keys` with servers that start with the keys it created, and its question on a terminal.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdir, rm, stat } from 'node:fs/promises';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { makeFolder, run, start } from './command.js';
import { ask, create, idOf, KEY, keys, list, serve, stop, succeed } from './keys-commands.js';
import { LISTENING } from './serve-settings.js';

let folder: Awaited<ReturnType<typeof makeFolder>>;
before(async () => {
  folder = await makeFolder();
});
after(() => folder.remove());

describe('keys in a data directory', () => {
  it('keys are managed offline, and a server started later accepts them', async () => {
    const directory = join(folder.path, 'offline');
    const key = await create(directory);
    const other = await create(directory, '--owner other --scope vectors:read');
    const rotated = (await succeed(keys(directory, `rotate ${idOf(other)}`))).trim();
    const third = await create(directory);
    await succeed(keys(directory, `revoke ${idOf(third)}`));
    assert.deepEqual(
      (await list(directory)).map(({ id }) => id),
      [key, other, third].map(idOf),
    );

    const server = serve(directory, { SAGITTA_HOST: '127.0.0.1' });
    const url = (await server.waitFor(LISTENING))[1]!;
    const agent = new Agent();
    const statuses = [];
    for (const each of [undefined, key, other, rotated, third]) {
      statuses.push((await ask(agent, url, each)).status);
    }
    // vectors:read does not permit listing collections.
    assert.deepEqual(statuses, [401, 200, 401, 403, 401]);

    // A killed server leaves its socket behind, which must be ignored.
    server.signal('SIGKILL');
    await server.ended;
    assert.deepEqual(await readdir(join(directory, 'control')), ['socket']);
    assert.equal((await list(directory)).length, 3);
    const again = serve(directory);
    const newUrl = (await again.waitFor(LISTENING))[1]!;
    assert.equal((await ask(agent, newUrl, key)).status, 200);
    await succeed(keys(directory, `revoke ${idOf(key)}`));
    assert.equal((await ask(agent, newUrl, key)).status, 401);
    await stop(again);
  });

  it('keys create in the data directory is the way back after a lock-out', async () => {
    const directory = join(folder.path, 'locked');
    await create(directory, '--owner site --scope vectors:read');
    const server = serve(directory);
    const url = (await server.waitFor(LISTENING))[1]!;
    const agent = new Agent();
    assert.equal((await ask(agent, url)).status, 401);
    const { stdout, stderr } = await keys(directory, 'create --owner me --scope admin');
    assert.doesNotMatch(stderr, /first|scope admin,|last key/);
    assert.equal((await ask(agent, url, stdout.trim())).status, 200);
    // The last admin key cannot be revoked over the network.
    const remote = ['keys', 'revoke', stdout.trim(), '--url', url, '--api-key', stdout.trim()];
    const refused = await run(remote);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /is the last one that can manage this service/);
    await stop(server);
  });

  it('keys create asks on a terminal before it creates the first key', async (t) => {
    if (spawnSync('script', ['--version']).status !== 0) {
      t.skip('the program script is not installed');
      return;
    }
    const directory = join(folder.path, 'asked');
    const args = ['keys', 'create', '--owner', 'me', '--scope', 'admin'];
    const question = /This is the first key: .*\? \[y\/N\] /s;
    const answer = (input: string, ...more: string[]) => {
      const inputAfter = input === '' ? undefined : question;
      const options = { isOnTerminal: true, input, inputAfter };
      return start([...args, '--data-dir', directory, ...more], options).ended;
    };
    for (const input of ['n\n', '\n', '\x04']) {
      const { code, stdout } = await answer(input);
      assert.match(stdout, question);
      assert.match(stdout, /no key was created; --yes creates the first one/);
      assert.equal(code, 1);
      await assert.rejects(stat(directory), { code: 'ENOENT' });
    }
    const { code, stdout } = await answer('y\n');
    assert.match(stdout, question);
    assert.match(stdout, /^sk_\w+\r?$/m);
    assert.equal(code, 0);
    assert.doesNotMatch((await answer('')).stdout, question);
    await rm(directory, { recursive: true });
    assert.doesNotMatch((await answer('', '--yes')).stdout, question);
    assert.equal((await list(directory)).length, 1);
  });

  it('keys works with a path that is too long for a socket', async () => {
    const directory = join(folder.path, 'x'.repeat(150));
    const server = serve(directory);
    await server.waitFor(LISTENING);
    await create(directory);
    assert.equal((await list(directory)).length, 1);
    await stop(server);
  });
});

it('a key for web pages has origins and a rate, offline and after a restart', async () => {
  const PAGE = 'http://localhost:5173';
  const words = `create --owner app --scope vectors:read --origin ${PAGE} --origin https://a.example`;
  const directory = join(folder.path, 'pages-offline');
  await create(directory);
  const { stdout, stderr } = await keys(directory, `${words} --rate 0.5 --burst 7`);
  assert.match(
    stderr,
    /origins: http:\/\/localhost:5173 https:\/\/a\.example; rate: 0\.5\/s burst 7;/,
  );
  const server = serve(directory);
  const url = (await server.waitFor(LISTENING))[1]!;
  const [, record] = await list(directory);
  assert.deepEqual(record!.allowed_origins, [PAGE, 'https://a.example']);
  assert.deepEqual(record!.rate_limit, { per_second: 0.5, burst: 7 });
  const authorization = `Bearer ${stdout.trim()}`;
  const askFrom = async (origin: string) =>
    (await fetch(`${url}/v1/limits`, { headers: { authorization, origin } })).status;
  assert.deepEqual([await askFrom(PAGE), await askFrom('http://localhost:1')], [200, 403]);
  const used = await run(['collections', 'list', '--url', url, '--api-key', stdout.trim()]);
  assert.equal(used.code, 1);
  assert.match(used.stderr, /only; found no header Origin\. Commands need a key without origins;/);
  const rotated = await keys(directory, `rotate ${record!.id}`);
  assert.match(rotated.stderr, /origins: .*; rate: 0\.5\/s burst 7;/);
  const shown = await succeed(keys(directory, `show ${record!.id}`));
  assert.match(shown, /^allowed_origins +http:\/\/localhost:5173 https:\/\/a\.example$/m);
  await stop(server);
});

describe('a server that is reachable from other machines', () => {
  it('does not start on all addresses without credentials, and explains how to create a key', async () => {
    const directory = join(folder.path, 'open');
    // With a trusted proxy that terminates TLS, credentials are still required.
    const settings = { SAGITTA_HOST: '0.0.0.0', SAGITTA_TRUSTED_PROXIES: '127.0.0.1' };
    const { code, stdout, stderr } = await serve(directory, settings).ended;
    assert.deepEqual([code, stdout], [1, '']);
    const [, command] = /with: sagitta (keys create .*? --scope admin)\./.exec(stderr) ?? [];
    assert.ok(command, stderr);
    assert.match(stderr, /no credentials are configured/);
    assert.match(await succeed(run(command.split(' '))), KEY);

    const server = serve(directory, settings);
    await server.waitFor(/listening on/);
    assert.match((await stop(server)).stderr, /"credentials":"required"/);
  });

  it('needs credentials before it lets all web pages in', async () => {
    const directory = join(folder.path, 'pages');
    const settings = { SAGITTA_CORS_ORIGINS: '*' };
    const { code, stderr } = await serve(directory, settings).ended;
    assert.equal(code, 1);
    assert.match(stderr, /SAGITTA_CORS_ORIGINS is "\*", but no credentials.* any web page/);
    await create(directory);
    const server = serve(directory, settings);
    await server.waitFor(/listening on/);
    await stop(server);
  });

  it('starts on all addresses without credentials with SAGITTA_INSECURE', async () => {
    const settings = { SAGITTA_HOST: '0.0.0.0', SAGITTA_INSECURE: 'yes' };
    const server = serve(join(folder.path, 'insecure'), settings);
    await server.waitFor(/listening on/);
    assert.match((await stop(server)).stderr, /"credentials":"none configured/);
  });
});
