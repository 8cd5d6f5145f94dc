// The commands of a checkout as npm runs them: before the first build, without development packages, and when npm
// receives a signal.

import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, beforeEach, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { releaseAtEnd } from '../support/leftovers.js';
import { eventually, WAIT_MS_MAX } from '../support/waiting.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

describe('a checkout', () => {
  let scratch: string;
  let checkout: string;
  let env: NodeJS.ProcessEnv;

  before(async () => {
    scratch = await mkdtemp(join(tmpdir(), 'sagitta-checkout-'));
    env = {
      ...process.env,
      npm_config_cache: join(scratch, 'cache'),
      npm_config_offline: 'true',
      npm_config_update_notifier: 'false',
      SAGITTA_PORT: '0',
      SAGITTA_DATA_DIR: join(scratch, 'data'),
    };
  });
  after(() => rm(scratch, { recursive: true }));
  beforeEach(async () => {
    checkout = await mkdtemp(join(scratch, 'checkout-'));
    for (const path of ['package.json', 'scripts', 'packages/client/package.json']) {
      await cp(join(ROOT, path), join(checkout, path), { recursive: true });
    }
  });

  /** Creates what `npm run build` would, but no node_modules, as without development packages. */
  const build = async () => {
    await mkdir(join(checkout, 'dist'));
    await symlink(join(ROOT, 'dist', 'app'), join(checkout, 'dist', 'app'));
    await symlink(join(ROOT, 'examples'), join(checkout, 'examples'));
  };
  const run = (command: string, ...words: readonly string[]) =>
    new Promise<{ code: unknown; stdout: string; stderr: string }>((resolve) => {
      execFile(command, words, { cwd: checkout, env }, (error, stdout, stderr) => {
        resolve({ code: error?.code ?? 0, stdout, stderr });
      });
    });
  const start = async (
    ...words: readonly string[]
  ): Promise<{ npm: ChildProcess; url: string }> => {
    const npm = spawn('npm', words, { cwd: checkout, env, stdio: ['ignore', 'pipe', 'inherit'] });
    const isEnded = releaseAtEnd(() => npm.kill());
    npm.on('close', isEnded);
    for await (const line of createInterface({ input: npm.stdout })) {
      const url = /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0];
      if (url !== undefined) return { npm, url };
    }
    throw new Error(`npm ${words.join(' ')} ended without a URL (exit code ${npm.exitCode})`);
  };

  it('has a command that asks for a build and works through the same link afterwards', async () => {
    const early = await run('npx', '--yes', 'sagitta', '--version');
    assert.equal(early.code, 1);
    assert.match(early.stderr, /sagitta: .*checkout-.* is not built yet; run `npm ci && npm run/);
    await build();
    const late = await run('npx', '--yes', 'sagitta', '--version');
    assert.equal(late.code, 0, late.stderr);
    assert.match(late.stdout, /^\d+\.\d+\.\d+$/m);
  });

  it('says what to do if nothing is built and TypeScript is not installed', async () => {
    const { code, stderr } = await run('npm', 'start');
    assert.equal(code, 1);
    assert.match(stderr, /Expected the development packages.*`npm ci && npm run build`/);
  });

  for (const words of [['start'], ['run', 'demo']]) {
    const name = `npm ${words.join(' ')}`;
    it(`${name} runs the build without TypeScript, and SIGTERM stops the server`, async () => {
      await build();
      const { npm, url } = await start(...words);
      assert.equal((await fetch(`${url}/livez`)).status, 200);
      npm.kill('SIGTERM');
      await once(npm, 'close', { signal: AbortSignal.timeout(WAIT_MS_MAX) });
      await eventually('the port is closed', async () => {
        return await fetch(url).then(
          () => false,
          () => true,
        );
      });
    });
  }
});
