// The server package, installed with `npm install --global` as users do: with and without install scripts, a compiler
// and kernels that load.

import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, it } from 'node:test';
import { releaseAtEnd } from '../support/leftovers.js';
import { eventually } from '../support/waiting.js';
import { NO_REGISTRY, openWorkshop, run, type Workshop } from './packed.js';

const PLATFORM = `${process.platform}-${process.arch}`;
/** The package contains kernels for this platform only if the cross compiler for it is installed. */
const NO_COMPILER =
  spawnSync(`${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu-g++`, ['--version'])
    .status === 0
    ? false
    : 'needs a C++ compiler for this platform';

describe('the server package', { skip: NO_REGISTRY || NO_COMPILER }, () => {
  let workshop: Workshop;
  /** A folder for the PATH, with node and npm but no compiler. */
  let commands: string;

  before(async () => {
    workshop = await openWorkshop();
    commands = join(workshop.folder, 'commands');
    await mkdir(commands);
    for (const name of ['npm', 'sh', 'env']) {
      const path = execFileSync('which', [name], { encoding: 'utf8' }).trim();
      await symlink(path, join(commands, name));
    }
    await symlink(process.execPath, join(commands, 'node'));
  });
  after(() => workshop.remove());

  /** Installs the package. Returns its folder, its command and a function that runs the command. */
  const install = async (name: string, options: readonly string[], env: NodeJS.ProcessEnv) => {
    const prefix = join(workshop.folder, name);
    const quiet = ['--no-audit', '--no-fund', '--prefer-offline'];
    const words = ['install', '--global', '--prefix', prefix, '--engine-strict', ...quiet];
    await run('npm', [...words, ...options, workshop.archives.sagitta], { env });
    const command = join(prefix, 'bin', 'sagitta');
    return {
      folder: join(prefix, 'lib', 'node_modules', 'sagitta'),
      command,
      sagitta: (...given: readonly string[]) => run(command, given, { env }),
    };
  };
  const SELFTEST = ['selftest', '--threads', '1', '--case', 'reports its name', '--engine'];

  it('runs its kernels without a compiler and without install scripts', async () => {
    const env = { ...process.env, CXX: '', PATH: commands };
    const { folder, command, sagitta } = await install('plain', ['--ignore-scripts'], env);
    assert.match((await sagitta('--version')).stdout, /^\d+\.\d+\.\d+\n$/);
    assert.ok(!existsSync(join(folder, 'build/kernels')));
    assert.match((await sagitta(...SELFTEST, 'simd')).stdout, /^Passed: simd\b/m);
    await checkServer(command, ['serve'], {
      ...env,
      SAGITTA_DATA_DIR: join(workshop.folder, 'data'),
    });
    await checkServer(command, ['demo'], {
      ...env,
      SAGITTA_DATA_DIR: join(workshop.folder, 'demo'),
    });

    // Imitates a platform without kernels.
    await rename(join(folder, 'build'), join(folder, 'unused'));
    await assert.rejects(
      sagitta(...SELFTEST, 'simd'),
      /install a C\+\+ compiler .* and run `node .*build-kernels\.mjs`/,
    );
    const advice = await sagitta(...SELFTEST, 'wasm').then(
      () => assert.fail('the packages of the wasm engine are installed by default'),
      (error: Error) => /run `npm install ([^`]+)`/.exec(error.message),
    );
    assert.ok(advice, 'the error does not say how to install them');
    const prefix = ['--global', '--prefix', join(workshop.folder, 'plain')];
    await run('npm', ['install', ...prefix, '--ignore-scripts', ...advice[1]!.split(' ')], { env });
    assert.match((await sagitta(...SELFTEST, 'wasm')).stdout, /^Passed: wasm\b/m);
  });

  it('builds kernels if the included ones do not load', async () => {
    const { folder, sagitta } = await install('built', [], process.env);
    assert.ok(!existsSync(join(folder, 'build/kernels/sagitta.node')), 'the kernels load here');
    await rm(join(folder, 'build/kernels'), { recursive: true, force: true });
    await writeFile(
      join(folder, 'build/prebuilt', PLATFORM, 'sagitta.node'),
      'of another platform',
    );
    await run(process.execPath, [join(folder, 'scripts/install.mjs')]);
    assert.ok(existsSync(join(folder, 'build/kernels/sagitta.node')));
    assert.match((await sagitta(...SELFTEST, 'simd')).stdout, /^Passed: simd\b/m);
  });
});

/** Starts the command, requests the console and the API, and stops it. */
async function checkServer(command: string, words: readonly string[], env: NodeJS.ProcessEnv) {
  const child = spawn(command, words, {
    env: { ...env, SAGITTA_PORT: '0', SAGITTA_LOG_LEVEL: 'warn' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const isEnded = releaseAtEnd(() => child.kill('SIGKILL'));
  const ended = once(child, 'close');
  for await (const line of createInterface({ input: child.stdout })) {
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0];
    if (url === undefined) continue;
    child.stdout.resume();
    for (const path of ['/v1/collections', '/console/', '/openapi.json']) {
      // The demo answers 503 until it has loaded its samples.
      await eventually(`${path} is served`, async () => (await fetch(url + path)).status === 200);
    }
    child.kill('SIGTERM');
    break;
  }
  assert.deepEqual(await ended, [0, null]);
  isEnded();
}
