// `sagitta keys` with a running server and offline, through the data directory and over the network.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { Agent, get } from 'node:http';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { ApiKeyRecord, ApiKeyWithSecret } from '../../src/client/client.js';
import { type CommandResult, makeFolder, type RunningCommand, run, start } from './command.js';

const KEY = /^sk_[0-9A-Za-z]{16}_[0-9A-Za-z]{43}\n$/;
const LISTENING = /listening on (http:\S+?)\. /;

let folder: Awaited<ReturnType<typeof makeFolder>>;
before(async () => {
  folder = await makeFolder();
});
after(() => folder.remove());

/** Runs `sagitta keys` with space-separated arguments. */
const keys = (directory: string, words: string): Promise<CommandResult> =>
  run(['keys', ...words.split(' ')], { env: { SAGITTA_DATA_DIR: directory } });

async function succeed(calling: Promise<CommandResult>): Promise<string> {
  const { code, stdout, stderr } = await calling;
  assert.equal(code, 0, stderr);
  return stdout;
}

async function assertFailure(
  directory: string,
  exitCode: number,
  [words, message]: readonly [words: string, message: RegExp],
): Promise<void> {
  const { code, stdout, stderr } = await keys(directory, words);
  assert.deepEqual([code, stdout], [exitCode, ''], words);
  assert.match(stderr, message);
}

const create = async (directory: string, words = '--owner me --scope admin'): Promise<string> => {
  const stdout = await succeed(keys(directory, `create ${words}`));
  assert.match(stdout, KEY);
  return stdout.trim();
};

const idOf = (key: string): string => key.split('_')[1]!;

async function list(directory: string): Promise<ApiKeyRecord[]> {
  return JSON.parse(await succeed(keys(directory, 'list --json'))).keys;
}

function serve(directory: string, settings: Readonly<Record<string, string>> = {}): RunningCommand {
  return start(['serve'], {
    env: {
      SAGITTA_PORT: '0',
      SAGITTA_DATA_DIR: directory,
      SAGITTA_ENGINE: 'reference',
      SAGITTA_THREADS: '1',
      SAGITTA_LOG_LEVEL: 'debug',
      ...settings,
    },
  });
}

/** One request over a keep-alive connection; `isNew` tells whether the connection was new. */
function ask(agent: Agent, url: string, key?: string): Promise<{ status: number; isNew: boolean }> {
  return new Promise((resolve, reject) => {
    const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
    const outgoing = get(`${url}/v1/collections`, { agent, headers }, (reply) => {
      reply.resume();
      reply.on('end', () => {
        resolve({ status: reply.statusCode!, isNew: !outgoing.reusedSocket });
      });
    });
    outgoing.on('error', reject);
  });
}

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

  it('requires no credentials until the first key is created', async () => {
    assert.equal((await ask(agent, url)).status, 200);
    const key = await create(directory);
    secrets.push(key);
    assert.deepEqual(await ask(agent, url), { status: 401, isNew: false });
    assert.deepEqual(await ask(agent, url, key), { status: 200, isNew: false });
  });

  it('makes the control socket accessible to its user only', async () => {
    const control = join(directory, 'control');
    assert.equal((await stat(control)).mode & 0o777, 0o700);
    assert.equal((await stat(join(control, 'socket'))).mode & 0o777, 0o600);
  });

  it('creates a key and prints it as text or JSON', async () => {
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

  it('accepts a rotated key, and the old one during the grace period', async () => {
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

  it('rejects a revoked key on an open connection', async () => {
    const key = secrets[1]!;
    assert.equal((await ask(agent, url, key)).status, 200);
    // The whole key is accepted instead of its id.
    const said = await succeed(keys(directory, `revoke ${key}`));
    assert.equal(said, `Revoked key ${idOf(key)} (owner: site).\n`);
    assert.deepEqual(await ask(agent, url, key), { status: 401, isNew: false });
    assert.match(await succeed(keys(directory, `show ${idOf(key)}`)), /^state +revoked$/m);
  });

  it('reports unknown keys and invalid input', async () => {
    const cases = [
      ['show nope', /^sagitta: There is no key with the id "nope"\.$/m],
      [`rotate ${idOf(secrets[1]!)}`, /^sagitta: The key \w+ was revoked; create a new one\.$/m],
      ['create --owner a --scope reading', /found "reading"/],
      ['create --owner a --scope admin --expires 2020-01-01', /in the future/],
    ] as const;
    await Promise.all(cases.map((each) => assertFailure(directory, 1, each)));
  });

  it('logs neither secrets nor their digests', async () => {
    server.signal('SIGTERM');
    const { code, stdout, stderr } = await server.ended;
    assert.equal(code, 0);
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
  it('manages keys offline, and a server started later accepts them', async () => {
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
    again.signal('SIGTERM');
    await again.ended;
  });

  it('says who can manage keys from now on, and is the way back after a lock-out', async () => {
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

    const server = serve(directory);
    const url = (await server.waitFor(LISTENING))[1]!;
    const agent = new Agent();
    assert.equal((await ask(agent, url)).status, 401);
    const { stdout, stderr } = await keys(directory, 'create --owner me --scope admin');
    assert.doesNotMatch(stderr, /first|scope admin,|last key/);
    assert.equal((await ask(agent, url, stdout.trim())).status, 200);
    // Over the network, the last one stays.
    const remote = ['keys', 'revoke', stdout.trim(), '--url', url, '--api-key', stdout.trim()];
    const refused = await run(remote);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /is the last one that can manage this service/);
    server.signal('SIGTERM');
    await server.ended;
  });

  it('asks on a terminal before it creates the first key', async (t) => {
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

  it('says that it made the directory', async () => {
    const directory = join(folder.path, 'made');
    const made = /^Created the data directory .*made\.$/m;
    const args = ['create', '--owner', 'me', '--scope', 'admin'].join(' ');
    assert.match((await keys(directory, args)).stderr, made);
    assert.doesNotMatch((await keys(directory, args)).stderr, made);
  });

  it('works with a path that is too long for a socket', async () => {
    const directory = join(folder.path, 'x'.repeat(150));
    const server = serve(directory);
    await server.waitFor(LISTENING);
    await create(directory);
    assert.equal((await list(directory)).length, 1);
    server.signal('SIGTERM');
    assert.equal((await server.ended).code, 0);
  });

  it('is not created by commands that only read', async () => {
    const directory = join(folder.path, 'missing');
    const message = /^sagitta: no data directory at .*missing: it does not exist; name one with/;
    const commands = ['list', 'show x', 'rotate x', 'revoke x'];
    await Promise.all(commands.map((words) => assertFailure(directory, 1, [words, message])));
    await assert.rejects(stat(directory), { code: 'ENOENT' });
    await mkdir(directory);
    const empty = /^sagitta: no data directory at .*missing: it has no store\.lmdb; name one with/;
    await assertFailure(directory, 1, ['list', empty]);
  });

  it('serializes concurrent commands', async () => {
    const directory = join(folder.path, 'together');
    const made = await Promise.all(['a', 'b', 'c'].map(() => create(directory)));
    const ids = (await list(directory)).map(({ id }) => id);
    assert.deepEqual(ids.sort(), made.map(idOf).sort());
  });
});

describe('a key for web pages', () => {
  const PAGE = 'http://localhost:5173';
  const words = `create --owner app --scope vectors:read --origin ${PAGE} --origin https://a.example`;

  it('has origins and a rate, offline and after a restart', async () => {
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
    assert.match(
      used.stderr,
      /only; found no header Origin\. Commands need a key without origins;/,
    );
    const rotated = await keys(directory, `rotate ${record!.id}`);
    assert.match(rotated.stderr, /origins: .*; rate: 0\.5\/s burst 7;/);
    const shown = await succeed(keys(directory, `show ${record!.id}`));
    assert.match(shown, /^allowed_origins +http:\/\/localhost:5173 https:\/\/a\.example$/m);
    server.signal('SIGTERM');
    await server.ended;
  });

  it('names what is wrong with its origin or rate', async () => {
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

describe('a server on a network address', () => {
  it('does not start without credentials, and explains how to create a key', async () => {
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
    server.signal('SIGTERM');
    assert.match((await server.ended).stderr, /"credentials":"required"/);
  });

  it('needs credentials as well before it lets all web pages in', async () => {
    const directory = join(folder.path, 'pages');
    const settings = { SAGITTA_CORS_ORIGINS: '*' };
    const { code, stderr } = await serve(directory, settings).ended;
    assert.equal(code, 1);
    assert.match(stderr, /SAGITTA_CORS_ORIGINS is "\*", but no credentials.* any web page/);
    await create(directory);
    const server = serve(directory, settings);
    await server.waitFor(/listening on/);
    server.signal('SIGTERM');
    assert.equal((await server.ended).code, 0);
  });

  it('starts without credentials with SAGITTA_INSECURE', async () => {
    const settings = { SAGITTA_HOST: '0.0.0.0', SAGITTA_INSECURE: 'yes' };
    const server = serve(join(folder.path, 'insecure'), settings);
    await server.waitFor(/listening on/);
    server.signal('SIGTERM');
    assert.match((await server.ended).stderr, /"credentials":"none configured/);
  });
});

describe('the command', () => {
  it('reports invalid arguments with exit code 2', async () => {
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
});
