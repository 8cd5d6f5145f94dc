// `sagitta keys` with a running server and in a data directory. Tests that start more servers are in keys.ci.test.ts.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdir, readdir, stat } from 'node:fs/promises';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { ApiKeyWithSecret } from '@sagitta/client';
import { makeFolder, type RunningCommand, run } from './command.js';
import {
  ask,
  assertFailure,
  create,
  idOf,
  KEY,
  keys,
  list,
  serve,
  stop,
  succeed,
} from './keys-commands.js';
import { LISTENING } from './serve-settings.js';

let folder: Awaited<ReturnType<typeof makeFolder>>;
before(async () => {
  folder = await makeFolder();
});
after(() => folder.remove());

describe('a running server', () => {
  let directory: string;
  let server: RunningCommand;
  let url: string;
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const secrets: string[] = [];
  before(async () => {
    directory = join(folder.path, 'served');
    server = serve(directory);
    url = (await server.waitFor(LISTENING))[1]!;
  });
  after(() => agent.destroy());

  it('a server requires no credentials until the first key is created', async () => {
    assert.equal((await ask(agent, url)).status, 200);
    const key = await create(directory);
    secrets.push(key);
    assert.deepEqual(await ask(agent, url), { status: 401, isNew: false });
    assert.deepEqual(await ask(agent, url, key), { status: 200, isNew: false });
  });

  it('a server makes the control socket accessible to its user only', async () => {
    const control = join(directory, 'control');
    assert.equal((await stat(control)).mode & 0o777, 0o700);
    assert.equal((await stat(join(control, 'socket'))).mode & 0o777, 0o600);
  });

  it('keys create prints a key as text or JSON, and list and show have its record', async () => {
    const words = 'create --owner site --scope vectors:read:cat-* --scope collections:read';
    const { stdout, stderr } = await keys(directory, `${words} --expires 90d`);
    assert.match(stdout, KEY);
    secrets.push(stdout.trim());
    assert.match(
      stderr,
      /owner: site; scopes: vectors:read:cat-\* collections:read; expires 2\d{3}-/,
    );
    const json = await succeed(keys(directory, `${words} --expires 2999-01-01 --json`));
    const made = JSON.parse(json) as ApiKeyWithSecret;
    assert.match(`${made.key}\n`, KEY);
    secrets.push(made.key);
    assert.equal(made.expires_at, '2999-01-01T00:00:00.000Z');
    const { key: _, ...record } = made;
    const records = await list(directory);
    assert.deepEqual(records.at(-1), record);
    const days = (Date.parse(records[1]!.expires_at!) - Date.now()) / 86_400_000;
    assert.ok(days > 89.9 && days < 90, `${days}`);
    const shown = await succeed(keys(directory, `show ${made.id}`));
    assert.match(shown, /^owner +site$/m);
    assert.match(shown, /^state +valid$/m);
    const table = await succeed(keys(directory, 'list'));
    assert.match(table, /^id +owner +state +scopes +origins +rate +created +expires$/m);
    assert.equal(table.trim().split('\n').length, 4);
  });

  it('a server accepts a rotated key, and the old one during the grace period', async () => {
    const first = secrets[0]!;
    const id = idOf(first);
    const rotated = await keys(directory, `rotate ${id} --grace 1h`);
    const second = rotated.stdout.trim();
    secrets.push(second);
    const { rotated_at } = (await list(directory)).find((each) => each.id === id)!;
    const until = new Date(Date.parse(rotated_at!) + 3_600_000).toISOString();
    assert.ok(rotated.stderr.includes(`The old secret stays valid until ${until}.\n`));
    for (const key of [first, second]) assert.equal((await ask(agent, url, key)).status, 200);
    const again = await keys(directory, `rotate ${id}`);
    const third = again.stdout.trim();
    secrets.push(third);
    assert.match(again.stderr, /^The old secret is no longer valid; --grace 1h would/m);
    for (const key of [first, second]) {
      assert.deepEqual(await ask(agent, url, key), { status: 401, isNew: false });
    }
    assert.equal((await ask(agent, url, third)).status, 200);
  });

  it('keys are managed over the network with the scope admin only', async () => {
    const admin = secrets.at(-1)!;
    const remote = (words: string, key: string) =>
      run(['keys', ...words.split(' '), '--url', url, '--api-key', key]);
    const reader = (
      await succeed(remote('create --owner far --scope collections:read', admin))
    ).trim();
    secrets.push(reader);
    assert.equal((await ask(agent, url, reader)).status, 200);
    const refused = await remote('list', reader);
    assert.equal(refused.code, 1);
    assert.match(
      refused.stderr,
      /^sagitta: The request requires the scope admin\. Use another key/m,
    );
    const rotated = (await succeed(remote(`rotate ${idOf(reader)}`, admin))).trim();
    secrets.push(rotated);
    assert.match(await succeed(remote(`show ${idOf(reader)}`, admin)), /^owner +far$/m);
    await succeed(remote(`revoke ${idOf(reader)}`, admin));
    for (const key of [reader, rotated]) assert.equal((await ask(agent, url, key)).status, 401);
  });

  it('a server rejects a revoked key on an open connection', async () => {
    const key = secrets[1]!;
    assert.equal((await ask(agent, url, key)).status, 200);
    // The whole key is accepted in place of its id.
    const said = await succeed(keys(directory, `revoke ${key}`));
    assert.equal(said, `Revoked key ${idOf(key)} (owner: site).\n`);
    assert.deepEqual(await ask(agent, url, key), { status: 401, isNew: false });
    assert.match(await succeed(keys(directory, `show ${idOf(key)}`)), /^state +revoked$/m);
  });

  it('keys reports unknown keys and invalid input', async () => {
    const cases = [
      ['show nope', /^sagitta: There is no key with the id "nope"\.$/m],
      [`rotate ${idOf(secrets[1]!)}`, /^sagitta: The key \w+ was revoked; create a new one\.$/m],
      ['create --owner a --scope reading', /found "reading"/],
      ['create --owner a --scope admin --expires 2020-01-01', /in the future/],
    ] as const;
    await Promise.all(cases.map((each) => assertFailure(directory, 1, each)));
  });

  it('a server logs neither secrets nor their digests', async () => {
    const { stdout, stderr } = await stop(server);
    assert.match(stderr, /"msg":"request"/);
    assert.ok(secrets.length >= 6);
    for (const key of secrets) {
      const secret = key.split('_')[2]!;
      const digest = createHash('sha256').update(secret).digest();
      for (const text of [secret, digest.toString('hex'), digest.toString('base64')]) {
        assert.ok(!`${stdout}${stderr}`.includes(text), 'a secret or a digest is in the log');
      }
    }
    assert.deepEqual(await readdir(join(directory, 'control')), []);
  });
});

describe('a data directory without a server', () => {
  it('each change of the keys reports who can manage keys from then on', async () => {
    const directory = join(folder.path, 'locked');
    const saying = async (words: string) => (await keys(directory, words)).stderr;
    const first = await saying('create --owner site --scope vectors:read');
    assert.match(first, /^This is the first key: from now on every request needs a credential\.$/m);
    const nobody = /^No valid key has the scope admin, .*: sagitta keys create --owner me/m;
    assert.match(first, nobody);
    const second = await saying('create --owner a --scope admin --expires 2999-01-01');
    assert.doesNotMatch(second, /first key/);
    const until =
      /^The last key with the scope admin expires 2999-01-01T00:00:00\.000Z; .*: sagitta keys create/m;
    assert.match(second, until);
    const lasting = await create(directory, '--owner b --scope admin');
    assert.match(await saying(`revoke ${lasting}`), until);
    const [, expiring] = await list(directory);
    assert.match(await saying(`revoke ${expiring!.id}`), nobody);
  });

  it('keys create reports that it created the directory', async () => {
    const directory = join(folder.path, 'made');
    const made = /^Created the data directory .*made\.$/m;
    const args = ['create', '--owner', 'me', '--scope', 'admin'].join(' ');
    assert.match((await keys(directory, args)).stderr, made);
    assert.doesNotMatch((await keys(directory, args)).stderr, made);
  });

  it('no data directory is created by commands that only read', async () => {
    const directory = join(folder.path, 'missing');
    const message = /^sagitta: no data directory at .*missing: it does not exist; name one with/;
    const commands = ['list', 'show x', 'rotate x', 'revoke x'];
    await Promise.all(commands.map((words) => assertFailure(directory, 1, [words, message])));
    await assert.rejects(stat(directory), { code: 'ENOENT' });
    await mkdir(directory);
    const empty =
      /^sagitta: no data directory at .*missing: it contains no folder "journal"; name one with/;
    await assertFailure(directory, 1, ['list', empty]);
  });

  it('keys that are created at once in a data directory are all kept', async () => {
    const directory = join(folder.path, 'together');
    const made = await Promise.all(['a', 'b', 'c'].map(() => create(directory)));
    const ids = (await list(directory)).map(({ id }) => id);
    assert.deepEqual(ids.sort(), made.map(idOf).sort());
  });

  it('keys create names what is wrong with its origin or rate', async () => {
    const directory = join(folder.path, 'pages-wrong');
    await create(directory);
    for (const [more, pattern] of [
      [
        '--origin https://a.example/',
        /Expected https:\/\/a\.example; found "https:\/\/a\.example\/"/,
      ],
      ['--rate 0', /Expected a number from 0\.001 to/],
      ['--rate 1 --burst 1.5', /Expected an integer from 1/],
    ] as const) {
      await assertFailure(directory, 1, [`create --owner a --scope admin ${more}`, pattern]);
    }
    assert.equal((await list(directory)).length, 1);
  });
});

it('keys reports invalid arguments with exit code 2', async () => {
  const directory = join(folder.path, 'usage');
  const cases = [
    ['create --scope admin', /--owner/],
    ['create --owner a', /--scope/],
    ['create --owner a --scope admin --expires soon', /--expires: expected a duration/],
    ['create --owner a --scope admin --expires 2999-99-01', /--expires: expected a time/],
    ['create --owner a --scope admin --rate fast', /--rate: expected a number such as 20/],
    ['create --owner a --scope admin --burst 5', /--burst requires --rate/],
    ['rotate x --grace 1y', /--grace: expected a duration such as 30s/],
    ['list --url http://127.0.0.1:1 --data-dir x', /--url and --data-dir are mutually exclusive/],
    ['list --api-key sk_x', /--api-key requires --url/],
  ] as const;
  await Promise.all(cases.map((each) => assertFailure(directory, 2, each)));
  await assert.rejects(stat(directory), { code: 'ENOENT' });
});
