// Writes the code caches of the program in dist/app for this version of Node. Runs after a build, and when npm installs
// the package. V8 accepts them only with the options of scripts/sagitta.mjs, so this script starts itself with them.

import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const STARTED = ['cli/main.code.js', 'main.code.js', 'worker.code.js'];
const OPTIONS = ['--max-semi-space-size=8'];

const loader = fileURLToPath(new URL('../../dist/app/code-cache.js', import.meta.url));
if (!process.execArgv.includes(OPTIONS[0])) {
  const { status } = spawnSync(process.execPath, [...OPTIONS, fileURLToPath(import.meta.url)], {
    stdio: 'inherit',
  });
  process.exitCode = status ?? 1;
} else if (existsSync(loader)) {
  const { save } = createRequire(import.meta.url)(loader);
  save(STARTED);
}
