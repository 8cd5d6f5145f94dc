// `sagitta serve` in environments that each need their own server: Kubernetes, all addresses, terminals.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { after, before, it } from 'node:test';
import { packageFile } from '../../src/common/package-files.js';
import { makeFolder, type RunningCommand, start } from './command.js';
import { LISTENING, serverVariables } from './serve-settings.js';

let folder: Awaited<ReturnType<typeof makeFolder>>;
before(async () => {
  folder = await makeFolder();
});
after(() => folder.remove());

const settings = (more?: Readonly<Record<string, string>>) => serverVariables(folder.path, more);

async function stop(server: RunningCommand): Promise<void> {
  server.signal('SIGTERM');
  const { code, stderr } = await server.ended;
  assert.equal(code, 0, stderr);
}

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
  await stop(server);
});

it('serve names a URL that a browser can open when it listens on all addresses', async () => {
  for (const [settingsOfHost, expected] of [
    [{}, /^http:\/\/localhost:\d+$/],
    [{ SAGITTA_HOST_NAMES: 'vectors.example.org,other' }, /^http:\/\/vectors\.example\.org:\d+$/],
  ] as const) {
    const server = start(['serve'], {
      env: settings({ SAGITTA_HOST: '0.0.0.0', SAGITTA_INSECURE: 'yes', ...settingsOfHost }),
    });
    const [, url] = await server.waitFor(LISTENING);
    assert.match(url!, expected);
    await stop(server);
  }
});

it('serve continues after SIGHUP without a terminal, as under nohup', async () => {
  const server = start(['serve'], { env: settings() });
  const [, url] = await server.waitFor(LISTENING);
  server.signal('SIGHUP');
  assert.equal((await fetch(`${url}/livez`)).status, 200);
  await stop(server);
});

it('serve names the limit of open files when it is too low', () => {
  const command = `ulimit -n 128; exec '${process.execPath}' '${packageFile('scripts/sagitta.cjs')}' serve`;
  const env = { ...process.env, ...settings() };
  const { status, stderr } = spawnSync('sh', ['-c', command], { env, encoding: 'utf8' });
  assert.equal(status, 1);
  assert.match(stderr, /may open only 128 files and connections, and the server needs 256; raise/);
});

const hasTerminal = spawnSync('script', ['--version']).status === 0;

it('the log of serve is text on a terminal and JSON elsewhere, unless the setting says otherwise', {
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
