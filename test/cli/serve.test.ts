// `sagitta serve`: its settings, signals and messages. Slower tests are in serve.ci.test.ts.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, readdir, rmdir } from 'node:fs/promises';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { describeSettings } from '../../src/platform/config.js';
import { eventually } from '../support/waiting.js';
import { makeFolder, type RunningCommand, run, start } from './command.js';
import { LISTENING, serverVariables } from './serve-settings.js';

let folder: Awaited<ReturnType<typeof makeFolder>>;
before(async () => {
  folder = await makeFolder();
});
after(() => folder.remove());

const settings = (more?: Readonly<Record<string, string>>) => serverVariables(folder.path, more);

it('the help of serve lists every setting with its variable and default', async () => {
  const { stdout } = await run(['serve', '--help']);
  const words = stdout.replace(/\s+/g, ' ');
  for (const { option, variable, fileVariable, default: value, unit } of describeSettings()) {
    // Every user of the machine can read the options of a process.
    if (fileVariable !== null) continue;
    assert.ok(words.includes(` ${option} <value> `), option);
    const text = value === '' ? [] : [`default ${unit === null ? value : `${value} ${unit}`}`];
    const shown = [variable, ...text].join(', ');
    assert.ok(words.includes(`(${shown})`), shown);
  }
});

describe('a server', () => {
  let server: RunningCommand;
  let url: string;
  before(async () => {
    server = start(['serve', '--port', '0', '--shutdown-ms', '60000'], {
      env: settings({ SAGITTA_PORT: '1', SAGITTA_URL: 'http://x', SAGITTA_API_KEY: 'k' }),
    });
    url = (await server.waitFor(LISTENING))[1]!;
  });

  it('takes options before the environment, and ignores the variables of clients', async () => {
    assert.equal((await fetch(`${url}/livez`)).status, 200);
    assert.notEqual(new URL(url).port, '1');
  });

  it('is ended by a second signal while it waits for its requests', async (t) => {
    const { hostname, port } = new URL(url);
    // A request whose body never arrives keeps the server from stopping until its deadline.
    const socket = connect(Number(port), hostname);
    t.after(() => socket.destroy());
    socket.on('error', () => {});
    socket.write(
      'POST /v1/collections HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n' +
        'content-length: 100\r\n\r\n{',
    );
    await once(socket, 'connect');
    await fetch(`${url}/livez`);
    server.signal('SIGINT');
    // The server has handled the first signal once it accepts no more connections.
    await eventually('no connection is accepted', async () => !(await isListening(url)));
    server.signal('SIGINT');
    const { code, signal, stderr } = await server.ended;
    assert.deepEqual({ code, signal }, { code: null, signal: 'SIGINT' }, stderr);
  });
});

async function isListening(url: string): Promise<boolean> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  const isOpen = await once(socket, 'connect').then(
    () => true,
    () => false,
  );
  socket.destroy();
  return isOpen;
}

it('a command that fails removes a data directory that it created, and keeps any other', async () => {
  const holder = createServer().listen(0, '127.0.0.1');
  await once(holder, 'listening');
  const { port } = holder.address() as AddressInfo;
  const directory = join(folder.path, 'failed');
  const env = settings({ SAGITTA_DATA_DIR: directory, SAGITTA_PORT: String(port) });
  const create = ['keys', 'create', '--owner', 'me', '--scope'];
  try {
    for (const args of [['serve'], [...create, 'everything']]) {
      const failed = await run(args, { env });
      assert.notEqual(failed.code, 0, failed.stdout);
      assert.equal(existsSync(directory), false, args.join(' '));
      await mkdir(directory);
      await run(args, { env });
      assert.deepEqual(await readdir(directory), [], args.join(' '));
      await rmdir(directory);
    }
    assert.equal((await run([...create, 'admin'], { env })).code, 0);
    const before = (await readdir(directory)).toSorted();
    for (const args of [['serve'], [...create, 'everything']]) {
      assert.notEqual((await run(args, { env })).code, 0);
    }
    const rest = (await readdir(directory)).filter((name) => name !== 'control');
    assert.deepEqual(rest.toSorted(), before);
    assert.match((await run(['keys', 'list'], { env })).stdout, /admin/);
  } finally {
    holder.close();
  }
});

it('invalid settings are reported in a line each, with exit code 2', async () => {
  for (const [args, env, message] of [
    [['--port', 'x'], {}, /^sagitta: --port is "x"; expected an integer/],
    [[], { SAGITTA_PROT: '1' }, /^sagitta: SAGITTA_PROT is not a known setting/],
    [
      ['--threads', 'x'],
      { SAGITTA_PROT: '1' },
      /^sagitta: There are 2 problems with the settings:\n {2}SAGITTA_PROT is .*\n {2}--threads is .*\n$/,
    ],
    [
      [],
      { SAGITTA_HOST: '0.0.0.0' },
      /^sagitta: SAGITTA_HOST is "0\.0\.0\.0"; without TLS, expected a loopback/,
    ],
  ] as const) {
    const { code, stdout, stderr } = await run(['serve', ...args], { env: settings(env) });
    assert.equal(code, 2);
    assert.equal(stdout, '');
    assert.match(stderr, message);
  }
});

it('a port in use is reported in one line, with exit code 1', async (t) => {
  const other = createServer().listen(0, '127.0.0.1');
  t.after(() => other.close());
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  for (const command of ['serve', 'demo']) {
    const env = settings({ SAGITTA_PORT: String(port) });
    const { code, stderr } = await run([command], { env });
    assert.equal(code, 1);
    assert.match(
      stderr,
      /^sagitta: Cannot listen on 127\.0\.0\.1:\d+: the address is already in use/,
    );
    assert.doesNotMatch(stderr, /\.js:\d+/);
  }
});
