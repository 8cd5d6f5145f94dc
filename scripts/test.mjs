// Runs the compiled tests with Node's test runner and exits with its code. The files of a folder
// share a process, in which each is a suite: starting a process and loading the server takes most of
// a second. Files named *.long.test.ts run only with --full, with which other tests do more rounds.
//
//   npm test                                    the tests that take seconds
//   npm run test:full                           all tests
//   npm run test:full -- --rest                 those of them that `npm test` does not run, or runs with fewer rounds
//   npm test -- server/routes                   files whose path contains `server/routes`
//   npm test -- --test-name-pattern=cursor      options of Node's test runner

import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Ends a process that hangs, so that the others still report; the longest takes some minutes. */
const TEST_MS_MAX = 1_800_000;

/** Processes at once: one more than two cores, since tests also wait for timeouts and processes. */
const CONCURRENCY = 3;
/** Folders that take longest, which start first so that no process runs alone at the end. */
const LONGEST_FIRST = ['conformance', 'cli', 'server/auth', 'server/transport', 'server/ingest'];

const root = fileURLToPath(new URL('..', import.meta.url));
const isFull = process.argv.includes('--full');
const isRest = process.argv.includes('--rest');
const options = process.argv
  .slice(2)
  .filter((word) => word.startsWith('-') && word !== '--full' && word !== '--rest');
const parts = process.argv.slice(2).filter((word) => !word.startsWith('-'));

const files = readdirSync(join(root, 'test'), { recursive: true })
  .filter((path) => path.endsWith('.test.ts'))
  // A long test that is named is run.
  .filter((path) => isFull || parts.length > 0 || !path.endsWith('.long.test.ts'))
  .filter((path) => !isRest || path.endsWith('.long.test.ts') || hasMoreRounds(path))
  .filter((path) => parts.length === 0 || parts.some((part) => path.includes(part)))
  .sort();

if (files.length === 0)
  fail(`no test file has ${parts.map((part) => `"${part}"`).join(' or ')} in its path`);
const missing = files.find((file) => !existsSync(compiled(file)));
if (missing !== undefined) fail(`${compiled(missing)} is missing: run \`npm run build\` first`);

const runner = spawn(
  process.execPath,
  [
    '--test',
    '--enable-source-maps',
    '--test-reporter=spec',
    `--test-concurrency=${CONCURRENCY}`,
    `--test-timeout=${TEST_MS_MAX}`,
    ...options,
    ...writeGroups(groupByFolder(files)),
  ],
  {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, ...(isFull ? { SAGITTA_TEST_FULL: '1' } : {}) },
  },
);
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => runner.kill(signal));
runner.on('exit', (code, signal) => {
  process.exitCode = code ?? 128 + (constants.signals[signal] ?? 0);
});

/** Whether the test, or the contract beside it that it runs, does more with --full. */
function hasMoreRounds(path) {
  const source = readFileSync(join(root, 'test', path), 'utf8');
  return /\/(full|contract)\.js'/.test(source);
}

/** Files by the name of their group, in the order in which the groups start. */
function groupByFolder(paths) {
  const groups = new Map(LONGEST_FIRST.map((folder) => [folder, []]));
  for (const path of paths) {
    // Long tests kill processes and fill the memory: each has a process of its own.
    const name = path.endsWith('.long.test.ts') ? path : dirname(path);
    groups.set(name, [...(groups.get(name) ?? []), path]);
  }
  return [...groups].filter(([, own]) => own.length > 0);
}

/** Writes a program for each group, which imports its files as suites; returns the paths. */
function writeGroups(groups) {
  const folder = join(root, 'dist', 'test-groups');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  return groups.map(([name, paths]) => {
    const importOf = (path) => JSON.stringify(`./${relative(folder, compiled(path))}`);
    const suites = paths.map(
      (path) => `describe(${JSON.stringify(path)}, async () => {
  after(releaseLeftovers);
  await import(${importOf(path)});
});
`,
    );
    const program = join(folder, `${name.replaceAll('/', '-')}.mjs`);
    writeFileSync(
      program,
      `import { after, describe } from 'node:test';
import { releaseLeftovers } from ${importOf('support/leftovers.ts')};
${suites.join('')}`,
    );
    return program;
  });
}

function compiled(path) {
  return join(root, 'dist', 'test', path.replace(/\.ts$/, '.js'));
}

function fail(message) {
  console.error(message);
  process.exit(1);
}
