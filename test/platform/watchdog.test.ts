// The watchdog answers while the main thread is blocked, says so, and reports to systemd only while it runs.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { loadConfig } from '../../src/platform/config.js';
import { Watchdog } from '../../src/platform/watchdog.js';
import { eventually } from '../support/waiting.js';

const OWNER = fileURLToPath(new URL('watchdog-owner.js', import.meta.url));

async function startOwner(t: TestContext, words: string[] = [], env = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'sagitta-watchdog-'));
  t.after(() => rm(folder, { recursive: true }));
  const release = join(folder, 'release');
  const child: ChildProcess = spawn(process.execPath, [OWNER, release, ...words], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  });
  t.after(() => child.kill('SIGKILL'));
  let output = '';
  let log = '';
  child.stdout!.on('data', (bytes) => (output += bytes));
  child.stderr!.on('data', (bytes) => (log += bytes));
  await eventually('it listens', () => output.includes('\n'));
  const port = Number.parseInt(output, 10);
  return {
    child,
    block: () => child.stdin!.write('b'),
    release: () => writeFile(release, ''),
    log: () => log,
    output: () => output,
    live: async (path = '/livez') => {
      const reply = await fetch(`http://127.0.0.1:${port}${path}`);
      return { status: reply.status, json: (await reply.json()) as Record<string, string> };
    },
  };
}

describe('the watchdog', () => {
  it('answers 503 while the main thread is blocked, and logs when it was', async (t) => {
    const { child, block, release, live, log, output } = await startOwner(t);
    assert.deepEqual(await live(), { status: 200, json: { status: 'live' } });
    assert.equal((await live('/metrics')).status, 404);
    block();
    await eventually('it is blocked', async () => (await live()).status === 503);
    assert.match((await live()).json.reason ?? '', /^The main thread has not run for \d+\.\d s/);
    await eventually('it is logged', () => log().includes('has not run since'));
    await release();
    await eventually(
      'it runs',
      async () => output().includes('runs') && (await live()).status === 200,
    );
    await eventually('that is logged', () => log().includes('runs again after'));
    const lines = log()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    assert.equal(lines.length, 2, log());
    assert.ok(lines[1].milliseconds > 1_000);
    child.stdin!.end('q');
    // Neither its thread nor its timer keeps the process alive.
    const [code] = await once(child, 'exit');
    assert.equal(code, 0);
  });

  it('reports to systemd that the service is ready, runs and stops', async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'sagitta-notify-'));
    t.after(() => rm(folder, { recursive: true }));
    const notified = join(folder, 'notified');
    // Stands in for the command of systemd, which is not installed everywhere.
    const command = join(folder, 'systemd-notify');
    await writeFile(command, `#!/bin/sh\necho "$NOTIFY_SOCKET $*" >> '${notified}'\n`);
    await chmod(command, 0o755);
    const states = async () => {
      const text = await readFile(notified, 'utf8').catch(() => '');
      return text.split('\n').slice(0, -1);
    };
    const env = { PATH: `${folder}:${process.env.PATH}`, NOTIFY_SOCKET: '@test' };
    const { child, block, release, live, log } = await startOwner(t, ['400'], env);
    await eventually('it runs', async () => (await states()).includes('@test WATCHDOG=1'));
    assert.equal((await states())[0], '@test READY=1');
    block();
    await eventually('it is blocked', async () => (await live()).status === 503);
    await eventually('it is logged', () => log().includes('has not run since'));
    // A report that had begun before may still arrive, but no further ones.
    const before = (await states()).length;
    const stillMs = async () => Number.parseFloat((await live()).json.reason!.slice(32));
    const startMs = await stillMs();
    await eventually('several intervals pass', async () => (await stillMs()) > startMs + 1);
    const { length } = await states();
    assert.ok(length <= before + 1, `${length - before} reports while blocked`);
    await release();
    await eventually('it reports again', async () => (await states()).length > length);
    child.stdin!.end('q');
    await eventually('it stops', async () => (await states()).includes('@test STOPPING=1'));
  });

  it('starts nothing unless systemd asks for reports', () => {
    const of = (env: Record<string, string>) => loadConfig({ env }).serviceManager;
    assert.equal(of({}), null);
    assert.equal(of({ WATCHDOG_USEC: '30000000' }), null);
    assert.deepEqual(of({ NOTIFY_SOCKET: '/s' }), { watchdogMs: null });
    assert.deepEqual(of({ NOTIFY_SOCKET: '/s', WATCHDOG_USEC: '30000000' }), {
      watchdogMs: 30_000,
    });
  });

  it('rejects with the error of the system if its port is in use', async (t) => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => server.close());
    const { port } = server.address() as { port: number };
    const config = { host: '127.0.0.1', livenessPort: port, serviceManager: null };
    await assert.rejects(
      Watchdog.start({ config, logFormat: null, onFailure: () => {} }),
      /EADDRINUSE/,
    );
  });
});
