// Runs the compiled tests with node's own runner and exits with its code. Every test/**/*.test.ts
// is run from its place in dist; a compiled test whose source is gone is not.
//
//   npm test                                    everything
//   npm test -- http/query                      files whose path contains `http/query`
//   npm test -- --test-name-pattern=cursor      what node's runner takes as an option

import { spawn } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Each test file is a process of its own; servers and worker pools make more than two too many. */
const CONCURRENCY = 2;

const root = fileURLToPath(new URL('..', import.meta.url));
const options = process.argv.slice(2).filter((argument) => argument.startsWith('-'));
const parts = process.argv.slice(2).filter((argument) => !argument.startsWith('-'));

const files = readdirSync(join(root, 'test'), { recursive: true })
  .filter((path) => path.endsWith('.test.ts'))
  .filter((path) => parts.length === 0 || parts.some((part) => path.includes(part)))
  .sort()
  .map((path) => join('dist', 'test', path.replace(/\.ts$/, '.js')));

if (files.length === 0)
  fail(`no test file has ${parts.map((part) => `"${part}"`).join(' or ')} in its path`);
const missing = files.filter((file) => !existsSync(join(root, file)));
if (missing.length > 0) fail(`${missing[0]} is missing: run \`npm run build\` first`);

const runner = spawn(
  process.execPath,
  [
    '--test',
    '--enable-source-maps',
    '--test-reporter=spec',
    `--test-concurrency=${CONCURRENCY}`,
    ...options,
    ...files,
  ],
  { cwd: root, stdio: 'inherit' },
);
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => runner.kill(signal));
runner.on('exit', (code, signal) => {
  process.exitCode = code ?? 128 + (constants.signals[signal] ?? 0);
});

function fail(message) {
  console.error(message);
  process.exit(1);
}
