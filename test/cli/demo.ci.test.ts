// `sagitta demo`: its samples, the commands that it prints, and the console that it opens.

import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { eventually } from '../support/waiting.js';
import { makeFolder, type RunningCommand, run, start } from './command.js';
import { LISTENING, serverVariables } from './serve-settings.js';

const hasCurl = spawnSync('curl', ['--version']).status === 0;

async function stop(server: RunningCommand): Promise<void> {
  server.signal('SIGTERM');
  const { code, stderr } = await server.ended;
  assert.equal(code, 0, stderr);
}

describe('the demo on a new data directory, and on it again', () => {
  let folder: Awaited<ReturnType<typeof makeFolder>>;
  let directory: string;
  let first: RunningCommand;
  let welcome: string;
  const settings = (more?: Readonly<Record<string, string>>) => serverVariables(directory, more);
  before(async () => {
    folder = await makeFolder();
    directory = join(folder.path, 'demo-data');
    const args = ['demo', '--port', '0', '--data-dir', directory];
    const env = settings({ SAGITTA_PORT: '1', SAGITTA_DATA_DIR: join(folder.path, 'unused') });
    first = start(args, { env });
    [welcome] = await first.waitFor(/Sagitta is listening on[\s\S]*is kept\.\n/);
  });
  after(() => folder.remove());

  it('demo --port --data-dir reports that it created the directory', async () => {
    await first.waitFor(/^Created the data directory .*demo-data\.$/m);
  });

  it('the demo reports that it is loading, and other clients get 503 until it is done', async () => {
    const other = await makeFolder();
    const demo = start(['demo'], { env: serverVariables(join(other.path, 'data')) });
    const [, url] = await demo.waitFor(/^Sagitta is starting on (\S+) and answers 503 until/m);
    const reply = await fetch(`${url}/v1/collections/wordnet`);
    const { code } = (await reply.json()) as { code?: string };
    // A fast machine may have loaded everything by now.
    const isLoaded = reply.status === 200;
    if (!isLoaded) assert.deepEqual([reply.status, code], [503, 'starting']);
    await demo.waitFor(/is kept\.\n/);
    assert.equal((await fetch(`${url}/readyz`)).status, 200);
    await stop(demo);
    await other.remove();
  });

  it('the demo loads both samples', async () => {
    await first.waitFor(/Loaded 4,200 vectors/);
    await first.waitFor(/Loaded 1,797 vectors into the collection digits/);
    const [, url] = await first.waitFor(LISTENING);
    const digits = await fetch(new URL('/v1/collections/digits', url));
    const { labels } = (await digits.json()) as { labels: Record<string, string> };
    assert.deepEqual(labels, { preview: 'values:8x8', sample: 'loaded' });
  });

  it('the demo prints the addresses of its console and of the API documentation', async () => {
    const [, consoleUrl] = await first.waitFor(/^Console: (http:\S+\/console\/)$/m);
    const [, docs] = /API documentation: (\S+)/.exec(welcome)!;
    assert.equal((await fetch(docs!)).status, 200);
    assert.equal(new URL(consoleUrl!).origin, new URL(docs!).origin);
  });

  it('the demo prints four commands for a shell, which find what they say', {
    skip: hasCurl ? false : 'curl is not installed',
  }, async () => {
    const commands = [...welcome.matchAll(/^ {2}((?:curl|cursor=).*)$/gm)].map(
      ([, command]) => command!,
    );
    const expected = [
      [0, /^0\.684 n02123045 tabby - a cat/],
      [0, /^0\.777 n07778938 dolphinfish - /],
      [2, /^0\.697 n02070624 harbor porpoise - the common porpoise/],
      [1, /^0\.724 n02547733 batfish/],
    ] as const;
    assert.equal(commands.length, expected.length);
    for (const [at, command] of commands.entries()) {
      const { stdout, stderr } = await promisify(execFile)('bash', ['-c', command]);
      assert.equal(stderr, '');
      const lines = stdout.trim().split('\n');
      assert.equal(lines.length, 5);
      const [line, pattern] = expected[at]!;
      assert.match(lines[line]!, pattern);
    }
  });

  it('Ctrl-C ends the demo with exit code 0', async () => {
    first.signal('SIGINT');
    const { code, stderr } = await first.ended;
    assert.equal(code, 0, stderr);
    assert.match(stderr, /^Loading wordnet: 100 % {2}4,200 rows/m);
  });

  it('the next start of the demo uses the samples that are loaded', async () => {
    const second = start(['demo', '--open'], { env: settings({ SAGITTA_CONSOLE: 'off' }) });
    await second.waitFor(/Using the existing collection wordnet \(4,200 vectors\)\./);
    await second.waitFor(/Using the existing collection digits \(1,797 vectors\)\./);
    const [printed] = await second.waitFor(
      /[\s\S]*open the console: SAGITTA_CONSOLE turns it off\./,
    );
    assert.doesNotMatch(printed, /^Console:/m);
    second.signal('SIGTERM');
    assert.equal((await second.ended).stderr, '');
  });

  it('demo --open opens the console on a desktop, and goes on without one', async () => {
    const bin = await makeFolder();
    const opened = join(bin.path, 'opened');
    await writeFile(join(bin.path, 'xdg-open'), `#!/bin/sh\necho "$1" > '${opened}'\n`, {
      mode: 0o755,
    });
    const path = `${bin.path}:${process.env.PATH}`;
    for (const [display, expected] of [
      ['', /open the console: this machine has no desktop/],
      [':0', /is kept\./],
    ] as const) {
      const env = settings({ PATH: path, DISPLAY: display, WAYLAND_DISPLAY: '' });
      const demo = start(['demo', '--open'], { env });
      await demo.waitFor(expected);
      const [, url] = await demo.waitFor(/^Console: (\S+)$/m);
      if (display !== '') {
        const isOpened = async () =>
          (await readFile(opened, 'utf8').catch(() => '')) === `${url}\n`;
        await eventually('xdg-open gets the address of the console', isOpened);
      }
      await stop(demo);
    }
    await bin.remove();
  });
});

it('the demo completes an unfinished load on its next start', async () => {
  const { path, remove } = await makeFolder();
  const env = serverVariables(path);
  const server = start(['serve'], { env });
  const [, url] = await server.waitFor(LISTENING);
  const created = await fetch(`${url}/v1/collections`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"id":"wordnet","dimension":512,"vectors":{"terms":{"dimension":256}},"labels":{"sample":"loading"}}',
  });
  assert.equal(created.status, 200);
  await stop(server);
  const demo = start(['demo'], { env });
  await demo.waitFor(/Loaded 4,200 vectors/);
  await stop(demo);
  await remove();
});

it('the demo refuses an invalid port with exit code 2', async () => {
  const { code, stderr } = await run(['demo', '--port', 'x']);
  assert.equal(code, 2);
  assert.match(stderr, /--port is "x"; expected an integer/);
});
