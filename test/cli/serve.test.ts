// `sagitta serve` and `sagitta demo`: settings, signals, restarts, and the commands that the demo prints.

import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { describeSettings } from '../../src/platform/config.js';
import { eventually } from '../support/waiting.js';
import { makeFolder, run, start } from './command.js';

let folder: Awaited<ReturnType<typeof makeFolder>>;
before(async () => {
  folder = await makeFolder();
});
after(() => folder.remove());

const LISTENING = /listening on (http:\S+?)\. /;

function settings(rest: Readonly<Record<string, string>> = {}): Record<string, string> {
  return {
    SAGITTA_PORT: '0',
    SAGITTA_DATA_DIR: folder.path,
    SAGITTA_ENGINE: 'reference',
    SAGITTA_THREADS: '1',
    SAGITTA_LOG_LEVEL: 'silent',
    ...rest,
  };
}

it('the help of serve lists every setting with its variable and default', async () => {
  const { stdout } = await run(['serve', '--help']);
  const words = stdout.replace(/\s+/g, ' ');
  for (const { option, variable, default: value, unit } of describeSettings()) {
    assert.ok(words.includes(` ${option} <value> `), option);
    const text = value === '' ? [] : [`default ${unit === null ? value : `${value} ${unit}`}`];
    const shown = [variable, ...text].join(', ');
    assert.ok(words.includes(`(${shown})`), shown);
  }
});

it('options override the environment, and the client variables are ignored', async () => {
  const server = start(['serve', '--port', '0'], {
    env: settings({ SAGITTA_PORT: '1', SAGITTA_URL: 'http://x', SAGITTA_API_KEY: 'k' }),
  });
  const [, url] = await server.waitFor(LISTENING);
  assert.equal((await fetch(`${url}/livez`)).status, 200);
  server.signal('SIGTERM');
  assert.equal((await server.ended).code, 0);
});

it('a command that fails leaves no data directory that it made, and keeps any other', async () => {
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

it('the variables of a Kubernetes Service named sagitta do not stop the server', async () => {
  const server = start(['serve', '--port', '0'], {
    env: settings({
      SAGITTA_LOG_LEVEL: 'info',
      SAGITTA_SERVICE_HOST: '10.96.12.7',
      SAGITTA_SERVICE_PORT: '8484',
      SAGITTA_SERVICE_PORT_HTTP: '8484',
      SAGITTA_PORT: 'tcp://10.96.12.7:8484',
      SAGITTA_PORT_8484_TCP: 'tcp://10.96.12.7:8484',
      SAGITTA_PORT_8484_TCP_PROTO: 'tcp',
      SAGITTA_PORT_8484_TCP_PORT: '8484',
      SAGITTA_PORT_8484_TCP_ADDR: '10.96.12.7',
    }),
  });
  await server.waitFor(LISTENING);
  const [line] = await server.waitForStderr(/^.*ignored variables that Kubernetes sets.*$/m);
  assert.equal((JSON.parse(line) as { variables: string[] }).variables.length, 8);
  server.signal('SIGTERM');
  assert.equal((await server.ended).code, 0);
});

it('names a URL that a browser can open when it listens on all addresses', async () => {
  for (const [settingsOfHost, expected] of [
    [{}, /^http:\/\/localhost:\d+$/],
    [{ SAGITTA_HOST_NAMES: 'vectors.example.org,other' }, /^http:\/\/vectors\.example\.org:\d+$/],
  ] as const) {
    const server = start(['serve'], {
      env: settings({ SAGITTA_HOST: '0.0.0.0', SAGITTA_INSECURE: 'yes', ...settingsOfHost }),
    });
    const [, url] = await server.waitFor(LISTENING);
    assert.match(url!, expected);
    server.signal('SIGTERM');
    assert.equal((await server.ended).code, 0);
  }
});

const hasTerminal = spawnSync('script', ['--version']).status === 0;

it('logs are text on a terminal and JSON elsewhere, unless the setting says otherwise', {
  skip: hasTerminal ? false : 'script, which makes a terminal, is not installed',
}, async () => {
  const text = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z info {2}listening {2}url=http:\S+ /m;
  const json = /^\{"level":30,"time":\d+,"url":"http:[^"]+",.*"msg":"listening"\}\r?$/m;
  for (const [isTerminal, format, expected] of [
    [true, 'auto', text],
    [true, 'json', json],
    [false, 'auto', json],
    [false, 'text', text],
  ] as const) {
    const env = settings({ SAGITTA_LOG_LEVEL: 'info', SAGITTA_LOG_FORMAT: format });
    const server = start(['serve'], { env, isOnTerminal: isTerminal });
    const waiting = isTerminal ? server.waitFor(expected) : server.waitForStderr(expected);
    await Promise.all([waiting, server.waitFor(LISTENING)]);
    server.signal('SIGTERM');
    await server.ended;
  }
});

it('a second signal ends a server that waits for its requests', async (t) => {
  const server = start(['serve', '--shutdown-ms', '60000'], { env: settings() });
  const [, url] = await server.waitFor(LISTENING);
  const { hostname, port } = new URL(url!);
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
  while (await isListening(url!)) await sleep(5);
  server.signal('SIGINT');
  const { code, signal, stderr } = await server.ended;
  assert.deepEqual({ code, signal }, { code: null, signal: 'SIGINT' }, stderr);
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

const hasCurl = spawnSync('curl', ['--version']).status === 0;
const skip = hasCurl ? false : 'curl is not installed';

it('the demo loads its samples once and prints commands that work', {
  skip,
}, async () => {
  const first = start(['demo'], { env: settings() });
  const [welcome] = await first.waitFor(/Sagitta is listening on[\s\S]*is kept\.\n/);
  const [loading, ...commands] = [
    (await first.waitFor(/Loaded 4 200 vectors/))[0],
    ...[...welcome.matchAll(/^ {2}((?:curl|cursor=).*)$/gm)].map(([, command]) => command!),
  ];
  assert.ok(loading);
  await first.waitFor(/Loaded 1 797 vectors into the collection digits/);
  const [, consoleUrl] = await first.waitFor(/^Console: (http:\S+\/console\/)$/m);
  assert.equal(commands.length, 3);
  const paste = async (command: string) => {
    const { stdout, stderr } = await promisify(execFile)('bash', ['-c', command]);
    assert.equal(stderr, '');
    return stdout.trim().split('\n');
  };
  const near = await paste(commands[0]!);
  assert.equal(near.length, 5);
  assert.match(near[0]!, /^0\.947 n02070624 harbor porpoise - the common porpoise/);
  const filtered = await paste(commands[1]!);
  assert.equal(filtered.length, 5);
  assert.match(filtered[1]!, /^0\.641 n01666228 common snapping turtle/);
  const next = await paste(commands[2]!);
  assert.equal(next.length, 5);
  assert.match(next[0]!, /^0\.653 n02033779 European curlew/);
  const digits = await fetch(new URL('/v1/collections/digits', consoleUrl));
  const { labels } = (await digits.json()) as { labels: Record<string, string> };
  assert.deepEqual(labels, { preview: 'values:8x8', sample: 'loaded' });
  const [, docs] = /API documentation: (\S+)/.exec(welcome)!;
  assert.equal((await fetch(docs!)).status, 200);
  assert.equal(new URL(consoleUrl!).origin, new URL(docs!).origin);

  first.signal('SIGINT');
  const { code, stderr } = await first.ended;
  assert.equal(code, 0);
  assert.match(stderr, /^Loading wordnet: 100 % {2}4 200 rows/m);

  const second = start(['demo', '--open'], { env: settings({ SAGITTA_CONSOLE: 'off' }) });
  await second.waitFor(/Using the existing collection wordnet \(4 200 vectors\)\./);
  await second.waitFor(/Using the existing collection digits \(1 797 vectors\)\./);
  const [printed] = await second.waitFor(
    /[\s\S]*not opened: SAGITTA_CONSOLE has switched it off\./,
  );
  assert.doesNotMatch(printed, /^Console:/m);
  second.signal('SIGTERM');
  assert.equal((await second.ended).stderr, '');
});

it('the demo has options for its address and directory, and says that it made one', async () => {
  const directory = join(folder.path, 'demo-data');
  const args = ['demo', '--port', '0', '--data-dir', directory];
  const demo = start(args, { env: settings({ SAGITTA_PORT: '1' }) });
  await demo.waitFor(/^Created the data directory .*demo-data\.$/m);
  const [, url] = await demo.waitFor(LISTENING);
  assert.equal((await fetch(`${url}/v1/collections/wordnet`)).status, 200);
  assert.ok(existsSync(directory));
  demo.signal('SIGTERM');
  assert.equal((await demo.ended).code, 0);
  const wrong = await run(['demo', '--port', 'x'], { env: settings() });
  assert.equal(wrong.code, 2);
  assert.match(wrong.stderr, /--port is "x"; expected an integer/);
});

it('the demo completes an unfinished load on its next start', async () => {
  const { path, remove } = await makeFolder();
  const env = settings({ SAGITTA_DATA_DIR: path });
  const server = start(['serve'], { env });
  const [, url] = await server.waitFor(LISTENING);
  const created = await fetch(`${url}/v1/collections`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"id":"wordnet","dimension":256,"labels":{"sample":"loading"}}',
  });
  assert.equal(created.status, 200);
  server.signal('SIGTERM');
  await server.ended;
  const demo = start(['demo'], { env });
  await demo.waitFor(/Loaded 4 200 vectors/);
  demo.signal('SIGTERM');
  assert.equal((await demo.ended).code, 0);
  await remove();
});

it('the demo opens the console on a desktop, and goes on without one', async () => {
  const bin = await makeFolder();
  const opened = join(bin.path, 'opened');
  await writeFile(join(bin.path, 'xdg-open'), `#!/bin/sh\necho "$1" > '${opened}'\n`, {
    mode: 0o755,
  });
  const path = `${bin.path}:${process.env.PATH}`;
  for (const [display, expected] of [
    ['', /not opened: there is no desktop/],
    [':0', /is kept\./],
  ] as const) {
    const env = settings({ PATH: path, DISPLAY: display, WAYLAND_DISPLAY: '' });
    const demo = start(['demo', '--open'], { env });
    await demo.waitFor(expected);
    const [, url] = await demo.waitFor(/^Console: (\S+)$/m);
    if (display !== '') {
      const isOpened = async () => (await readFile(opened, 'utf8').catch(() => '')) === `${url}\n`;
      await eventually('xdg-open gets the address of the console', isOpened);
    }
    demo.signal('SIGTERM');
    assert.equal((await demo.ended).code, 0);
  }
  await bin.remove();
});
