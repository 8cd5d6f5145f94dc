// Writes the code caches of the program in dist/app for this version of Node, after a build and when npm installs the
// package. It starts a server first, because V8 caches only functions that have run, and restarts itself with the
// options of scripts/sagitta.cjs, because V8 accepts the caches only with the same options.

import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const STARTED = ['cli/main.code.js', 'main.code.js', 'worker.code.js'];
const OPTIONS = ['--max-semi-space-size=8'];
const START_MS_MAX = 20_000;

const loader = fileURLToPath(new URL('../../dist/app/code-cache.js', import.meta.url));
if (!process.execArgv.includes(OPTIONS[0])) {
  const settings = Object.keys(process.env).filter((name) => name.startsWith('SAGITTA_'));
  const env = {
    ...process.env,
    ...Object.fromEntries(settings.map((name) => [name, undefined])),
    // A build or an installation should not touch the GPU.
    CUDA_VISIBLE_DEVICES: '',
  };
  const { status } = spawnSync(process.execPath, [...OPTIONS, fileURLToPath(import.meta.url)], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env,
  });
  process.exitCode = status ?? 1;
} else if (existsSync(loader)) {
  const { load, save } = createRequire(import.meta.url)(loader);
  const folder = mkdtempSync(join(tmpdir(), 'sagitta-code-cache-'));
  try {
    await serve(load, folder);
    save(STARTED);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Runs the server until it has started. If it cannot start here, it says why, and the caches are merely smaller. */
async function serve(load, folder) {
  const { runCommand } = load(STARTED[0]);
  process.argv.splice(2, Infinity, 'serve', '--data-dir', folder, '--port', '0');
  process.argv.push('--log-level', 'error');
  const write = process.stdout.write;
  let timer;
  const started = new Promise((resolve) => {
    timer = setTimeout(resolve, START_MS_MAX);
    process.stdout.write = (text, ...rest) => {
      if (String(text).includes('is listening')) resolve();
      return write.call(process.stdout, text, ...rest);
    };
  });
  const ended = runCommand();
  await Promise.race([started, ended]);
  clearTimeout(timer);
  process.emit('SIGTERM', 'SIGTERM');
  await ended;
  process.exitCode = 0;
}
